"""`graphratio predict` and `graphratio info`: use a saved model."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from graphratio._utils.errors import InputError, listing
from graphratio._utils.files import appearing
from graphratio._utils.optional import import_optional
from graphratio._utils.typing import FloatArray
from graphratio.cli.console import Screen, as_option
from graphratio.cli.expand import option
from graphratio.cli.models import settings_of
from graphratio.cli.options import Delimiter
from graphratio.cli.output import SHOWN_NODES, ranking_title, write_table
from graphratio.cli.output_options import Json, Overwrite, Quiet
from graphratio.cli.table_files import TableFile, as_numbers, as_text
from graphratio.data.scaling import Scaling
from graphratio.data.validation import nearest_name
from graphratio.estimators import load
from graphratio.estimators.base import NodeRatioEstimator

Model = Annotated[
    Path,
    typer.Argument(
        metavar="MODEL",
        help="A file model.graphratio, written by report or fit.",
        show_default=False,
    ),
]


@dataclass(frozen=True)
class PointOptions:
    """Nodes at which to evaluate the ratio, and where to write it."""

    node: str | None = option(None, "Column of POINTS with the label of the node of each point.")
    at: str | None = option(None, "One node for all points. Default: every node.")
    output: Path | None = option(None, "CSV file to write. Default: print it.")
    overwrite: Overwrite = False
    delimiter: Delimiter = None
    json: Json = False
    quiet: Quiet = False

    def __post_init__(self) -> None:
        if self.node is not None and self.at is not None:
            raise typer.BadParameter("give either --node COLUMN or --at LABEL, not both")


def predict(
    model: Model,
    points: Annotated[
        Path,
        typer.Argument(
            metavar="POINTS",
            help="CSV or Parquet file with a column for each feature, in original units.",
            show_default=False,
        ),
    ],
    options: PointOptions,
) -> None:
    r"""Evaluate the ratio = target / reference of a saved model at given points.

    A ratio above 1 means that such observations became more frequent, a ratio below 1 less
    frequent. Prints CSV: the features, the node and the ratio.

    At every node, or at one:

        graphratio predict air-report/model.graphratio points.csv

        graphratio predict air-report/model.graphratio points.csv --at north

    Every point at its own node, named in the column `station`:

        graphratio predict air-report/model.graphratio points.csv \
          --node station --output ratios.csv
    """
    screen = Screen(as_json=options.json, quiet=options.quiet)
    if options.output is not None and options.output.exists() and not options.overwrite:
        raise InputError(
            f"the file {options.output} exists already", "Pass --overwrite to replace it"
        )
    for path in (model, points):
        if options.output is not None and options.output.resolve() == path.resolve():
            raise InputError(
                f"--output {options.output} would replace the input {path}",
                "Choose another --output",
            )
    fitted = load(model)
    table = _ratios(fitted, points, options)
    if options.output is not None:
        with appearing(options.output) as rough:
            write_table(table, rough)
        screen.say(f"{len(table)} ratios: {options.output}")
    elif not options.json and not options.quiet:
        typer.echo(write_table(table, None), nl=False)
    content: dict[str, Any] = {"command": "predict", "n_ratios": len(table)}
    if options.output is None:
        screen.result({**content, "ratios": table.to_dict("list")})
    else:
        screen.result({**content, "file": options.output})


def _ratios(model: NodeRatioEstimator, points: Path, options: PointOptions) -> Any:
    """One row per point and node: the features, the node and the ratio."""
    pandas = import_optional("pandas", "cli", "reading tables")
    file = TableFile(points, options.delimiter)
    features = _columns(model)
    for name in features:
        file.check(name, "a feature of the model")
    extra = [] if options.node is None else [options.node]
    for name in extra:
        file.check(name, "--node")
    raw = file.read([*dict.fromkeys([*features, *extra])])
    levels = model.encoding_.levels if model.encoding_ is not None else {}
    values = pandas.DataFrame(
        {
            name: as_text(raw[name]) if name in levels else as_numbers(raw[name], name)
            for name in features
        }
    )
    blank = np.flatnonzero((values.isna() | (values == "")).any(axis=1))
    if blank.size:
        raise InputError(
            f"{points} has missing values in rows {listing((blank + 1).tolist())} below the header",
            "Fill or remove these rows",
        )
    # Unnamed features are matched by order; categories need a frame.
    given = values if levels else values.to_numpy()
    # Labels of the model that are not text are matched by their text.
    written = {str(label): label for label in model.nodes_}
    if options.node is not None:
        labels = as_text(raw[options.node]).to_numpy()
        unknown = list(dict.fromkeys(label for label in labels if label not in written))
        if unknown:
            raise InputError(
                f"{len(unknown)} labels in column {options.node!r} are not nodes of the model: "
                f"{listing(unknown)}",
                f"The model has {listing(written, limit=3)}",
            )
        ratios: FloatArray = np.empty(len(values))
        for label in dict.fromkeys(labels):
            rows = labels == label
            ratios[rows] = model.predict(given[rows], node=written[label])
        rows, nodes = np.arange(len(values)), labels
    else:
        chosen = list(model.nodes_)
        if options.at is None:
            ratios = model.predict(given).ravel()
        elif options.at in written:
            chosen = [written[options.at]]
            ratios = model.predict(given, node=chosen[0])
        else:
            remedy = nearest_name(options.at, written)
            raise InputError(f"the model has no node {options.at!r}", remedy)
        rows = np.repeat(np.arange(len(values)), len(chosen))
        nodes = np.tile(np.array([str(label) for label in chosen], dtype=object), len(values))
    table = values.iloc[rows].reset_index(drop=True)
    if not np.isfinite(ratios).all():
        raise InputError(
            f"the model gives {int((~np.isfinite(ratios)).sum())} ratios that are not numbers",
            "The model is damaged, or these points are far from all of its data: check both",
        )
    found = pandas.DataFrame({"node": nodes, "ratio": ratios})
    return pandas.concat([table, found], axis="columns")


def _columns(model: NodeRatioEstimator) -> list[str]:
    """Columns of points for the model: its features, each category as one column."""
    named = model.encoding_.columns if model.encoding_ is not None else model.feature_names_in_
    return [str(name) for name in named]


def info(model: Model, json: Json = False) -> None:
    """Show the settings and results of a saved model.

    Example:

        graphratio info air-report/model.graphratio
    """
    screen = Screen(as_json=json)
    fitted = load(model)
    graph, scaling = fitted.graph_, fitted.scaling_
    log = getattr(scaling, "log", None)
    top = fitted.ranking_[:SHOWN_NODES]
    levels = fitted.encoding_.levels if fitted.encoding_ is not None else {}
    content = {
        "estimator": type(fitted).__name__,
        "n_nodes": graph.n_nodes,
        "n_edges": graph.n_edges,
        "features": _columns(fitted),
        "categorical": [f"{name} ({', '.join(known)})" for name, known in levels.items()],
        "standardised": _standardised(scaling, fitted.feature_names_in_),
        "logarithms": [] if log is None else fitted.feature_names_in_[log].tolist(),
        "n_reference": int(fitted.sizes_[:, 0].sum()),
        "n_target": int(fitted.sizes_[:, 1].sum()),
        "settings": settings_of(fitted),
        "notes": fitted._told(as_option),
    }
    for name, value in content.items():
        screen.say(f"{name.replace('_', ' ')}: {_in_words(value)}")
    columns: dict[str, list[Any]] = {
        "node": [str(fitted.nodes_[i]) for i in top],
        "n_reference": fitted.sizes_[top, 0].tolist(),
        "n_target": fitted.sizes_[top, 1].tolist(),
        "divergence": fitted.divergence_[top].tolist(),
    }
    shown = {name.replace("_", " "): column for name, column in columns.items()}
    screen.table(ranking_title(fitted), shown)
    rows = zip(*columns.values(), strict=True)
    ranked = [dict(zip(columns, row, strict=True)) for row in rows]
    screen.result({**content, "most_changed": ranked})


def _standardised(scaling: Scaling | None, names: np.ndarray) -> bool | str:
    """Whether features were standardised, and which at each node by itself."""
    if scaling is None or not (scaling.scale != 1).any():
        return False
    own = names[scaling.own_mask].tolist()
    return f"yes, {', '.join(own)} at each node by itself" if own else True


def _in_words(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name.replace('_', ' ')} {part:.4g}" for name, part in value.items())
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "none"
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value)
