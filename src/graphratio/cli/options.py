"""The options of all commands that read data, in groups that commands take as one parameter."""

from __future__ import annotations

from dataclasses import MISSING, dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from graphratio._utils.errors import InputError
from graphratio.cli.expand import option
from graphratio.cli.output_options import OUTPUT
from graphratio.data.durations import parse_duration

# Rows with missing values, distances between nodes, estimators, and losses.
Missing = StrEnum("Missing", ["error", "drop"])
Metric = StrEnum("Metric", ["haversine", "euclidean"])
Standardize = StrEnum("Standardize", ["auto", "all", "node", "none"])
Estimator = StrEnum("Estimator", ["graphratio", "grulsif", "pool", "rulsif", "ulsif", "kliep"])
LossName = StrEnum("LossName", [("pearson", "pearson"), ("kl", "kl"), ("js", "jensen-shannon")])

_DATA = "The table"
_SAMPLES = "The two samples"
_GRAPH = "The graph (one of --edges, --coordinates, --no-graph)"
_FIT = "The fit"
_TIME = "Time"

# Names for a wide table: the column of its nodes, and its feature unless --features names it.
NODE, VALUE = "node", "value"

_SEED = "Seed for everything random; the same seed gives the same result."
JOBS = "Number of threads, or -1 for all cores. It does not change the results."


def some_jobs(value: int) -> int:
    """Refuse 0 threads."""
    if value == 0:
        raise typer.BadParameter("0 threads do no work; use 1 or more, or -1 for all cores")
    return value


# Help of the graph options, which several commands share.
EDGES_HELP = (
    "CSV or Parquet file whose first two columns are the ends of the edges, and the third, if "
    "there is one, the weight; or a square matrix of weights with the labels in its header."
)
COORDINATES_HELP = "Two columns with the place of each node, e.g. lat,lon: "
NEIGHBORS_HELP = "With --coordinates: how many nearest nodes each node is joined to."
METRIC_HELP = (
    "Distance: haversine on the globe (latitude,longitude in degrees), euclidean in the plane. "
    "Default: haversine if the columns are called lat or latitude and lon, lng, long or longitude."
)
DEFAULT_ALPHA = 0.1


Delimiter = Annotated[
    str | None,
    typer.Option(
        help="Character between the columns of CSV files, e.g. ';'. Default: a comma, or a tab "
        "in files called .tsv.",
        show_default=False,
        rich_help_panel=_DATA,
    ),
]


@dataclass(frozen=True)
class TableOptions:
    """Which table to read, and the roles of its columns."""

    data: Annotated[
        Path,
        typer.Argument(
            metavar="DATA",
            help="CSV or Parquet file with one row per observation, also compressed; - is "
            "standard input.",
            show_default=False,
        ),
    ]
    node: str | None = option(_DATA, "Column with the label of the node of each row.")
    wide: bool = option(
        _DATA,
        "Instead of --node: one column per node, named after it, and one row per time. "
        "--features then names what the columns hold.",
        "--wide",
        default=False,
    )
    features: str | None = option(
        _DATA,
        "Columns that were measured, separated by commas. Default: all other columns of numbers "
        "that vary within nodes.",
    )
    na_values: str | None = option(
        _DATA,
        "Entries that stand for a missing value, separated by commas, e.g. -999,none, in every "
        "column except --node. Empty cells, NA, NaN and the like are always missing.",
    )
    missing: Missing = option(
        _DATA,
        "Rows with missing values: error stops, drop leaves them out.",
        default=Missing.error,
    )
    delimiter: Delimiter = None

    def __post_init__(self) -> None:
        if self.node is not None and self.wide:
            raise typer.BadParameter("--node and --wide exclude each other: pass one of them")
        if self.node is None and not self.wide:
            raise typer.BadParameter(
                "say where the rows belong: --node COLUMN, or --wide for one column per node"
            )

    @property
    def stem(self) -> str:
        """Name of the table in titles."""
        return "table" if str(self.data) == "-" else self.data.name.partition(".")[0]

    @property
    def where(self) -> str:
        """Column of the node; a wide table gets one with this name."""
        return NODE if self.node is None else self.node


@dataclass(frozen=True)
class DataOptions(TableOptions):
    """`TableOptions` of commands that compare two samples."""

    categorical: str | None = option(
        _DATA,
        "Columns of categories (text or codes), separated by commas; they are features too, with "
        "one indicator per value.",
    )
    max_observations: int | None = option(
        _DATA,
        "Use at most this many observations of each sample of each node, chosen at random. "
        "Default: all.",
        min=2,
    )


