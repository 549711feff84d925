"""A lock on a folder that the operating system releases when its holder ends, however it ends."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from graphratio._utils.exceptions import InputError


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold the folder for this process alone.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder, locked(Path(folder)):
    ...     with locked(Path(folder)):
    ...         pass
    Traceback (most recent call last):
        ...
    graphratio.exceptions.InputError: another run is writing to ...
    """
    with (folder / "lock").open("a+b") as stream:
        try:
            _acquire(stream.fileno())
        except OSError:
            raise InputError(
                f"another run is writing to {folder}",
                "Wait until it ends, or name another folder",
            ) from None
        yield


def _acquire(descriptor: int) -> None:
    """Lock a file until it is closed; an OSError if somebody else has."""
    if sys.platform == "win32":
        import msvcrt

        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
    else:
        import fcntl

        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
