"""The `graphratio` command."""

from __future__ import annotations

import signal
import sys
from contextlib import suppress
from threading import Timer, main_thread
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sys import UnraisableHookArgs

# Seconds after which a lost interrupt is repeated.
REPEATED_AFTER = 0.01

# Exit code of a program that Ctrl-C has stopped.
INTERRUPTED = 130


def main() -> None:
    """Run the command line; without its extra installed, say how to get it."""
    sys.unraisablehook = _not_lost
    try:
        _run()
    except KeyboardInterrupt:
        # The command itself ends this way too; here packages were still being imported.
        sys.stderr.write("Aborted!\n")
        raise SystemExit(INTERRUPTED) from None


def _not_lost(unraisable: UnraisableHookArgs) -> None:
    """Interrupt again where Python would print and forget an interrupt.

    It does so in callbacks of its own, for instance while it imports a module. Repeated at once,
    the interrupt would end in the same callback.
    """
    if unraisable.exc_type is not KeyboardInterrupt:
        sys.__unraisablehook__(unraisable)
        return
    # No thread starts while Python shuts down, and nothing is left to be interrupted then.
    with suppress(RuntimeError):
        Timer(REPEATED_AFTER, _interrupt).start()


def _interrupt() -> None:
    """Interrupt the main thread from another one, also where it waits."""
    if hasattr(signal, "pthread_kill") and (waiting := main_thread().ident) is not None:
        signal.pthread_kill(waiting, signal.SIGINT)
    else:
        signal.raise_signal(signal.SIGINT)


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
