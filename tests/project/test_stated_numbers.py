"""Numbers that pages and docstrings state are those of the code."""

import importlib.util
import inspect
import re
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from tests.fuzz import judge

import graphratio as gr
from graphratio.changepoints import (
    blocks_of_time,
    dating,
    intervals,
    naming,
    online,
    panel_features,
    seasons,
)
from graphratio.cli import two_sample
from graphratio.data import links, node_correlation, node_scales, validation
from graphratio.distributed import atoms, conjugate
from graphratio.estimators import borrowing, centred, node_choice, weights
from graphratio.evaluation import bounds, node_means, ratio_interval, skewed_means, ways, worth
from graphratio.features import dictionary, kernels, numbered, unobserved
from graphratio.moments import log_ratio, losses, memory, second_moments
from graphratio.report import divergence_scale, graph_section, node_panels, page_file
from graphratio.selection import (
    cross_validation,
    full_rank,
    grids,
    held_out_data,
    nested,
    patches,
    profile_search,
    search,
)
from graphratio.solvers import bases, node_basis, path
from graphratio.testing import (
    multiplicity,
    node_null,
    pooled,
    predictions,
    sensitivity,
    shared_times,
    statistics,
)
from graphratio.transfer import TransferEvidence, safeguards, shift, weight_powers

ROOT = Path(__file__).resolve().parents[2]
WORDS = [
    "zero",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
]
FRACTIONS = {
    "half": 1 / 2,
    "a third": 1 / 3,
    "a quarter": 1 / 4,
    "a tenth": 1 / 10,
    "an hour": 3600,
}


def default(function, name):
    return inspect.signature(function).parameters[name].default


NUMBER = r"(\d[\d,]*(?:\.\d+)?(?:e[+-]?\d+)?|" + "|".join([*FRACTIONS, *WORDS]) + ")"
DETECTOR, TRANSFER, TEST = gr.GraphChangePointDetector, gr.NodewiseTransfer, gr.two_sample_test

