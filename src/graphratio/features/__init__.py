"""From points to features: kernels, the dictionary of atoms, the Nystrom map."""
