"""Saved models with something wrong in them, as the bytes of a file."""

from __future__ import annotations

import io
import json
import random
import tempfile
import zipfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import graphratio as gr

NODES = ("s0", "s1", "s2")
ESTIMATORS = ("GRULSIF", "GraphRatio", "Pool", "RULSIF", "ULSIF", "KLIEP", "detector")
# What may stand in a document in place of any value.
_VALUES: list[Any] = [
    None, True, -1, 0, 1, 2**70, 1e308, -0.0, float("nan"), float("inf"), "", "x", "gaussian", [],
    {}, [[]], {"!": "array", "key": "fitted.coef_"}, {"!": "tuple", "items": []}, {"!": "graph"},
    {"!": "date", "iso": "x"}, {"!": "objects", "items": [1, None]}, {"!": "../../x"}, "\ud800",
    "<script>", {"!": "dict", "items": {}}, "__class__",
]  # fmt: skip


@cache
def saved(name: str) -> bytes:
    """A proper file, written by the library itself."""
    rng = np.random.default_rng(0)
    samples = gr.NodeSamples.from_arrays(
        {node: rng.normal(size=(6, 2)) for node in NODES},
        {node: rng.normal(0.5, 1, size=(5, 2)) for node in NODES},
        feature_names=["pm25", "no2"],
    )
    graph = gr.Graph.from_edges([("s0", "s1"), ("s1", "s2")], nodes=NODES)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model"
        if name == "detector":
            panel = rng.normal(size=(24, 3))
            gr.GraphChangePointDetector(n_surrogates=19, random_state=0).fit(panel, graph).save(
                path
            )
        else:
            getattr(gr, name)(random_state=0).fit(samples.standardized(), graph).save(path)
        return path.read_bytes()


def spoiled(name: str, rng: random.Random) -> bytes:
    """A file of the library with members, values or arrays that no fit has written."""
    members = _members(saved(name))
    for _ in range(rng.choice([0, 1, 1, 2, 3])):
        rng.choice([_value, _value, _value, _array, _array, _declaration, _member])(members, rng)
    return _zipped(members, rng)


def _members(content: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def _zipped(members: dict[str, bytes], rng: random.Random) -> bytes:
    buffer = io.BytesIO()
    compression = zipfile.ZIP_DEFLATED if rng.random() < 0.95 else zipfile.ZIP_STORED
    with zipfile.ZipFile(buffer, "w", compression) as archive:
        for name, content in members.items():
            entry = zipfile.ZipInfo(name)
            entry.compress_type = compression
            if rng.random() < 0.02:
                # As a symbolic link: there is nothing that would follow it.
                entry.external_attr = 0o120777 << 16
            archive.writestr(entry, content)
    return buffer.getvalue()


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every container of the document with every key in it."""
    if isinstance(value, dict | list):
        for key in list(value) if isinstance(value, dict) else range(len(value)):
            yield value, key
            yield from _places(value[key])


def _document(members: dict[str, bytes]) -> dict[str, Any]:
    """The document, or an empty one if it is spoiled already."""
    try:
        document = json.loads(members["model.json"])
    except (KeyError, ValueError, RecursionError):
        return {}
    return document if isinstance(document, dict) else {}


def _declared(document: dict[str, Any]) -> dict[str, Any]:
    arrays = document.get("arrays")
    return arrays if isinstance(arrays, dict) else {}


def _value(members: dict[str, bytes], rng: random.Random) -> None:
    document = _document(members)
    places = list(_places(document))
    if not places:
        return
    container, key = rng.choice(places)
    if rng.random() < 0.2:
        del container[key]
    else:
        container[key] = rng.choice(_VALUES)
    members["model.json"] = json.dumps(document).encode("utf-8", "surrogatepass")


def _declaration(members: dict[str, bytes], rng: random.Random) -> None:
    """Declare another size or type than an array has."""
    document = _document(members)
    arrays = _declared(document)
    if not arrays:
        return
    arrays[rng.choice(sorted(arrays))] = {
        "shape": rng.choice([[], [0], [2**62], [2**31, 2**31], [-1], [1] * 64, ["3"]]),
        "dtype": rng.choice(["<f8", ">f8", "O", "V8", "<U4", "<M8[ns]", "i4", "x", ""]),
    }
    members["model.json"] = json.dumps(document).encode("utf-8", "surrogatepass")


def _array(members: dict[str, bytes], rng: random.Random) -> None:
    """Another array under the same declaration, or with the declaration made to fit."""
    names = [name for name in members if name.endswith(".npy")]
    if not names:
        return
    name = rng.choice(names)
    try:
        old = np.lib.format.read_array(io.BytesIO(members[name]), allow_pickle=False)
    except (ValueError, MemoryError):
        # Spoiled before: its header is no header, or asks for more memory than there is.
        return
    new = old.copy()
    kind = rng.choice(["values", "values", "shape", "type", "empty", "pickle", "larger"])
    if kind == "values" and new.size and new.dtype.kind in "fi":
        bad: list[float] = [np.nan, np.inf, -np.inf, 1e308, -1.0, 0.0]
        if new.dtype.kind == "i":
            bad = [-1, min(2**31, int(np.iinfo(new.dtype).max))]
        new.ravel()[rng.randrange(new.size)] = rng.choice(bad)
    elif kind == "shape":
        new = new.reshape(-1)
    elif kind == "type":
        kind = rng.choice(["f4", "i8", "U3", "?"])
        new = new.astype("U3" if new.dtype.kind in "SU" else kind)
    elif kind == "empty":
        new = new[:0]
    elif kind == "larger":
        new = np.concatenate([new, new])
    elif kind == "pickle":
        new = np.array([{"a": 1}], dtype=object)
    buffer = io.BytesIO()
    if rng.random() < 0.1:
        # A header that asks for more memory than there is.
        header = {"descr": old.dtype.str, "fortran_order": False, "shape": (2**35,)}
        np.lib.format.write_array_header_1_0(buffer, header)
        buffer.write(old.tobytes())
    else:
        np.save(buffer, new, allow_pickle=True)
    members[name] = buffer.getvalue()
    document = _document(members)
    arrays = _declared(document)
    if arrays and rng.random() < 0.7:
        key = name[len("arrays/") : -len(".npy")]
        arrays[key] = {"shape": list(new.shape), "dtype": new.dtype.str}
        members["model.json"] = json.dumps(document).encode("utf-8", "surrogatepass")


def _member(members: dict[str, bytes], rng: random.Random) -> None:
    """Members that are missing, renamed, added, or unpack to far more than they are."""
    kind = rng.choice(["drop", "rename", "add", "bomb", "deep"])
    name = rng.choice(sorted(members))
    if kind == "drop" and len(members) > 1:
        del members[name]
    elif kind == "rename":
        members[rng.choice(["../../escaped", "/tmp/escaped", "arrays/../x", "", "x" * 300])] = (
            members.pop(name)
        )
    elif kind == "add":
        members[rng.choice(["../escaped", "pickle.pkl", "arrays/", "model.json/"])] = b"\x80\x04."
    elif kind == "bomb":
        members[name] = b"\x00" * 5_000_000
    elif kind == "deep":
        members["model.json"] = b"[" * 100_000
