"""Files that appear as a whole or not at all, even if writing is interrupted.

Content first goes into a hidden file or folder beside the target and gets its final name when it is
complete and on the disk. A folder of results is exchanged as a whole if it holds nothing else.
After a full disk, an error or Ctrl-C the earlier files are intact. A killed process can leave a
hidden file or folder behind, which the next one with the same target removes.
"""

from __future__ import annotations

import ctypes
import errno
import hashlib
import os
import secrets
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from graphratio._utils.errors import InputError

try:
    import fcntl

    _HAS_LOCKS = True
except ImportError:  # Windows
    _HAS_LOCKS = False

# Beginning of hidden names, and seconds to wait for a lock: files are whole without it, too.
_PREFIX = ".graphratio-"
_PATIENCE = 10.0
# Flags of the system calls that exchange two names.
_EXCHANGE = 2
_HERE = -100


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
    with _rough(target, target.parent, _create_file) as rough, _naming(path):
        yield rough
        # The content must reach the disk before the name does.
        _to_disk(rough)
        if target.exists():
            shutil.copymode(target, rough)
        os.replace(rough, target)
        _to_disk(target.parent)


@contextmanager
def staged(folder: Path, replaces: Sequence[str] = ()) -> Iterator[Path]:
    """Give an empty folder to fill, whose files are in `folder` when the block ends well.

    A `folder` that is new, or has no other files than those written and those in `replaces`, is
    exchanged in one step. Otherwise its other files stay, and each new file appears by itself;
    earlier files in `replaces` are removed.
    """
    target = Path(os.path.realpath(folder))
    with _naming(folder):
        missing = [parent for parent in target.parents if not parent.exists()]
        target.parent.mkdir(parents=True, exist_ok=True)
        # Where only the folder itself may be written to, its files are exchanged one by one.
        inside = target.exists() and not os.access(target.parent, os.W_OK)
        try:
            with _rough(target, target if inside else target.parent, Path.mkdir) as rough:
                yield rough
                _settle(rough, target, replaces)
        except BaseException:
            for parent in missing:
                with suppress(OSError):
                    parent.rmdir()
            raise


def _settle(rough: Path, target: Path, replaces: Sequence[str]) -> None:
    ready = sorted(entry.name for entry in rough.iterdir())
    for name in ready:
        _to_disk(rough / name)
    _to_disk(rough)
    with _alone(target.parent):
        if not target.exists():
            os.rename(rough, target)
        elif _holds_only(target, {*ready, *replaces}) and _exchanged(rough, target):
            # A file that came in meanwhile is not ours to remove.
            for entry in rough.iterdir():
                if entry.name not in {*ready, *replaces}:
                    os.replace(entry, target / entry.name)
        else:
            for name in ready:
                with _naming(target / name):
                    os.replace(rough / name, target / name)
            for name in set(replaces) - set(ready):
                (target / name).unlink(missing_ok=True)
            rough.rmdir()
            _to_disk(target)
        _to_disk(target.parent)


def _holds_only(folder: Path, names: set[str]) -> bool:
    """Whether a folder has no other files, and does not contain the working directory."""
    with os.scandir(folder) as entries:
        plain = all(e.name in names and e.is_file(follow_symlinks=False) for e in entries)
    return plain and not Path.cwd().is_relative_to(folder)


def _exchanged(one: Path, other: Path) -> bool:
    """Exchange the names of two folders in one step; False where the system cannot."""
    shutil.copymode(other, one)
    names = os.fsencode(one), os.fsencode(other)
    try:
        library = ctypes.CDLL(None, use_errno=True)
        if sys.platform == "darwin":
            failed = library.renamex_np(*names, _EXCHANGE)
        else:
            failed = library.renameat2(_HERE, names[0], _HERE, names[1], _EXCHANGE)
    except (AttributeError, OSError, TypeError):  # Windows, old systems
        return False
    return not failed


@contextmanager
def _rough(target: Path, place: Path, create: Callable[[Path], None]) -> Iterator[Path]:
    """A hidden file or folder for `target`, locked while it is used and removed at the end.

    Those that killed processes left for the same target are removed first.
    """
    # The name is short, also for a long target, and without an ending that a search could find.
    ours = f"{_PREFIX}{hashlib.sha256(os.fsencode(target.name)).hexdigest()[:8]}"
    rough = place / f"{ours}-{secrets.token_hex(4)}"
    try:
        with _alone(place):
            _sweep(place, ours)
            create(rough)
            lock = _lock(rough)
        try:
            yield rough
        finally:
            if lock is not None:
                os.close(lock)
    finally:
        _remove(rough)


def _sweep(folder: Path, ours: str) -> None:
    for entry in folder.glob(f"{ours}-*"):
        with suppress(OSError):
            lock = _lock(entry)
            # Without a lock of its own it belongs to no running process.
            if lock is not None:
                _remove(entry)
                os.close(lock)


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with suppress(OSError):
            path.unlink()


def _lock(path: Path) -> int | None:
    """Lock a file or folder; None if another process has it, or there are no locks."""
    if not _HAS_LOCKS:
        return None
    descriptor = os.open(path, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        return None
    return descriptor


def _to_disk(path: Path) -> None:
    """Wait until the content of a file, or the names in a folder, are on the disk.

    Some file systems cannot flush folders, and some folders may be entered but not listed.
    """
    folder = path.is_dir()
    if folder and os.name == "nt":
        return
    try:
        # Windows flushes only what is open for writing.
        descriptor = os.open(path, os.O_RDONLY if folder else os.O_RDWR)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except OSError as error:
        if not folder or error.errno not in (errno.EACCES, errno.EINVAL, errno.ENOTSUP):
            raise


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Lock a folder, if possible, so that two runs that end together do not mix their files."""
    lock = None
    # A hidden folder has the lock of the process that fills it, and no other one comes there.
    if not folder.name.startswith(_PREFIX):
        until = time.monotonic() + _PATIENCE
        with suppress(OSError):
            while (lock := _lock(folder)) is None and _HAS_LOCKS and time.monotonic() < until:
                time.sleep(0.01)
    try:
        yield
    finally:
        if lock is not None:
            os.close(lock)


def _create_file(path: Path) -> None:
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
        if error.filename is not None and _PREFIX not in str(error.filename):
            raise
        raise type(error)(error.errno, error.strerror or str(error), str(path)) from error
