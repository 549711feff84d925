"""From features to the problem: sums per node and fold, losses, the quadratic objective."""
