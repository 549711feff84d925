"""Files that appear as a whole or not at all, even if writing is interrupted.

Content first goes into a hidden file or folder beside the target and gets its final name when it is
complete and on the disk. After a full disk, an error or Ctrl-C the earlier files are intact; only a
killed process can leave a hidden file behind.
"""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from graphratio._utils.errors import InputError


@contextmanager
def appearing(path: str | Path) -> Iterator[Path]:
    """Give a file to write to, which gets the name `path` when the block ends well.

    Links are followed. A pipe or another special file is written to directly.
    """
    target = Path(os.path.realpath(path))
    if target.is_dir():
        raise InputError(f"{str(path)!r} is a folder", "Name a file in it")
    if target.exists() and not target.is_file():
        with _naming(path):
            yield target
        return
    rough = _hidden(target.parent)
    try:
        _create(rough)
        with _naming(path):
            yield rough
            # The content must reach the disk before the name does.
            with rough.open("rb+") as stream:
                os.fsync(stream.fileno())
            if target.exists():
                shutil.copymode(target, rough)
            os.replace(rough, target)
    except BaseException:
        with suppress(OSError):
            rough.unlink()
        raise


@contextmanager
def staged(folder: Path, replaces: Sequence[str] = ()) -> Iterator[Path]:
    """Give an empty folder to fill, whose files move into `folder` when the block ends well.

    A new `folder` is removed again if the block fails. Earlier files in `replaces` are removed.
    """
    new = not folder.exists()
    rough = _hidden(folder)
    try:
        with _naming(folder):
            rough.mkdir(parents=True)
            yield rough
            _move_in(rough, folder, replaces)
    except BaseException:
        shutil.rmtree(rough, ignore_errors=True)
        if new:
            # It stays if another process has written to it meanwhile.
            with suppress(OSError):
                folder.rmdir()
        raise


def _move_in(rough: Path, folder: Path, replaces: Sequence[str]) -> None:
    ready = sorted(entry.name for entry in rough.iterdir())
    with _alone(folder):
        for name in ready:
            with _naming(folder / name):
                os.replace(rough / name, folder / name)
        for name in set(replaces) - set(ready):
            (folder / name).unlink(missing_ok=True)
    rough.rmdir()


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Lock a folder, if possible, so that two runs that end together do not mix their files."""
    try:
        import fcntl
    except ImportError:  # Windows
        yield
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        # Some network disks have no locks; each file is complete without one, too.
        with suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _hidden(folder: Path) -> Path:
    """A new short name without an ending, so that no search by ending finds it."""
    return folder / f".graphratio-{secrets.token_hex(4)}"


def _create(path: Path) -> None:
    try:
        # Not with tempfile, whose files only their owner may read.
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
    except OSError as error:
        raise InputError(
            f"cannot write to {str(path.parent)!r} ({error.strerror})", "Choose another place"
        ) from error


@contextmanager
def _naming(path: str | Path) -> Iterator[None]:
    """Make errors of the disk name the requested path, not the hidden file."""
    try:
        yield
    except OSError as error:
        if error.filename is not None and ".graphratio-" not in str(error.filename):
            raise
        raise type(error)(error.errno, error.strerror or str(error), str(path)) from error
