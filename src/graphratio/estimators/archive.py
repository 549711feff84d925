"""Values as one file: a zip of NumPy arrays and one JSON document, no pickle.

The JSON holds everything but arrays and long lists of labels. These are stored beside it in
NumPy's own format, and the JSON refers to them by name. Reading checks that the file is one of
ours before anything in it is loaded: its JSON is small, has no unknown names, and refers to every
array, each of which has its declared size.
"""

from __future__ import annotations

import datetime as dt
import errno
import io
import json
import os
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

import numpy as np
from scipy import sparse

from graphratio._utils.arrays import read_only
from graphratio._utils.errors import FileFormatError, InputError, listing
from graphratio._utils.files import appearing
from graphratio._version import __version__
from graphratio.data.encoding import Encoding
from graphratio.data.graph import Graph
from graphratio.data.graph_input import coordinate_array
from graphratio.data.scaling import Scaling
from graphratio.distributed.engine_settings import EngineSettings
from graphratio.features.kernels import get_kernel
from graphratio.features.nystrom import NystromMap
from graphratio.solvers.solution import Solution

Read = TypeVar("Read")

# The JSON document holds short lists and single values, so a larger one is not ours.
LARGEST_DOCUMENT = 4 * 2**20
# Longer tuples of text or integers, such as labels of nodes, are stored as arrays.
LONGEST_LIST = 200

# A deflate stream expands by at most this factor.
DEFLATE_RATIO = 1032

_ALLOWED_DTYPES = "fiubU"


@dataclass(frozen=True)
class Format:
    """A kind of file: the version that can be read, what it holds, a remedy, and its entries."""

    name: str
    version: int
    what: str
    remedy: str
    parts: tuple[str, ...]
    head: tuple[str, ...] = ()

    def damaged(self, source: Path, reason: str) -> FileFormatError:
        """Error about a file that cannot be read."""
        return FileFormatError(
            f"{str(source)!r} is not a {self.what}, or it is damaged ({reason})", self.remedy
        )

    def write(self, path: Any, head: dict[str, Any], parts: dict[str, dict[str, Any]]) -> None:
        """Write a file, which appears only when complete; `head` has plain values, `parts` any."""
        target = _as_path(path)
        arrays: dict[str, np.ndarray] = {}
        document = {
            "format": self.name,
            "format_version": self.version,
            "library_version": __version__,
            **head,
        }
        for part, values in parts.items():
            document[part] = {
                name: _encode(value, arrays, f"{part}.{name}") for name, value in values.items()
            }
        document["arrays"] = {
            key: {"shape": list(array.shape), "dtype": array.dtype.str}
            for key, array in arrays.items()
        }
        text = json.dumps(document, allow_nan=True)
        if len(text.encode()) > LARGEST_DOCUMENT:
            raise InputError(
                f"labels and settings take {len(text) >> 20} MB as text, but a file holds at most "
                f"{LARGEST_DOCUMENT >> 20} MB",
                "Use text or integers as labels of nodes",
            )
        _write_archive(target, text, arrays)

    def read(
        self,
        path: Any,
        build: Callable[[Path, dict[str, Any]], Read],
        check: Callable[[dict[str, Any]], None] = lambda document: None,
    ) -> Read:
        """Read a file; `build` gets the path and the document, and its errors mean damage.

        `check` sees the document before any array is read, and raises an error about wrong names.
        """
        source = _as_path(path)
        if not source.is_file():
            what = "is a directory" if source.is_dir() else "does not exist"
            raise InputError(f"{str(source)!r} {what}", "Check the path")
        try:
            with source.open("rb") as stream:
                return build(source, self._document(stream, source, check))
        except FileFormatError:
            raise
        except OSError as error:
            # Damaged offsets make the reader seek to places that no file has.
            if error.errno == errno.EINVAL:
                raise self.damaged(source, str(error)) from error
            raise InputError(
                f"{str(source)!r} cannot be read ({error})", "Check the file"
            ) from error
        except Exception as error:
            # Only the file was read, so the error lies in it. The exceptions that zip, zlib, JSON
            # and NumPy raise on bad bytes are not documented.
            raise self.damaged(source, f"{type(error).__name__}: {error}") from error

    def _document(
        self, stream: BinaryIO, source: Path, check: Callable[[dict[str, Any]], None]
    ) -> dict[str, Any]:
        available = source.stat().st_size
        with zipfile.ZipFile(stream) as archive:
            for member in archive.infolist():
                if member.compress_type != zipfile.ZIP_DEFLATED:
                    raise self.damaged(source, f"{member.filename} is not compressed by deflate")
                if member.file_size > DEFLATE_RATIO * available:
                    raise self.damaged(source, f"{member.filename} claims {member.file_size} bytes")
            document = self._read_document(archive, source)
            declared = document.pop("arrays")
            self._check_names(document, declared, archive.namelist())
            check(document)
            arrays = {key: _read_array(archive, key, one) for key, one in declared.items()}
        for part in self.parts:
            values = document[part]
            document[part] = {name: _decode(value, arrays) for name, value in values.items()}
        return document

    def _check_names(
        self, document: dict[str, Any], declared: dict[str, Any], members: list[str]
    ) -> None:
        """Refuse unknown entries, and arrays that nothing refers to, before they are read."""
        known = {"format", "format_version", "library_version", *self.head, *self.parts}
        if odd := set(document) ^ known:
            raise ValueError(f"entries are missing or unknown: {listing(sorted(odd))}")
        used = {key for part in self.parts for key in _array_keys(document[part])}
        if odd := used ^ set(declared):
            raise ValueError(f"arrays are missing or unused: {listing(sorted(odd))}")
        files = ["model.json", *(f"arrays/{key}.npy" for key in declared)]
        if sorted(members) != sorted(files):
            odd = set(members) ^ set(files)
            raise ValueError(f"files inside are missing, twice or unknown: {listing(sorted(odd))}")

    def _read_document(self, archive: zipfile.ZipFile, source: Path) -> dict[str, Any]:
        if "model.json" not in archive.namelist():
            raise self.damaged(source, "no model.json inside")
        if archive.getinfo("model.json").file_size > LARGEST_DOCUMENT:
            raise self.damaged(source, "model.json is too large")
        document = json.loads(archive.read("model.json"))
        if not isinstance(document, dict) or document.get("format") != self.name:
            raise self.damaged(source, "model.json is not ours")
        if document["format_version"] != self.version:
            raise FileFormatError(
                f"{str(source)!r} has format version {document['format_version']}, "
                f"this library reads {self.version}",
                "Fit and save it again with this version, or read it with the version that wrote "
                f"it (graphratio {document.get('library_version')})",
            )
        return document


