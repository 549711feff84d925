"""Parts of ProfileGRULSIF: held-out data, the search over settings, kinds of change."""
