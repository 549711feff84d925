"""The `graphratio` command."""

from __future__ import annotations

import sys

from graphratio._utils.errors import MissingDependencyError
from graphratio._utils.optional import import_optional


def main() -> None:
    """Run the command line; without its extra installed, say how to get it."""
    try:
        import_optional("typer", "cli", "the command line")
        import_optional("rich", "cli", "the command line")
    except MissingDependencyError as error:
        sys.stderr.write(f"{error}\n")
        raise SystemExit(1) from None
    from graphratio.cli.app import app

    app()