def lasting(values: dict[str, Any]) -> dict[str, Any]:
    """Replace random generators and engines, which a file cannot hold, by None."""
    passing = (np.random.Generator, np.random.RandomState, EngineSettings)
    return {name: None if isinstance(value, passing) else value for name, value in values.items()}


def _write_archive(target: Path, document: str, arrays: dict[str, np.ndarray]) -> None:
    with (
        appearing(target) as rough,
        rough.open("wb") as stream,
        zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive,
    ):
        try:
            archive.writestr("model.json", document)
            for key, array in arrays.items():
                buffer = io.BytesIO()
                np.lib.format.write_array(buffer, array, (1, 0), allow_pickle=False)
                archive.writestr(f"arrays/{key}.npy", buffer.getvalue())
        except BaseException:
            # Ctrl-C may leave a member open, and then the archive cannot be closed. It is lost
            # anyway, and the first error should reach the caller.
            archive.fp = None
            raise


def _as_path(path: Any) -> Path:
    if not isinstance(path, str | os.PathLike):
        raise InputError(f"{path!r} is not a path", "Pass a str or a pathlib.Path")
    return Path(path)


def _read_array(archive: zipfile.ZipFile, key: str, declared: dict[str, Any]) -> np.ndarray:
    """Load one array after checking that it has the declared size."""
    dtype = np.dtype(declared["dtype"])
    shape = tuple(int(size) for size in declared["shape"])
    if dtype.kind not in _ALLOWED_DTYPES or any(size < 0 for size in shape):
        raise ValueError(f"array {key} has type {dtype} and shape {shape}")
    n_bytes = dtype.itemsize
    for size in shape:
        n_bytes *= size
    member = archive.getinfo(f"arrays/{key}.npy")
    # The header of the format is padded to a multiple of 64 bytes and short.
    if not n_bytes <= member.file_size <= n_bytes + 4096:
        raise ValueError(f"array {key} does not have the declared size")
    with archive.open(member) as stream:
        # NumPy allocates the size in the header before it reads the data.
        np.lib.format.read_magic(stream)
        found_shape, _, found_dtype = np.lib.format.read_array_header_1_0(stream)
        if found_shape != shape or found_dtype != dtype:
            raise ValueError(f"array {key} is not as declared")
    with archive.open(member) as stream:
        array: np.ndarray = np.lib.format.read_array(stream, allow_pickle=False)
        stream.read()
    return array


def _encode(value: Any, arrays: dict[str, np.ndarray], name: str) -> Any:
    """Turn a value into JSON and collect its arrays; nested containers keep their type."""

    def nested(part: Any, suffix: object) -> Any:
        return _encode(part, arrays, f"{name}.{suffix}")

    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, str | bool | int | float):
        return value
    if isinstance(value, np.ndarray):
        if value.dtype == object and value.ndim == 1:
            return {"!": "objects", "items": [nested(v, i) for i, v in enumerate(value)]}
        if value.dtype.kind not in _ALLOWED_DTYPES:
            raise InputError(
                f"{name} is an array of type {value.dtype}, which cannot be saved",
                "Use an array of numbers",
            )
        arrays[name] = value
        return {"!": "array", "key": name}
    if isinstance(value, list | tuple):
        kind = "tuple" if isinstance(value, tuple) else "list"
        column = _as_column(value) if isinstance(value, tuple) else None
        if column is not None:
            arrays[name] = column
            return {"!": "column", "key": name}
        return {"!": kind, "items": [nested(v, i) for i, v in enumerate(value)]}
    if isinstance(value, dict) and all(isinstance(key, str) for key in value):
        return {"!": "dict", "items": {key: nested(v, key) for key, v in value.items()}}
    if isinstance(value, dt.datetime | dt.date):
        kind = "datetime" if isinstance(value, dt.datetime) else "date"
        return {"!": kind, "iso": value.isoformat()}
    for kind, (types, take_apart, _) in _COMPOSITES.items():
        if isinstance(value, types):
            return {"!": kind, "parts": nested(take_apart(value), kind)}
    raise InputError(
        f"{name} has a value of type {type(value).__name__}, which cannot be saved: {value!r}",
        "Use numbers, strings, dates or tuples of them, as node labels for instance",
    )