# Where it is said, the sentence with # for its numbers, and the numbers of the code.
STATED = [
    # Tests
    (TEST, "a Gaussian kernel of # times the median", pooled.BANDWIDTH_SHARE),
    (TEST, r"# N / level, at most #; otherwise # / level; always at least #", 10,
     multiplicity.MOST_BY_DEFAULT, 10, multiplicity._FEWEST_BY_DEFAULT),
    (TEST, "between neighbouring nodes exceeds #", node_correlation.CORRELATION_BOUND),
    (TEST, "# statistics are computed", len(statistics.NAMES)),
    (TEST, "between # and # % of the level",
     100 * statistics.LEAST_TRUST, 100 * statistics.MOST_TRUST),
    (TEST, 'Of this share "predicted" gets # and "coupled" #; of the rest "energy" gets #, '
     '"shape" # and "spread" #', *statistics.NEIGHBOUR_SHARES[:2], *statistics.OWN_SHARES[2:]),
    (TEST, "Nodes are checked after #, #", node_null.FIRST_LOOK,
     10 * (node_null.FIRST_LOOK + 1) - 1),
    (TEST, "By default there are at most # permutations", multiplicity.MOST_BY_DEFAULT),
    (TEST, "as soon as # data sets", node_null.ENOUGH_EXTREME),
    ("docs/testing.md", "# statistics are computed", len(statistics.NAMES)),
    ("docs/testing.md", "The neighbours get between # and # % of the level",
     100 * statistics.LEAST_TRUST, 100 * statistics.MOST_TRUST),
    ("docs/testing.md", "Above # the test treats two kinds of evidence",
     node_correlation.CORRELATION_BOUND),
    ("docs/testing.md", "tested at the others, # times over", shared_times.N_TIME_FOLDS),
    ("docs/testing.md", "Each gets # of the level", shared_times.OWN_SHARE_OF_LEVEL),
    ("docs/testing.md", "finds with a probability of # %", 100 * sensitivity.POWER),
    ("docs/testing.md", "All nodes begin with # permutations", node_null.FIRST_LOOK),
    ("docs/testing.md", "By default there are at most #", multiplicity.MOST_BY_DEFAULT),
    ("docs/testing.md", r"Holm over # nodes at # % needs p-values below 1/#", 100, 5,
     1 / multiplicity.strictest_threshold(100, 0.05, "fwer")),
    ("docs/calibration.md", "split into # groups", predictions.N_GROUPS),
    ("docs/coming-from.md", "kernel distance as one of # statistics", len(statistics.NAMES)),
    # Change-points
    (DETECTOR, "the ridge # % of the variance", 100 * panel_features.RIDGE_SHARE),
    (DETECTOR, "Default: from # steps to the whole panel", intervals.SHORTEST_INTERVAL / 2),
    (DETECTOR, "the last one is refined for # steps", online.SETTLING),
    (DETECTOR.update, "# updates without change raise", online.HORIZON),
    (DETECTOR.update, "refines them until # steps after", online.SETTLING),
    ("docs/change-points.md", "intervals from # steps to", intervals.SHORTEST_INTERVAL),
    ("docs/change-points.md", "at least # steps apart", intervals.MARGIN),
    ("docs/change-points.md", "dependence: up to # changes", blocks_of_time._MOST_CUTS),
    ("docs/change-points.md", "with fewer than # nodes one in", blocks_of_time._FEW_NODES),
    ("docs/change-points.md", "nodes one in # steps", blocks_of_time._STEPS_PER_CUT),
    ("docs/change-points.md", "with fewer than # blocks", blocks_of_time.FEWEST_TIME_BLOCKS),
    ("docs/change-points.md", "shows most nodes gets # % of the level",
     100 * naming.MAIN_SHARE),
    ("docs/change-points.md", "at least # whole periods", seasons.FEWEST_PERIODS),
    ("docs/change-points.md", "explains # % of the variance", 100 * seasons.TREND_SHARE),
    ("docs/change-points.md", "last # observations at most", default(DETECTOR, "memory")),
    ("docs/change-points.md", "a stretch of # updates", online.HORIZON),
    ("docs/change-points.md", "its # % likelihood-ratio interval",
     100 * (1 - np.exp(-dating.interval_drop(0.0) / 2)) ** 2),
    (gr.changepoints.ChangeEvent, "with # % confidence",
     100 * (1 - np.exp(-dating.interval_drop(0.0) / 2)) ** 2),
    # Weights and transfer
    (TRANSFER, "for all nodes: #, since .* or # or # if", *weight_powers.CANDIDATES),
    (TRANSFER, "by # standard errors over nodes", weight_powers.CLEAR),
    (TRANSFER, "lower than without weights by # a standard error; .* by more than # standard",
     safeguards.CLEARLY_LOWER, safeguards.TOLERATED),
    ("docs/transfer.md", "lower with weights by # a standard error", safeguards.CLEARLY_LOWER),
    ("docs/graphs.md", "correlation above # at the same times", node_correlation.CORRELATION_BOUND),
    (TRANSFER, "or more than # of the target is uncovered", weights.UNCOVERED_SHARE),
    (TransferEvidence, "no overlap below #", safeguards.LEAST_OVERLAP),
    (TRANSFER, "fewer than # reference or target", shift.SMALLEST),
    ("docs/transfer.md", "at least # times the reference's", weights.UNCOVERED_RATIO),
    (weights.ImportanceWeights, "at least # times that of the reference",
     weights.UNCOVERED_RATIO),
    ("docs/transfer.md", r"fewer than # observations \(or # of them\) are effective, or # of the",
     weights.EFFECTIVE_SIZE, weights.EFFECTIVE_SHARE, weights.UNCOVERED_SHARE),
    ("docs/transfer.md", "a false discovery rate of # %",
     100 * default(TRANSFER, "level")),
    ("docs/transfer.md", "That power is # unless # or # is better by # standard errors",
     *weight_powers.CANDIDATES, weight_powers.CLEAR),
    ("docs/transfer.md", "on the # nearest neighbours", safeguards.NEIGHBOURS),
    ("docs/transfer.md", "has none below #, or if more than # of its target is uncovered",
     safeguards.LEAST_OVERLAP, weights.UNCOVERED_SHARE),
    ("docs/transfer.md", "is a given power of #", weight_powers.USUAL),
    ("docs/transfer.md", "Nodes with fewer than # observations", shift.SMALLEST),
    # Features and solvers
    ("docs/guide/selection.md", "A feature with at most # values that repeat",
     dictionary.DISCRETE_VALUES),
    ("docs/architecture.md", "Up to # unknowns a dense Cholesky", path.SMALL_SYSTEM),
    ("docs/architecture.md", "Up to # nodes the iteration runs in the eigenbasis",
     bases.LARGEST_SPECTRUM),
    ("docs/architecture.md", "or # iterations were not enough", path.PATIENCE),
    ("docs/architecture.md", "directions that carry less than # of the second moment",
     cross_validation.FEATURE_FLOOR),
    ("docs/architecture.md", "a residual of #, and the principal directions",
     cross_validation.SOLVE_TOLERANCE),
    (gr.expected_ratio_interval, "without each of # groups of observations",
     ratio_interval.GROUPS),
    # Bounds and comparisons
    (gr.compare_graphs, "Default # for `GRULSIF` up to # nodes, else #", 2, nested.MANY_NODES, 1),
    ("docs/uncertainty.md", "the upper end # of the opposite one", skewed_means.UPPER_SHARE),
    ("docs/uncertainty.md", "with # of the degrees of freedom at the lower end",
     1 / bounds.FAR_OUT),
    ("docs/uncertainty.md", "the error is multiplied by #", node_means.DISPERSION),
    ("docs/uncertainty.md", "joined to the # whose ratios", ways.LEARNED_NEIGHBORS),
    ("docs/graphs.md", "joined to the # whose ratios", ways.LEARNED_NEIGHBORS),
    ("docs/graphs.md", "Beyond # nodes connected patches", worth.WORTH_NODES),
    ("docs/graphs.md", "even # observations with the graph are better", worth.SMALLEST_SUBSET),
    ("docs/uncertainty.md", "until they carry # % of the variance, # at the most",
     100 * second_moments.CARRIED, second_moments.MOST_DIRECTIONS),
    ("docs/uncertainty.md", r"a random part of the observations \(#\)", second_moments.ROUGH_ROWS),
    ("docs/uncertainty.md", r"\(i, j up to #\), with a ridge of # of",
     second_moments.MOST_DIRECTIONS, second_moments.RIDGE),
    ("docs/uncertainty.md", "formed for up to # nodes. .* from # random projections",
     borrowing.LARGEST_INVERSE, borrowing.PROJECTIONS),
    ("docs/graphs.md", r"that use a graph \(5 to # nodes that typically have # observations",
     graph_section.MOST_COMPARED, graph_section.FEWEST),
    ("docs/graphs.md", r"learned graph would help \(up to # nodes\)", graph_section.MOST_LEARNED),
    ("docs/graphs.md", r"\(beyond # nodes: which of its neighbours\)", borrowing.LARGEST_INVERSE),
    # The report
    ("docs/report.md", "of a shift by # a standard deviation",
     divergence_scale.CLEAR_SHIFT),
    ("docs/report.md", "at the # % quantile", 100 * divergence_scale.COLOUR_QUANTILE),
    ("docs/report.md", "leaves this out beyond # nodes", graph_section.MOST_COMPARED),
    ("docs/report.md", "and below # observations per sample", graph_section.FEWEST),
    # Estimators and selection
    (gr.GRULSIF, "all up to # nodes and patches of # beyond", grids.SELECTION_NODES,
     grids.SELECTION_NODES),
    (gr.Pool, "Beyond # nodes the cross-validation uses # of them", grids.SELECTION_NODES,
     grids.SELECTION_NODES),
    (gr.GraphRatio, "None chooses 0 to # on held-out data", held_out_data.MOST_PROFILES),
    (gr.RULSIF, "{#, #, #, #, #} times the median", *centred.BANDWIDTH_FACTORS),
    (gr.RULSIF, r"candidates #, #, # and #\.", *centred.PAPER_RIDGES),
    (gr.KLIEP, "{#, #, #, #, #} times the median", *centred.BANDWIDTH_FACTORS),
    (gr.KLIEP, r"candidates #, #, # and #\.", *centred.PAPER_RIDGES),
    (gr.RULSIF, "Centres per node; default #", node_choice.DEFAULT_CENTRES),
    (gr.KLIEP, "Centres per node; default #", node_choice.DEFAULT_CENTRES),
    (gr.RULSIF, "at most # standard errors worse", node_choice.WIDTH_STANDARD_ERRORS),
    (gr.KLIEP, "ratios below # count as #", losses.SMALLEST_RATIO, losses.SMALLEST_RATIO),
    (gr.GRULSIF, "at most # below alpha = #", 1 / log_ratio.SMALLEST_ALPHA,
     log_ratio.SMALLEST_ALPHA),
    ("docs/guide/divergences.md", "ratios above # count as #", 1 / log_ratio.SMALLEST_ALPHA,
     1 / log_ratio.SMALLEST_ALPHA),
    ("docs/guide/selection.md", r"divided into # folds", default(gr.GRULSIF, "cv")),
    ("docs/guide/selection.md", r"graph penalty is #, #, #, # or # times the number of nodes "
     r"\(at most #\), divided by the mean degree", *grids.LAMBDAS, grids.SELECTION_NODES),
    ("docs/guide/selection.md", "The ridge is #, #, # or # times the graph penalty",
     *grids.GAMMAS),
    ("docs/guide/alpha.md", r"\| # \(default\) \|", default(gr.GRULSIF, "alpha")),
    ("docs/method.md", "already kept is at most #; then over the graph, with #",
     default(gr.GRULSIF, "node_coherence"), default(gr.GRULSIF, "graph_coherence")),
    ("docs/beyond-the-paper.md", "less than # of the weight of a typical one", links.CUT),
    ("docs/beyond-the-paper.md", "With profiles that means by # standard errors", search.HOPELESS),
    ("docs/beyond-the-paper.md", "Plain fits are ruled out by #, and only if at least # nodes",
     search.HOPELESS - full_rank.RESERVE, search.ENOUGH_NODES),
    ("docs/beyond-the-paper.md", "If profiles are # standard errors behind", search.OUTCLASSED),
    ("docs/beyond-the-paper.md", r"above 2\^#\)", np.log2(profile_search.LARGE_MOMENTS)),
    ("docs/architecture.md", "Kernel values below # are zero", kernels.NEGLIGIBLE),
    ("docs/how-to/own-scales.md", "typically lie more than # spread apart",
     node_scales.NEIGHBOURS_APART),
    ("docs/how-to/own-scales.md", "a factor of more than #", node_scales.NEIGHBOURS_UNEVEN),
    # Size
    ("docs/how-to/large-graphs.md", "Beyond # nodes the selection looks at connected patches of #",
     grids.SELECTION_NODES, grids.SELECTION_NODES),
    ("docs/scaling.md", "looks at # nodes by default, in # connected patches",
     grids.SELECTION_NODES, patches.N_PATCHES),
    ("docs/scaling.md", "when they exceed # GiB", memory.KEEP_DOUBLE / 2**30),
    ("docs/scaling.md", "not diagonalised beyond # nodes", bases.LARGEST_SPECTRUM),
    ("docs/scaling.md", "more than # neighbours per node", node_basis.CROWDED),
    ("docs/scaling.md", "vectors # N m", 8 * memory.DOUBLE_VECTORS + 4 * memory.SINGLE_VECTORS),
    ("docs/dask.md", r"`timeout` seconds \(# by default\)", default(gr.DaskEngine, "timeout")),
    ("docs/dask.md", r"`load_timeout` \(# by default\)", default(gr.DaskEngine, "load_timeout")),
    ("docs/dask.md", "k is at most #", conjugate.MOST_MODES),
    ("docs/dask.md", "beyond # nodes low modes come from a smaller graph", conjugate.LANCZOS_NODES),
    ("docs/dask.md", "at most # points at a time", atoms.BLOCK),
    ("docs/restricted-data.md", "node, # by default and never fewer than #",
     unobserved.DEFAULT_GROUP, unobserved.SMALLEST_GROUP),
    ("docs/restricted-data.md", r"`max_atoms` of them \(# by default\)", numbered.DEFAULT_ATOMS),
    (gr.GRULSIF, "this many observations of a node; at least #", unobserved.SMALLEST_GROUP),
    (gr.GRULSIF, 'Default # for "uniform", "kmeans" and "quasi-random", # for "centres"',
     numbered.DEFAULT_ATOMS, dictionary.MOST_CENTRES),
    (gr.GraphRatio, "the paper's #, or the first of #, #, #, #, # that gives # atoms, or one for "
     "every # observations", *dictionary.NODE_COHERENCES, dictionary.ENOUGH_ATOMS,
     dictionary.OBSERVATIONS_OF_AN_ATOM),
    ("docs/guide/selection.md", "fewer than # atoms and fewer than one for every # observations",
     dictionary.ENOUGH_ATOMS, dictionary.OBSERVATIONS_OF_AN_ATOM),
    ("docs/report.md", "A page holds up to # nodes", page_file.NODES_ON_A_PAGE),
    ("docs/scaling.md", r"\*\*Reports\*\* hold at most # nodes", page_file.NODES_ON_A_PAGE),
    ("docs/scaling.md", "grows with the nodes up to #", multiplicity.MOST_BY_DEFAULT),
    ("docs/scaling.md", "Beyond # nodes `graphratio report` looks for kinds of change only with "
     "`--test`, and beyond # nodes it does not compare",
     two_sample.MOST_NODES, graph_section.MOST_COMPARED),
    ("docs/command-line.md", "more than # nodes without `--test`", two_sample.MOST_NODES),
    ("docs/report.md", r"at most # charts, one per feature of a node \(and at least # nodes\)",
     node_panels.CHART_BUDGET, node_panels.FEWEST_PANELS),
    # Promises
    ("docs/reliability.md", "stops every input after # seconds", judge.LIMIT),
    ("docs/reliability.md", "a feature beyond # needs another unit", validation.LARGEST_VALUE),
]  # fmt: skip


