"""Allow `python -m graphratio`."""

from graphratio.cli import main

main()