def _as_column(values: tuple[Any, ...]) -> np.ndarray | None:
    """A long tuple of text or of integers as an array that gives back the same values, or None."""
    kinds = {type(value) for value in values}
    if len(values) <= LONGEST_LIST or kinds not in ({str}, {int}):
        return None
    try:
        column = np.array(values)
    except OverflowError:
        return None
    # NumPy drops zero bytes at the end of a text, and widens all to the longest.
    wide = column.nbytes > 64 * 2**20 and column.nbytes > 64 * sum(map(len, map(str, values)))
    same = column.dtype.kind in "iU" and tuple(column.tolist()) == values
    return column if same and not wide else None


def _array_keys(value: Any) -> Iterator[str]:
    """Keys of all arrays that a part of a document refers to."""
    if isinstance(value, dict):
        if value.get("!") in ("array", "column"):
            yield value["key"]
        else:
            for part in value.values():
                yield from _array_keys(part)
    elif isinstance(value, list):
        for part in value:
            yield from _array_keys(part)


def _decode(value: Any, arrays: dict[str, np.ndarray]) -> Any:
    if not isinstance(value, dict):
        return value
    kind = value["!"]
    if kind == "array":
        return arrays[value["key"]]
    if kind == "column":
        return tuple(arrays[value["key"]].tolist())
    if kind == "dict":
        return {key: _decode(item, arrays) for key, item in value["items"].items()}
    if kind in ("list", "tuple", "objects"):
        items = [_decode(item, arrays) for item in value["items"]]
        if kind == "objects":
            objects = np.empty(len(items), dtype=object)
            # Entry by entry: NumPy would turn tuples of one length into a second dimension.
            for position, item in enumerate(items):
                objects[position] = item
            return objects
        return tuple(items) if kind == "tuple" else items
    if kind == "datetime":
        return dt.datetime.fromisoformat(value["iso"])
    if kind == "date":
        return dt.date.fromisoformat(value["iso"])
    return _COMPOSITES[kind][2](_decode(value["parts"], arrays))


def _graph_parts(graph: Graph) -> dict[str, Any]:
    return {
        "nodes": graph.nodes,
        "data": graph.adjacency.data,
        "indices": graph.adjacency.indices,
        "indptr": graph.adjacency.indptr,
        "labelled": graph.labelled,
        "coordinates": graph.coordinates,
        "metric": graph.metric,
    }


def _graph_from(parts: dict[str, Any]) -> Graph:
    """Build the graph as from user input, so that it passes the same checks."""
    if set(parts) != set(_graph_parts(Graph.empty(1))):
        raise ValueError("the graph has unknown parts")
    nodes, coordinates, metric = parts["nodes"], parts["coordinates"], parts["metric"]
    entries = tuple(parts[key] for key in ("data", "indices", "indptr"))
    adjacency = sparse.csr_array(entries, shape=(len(nodes), len(nodes)))
    adjacency.check_format(full_check=True)
    if type(parts["labelled"]) is not bool or metric not in (None, "euclidean", "haversine"):
        raise ValueError("the graph is not one of ours")
    if coordinates is not None:
        coordinates = read_only(coordinate_array(coordinates, nodes, metric))
    graph = Graph.from_adjacency(adjacency, nodes)
    return replace(graph, labelled=parts["labelled"], coordinates=coordinates, metric=metric)


def _scaling_from(parts: dict[str, Any]) -> Scaling:
    for name in ("mean", "scale", "log", "own"):
        if parts.get(name) is not None:
            read_only(parts[name])
    return Scaling(**parts)


# How the library's own objects are taken apart and put together again.
_COMPOSITES: dict[str, tuple[type, Callable[[Any], Any], Callable[[Any], Any]]] = {
    "graph": (Graph, _graph_parts, _graph_from),
    "features": (
        NystromMap,
        lambda features: {**vars(features), "kernel": features.kernel.name},
        lambda parts: NystromMap(**{**parts, "kernel": get_kernel(parts["kernel"])}),
    ),
    "scaling": (Scaling, asdict, _scaling_from),
    "encoding": (Encoding, asdict, lambda parts: Encoding(**parts)),
    "solution": (Solution, asdict, lambda parts: Solution(**parts)),
}
