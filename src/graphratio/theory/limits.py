"""Sizes at which the computations change their method, to bound time and memory."""

# Up to this size dense eigenvalues take about a second and need no iteration.
LARGEST_DENSE = 1000

# Columns of an inverse computed at a time, to keep memory linear in the number of nodes.
COLUMN_BLOCK = 256
