"""Read samples and a graph from files, and note what was left out or assumed."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from graphratio._utils.errors import GraphRatioWarning, InputError, first_few, listing
from graphratio._utils.optional import import_optional
from graphratio._utils.typing import BoolArray
from graphratio.cli.console import as_option
from graphratio.cli.graph_files import build_graph
from graphratio.cli.options import (
    VALUE,
    DataOptions,
    GraphOptions,
    Missing,
    SampleOptions,
    TableOptions,
)
from graphratio.cli.periods import TimeAxis, by_time
from graphratio.cli.table_files import (
    TableFile,
    as_numbers,
    as_text,
    is_mostly_numeric,
    is_numeric,
)
from graphratio.data.checks import checks_before
from graphratio.data.graph import Graph
from graphratio.data.samples import NodeSamples
from graphratio.data.validation import nearest_name

# Column of the table that holds the times; no file has a column with this name.
_TIME = "time\0"

_NOT_NUMBERS = "Correct or remove these values, choose other --features, or pass --categorical"


@dataclass(frozen=True)
class Problem:
    """Samples and graph in the same order, in original units, and notes on what was left out."""

    samples: NodeSamples
    graph: Graph
    reference_name: str
    target_name: str
    notes: tuple[str, ...] = ()


def read_problem(
    data: DataOptions,
    samples: SampleOptions,
    graph: GraphOptions,
    seed: int,
    *,
    borrow: bool = True,
) -> Problem:
    """Read the table and the edges, and match them; `borrow` as in `build_graph`."""
    notes: list[str] = []
    file = TableFile(data.data, data.delimiter)
    places, features = roles_of(file, data, graph)
    categorical = split_names(data.categorical, file.columns)
    if data.wide and categorical:
        raise InputError("--categorical does not go with --wide", "Pass a table with --node")
    side = str(samples.time if samples.sample is None else samples.sample)
    roles = [(name, "--categorical") for name in categorical]
    roles += [] if data.wide else [(name, "--features") for name in features]
    _check_columns(file, data, side, samples, places, roles)
    timed = [] if samples.time is None else [samples.time]
    for name in timed:
        file.check(name, "--time")
    special = list(dict.fromkeys([data.where, side, *places, *timed]))
    special += categorical
    raw, labels, features = read_rows(
        file, data, special, features, notes, optional=bool(categorical)
    )
    in_reference, in_target, names = _divide(raw[side], data, samples, notes)
    kept = in_reference | in_target
    kept &= with_labels(labels, kept, data, notes)
    chosen = raw[kept]
    numbers = [name for name in features if name not in categorical]
    columns = {name: as_numbers(chosen[name], name, _NOT_NUMBERS) for name in numbers}
    for name in categorical:
        words = as_text(chosen[name])
        columns[name] = words.where(words != "", None)
    table = import_optional("pandas", "cli", "reading tables").DataFrame(
        {data.where: labels[kept], side: np.where(in_target[kept], names[1], names[0]), **columns}
    )
    options = {}
    if samples.time is not None:
        axis = TimeAxis(chosen[samples.time], samples.time, samples.date_format)
        refuse_blanks(samples.time, int((~axis.known).sum()), len(axis.known), data)
        table = table.assign(**{_TIME: axis.local})
        options["time"] = _TIME
    built = build_graph(labels[kept], chosen, places, graph, data.delimiter, notes, borrow=borrow)
    with warnings_as(notes):
        read = NodeSamples.from_frame(
            table,
            node=data.where,
            sample=side,
            reference=names[0],
            target=names[1],
            features=list(columns),
            categorical=categorical,
            nodes=built.nodes,
            missing=data.missing.value,
            block=samples.blocks(),
            **options,
        )
    if data.max_observations is not None:
        read = capped(read, data.max_observations, seed, notes)
    if samples.time is not None and (found := read.blocks.describe()):
        notes.append(found)
    return Problem(read, built, names[0], names[1], tuple(notes))


def checked(problem: Problem, scaled: NodeSamples) -> list[str]:
    """Sentences about oddities in the data; a fit of the `scaled` ones warns of uneven scales."""
    found = checks_before(problem.samples, scaled.scaling)
    return found.sentences(as_option, without=("scales",))


def split_names(text: str | None, columns: list[str]) -> list[str]:
    """Split an option into names of columns; a name may contain a comma itself."""
    if text is None:
        return []
    if text in columns:
        return [text]
    names = [name.strip() for name in text.split(",") if name.strip()]
    if not names:
        raise InputError(f"{text!r} names no column", f"Available: {listing(columns, limit=12)}")
    if len(set(names)) != len(names):
        raise InputError(f"a column is named twice in {text!r}", "Name each one once")
    return names


@contextmanager
def warnings_as(notes: list[str]) -> Iterator[None]:
    """Collect the library's warnings as notes, and drop those of other packages."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    found = [one.message for one in caught]
    notes += [one.spelled(as_option) for one in found if isinstance(one, GraphRatioWarning)]


