"""`python -m tests.fuzz`, see `run`; apart from it, so that other processes find its functions."""

import sys

from tests.fuzz.run import main

if __name__ == "__main__":
    sys.exit(main())
