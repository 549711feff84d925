"""`graphratio test`: which nodes changed significantly."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import numpy as np
import typer

from graphratio._utils.beside import beside
from graphratio._utils.files import staged
from graphratio._utils.jobs import working
from graphratio._utils.optional import import_optional
from graphratio.cli.console import Screen, as_option, unique
from graphratio.cli.expand import option
from graphratio.cli.inputs import Problem, checked, read_problem, warnings_as
from graphratio.cli.models import new_estimator, prepared
from graphratio.cli.options import DataOptions, Estimator, MapOptions, PrepareOptions, SampleOptions
from graphratio.cli.output import check_folder, moved, write_geojson, write_table
from graphratio.cli.output_options import FOLDER_HELP, Json, Overwrite, Quiet
from graphratio.data.samples import NodeSamples
from graphratio.estimators.base import NodeRatioEstimator

if TYPE_CHECKING:
    from graphratio.testing import KindsOfChange, TwoSampleResult

_TEST = "The test"
_SHOWN = 15

# Larger graphs get kinds of change only with --test, because the test takes minutes.
MOST_NODES = 10_000

# Permutations of the test behind kinds of change: up to this many nodes, twice as many as the
# smallest p-value needs; for more nodes, the default of the test.
_FEW_NODES = 2000
_TIMES_NEEDED = 2


# Up to this many numbers the test runs in a process of its own, beside the fit.
MOST_VALUES_BESIDE = 2**21

# The null hypothesis, and the correction for the number of nodes.
Null = StrEnum("Null", {"node": "node", "whole": "global"})
Correction = StrEnum(
    "Correction", {"fwer": "fwer", "fdr": "fdr", "fdr_by": "fdr-by", "none": "none"}
)


@dataclass(frozen=True)
class TestOptions:
    """How to test the nodes."""

    correction: Correction = option(
        _TEST,
        "Correction for the number of nodes. fwer: the chance of any false alarm is at most the "
        "level (Holm); fdr: the expected share of false alarms among the nodes found is at most "
        "the level (Benjamini-Hochberg; fdr-by: under any dependence); none: no correction.",
        default=Correction.fwer,
    )
    level: float = option(_TEST, "Level of the test, between 0 and 1.", default=0.05)
    permutations: int | None = option(
        _TEST, "Number of permutations. Default: enough for the correction.", min=1
    )

    def __post_init__(self) -> None:
        if not 0 < self.level < 1:
            raise typer.BadParameter("--level must be between 0 and 1")


def nodes_tested(
    problem: Problem,
    samples: NodeSamples,
    options: TestOptions,
    null: Null,
    seed: int,
    estimator: Estimator | None = None,
    *,
    progress: bool = False,
) -> TwoSampleResult:
    """Test the nodes."""
    from graphratio.testing import two_sample_test

    # The warnings are among the notes.
    with warnings_as([]):
        return two_sample_test(
            samples,
            problem.graph,
            None if estimator is None else new_estimator(estimator, random_state=seed),
            null=null.value,
            correction=None if options.correction is Correction.none else options.correction.value,
            level=options.level,
            n_permutations=options.permutations,
            random_state=seed,
            progress=progress,
        )


def show_notes(result: TwoSampleResult, screen: Screen) -> list[str]:
    """Notes on a test, which are shown too."""
    from graphratio.testing.wording import notes

    found = list(notes(result, screen.spelling))
    screen.notes(found)
    return found


@contextmanager
def tested_beside(
    problem: Problem,
    samples: NodeSamples,
    options: TestOptions | None,
    seed: int,
    screen: Screen,
) -> Iterator[Callable[[], tuple[TwoSampleResult, list[str]]]]:
    """Test the nodes in another process, if data are so few that both have enough memory.

    The function that is returned waits for the result, and shows and returns notes on it. Without
    options there is no test.
    """

    def test(*, progress: bool) -> TwoSampleResult:
        asked = cast(TestOptions, options)
        return nodes_tested(problem, samples, asked, Null.node, seed, progress=progress)

    with beside(
        partial(test, progress=screen.live),
        quietly=partial(test, progress=False),
        wanted=options is not None and samples.values.size <= MOST_VALUES_BESIDE,
    ) as begun:

        def finished() -> tuple[TwoSampleResult, list[str]]:
            # Work in this process has a bar of its own.
            with screen.working("Testing the nodes") if begun.started else nullcontext():
                result = begun()
            return result, show_notes(result, screen)

        yield finished


def options_for_kinds(samples: NodeSamples) -> TestOptions | None:
    """The test behind kinds of change; None if there are too many nodes."""
    if samples.n_nodes > MOST_NODES:
        return None
    permutations = None
    if samples.n_nodes <= _FEW_NODES:
        needed = math.ceil(_TIMES_NEEDED * samples.n_nodes / TestOptions().level)
        permutations = max(999, needed - 1)
    return TestOptions(Correction.fdr, permutations=permutations)


def find_kinds(
    model: NodeRatioEstimator,
    samples: NodeSamples,
    tested: TwoSampleResult | None,
    seed: int,
    screen: Screen,
) -> tuple[KindsOfChange | None, list[str]]:
    """Kinds of change from a fitted model and a test, and notes on them; none without a test."""
    from graphratio.testing.kinds import kinds_from

    if tested is None:
        notes = [
            f"kinds of change were skipped, because there are more than {MOST_NODES:,} nodes; "
            "pass --test to test the nodes and find kinds"
        ]
        screen.notes(notes)
        return None, notes
    kinds = kinds_from(samples, model, tested, random_state=seed, progress=screen.live)
    own = list(kinds.own_notes)
    screen.notes(own)
    return kinds, own


def node_tests(
    data: DataOptions,
    samples: SampleOptions,
    graph: MapOptions,
    tests: TestOptions,
    prepare: PrepareOptions,
    null: Annotated[
        Null,
        typer.Option(
            help="Null hypothesis. node: this node did not change, whatever the others did; "
            "global: no node changed, with one p-value for all.",
            rich_help_panel=_TEST,
        ),
    ] = Null.node,
    estimator: Annotated[
        Estimator | None,
        typer.Option(
            help="Take kernel and penalties from grulsif or pool, or learn the ratio of another "
            "estimator on one half of the data and test it on the other. Default: the kernel and "
            "penalties of the test itself.",
            show_default=False,
            rich_help_panel=_TEST,
        ),
    ] = None,
    output: Annotated[Path, typer.Option(help=FOLDER_HELP)] = Path("graphratio-test"),
    overwrite: Overwrite = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    r"""Find out which nodes changed significantly.

    Runs a permutation test at every node, corrected for the number of nodes. Neighbours in the
    graph show the test what kind of change to look for; they cannot make an unchanged node
    significant. Writes tests.html (open it in a browser), tests.csv (one row per node) and
    regions.csv (connected significant nodes).

        graphratio test air.csv --node station \
          --sample period --reference before --target after \
          --features pm25,no2 --coordinates lat,lon

    Hourly values of stations under the same weather, in blocks of a day:

        graphratio test air.csv --node station \
          --time hour --split 2020-03-01 --edges roads.csv \
          --block 1D --null global
    """
    from graphratio.report import write_significance

    screen = Screen(as_json=json, quiet=quiet)
    check_folder(output, data.data, graph.edges, overwrite=overwrite)
    with screen.working(f"Reading {data.data}"):
        problem = read_problem(data, samples, graph, prepare.seed)
    scaled, note = prepared(problem.samples, problem.graph, prepare)
    notes = [*problem.notes, *checked(problem, scaled), note]
    screen.notes(notes)
    with working(prepare.jobs):
        result = nodes_tested(
            problem, scaled, tests, null, prepare.seed, estimator, progress=screen.live
        )
    found = show_notes(result, screen)
    with staged(output, ("tests.geojson",)) as rough:
        files = _write(rough, result)
        if graph.geojson:
            table = result.to_frame().to_dict("list")
            files["map"] = write_geojson(table, result.graph, rough / "tests.geojson")
        files["page"] = write_significance(
            rough / "tests.html",
            result,
            title=f"{data.stem}: which nodes changed",
            reference_name=problem.reference_name,
            target_name=problem.target_name,
            notes=notes,
            spelling=as_option,
        )
    files = moved(files, output)
    show_test(screen, result)
    for name, path in files.items():
        screen.say(f"{name}: {path}")
    about = {"notes": unique([*notes, *found]), "files": files}
    screen.result({"command": "test", **outcome_object(result), **about})


def show_test(screen: Screen, result: TwoSampleResult) -> None:
    """Print the outcome, the significant nodes and their regions."""
    from graphratio.report.verdicts import NOT_FOUND, NodeVerdicts

    screen.say(f"{result.summary}.")
    order = result.order.tolist()
    if result.n_rejected:
        shown = [v for v in order if result.rejected[v]][:_SHOWN]
        more = result.n_rejected - len(shown)
        title = "Significant nodes" if result.null == "node" else "Nodes that stand out"
        title += f" (first {len(shown)}, {more} more)" if more else ""
    else:
        shown = order[:5]
        none = "No node is significant; the smallest p-values"
        title = none if result.answerable else "Nodes with the smallest p-values"
    columns = {
        "node": [result.nodes[v] for v in shown],
        "effect size": result.effect_size[shown].tolist(),
        "p (not adjusted)": result.p_value[shown].tolist(),
    }
    if result.correction is not None:
        columns["adjusted p"] = result.adjusted_p_value[shown].tolist()
    screen.table(title, columns)
    verdicts = NodeVerdicts.of_test(result, result.nodes)
    n_unseen = verdicts.count(NOT_FOUND)
    if result.null == "node" and n_unseen:
        nodes = "1 node" if n_unseen == 1 else f"{n_unseen:,} nodes"
        screen.say(f"No change was found at {nodes}: {verdicts.meaning(result)[1]}.")
    regions = [region for region in result.regions() if region.size > 1]
    # The global null says nothing about the nodes of a region.
    if regions and result.null == "node":
        screen.table(
            "Regions of connected significant nodes",
            {
                "begins with": [region.nodes[0] for region in regions],
                "nodes": [region.size for region in regions],
                "truly changed, at least": [region.changed_at_least for region in regions],
            },
        )
    screen.say("These p-values assume: " + "; ".join(result.assumptions) + ".")


def outcome_object(result: TwoSampleResult) -> dict[str, Any]:
    """The outcome as an object for JSON."""
    return {
        "summary": result.summary,
        "null": result.null,
        "correction": result.correction,
        "level": result.level,
        "n_permutations": result.n_permutations,
        "global_p_value": result.global_p_value,
        "answerable": result.answerable,
        "n_rejected": result.n_rejected,
        "rejected": [result.nodes[v] for v in np.flatnonzero(result.rejected)],
        "regions": [
            {"nodes": region.nodes, "changed_at_least": region.changed_at_least}
            for region in result.regions()
        ],
        "assumptions": result.assumptions,
    }


def _write(folder: Path, result: TwoSampleResult) -> dict[str, Path]:
    files = {"regions": folder / "regions.csv", "tests": folder / "tests.csv"}
    rows = [
        (place, node, region.size, region.changed_at_least)
        for place, region in enumerate(result.regions())
        for node in region.nodes
    ]
    names = ["region", "node", "size", "changed_at_least"]
    pandas = import_optional("pandas", "cli", "writing tables")
    write_table(pandas.DataFrame(rows, columns=names), files["regions"])
    write_table(result.to_frame(), files["tests"])
    return files
