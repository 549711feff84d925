"""Read samples from arrays, dicts and tables; errors name the wrong node."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from graphratio._utils.errors import (
    Argument,
    DataWarning,
    InputError,
    first_few,
    listing,
    warn_caller,
)
from graphratio._utils.parameters import check_choice
from graphratio._utils.typing import BoolArray, FloatArray, IntArray, Label
from graphratio.data import frames
from graphratio.data.encoding import Encoding, asked_levels, fitted_encoding
from graphratio.data.validation import (
    as_labels,
    as_observations,
    check_magnitude,
    distinct_codes,
    nearest_name,
    plain_label,
)


@dataclass(frozen=True)
class Pieces:
    """Observations (n_observations, n_features) as they were read: one row each, in any order.

    `node` is the position of the node of each row, `labelled` whether the user gave the labels,
    `names` those of data frames, and `time` NaN or NaT where missing.
    """

    labels: tuple[Label, ...]
    values: FloatArray
    node: IntArray
    is_target: BoolArray
    labelled: bool = True
    names: tuple[str, ...] | None = None
    time: np.ndarray | None = None

    @property
    def n_features(self) -> int:
        """Number of features."""
        return int(self.values.shape[1])

    @property
    def sizes(self) -> IntArray:
        """Observations of both samples of every node, shape (n_nodes, 2), reference first."""
        counts = np.bincount(self._segment, minlength=2 * len(self.labels))
        return np.asarray(counts.reshape(-1, 2))

    @property
    def order(self) -> slice | IntArray:
        """Rows node by node, reference before target."""
        if (self._segment[1:] >= self._segment[:-1]).all():
            return slice(None)
        return np.argsort(self._segment, kind="stable")

    @property
    def _segment(self) -> IntArray:
        return np.asarray(2 * self.node + self.is_target)


def pair_up(reference: Any, target: Any, labels: tuple[Label, ...] | None) -> Pieces:
    """Pair the two samples of every node, from any container."""
    if isinstance(reference, Mapping) != isinstance(target, Mapping):
        raise InputError(
            "one of reference and target is a dict and the other is not",
            "Pass both as dicts keyed by node, or both as lists",
        )
    if isinstance(reference, Mapping):
        return _pair_dicts(reference, target, labels)
    if _is_numeric_cube(reference) and _is_numeric_cube(target):
        ref, tgt = reference, target
    else:
        ref, tgt = per_node(reference, "reference"), per_node(target, "target")
    if len(ref) != len(tgt):
        raise InputError(
            f"reference has {len(ref)} nodes and target {len(tgt)}",
            "Give both samples for every node; an empty array stands for no observations",
        )
    if labels is not None and len(labels) != len(ref):
        raise InputError(
            f"{len(labels)} node labels for {len(ref)} nodes", "Give one label for each node"
        )
    names = labels if labels is not None else tuple(range(len(ref)))
    if isinstance(ref, np.ndarray) and ref.shape[2] == tgt.shape[2] > 0 and ref.size + tgt.size:
        # Two 3-D arrays need no loop over nodes.
        values = np.concatenate([ref, tgt], axis=1, dtype=np.float64)
        n_nodes, n_rows, n_features = values.shape
        node = np.repeat(np.arange(n_nodes), n_rows)
        is_target = np.tile(np.arange(n_rows) >= ref.shape[1], n_nodes)
        values = values.reshape(-1, n_features)
        return Pieces(names, values, node, is_target, labelled=labels is not None)
    return stack(names, ref, tgt, labelled=labels is not None)


def _is_numeric_cube(container: Any) -> bool:
    # Subclasses such as masked arrays need the general path.
    return type(container) is np.ndarray and container.ndim == 3 and container.dtype.kind in "fiub"


def _pair_dicts(
    reference: Mapping[Any, Any], target: Mapping[Any, Any], order: tuple[Label, ...] | None
) -> Pieces:
    ref = dict(zip(as_labels(reference), reference.values(), strict=True))
    tgt = dict(zip(as_labels(target), target.values(), strict=True))
    found = tuple(dict.fromkeys([*ref, *tgt]))
    if order is not None:
        check_same_labels(found, order, holder="nodes")
    labels = order if order is not None else found
    none: list[float] = []
    return stack(labels, [ref.get(v, none) for v in labels], [tgt.get(v, none) for v in labels])


def per_node(container: Any, side: str) -> list[Any]:
    """Entries of a 3-D array or a list of arrays; any other array is the sample of one node."""
    if isinstance(container, np.ndarray):
        if container.ndim == 3:
            return list(container)
        if container.dtype == object and container.ndim == 1 and container.size:
            return per_node(list(container), side)
        return [container]
    if frames.is_frame(container) or hasattr(container, "to_numpy"):
        return [container]
    if not isinstance(container, Sequence) or isinstance(container, str):
        raise InputError(
            f"{side} of type {type(container).__name__} cannot be read",
            "Pass a list, dict or 3-D array over nodes, or one array for one node",
        )
    if len(container) and all(_is_single(entry) for entry in container):
        return [list(container)]
    return list(container)


def _is_single(entry: Any) -> bool:
    """Tell whether an entry is one value, without converting a ragged entry."""
    if hasattr(entry, "ndim"):
        return bool(entry.ndim == 0)
    return isinstance(entry, str | bytes) or not hasattr(entry, "__len__")


def backend_in(*containers: Any) -> frames.Backend:
    """Polars if any of the samples is a polars frame, otherwise pandas."""
    for container in containers:
        entries = container.values() if isinstance(container, Mapping) else container
        listed = isinstance(container, Mapping | list | tuple)
        for entry in entries if listed else (container,):
            if frames.is_frame(entry) and frames.backend_of(entry) == "polars":
                return "polars"
    return "pandas"


def stack(
    labels: tuple[Label, ...],
    reference: Sequence[Any],
    target: Sequence[Any],
    *,
    labelled: bool = True,
) -> Pieces:
    """Check every sample on its own and stack them."""
    if not labels:
        raise InputError("there are no nodes", "Pass at least one node")
    found: list[tuple[int, str, FloatArray]] = []
    names: dict[tuple[str, ...], str] = {}
    for position, label in enumerate(labels):
        for side, entry in (("reference", reference[position]), ("target", target[position])):
            what = f"the {side} sample of node {label!r}"
            if frames.is_frame(entry):
                entry, columns = frames.numeric_frame(entry)
                names[columns] = what
            rows = as_observations(entry, what)
            if len(rows):
                found.append((position, side, rows))
    if not found:
        raise InputError("there are no observations at any node", "Pass non-empty samples")
    widths = [rows.shape[1] for _, _, rows in found]
    usual = int(np.bincount(widths).argmax())
    if any(width != usual for width in widths):
        odd = [
            f"{labels[position]!r} ({side}: {rows.shape[1]})"
            for position, side, rows in found
            if rows.shape[1] != usual
        ]
        raise InputError(
            f"most samples have {usual} features, but not those of {first_few(odd)}",
            "Give every sample the same features",
        )
    if len(names) > 1:
        (one, where), (other, elsewhere) = list(names.items())[:2]
        raise InputError(
            f"{where} has the columns {listing(one)}, but {elsewhere} has {listing(other)}",
            "Select the same columns in the same order",
        )
    sizes = [len(rows) for _, _, rows in found]
    return Pieces(
        labels,
        np.concatenate([rows for _, _, rows in found]),
        np.repeat([position for position, _, _ in found], sizes),
        np.repeat([side == "target" for _, side, _ in found], sizes),
        labelled=labelled,
        names=next(iter(names), None),
    )


def default_names(n_features: int) -> tuple[str, ...]:
    """Names of unnamed features: x0, x1, ..."""
    return tuple(f"x{i}" for i in range(n_features))


def names_for(names: Sequence[str] | str | None, pieces: Pieces) -> tuple[str, ...]:
    """Feature names, by default those of data frames, or x0, x1, ..."""
    n_features = pieces.n_features
    if names is None:
        return pieces.names or default_names(n_features)
    several = isinstance(names, Iterable) and not isinstance(names, str)
    checked = tuple(str(name) for name in (names if several else [names]))
    if len(checked) != n_features or len(set(checked)) != len(checked):
        raise InputError(
            f"{len(checked)} feature names for {n_features} features: {listing(checked)}",
            "Give each feature a name of its own",
        )
    return checked


def without_missing(pieces: Pieces, names: Sequence[str], missing: str) -> Pieces:
    """Refuse infinite values; refuse or drop observations that contain NaN."""
    check_choice(missing, "missing", ("error", "drop"))
    if np.isinf(pieces.values).any():
        raise InputError(
            f"infinite values: {_places(pieces, np.isinf(pieces.values), names)}",
            "Replace them by numbers or remove these rows",
        )
    gone = np.isnan(pieces.values)
    if pieces.time is not None:
        # Not equal to itself: NaN or NaT.
        gone = np.column_stack([gone, pieces.time != pieces.time])
        names = [*names, "time"]
    rows = np.asarray(gone.any(axis=1))
    if rows.any():
        if missing == "error":
            raise InputError(
                f"missing values: {_places(pieces, gone, names)}",
                ("Pass ", Argument("missing", "drop"), " to leave these rows out, or fill them"),
            )
        warn_caller(
            f"{int(rows.sum())} of {len(rows)} observations dropped because of missing values: "
            f"{_places(pieces, gone, names)}",
            DataWarning,
        )
        pieces = replace(
            pieces,
            values=pieces.values[~rows],
            node=pieces.node[~rows],
            is_target=pieces.is_target[~rows],
            time=None if pieces.time is None else pieces.time[~rows],
        )
        if not len(pieces.values):
            raise InputError(
                "no observation is left after dropping those with missing values",
                "Fill the missing values, or choose features that have fewer",
            )
    check_magnitude(pieces.values, "the data")
    return pieces


def _places(pieces: Pieces, bad: BoolArray, names: Sequence[str]) -> str:
    counts = np.zeros((len(pieces.labels), bad.shape[1]), dtype=int)
    np.add.at(counts, pieces.node, bad)
    where = np.argwhere(counts)
    shown = [
        f"{counts[v, j]} in column {names[j]!r} of node {pieces.labels[v]!r}" for v, j in where[:5]
    ]
    more = f" and {len(where) - 5} more places" if len(where) > 5 else ""
    return ", ".join(shown) + more


@dataclass(frozen=True)
class Roles:
    """Columns of a long table by what they hold."""

    node: str
    sample: str
    features: Sequence[str] | str | None
    categorical: Any = ()
    time: str | None = None


def from_long_table(
    frame: Any, roles: Roles, sides_named: tuple[Any, Any], order: tuple[Label, ...] | None
) -> tuple[Pieces, tuple[str, ...], Encoding | None]:
    """Split a long table into the two samples of every node; categories stay coded.

    `sides_named` are the values of the column of samples for reference and target.
    """
    asked = asked_levels(roles.categorical)
    node, sample, time = roles.node, roles.sample, roles.time
    table = frames.long_table(frame, node, sample, roles.features, asked, time)
    labels, label_codes, sides, side_codes, values, names, levels = table
    sides = [plain_label(side) for side in sides]
    reference = plain_label(sides_named[0], "name of the reference sample")
    target = plain_label(sides_named[1], "name of the target sample")
    if reference == target:
        raise InputError(f"reference and target are both {reference!r}", "Name two samples")
    code = []
    for value in (reference, target):
        if value not in sides:
            raise InputError(
                f"the column {sample!r} has no value {value!r}", nearest_name(value, sides)
            )
        code.append(sides.index(value))
    is_target = side_codes == code[1]
    kept = np.flatnonzero(is_target | (side_codes == code[0]))
    unnamed = kept[label_codes[kept] < 0]
    if unnamed.size:
        raise InputError(
            f"{unnamed.size} rows have no node label in column {node!r}: "
            f"rows {listing(unnamed.tolist())}",
            "Fill the column or drop these rows",
        )
    used, codes = distinct_codes(label_codes[kept])
    found = [plain_label(labels[i]) for i in used]
    all_nodes = order if order is not None else as_labels(found)
    position = {label: i for i, label in enumerate(all_nodes)}
    unknown = [label for label in found if label not in position]
    if unknown:
        raise InputError(
            f"the argument nodes lacks {len(unknown)} nodes of the table: {listing(unknown)}",
            "Add them to nodes or drop their rows",
        )
    index = np.array([position[label] for label in found], dtype=np.intp)
    fixed = [name for name, given in asked.items() if given is not None]
    encoding, coded = fitted_encoding(names, levels, fixed, values[kept])
    times = None if time is None else frames.time_column(frame, time)[kept]
    pieces = Pieces(all_nodes, coded, index[codes], is_target[kept], time=times)
    return pieces, names, encoding


def check_order(n_samples: int, labels: tuple[Label, ...]) -> None:
    """Refuse samples without labels that cannot be matched to the nodes of a graph by position."""
    if len(labels) != n_samples:
        raise InputError(
            f"the samples have {n_samples} nodes and the graph {len(labels)}",
            "Give one entry for each node of the graph, in its order",
        )
    if set(labels) == set(range(n_samples)):
        raise InputError(
            f"the nodes of the graph are the numbers 0 to {n_samples - 1} in another order, "
            f"{listing(list(labels))}, and the samples do not say whose they are",
            "Pass NodeSamples.from_arrays(..., nodes=range(n_nodes)) for the sample i at node i, "
            "or nodes=graph.nodes for samples in the order of the graph",
        )


def check_same_labels(
    samples: Sequence[Label],
    nodes: Sequence[Label],
    *,
    holder: str = "the graph",
    remedy: str = "Use the same labels in both",
) -> None:
    """Refuse labels that only the samples or only the nodes have, and list them."""
    in_samples, in_nodes = set(samples), set(nodes)
    lacking = [label for label in samples if label not in in_nodes]
    unused = [label for label in nodes if label not in in_samples]
    problems = []
    if lacking:
        problems.append(f"{len(lacking)} in the samples but not in {holder}: {listing(lacking)}")
    if unused:
        problems.append(f"{len(unused)} in {holder} but not in the samples: {listing(unused)}")
    if problems:
        raise InputError(f"node labels do not match: {'; '.join(problems)}", remedy)
