"""Choosing hyperparameters on held-out data: grids, folds, searches."""
