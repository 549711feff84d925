"""What every room of the library uses: errors, types, checks on parameters, files, threads."""