@dataclass(frozen=True)
class SampleOptions:
    """How the rows divide into the reference and the target sample."""

    sample: str | None = option(
        _SAMPLES, "Column with the sample of each row; --reference and --target name its values."
    )
    reference: str | None = option(
        _SAMPLES, "Value of that column for the reference (the state before)."
    )
    target: str | None = option(_SAMPLES, "Value of that column for the target (the state after).")
    time: str | None = option(
        _SAMPLES,
        "Column with the time of each row: dates (2020-03-01), times (2020-03-01T14:30) or "
        "numbers. Without --sample it also divides the rows, with --split or the two ranges.",
    )
    date_format: str | None = option(
        _SAMPLES,
        "How dates are written in that column, e.g. %d.%m.%Y or '%m/%d/%y %H:%M'. Default: ISO.",
    )
    split: str | None = option(
        _SAMPLES, "With --time: rows before this time are the reference, the others the target."
    )
    reference_range: str | None = option(
        _SAMPLES,
        "With --time, instead of --split: first and last time of the reference, e.g. "
        "2019-03-01:2019-05-31. Both ends belong to it.",
    )
    target_range: str | None = option(
        _SAMPLES, "The same for the target, e.g. 2020-03-01:2020-05-31."
    )
    block: str = option(
        _SAMPLES,
        "Observations of a block depend on each other and stay together in folds and "
        "permutations. auto: with --time, blocks as long as the dependence found in the data; "
        "none: no blocks; or a number of successive rows of a node, or a duration such as 1D, 6h "
        "or 30min.",
        default="auto",
    )

    def __post_init__(self) -> None:
        if self.sample is None and self.time is None:
            raise typer.BadParameter(
                "say how the rows divide into two samples: either --sample COLUMN --reference "
                "VALUE --target VALUE, or --time COLUMN --split DATE"
            )
        self.blocks()
        if self.date_format is not None and self.time is None:
            raise typer.BadParameter("--date-format goes with --time")
        values = (self.reference, self.target)
        ranges = (self.reference_range, self.target_range)
        if self.sample is not None:
            if None in values:
                raise typer.BadParameter("--sample needs both --reference and --target")
            if self.split is not None or ranges != (None, None):
                raise typer.BadParameter(
                    "--split and ranges divide the rows by --time, and --sample divides them too: "
                    "leave out one of the two"
                )
            return
        if values != (None, None):
            raise typer.BadParameter("--reference and --target go with --sample, not with --time")
        if (self.split is None) == (ranges == (None, None)) or (
            self.split is None and None in ranges
        ):
            raise typer.BadParameter(
                "--time needs either --split, or both --reference-range and --target-range"
            )

    def blocks(self) -> str | int | None:
        """The blocks as the library takes them."""
        text = self.block.strip()
        if text in ("auto", "none"):
            return text if text == "auto" else None
        if text.isdecimal() and int(text):
            return int(text)
        try:
            parse_duration(text)
        except InputError as error:
            raise typer.BadParameter(
                f"--block {text} is not auto, none, a number of rows, or a duration such as 1D, "
                "6h or 30min"
            ) from error
        if self.time is None:
            raise typer.BadParameter(f"--block {text} is a duration and needs --time")
        return text


@dataclass(frozen=True)
class GraphOptions:
    """How the nodes are connected, and where they are."""

    edges: Path | None = option(_GRAPH, EDGES_HELP)
    coordinates: str | None = option(
        _GRAPH,
        f"{COORDINATES_HELP}joins every node to its nearest ones. With --edges or --no-graph they "
        "only draw the map.",
    )
    neighbors: int = option(_GRAPH, NEIGHBORS_HELP, default=5, min=1)
    metric: Metric | None = option(_GRAPH, METRIC_HELP)
    no_graph: bool = option(_GRAPH, "Analyse every node separately.", "--no-graph", default=False)
    allow_isolated: bool = option(
        _GRAPH,
        "Accept nodes of the table that the edges file does not name; they are estimated "
        "separately.",
        "--allow-isolated",
        default=False,
    )

    def __post_init__(self) -> None:
        if self.edges is not None and self.no_graph:
            raise typer.BadParameter("give either --edges or --no-graph, not both")
        if self.edges is None and self.coordinates is None and not self.no_graph:
            raise typer.BadParameter(
                "say how the nodes are connected: --edges FILE, --coordinates COLUMN,COLUMN, or "
                "--no-graph"
            )