def _check_columns(
    file: TableFile,
    data: DataOptions,
    side: str,
    samples: SampleOptions,
    places: list[str],
    features: list[tuple[str, str]],
) -> None:
    """Check that every column exists and that no feature has another role."""
    option = "--sample" if samples.sample is not None else "--time"
    roles = [(side, option)] if data.wide else [(data.where, "--node"), (side, option)]
    roles += [(name, "--coordinates") for name in places]
    for name, role in [*roles, *features]:
        file.check(name, role)
    if side == data.where:
        raise InputError(f"--node and {option} both name the column {side!r}", "Name two columns")
    for name, role in features:
        if name in (data.where, side):
            raise InputError(
                f"column {name!r} is named both as a feature and as "
                f"{'--node' if name == data.where else option}",
                f"Name only measured columns with {role}",
            )


def read_rows(
    file: TableFile,
    data: TableOptions,
    special: list[str],
    features: list[str],
    notes: list[str],
    *,
    optional: bool = False,
) -> tuple[Any, Any, list[str]]:
    """Rows, their labels, and the features: by default the numbers that vary within a node."""
    blank = split_names(data.na_values, [])
    if data.wide:
        raw = _stacked(file, data, special, features[0], notes)
        return raw, raw[data.where], features
    once = [name for name in file.columns if file.columns.count(name) == 1 and name]
    wanted = list(dict.fromkeys([*special, *(features or once)]))
    raw = file.read(wanted, blank=blank, keep=[data.where])
    labels = as_text(raw[data.where])
    if features:
        return raw, labels, features
    others = [name for name in raw.columns if name not in special and is_numeric(raw[name])]
    found = [name for name in others if raw[name].groupby(labels).nunique().max() > 1]
    if not found and not optional:
        raise InputError(
            f"{file.name} has no column of numbers that vary, besides {listing(special)}",
            "Name the measured columns with --features",
        )
    if found:
        shown = first_few(found, limit=12)
        notes.append(f"features: {shown} (the columns of numbers that vary within nodes)")
    return raw, labels, found


def roles_of(
    file: TableFile, data: TableOptions, graph: GraphOptions
) -> tuple[list[str], list[str]]:
    """Columns of the coordinates and of the features; a wide table has one feature."""
    if not data.wide:
        places = split_names(graph.coordinates, file.columns)
        return places, split_names(data.features, file.columns)
    if graph.coordinates is not None:
        raise InputError(
            "a table with one column per node has no columns for --coordinates",
            "Pass --edges FILE or --no-graph, or a table with --node",
        )
    features = split_names(data.features or VALUE, [])
    if len(features) > 1 or features[0] in (data.where, *file.columns):
        raise InputError(
            f"a wide table holds one feature; --features is {', '.join(features)!r}, which is "
            f"{'several names' if len(features) > 1 else 'the name of a column'}",
            "Pass one name that no column has, such as --features speed",
        )
    return [], features


def _stacked(
    file: TableFile, data: TableOptions, special: list[str], feature: str, notes: list[str]
) -> Any:
    """A wide table with one row per node and observation: the other columns, node and value."""
    for name in file.columns:
        file.check(name, "the column of a node")
    raw = file.read(file.columns, blank=split_names(data.na_values, []))
    kept = [name for name in special if name != data.where]
    nodes = [name for name in file.columns if name not in kept]
    other = [name for name in nodes if not is_mostly_numeric(raw[name])]
    nodes = [name for name in nodes if name not in other]
    for name in nodes:
        # One wrong entry is an error: it must not silently drop the node.
        as_numbers(raw[name], name, "Correct them, or name them with --na-values")
    if not nodes:
        raise InputError(
            f"{file.name} has no column of numbers besides {listing(kept)}",
            "Give every node a column with its observations",
        )
    if other:
        notes.append(f"left out, because they hold no numbers: {listing(other)}")
    notes.append(f"{len(nodes)} columns are nodes: {listing(nodes, limit=3)}")
    return raw.melt(id_vars=kept, value_vars=nodes, var_name=data.where, value_name=feature)


