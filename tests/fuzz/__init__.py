"""Random hostile input for the command line: `python -m tests.fuzz` or `make fuzz`."""