@dataclass(frozen=True)
class MapOptions(GraphOptions):
    """`GraphOptions` of commands whose results can go on a map."""

    geojson: bool = option(
        OUTPUT,
        "Also write the table of nodes as GeoJSON, one point per node; needs --coordinates "
        "lat,lon.",
        "--geojson",
        default=False,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.geojson and self.coordinates is None:
            raise typer.BadParameter("--geojson needs --coordinates")


@dataclass(frozen=True)
class PrepareOptions:
    """How to transform the features, and seed and threads."""

    seed: int = option(_FIT, _SEED, default=0, min=0)
    jobs: int = option(_FIT, JOBS, default=-1, callback=some_jobs)
    log: str | None = option(_FIT, "Features to take the logarithm of, separated by commas.")
    standardize: Standardize = option(
        _FIT,
        "Shift every feature to mean 0 and scale it to standard deviation 1 over both samples of "
        "all nodes together, or of each node by itself; auto takes each node where neighbours "
        "differ so much in level or spread that they would share little (graphratio graphs tries "
        "both); none leaves the features as they are.",
        default=Standardize.auto,
    )


@dataclass(frozen=True)
class FitOptions(PrepareOptions):
    """What to fit, and how."""

    estimator: Estimator = option(
        _FIT,
        "graphratio shares profiles of change and learns which edges to trust; grulsif is the "
        "paper's joint estimate of all nodes; pool shares only the settings; rulsif, ulsif and "
        "kliep fit every node separately.",
        default=Estimator.graphratio,
    )
    alpha: float = option(
        _FIT,
        "Share of the target mixed into the reference; ratios are at most 1/alpha. From 0 to "
        "below 1; not for ulsif and kliep.",
        default=DEFAULT_ALPHA,
    )
    loss: LossName = option(
        _FIT,
        "Loss of the fit, and so its divergence: pearson, kl (Kullback-Leibler) or jensen-shannon. "
        "Only graphratio, grulsif and pool take kl and jensen-shannon, without shared profiles.",
        default=LossName.pearson,
    )
    no_kinds: bool = option(
        _FIT,
        "Skip the search for kinds of change, and the test of every node that it needs.",
        "--no-kinds",
        default=False,
    )

    def __post_init__(self) -> None:
        if not 0 <= self.alpha < 1:
            raise typer.BadParameter("--alpha must be at least 0 and below 1")
        if self.estimator in (Estimator.ulsif, Estimator.kliep) and self.alpha != DEFAULT_ALPHA:
            raise typer.BadParameter(f"--alpha does nothing with --estimator {self.estimator}")
        node_by_node = (Estimator.rulsif, Estimator.ulsif, Estimator.kliep)
        if self.loss != LossName.pearson and self.estimator in node_by_node:
            raise typer.BadParameter(f"--loss does nothing with --estimator {self.estimator}")


@dataclass(frozen=True)
class TimeOptions:
    """How to look for changes."""

    time: str = option(
        _TIME,
        "Column with dates (2020-03-01), times (2020-03-01T14:30) or numbers; at most one row "
        "per node and time.",
        default=MISSING,
    )
    date_format: str | None = option(
        _TIME,
        "How dates are written in that column, e.g. %d.%m.%Y or '%m/%d/%y %H:%M'. Default: ISO.",
    )
    window: int | None = option(
        _TIME,
        "Compare at most this many time points before and after. Default: all.",
        min=5,
    )
    season: str = option(
        _TIME,
        "auto recognises a daily, weekly or other rhythm and removes it; a number of time points "
        "gives the period; none leaves rhythms in.",
        default="auto",
    )
    level: float = option(
        _TIME, "Probability of any false alarm if nothing changes, between 0 and 1.", default=0.05
    )
    estimator: Estimator | None = option(
        _TIME,
        "Take kernel, dictionary and penalties from an estimator. Default: the detector's own.",
    )
    surrogates: int = option(
        _TIME,
        "Number of shuffled copies of the table that estimate the probability of false alarms.",
        default=99,
        min=1,
    )
    seed: int = option(_TIME, _SEED, default=0, min=0)
    jobs: int = option(_TIME, JOBS, default=-1, callback=some_jobs)

    def __post_init__(self) -> None:
        if not 0 < self.level < 1:
            raise typer.BadParameter("--level must be between 0 and 1")
        if self.season not in ("auto", "none") and not self.season.isdigit():
            raise typer.BadParameter("--season must be auto, none or a number of time points")