def refuse_blanks(column: str, n_blank: int, n_rows: int, data: TableOptions) -> None:
    """Refuse empty entries of a column, unless their rows are to be left out."""
    if n_blank and data.missing is Missing.error:
        raise InputError(
            f"column {column!r} is empty in {n_blank} of {n_rows} rows",
            "Fill it, or pass --missing drop to leave these rows out",
        )


def _two_values(n_values: int) -> str:
    """Remedy for a column that lacks a sample, by the number of its values."""
    if n_values > 1:
        return "Pass two of these values as --reference and --target"
    return "The table needs rows of both samples: add them, or divide by --time and --split"


def _divide(
    column: Any, data: DataOptions, samples: SampleOptions, notes: list[str]
) -> tuple[BoolArray, BoolArray, tuple[str, str]]:
    """Masks of the reference rows and the target rows, and the names of the two samples."""
    text = as_text(column)
    if samples.sample is not None:
        names = (str(samples.reference), str(samples.target))
        if names[0] == names[1]:
            raise InputError(f"--reference and --target are both {names[0]!r}", "Name two samples")
        counts = text[text != ""].value_counts()
        for name in names:
            if name not in counts.index:
                found = [f"{value!r} ({n} rows)" for value, n in counts.items()]
                raise InputError(
                    f"column {samples.sample!r} has no value {name!r}; it has "
                    f"{first_few(found, limit=8)}",
                    nearest_name(name, counts.index, _two_values(len(counts))),
                )
        reference, target = (np.asarray(text == name) for name in names)
    else:
        reference, target, *spoken = by_time(column, samples)
        names = (spoken[0], spoken[1])
        refuse_blanks(str(samples.time), int((text == "").sum()), len(text), data)
        for name, inside in zip(names, (reference, target), strict=True):
            if not inside.any():
                known = text[text != ""]
                raise InputError(
                    f"no row has a time {name}; column {samples.time!r} runs from "
                    f"{known.min()} to {known.max()}",
                    "Choose times in this range",
                )
    others = ~(reference | target)
    if others.any():
        values = text[others]
        what = listing(values.unique().tolist(), limit=3) if samples.sample else "other times"
        notes.append(f"{int(others.sum())} of {len(text)} rows are in neither sample: {what}")
    return reference, target, names


def with_labels(labels: Any, kept: BoolArray, data: TableOptions, notes: list[str]) -> BoolArray:
    """Mask of the rows that have a label; refuse other rows unless they may be left out."""
    has_label = np.asarray(labels != "")
    unnamed = int((kept & ~has_label).sum())
    refuse_blanks(data.where, unnamed, int(kept.sum()), data)
    if unnamed:
        notes.append(f"{unnamed} rows without a label in column {data.where!r} were left out")
    return has_label


def at_random(samples: NodeSamples, limit: int, seed: int) -> BoolArray:
    """Mask of at most `limit` random observations of each sample, shape (n_observations,)."""
    rng = np.random.default_rng(seed)
    shuffled = np.lexsort((rng.random(samples.n_observations), samples.segments))
    rank = np.empty(samples.n_observations, dtype=np.intp)
    rank[shuffled] = np.arange(samples.n_observations) - samples.offsets[samples.segments]
    return rank < limit


def capped(samples: NodeSamples, limit: int, seed: int, notes: list[str]) -> NodeSamples:
    """At most `limit` observations of each sample of each node, chosen at random."""
    sizes = samples.sizes
    large = int((sizes > limit).sum())
    if not large:
        return samples
    kept = samples.subset(observations=at_random(samples, limit, seed))
    notes.append(
        f"at most {limit} observations of each sample were used (--max-observations), chosen at "
        f"random: {kept.n_observations} of {samples.n_observations}; {large} of {sizes.size} "
        "samples were larger"
    )
    return kept
