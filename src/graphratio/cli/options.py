"""The options of all commands that read data, in groups that commands take as one parameter."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer


class Missing(StrEnum):
    """What to do with rows that have missing values."""

    error = "error"
    drop = "drop"


class Metric(StrEnum):
    """How distances between nodes are measured."""

    haversine = "haversine"
    euclidean = "euclidean"


class Estimator(StrEnum):
    """Estimators by their names on the command line."""

    recommended = "recommended"
    grulsif = "grulsif"
    pool = "pool"
    rulsif = "rulsif"
    ulsif = "ulsif"
    kliep = "kliep"


_DATA = "The table"
_SAMPLES = "The two samples"
_GRAPH = "The graph (one of --edges, --coordinates, --no-graph)"
_FIT = "The fit"
_TIME = "Time"
_OUTPUT = "Output"

Delimiter = Annotated[
    str | None,
    typer.Option(
        help="Character between the columns of CSV files, e.g. ';'. Default: a comma, or a tab "
        "in files called .tsv.",
        show_default=False,
        rich_help_panel=_DATA,
    ),
]
Json = Annotated[
    bool,
    typer.Option("--json", help="Print one JSON object instead of text.", rich_help_panel=_OUTPUT),
]
Quiet = Annotated[
    bool,
    typer.Option("--quiet", help="Print nothing but errors.", rich_help_panel=_OUTPUT),
]
Overwrite = Annotated[
    bool,
    typer.Option("--overwrite", help="Replace earlier output.", rich_help_panel=_OUTPUT),
]


@dataclass(frozen=True)
class TableOptions:
    """Which table, and which of its columns mean what."""

    data: Annotated[
        Path,
        typer.Argument(
            metavar="DATA",
            help="CSV or Parquet file with one row per observation.",
            show_default=False,
        ),
    ]
    node: Annotated[
        str,
        typer.Option(
            help="Column that says where: the label of the node.",
            show_default=False,
            rich_help_panel=_DATA,
        ),
    ]
    features: Annotated[
        str | None,
        typer.Option(
            help="Columns that were measured, separated by commas. Default: all other columns "
            "that hold numbers.",
            show_default=False,
            rich_help_panel=_DATA,
        ),
    ] = None
    missing: Annotated[
        Missing,
        typer.Option(
            help="Rows with missing values: stop, or leave them out.", rich_help_panel=_DATA
        ),
    ] = Missing.error
    delimiter: Delimiter = None


@dataclass(frozen=True)
class DataOptions(TableOptions):
    """The same where the rows of a node are a sample."""

    categorical: Annotated[
        str | None,
        typer.Option(
            help="Columns of categories (text or codes), separated by commas; they are features "
            "too, with one indicator per value.",
            show_default=False,
            rich_help_panel=_DATA,
        ),
    ] = None
    max_observations: Annotated[
        int | None,
        typer.Option(
            min=2,
            help="Use at most this many observations of each sample of each node, chosen at "
            "random. Default: all.",
            show_default=False,
            rich_help_panel=_DATA,
        ),
    ] = None


@dataclass(frozen=True)
class SampleOptions:
    """How the rows divide into the reference and the target sample."""

    sample: Annotated[
        str | None,
        typer.Option(
            help="Column that says to which sample a row belongs, with --reference and --target.",
            show_default=False,
            rich_help_panel=_SAMPLES,
        ),
    ] = None
    reference: Annotated[
        str | None,
        typer.Option(
            help="Value of that column for the reference (the state before).",
            show_default=False,
            rich_help_panel=_SAMPLES,
        ),
    ] = None
    target: Annotated[
        str | None,
        typer.Option(
            help="Value of that column for the target (the state after).",
            show_default=False,
            rich_help_panel=_SAMPLES,
        ),
    ] = None
    time: Annotated[
        str | None,
        typer.Option(
            help="Instead of --sample: column with dates (2020-03-01), times "
            "(2020-03-01T14:30) or numbers.",
            show_default=False,
            rich_help_panel=_SAMPLES,
        ),
    ] = None
    split: Annotated[
        str | None,
        typer.Option(
            help="With --time: earlier rows are the reference, rows from here on the target.",
            show_default=False,
            rich_help_panel=_SAMPLES,
        ),
    ] = None
    reference_range: Annotated[
        str | None,
        typer.Option(
            help="With --time, instead of --split: first and last time of the reference, e.g. "
            "2019-03-01:2019-05-31. Both ends belong to it.",
            show_default=False,
            rich_help_panel=_SAMPLES,
        ),
    ] = None
    target_range: Annotated[
        str | None,
        typer.Option(
            help="The same for the target, e.g. 2020-03-01:2020-05-31.",
            show_default=False,
            rich_help_panel=_SAMPLES,
        ),
    ] = None

    def __post_init__(self) -> None:
        if (self.sample is None) == (self.time is None):
            raise typer.BadParameter(
                "say how the rows divide into two samples: either --sample COLUMN --reference "
                "VALUE --target VALUE, or --time COLUMN --split DATE"
            )
        values = (self.reference, self.target)
        ranges = (self.reference_range, self.target_range)
        if self.sample is not None:
            if None in values:
                raise typer.BadParameter("--sample needs both --reference and --target")
            if self.split is not None or ranges != (None, None):
                raise typer.BadParameter("--split and ranges go with --time, not with --sample")
            return
        if values != (None, None):
            raise typer.BadParameter("--reference and --target go with --sample, not with --time")
        if (self.split is None) == (ranges == (None, None)) or (
            self.split is None and None in ranges
        ):
            raise typer.BadParameter(
                "--time needs either --split, or both --reference-range and --target-range"
            )


@dataclass(frozen=True)
class GraphOptions:
    """How the nodes are connected, and where they are."""

    edges: Annotated[
        Path | None,
        typer.Option(
            help="CSV or Parquet file whose first two columns are the ends of the edges, and "
            "the third, if there is one, the weight.",
            show_default=False,
            rich_help_panel=_GRAPH,
        ),
    ] = None
    coordinates: Annotated[
        str | None,
        typer.Option(
            help="Two columns with the place of the node, e.g. lat,lon: nodes are joined to "
            "their nearest ones. Together with --edges or --no-graph, for the map only.",
            show_default=False,
            rich_help_panel=_GRAPH,
        ),
    ] = None
    neighbors: Annotated[
        int,
        typer.Option(
            min=1, help="With --coordinates: number of nearest nodes.", rich_help_panel=_GRAPH
        ),
    ] = 5
    metric: Annotated[
        Metric | None,
        typer.Option(
            help="Distance: haversine on the globe (latitude,longitude in degrees), euclidean in "
            "the plane. Default: haversine if the columns are called lat or latitude and lon, "
            "lng, long or longitude.",
            show_default=False,
            rich_help_panel=_GRAPH,
        ),
    ] = None
    no_graph: Annotated[
        bool,
        typer.Option("--no-graph", help="Every node by itself.", rich_help_panel=_GRAPH),
    ] = False
    allow_isolated: Annotated[
        bool,
        typer.Option(
            "--allow-isolated",
            help="Accept nodes of the table that the edges file does not name; they are "
            "estimated by themselves.",
            rich_help_panel=_GRAPH,
        ),
    ] = False

    def __post_init__(self) -> None:
        if self.edges is not None and self.no_graph:
            raise typer.BadParameter("give either --edges or --no-graph, not both")
        if self.edges is None and self.coordinates is None and not self.no_graph:
            raise typer.BadParameter(
                "say how the nodes are connected: --edges FILE, --coordinates COLUMN,COLUMN, or "
                "--no-graph"
            )


@dataclass(frozen=True)
class PrepareOptions:
    """What is done to the features first."""

    seed: Annotated[
        int,
        typer.Option(
            min=0, help="Seed of everything random: the same gives the same.", rich_help_panel=_FIT
        ),
    ] = 0
    log: Annotated[
        str | None,
        typer.Option(
            help="Features to take the logarithm of, separated by commas.",
            show_default=False,
            rich_help_panel=_FIT,
        ),
    ] = None
    no_standardize: Annotated[
        bool,
        typer.Option(
            "--no-standardize",
            help="Leave the features on their own scales. By default each is shifted to mean 0 "
            "and scaled to spread 1, over both samples of all nodes.",
            rich_help_panel=_FIT,
        ),
    ] = False


@dataclass(frozen=True)
class FitOptions(PrepareOptions):
    """What is fitted, and how."""

    estimator: Annotated[
        Estimator,
        typer.Option(
            help="recommended finds kinds of change and learns which edges to trust; grulsif is "
            "the paper's joint estimate of all nodes; pool shares only the settings; rulsif, "
            "ulsif and kliep take every node by itself.",
            rich_help_panel=_FIT,
        ),
    ] = Estimator.recommended
    alpha: Annotated[
        float,
        typer.Option(
            help="Share of the target mixed into the reference; ratios are at most 1/alpha. From "
            "0 to below 1; not for ulsif and kliep.",
            rich_help_panel=_FIT,
        ),
    ] = 0.1

    def __post_init__(self) -> None:
        if not 0 <= self.alpha < 1:
            raise typer.BadParameter("--alpha must be at least 0 and below 1")


@dataclass(frozen=True)
class TimeOptions:
    """How changes are looked for."""

    time: Annotated[
        str,
        typer.Option(
            help="Column with dates (2020-03-01), times (2020-03-01T14:30) or numbers; every node "
            "has one row at every time.",
            show_default=False,
            rich_help_panel=_TIME,
        ),
    ]
    window: Annotated[
        int,
        typer.Option(
            min=4,
            help="Times before and after that are compared. The table needs at least four windows.",
            show_default=False,
            rich_help_panel=_TIME,
        ),
    ]
    step: Annotated[
        int, typer.Option(min=1, help="Look at every so many times.", rich_help_panel=_TIME)
    ] = 1
    false_alarm: Annotated[
        float,
        typer.Option(
            help="Chance of any false alarm if nothing changes; between 0 and 1.",
            rich_help_panel=_TIME,
        ),
    ] = 0.05
    surrogates: Annotated[
        int,
        typer.Option(
            min=1, help="Shuffled copies of the table behind that chance.", rich_help_panel=_TIME
        ),
    ] = 99
    seed: Annotated[
        int,
        typer.Option(
            min=0, help="Seed of everything random: the same gives the same.", rich_help_panel=_TIME
        ),
    ] = 0

    def __post_init__(self) -> None:
        if not 0 < self.false_alarm < 1:
            raise typer.BadParameter("--false-alarm must be between 0 and 1")
        if self.step > self.window:
            raise typer.BadParameter("--step must not be larger than --window")


@dataclass(frozen=True)
class OutputOptions:
    """Where results go."""

    output: Annotated[
        Path,
        typer.Option(
            help="Folder for the results; it must not exist yet.", rich_help_panel=_OUTPUT
        ),
    ] = Path("graphratio-report")
    overwrite: Overwrite = False
    json: Json = False
    quiet: Quiet = False