def text_of(place):
    text = (ROOT / place).read_text("utf-8") if isinstance(place, str) else inspect.getdoc(place)
    return " ".join(text.split())


def value(text):
    text = text.lower()
    if text in FRACTIONS:
        return FRACTIONS[text]
    return WORDS.index(text) if text in WORDS else float(text.replace(",", ""))


@pytest.mark.parametrize(
    ("place", "sentence", "numbers"),
    [(place, sentence, numbers) for place, sentence, *numbers in STATED],
    ids=[f"{getattr(row[0], '__name__', row[0])}-{row[1][:30]}" for row in STATED],
)
def test_the_number_is_that_of_the_code(place, sentence, numbers):
    found = re.search(sentence.replace("#", NUMBER), text_of(place), re.IGNORECASE)
    assert found, f"the sentence is gone: {sentence}"
    assert [value(part) for part in found.groups()] == pytest.approx(numbers, rel=1e-9)


def documented_defaults():
    """Every "name : type, default value" of a public function or class."""
    for module in ("graphratio", "graphratio.distributed", "graphratio.theory"):
        for name in import_module(module).__all__:
            thing = getattr(import_module(module), name)
            members = vars(thing).values() if isinstance(thing, type) else ()
            for function in (thing, *members):
                function = getattr(function, "__func__", function)
                if isinstance(function, type) or inspect.isfunction(function):
                    stated = r"^ *([\w, ]+) : .*\bdefault (\S+)$"
                    for found in re.finditer(stated, function.__doc__ or "", re.MULTILINE):
                        yield from ((function, one, found[2]) for one in found[1].split(", "))


