"""The `graphratio` command."""

from __future__ import annotations

import sys

# Exit code of a program that Ctrl-C has stopped.
INTERRUPTED = 130


def main() -> None:
    """Run the command line; without its extra installed, say how to get it."""
    try:
        _run()
    except KeyboardInterrupt:
        # The command itself ends this way too; here packages were still being imported.
        sys.stderr.write("Aborted!\n")
        raise SystemExit(INTERRUPTED) from None


def _run() -> None:
    from graphratio._utils.errors import MissingDependencyError
    from graphratio._utils.optional import import_optional

    try:
        import_optional("typer", "cli", "the command line")
        import_optional("rich", "cli", "the command line")
    except MissingDependencyError as error:
        sys.stderr.write(f"{error}\n")
        raise SystemExit(1) from None
    from graphratio.cli.app import app

    app()
