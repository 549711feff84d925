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
    """Run the command line, or say how to install its extra."""
    sys.unraisablehook = _not_lost
    try:
        _run()
    except KeyboardInterrupt:
        # Ctrl-C came during the imports; a running command ends in the same way.
        sys.stderr.write("Aborted!\n")
        raise SystemExit(INTERRUPTED) from None


def _not_lost(unraisable: UnraisableHookArgs) -> None:
    """Repeat an interrupt that Python would print and forget.

    Python forgets interrupts in callbacks of its own, for instance during an import. The repeat
    waits a moment, or it would end in the same callback.
    """
    if unraisable.exc_type is not KeyboardInterrupt:
        sys.__unraisablehook__(unraisable)
        return
    # Python starts no thread while it shuts down, and then nothing is left to interrupt.
    with suppress(RuntimeError):
        Timer(REPEATED_AFTER, _interrupt).start()


def _interrupt() -> None:
    """Interrupt the main thread from another one, even while it waits."""
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