def test_defaults_in_docstrings_are_those_of_the_signatures():
    checked = 0
    for function, argument, stated in documented_defaults():
        actual = default(function, argument)
        text = stated.strip('"')
        same = str(actual) == text if isinstance(actual, bool | str) else float(text) == actual
        assert same, (function, argument, stated, actual)
        checked += 1
    assert checked > 40


def test_pages_and_makefile_agree_on_how_long_a_study_takes():
    help_text = (ROOT / "Makefile").read_text(encoding="utf-8")
    found = 0
    for page in (ROOT / "docs").glob("*.md"):
        for target, time in re.findall(r"`make ([\w-]+)`[^`]*?\((about [^)]*?hour[^)]*)\)",
                                       text_of(f"docs/{page.name}")):  # fmt: skip
            line = re.search(rf'"make {target} +([^"]*)"', help_text)[1]
            assert time.removesuffix(" on two cores") in line
            found += 1
    assert found


def test_the_reliability_page_names_tests_that_exist_and_run():
    page = (ROOT / "docs" / "reliability.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`(tests/[\w/.]+)`", page))
    assert len(named) > 10
    assert [path for path in sorted(named) if not (ROOT / path).exists()] == []
    spec = importlib.util.spec_from_file_location("noxfile", ROOT / "noxfile.py")
    noxfile = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(noxfile)
    row = next(line for line in page.splitlines() if "`make matrix`" in line)
    left_out = set(re.findall(r"`(tests/\w+)`", row))
    rooms = {f"tests/{path.parent.name}" for path in ROOT.glob("tests/*/test_*.py")}
    assert left_out < rooms
    assert set(noxfile.CORE_TESTS) == rooms - left_out | {"src/graphratio"}
