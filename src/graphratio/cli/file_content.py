"""Read the bytes of an input once, from a file, a pipe or standard input, and unpack them.

The first bytes of a file decide its type, not its name: text called .zip is text, and gzip called
.csv is unpacked.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import sys
import zipfile
import zlib
from collections.abc import Callable
from difflib import get_close_matches
from pathlib import Path
from typing import Any, BinaryIO

from graphratio._utils.errors import InputError
from graphratio._utils.optional import import_optional

# The name that stands for standard input.
STANDARD_INPUT = Path("-")
# A small archive can unpack to more than any memory holds.
LARGEST_UNPACKED = 4 * 2**30

# First bytes of files that hold no table, and what to do with them.
_FOREIGN = {
    b"\xd0\xcf\x11\xe0": ("an old Excel workbook", "Export the table as CSV"),
    b"%PDF": ("a PDF document", "Export the table as CSV"),
    b"SQLite format 3": ("an SQLite database", "Export the table as CSV"),
    b"\xff\xfe": ("text in UTF-16, not in UTF-8", "Save it as CSV in UTF-8"),
    b"\xfe\xff": ("text in UTF-16, not in UTF-8", "Save it as CSV in UTF-8"),
}
PARQUET = b"PAR1"
# Where a tar archive has its mark.
_TAR_MARK = slice(257, 262)


def name_of(path: Path) -> str:
    """Name of an input in messages."""
    return "standard input" if path == STANDARD_INPUT else str(path)


def content_of(path: Path) -> bytes:
    """Read an input as a whole, and unpack it if it is compressed."""
    content = _raw(path)
    if not content or content.isspace():
        piped = "Pipe a table into the command; only one option can read standard input"
        remedy = piped if path == STANDARD_INPUT else "Check how it was exported"
        raise InputError(f"{name_of(path)} is empty", remedy)
    for mark, unpack in _PACKED.items():
        if content.startswith(mark):
            content = _unpacked(path, content, unpack)
            break
    _refuse_foreign(name_of(path), content)
    return content


def _raw(path: Path) -> bytes:
    """All bytes of an input; the error for a missing file suggests the nearest name."""
    if path == STANDARD_INPUT:
        # A process that was started with its standard input closed has none.
        return b"" if sys.stdin is None else sys.stdin.buffer.read()
    if path.is_dir():
        raise InputError(f"{path} is a folder", "Name a CSV or Parquet file in it")
    try:
        return path.read_bytes()
    except FileNotFoundError as error:
        if path.is_symlink():
            raise InputError(
                f"{path} is a link to {str(path.readlink())!r}, which does not exist",
                "Correct the link, or name the file itself",
            ) from error
        folder = path.parent
        if not folder.is_dir():
            raise InputError(f"the folder {folder} does not exist", "Check the path") from error
        near = get_close_matches(path.name, [other.name for other in folder.iterdir()], n=1)
        remedy = f"Did you mean {str(folder / near[0])!r}?" if near else "Check the path"
        raise InputError(f"the file {path} does not exist", remedy) from error


def _unpacked(path: Path, content: bytes, unpack: Callable[[BinaryIO], Any]) -> bytes:
    try:
        with unpack(io.BytesIO(content)) as stream:
            unpacked: bytes = stream.read(LARGEST_UNPACKED + 1)
    except InputError as error:
        raise InputError(f"{name_of(path)} {error.problem}", error.remedy) from error
    except (OSError, EOFError, zlib.error, lzma.LZMAError, zipfile.BadZipFile) as error:
        raise InputError(
            f"{name_of(path)} is compressed, and damaged or cut off ({error})", "Pack it again"
        ) from error
    except (RuntimeError, NotImplementedError) as error:
        raise InputError(
            f"{name_of(path)} cannot be unpacked ({error})", "Unpack it first"
        ) from error
    if len(unpacked) > LARGEST_UNPACKED:
        raise InputError(
            f"{name_of(path)} unpacks to more than {LARGEST_UNPACKED // 2**30} GiB",
            "Unpack it first, and keep only the columns you need",
        )
    if not unpacked or unpacked.isspace():
        raise InputError(f"{name_of(path)} is compressed and empty", "Check how it was exported")
    return unpacked


def _only_member(stream: BinaryIO) -> Any:
    """The only file in a zip archive; the caller adds the name of the archive to errors."""
    archive = zipfile.ZipFile(stream)
    names = [member.filename for member in archive.infolist() if not member.is_dir()]
    # macOS packs a second file with attributes for every file.
    names = [name for name in names if not name.startswith("__MACOSX/")]
    if any(name.startswith(("xl/", "[Content_Types].xml")) for name in names):
        raise InputError("is an Excel workbook", "Export the table as CSV")
    if len(names) != 1:
        raise InputError(
            f"is a zip archive of {len(names)} files", "Unpack it, and name one of them"
        )
    return archive.open(names[0])


def _zstandard(stream: BinaryIO) -> Any:
    arrow = import_optional("pyarrow", "parquet", "unpacking Zstandard files")
    return arrow.CompressedInputStream(stream, "zstd")


_PACKED: dict[bytes, Callable[[BinaryIO], Any]] = {
    b"\x1f\x8b": lambda stream: gzip.GzipFile(fileobj=stream),
    **{b"BZh%d1AY&SY" % level: bz2.BZ2File for level in range(1, 10)},
    b"\xfd7zXZ\x00": lzma.LZMAFile,
    b"PK\x03\x04": _only_member,
    b"\x28\xb5\x2f\xfd": _zstandard,
}


def _refuse_foreign(name: str, content: bytes) -> None:
    beginning = content[:4096]
    if beginning.startswith(PARQUET):
        return
    for mark, (what, remedy) in _FOREIGN.items():
        if beginning.startswith(mark):
            raise InputError(f"{name} is {what}", remedy)
    if beginning[_TAR_MARK] == b"ustar":
        raise InputError(f"{name} is a tar archive", "Unpack it, and name one of its files")
    if any(beginning.startswith(mark) for mark in _PACKED):
        raise InputError(f"{name} is compressed more than once", "Unpack it first")
    if b"\x00" in beginning:
        raise InputError(f"{name} is a binary file, not text", "Pass a CSV or Parquet file")
