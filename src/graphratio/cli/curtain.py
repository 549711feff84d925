"""The end of the demo: compare estimates from a few observations with the hidden ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from graphratio._utils.errors import enumeration
from graphratio._utils.typing import FloatArray, Label
from graphratio.cli.inputs import at_random
from graphratio.data.graph import Graph
from graphratio.data.samples import NodeSamples
from graphratio.estimators import GRULSIF
from graphratio.estimators.base import NodeRatioEstimator
from graphratio.evaluation import GraphComparison
from graphratio.evaluation.smooth_changes import mean_changes
from graphratio.evaluation.verdict import UNNAMED
from graphratio.report.page_file import PageSection
from graphratio.report.words import fixed

# Subset sizes, and draws of each, that measure the worth of the graph on hidden observations.
_SIZES = 8
_DRAWS = 3

# At most this many misjudged nodes are named.
_NAMED = 5

# A change is misjudged if it is off by more than this share of the spread between nodes.
_FAR_OFF = 0.75


@dataclass(frozen=True, eq=False)
class Curtain:
    """Estimates from few observations, with the graph and alone, compared with all observations.

    `gain`, `rank` and `error` have two values, with the graph and alone: the mean divergence on
    hidden observations, and the rank correlation and mean absolute error of the changes of the
    mean. One observation with the graph is worth `worth` observations alone, measured on hidden
    ones. `misjudged` has (node, all observations, with the graph, alone) for each node that is far
    off alone, and with the graph at most half as far.
    """

    gain: tuple[float, float]
    rank: tuple[float, float]
    error: tuple[float, float]
    worth: float
    misjudged: list[tuple[Label, float, float, float]]

    @classmethod
    def open(
        cls,
        few: NodeSamples,
        every: NodeSamples,
        hidden: NodeSamples,
        graph: Graph,
        models: tuple[NodeRatioEstimator, NodeRatioEstimator],
    ) -> Curtain:
        """Compare the fits with the graph and without it; samples are in original units."""
        truth = mean_changes(every, Graph.empty(graph.nodes)).own[:, 0]
        found = mean_changes(few, graph)
        joined, own = found.estimate[:, 0], found.own[:, 0]
        scaled = models[0]._align(few), models[0]._align(hidden)
        gains = [float(np.nanmean(model.divergence(hidden))) for model in models]
        far = _FAR_OFF * float(np.std(truth))
        off, near = np.abs(own - truth), np.abs(joined - truth)
        wrong = np.flatnonzero((off > far) & (near <= np.minimum(far, off / 2)))
        wrong = wrong[np.argsort(-off[wrong])]
        return cls(
            (gains[0], gains[1]),
            (_rank_correlation(joined, truth), _rank_correlation(own, truth)),
            (float(np.abs(joined - truth).mean()), float(np.abs(own - truth).mean())),
            _worth(*scaled, graph),
            [(graph.nodes[i], float(truth[i]), float(joined[i]), float(own[i])) for i in wrong],
        )

    def as_json(self) -> dict[str, Any]:
        """The values as an object for JSON."""
        both = ("with_graph", "alone")
        return {
            "held_out_divergence": dict(zip(both, self.gain, strict=True)),
            "rank_correlation": dict(zip(both, self.rank, strict=True)),
            "mean_absolute_error": dict(zip(both, self.error, strict=True)),
            "worth": self.worth,
            "misjudged_alone": [node for node, *_ in self.misjudged],
        }

    def section(
        self, names: Mapping[Label, str], unit: str, what: str, said: GraphComparison
    ) -> PageSection:
        """Compare both fits on the hidden observations; `said` is the comparison from the few."""
        own = said.worth[UNNAMED]
        held, many = own.low <= self.worth <= own.high, f"{own.n:.0f} {what}"
        table = [
            ("", "all " + what, "with the graph", "each alone"),
            (
                f"divergence on hidden {what} (higher is better)",
                "",
                *(fixed(g, 2) for g in self.gain),
            ),
            ("change of the mean, error", "", *(f"{e:.0f} {unit}" for e in self.error)),
            ("change of the mean, rank correlation", "", *(fixed(r, 2) for r in self.rank)),
        ]
        table += [
            (
                f"at {names.get(node, node)}",
                *(f"{fixed(value, 0, sign=True)} {unit}" for value in values),
            )
            for node, *values in self.misjudged[:_NAMED]
        ]
        wrong = enumeration([str(names.get(node, node)) for node, *_ in self.misjudged], _NAMED)
        few = f"that is, {own.fewer:.0f} {what} with the graph say as much as {many} of each alone"
        if UNNAMED not in said.stated_worth:
            few = "which may only come from what all nodes have in common"
        after = [
            f"Worth of the graph: the {many} themselves give {own.span}, {few}. The "
            f"hidden {what} give {self.worth:.1f}, {'inside' if held else 'outside'} that interval."
        ]
        if wrong:
            after.append(f"Far off alone, and at least twice as close with the graph: {wrong}.")
        asked = (
            f"This report is based on a few {what} out of many. How close does it come to the "
            f"results from all {what}?"
        )
        return PageSection("Behind the curtain: was the graph worth it?", [asked], table, after)

    @staticmethod
    def sentences(section: PageSection) -> list[str]:
        """The section as lines of text."""
        (_, *heads), *rows = section.table
        parts = [
            ", ".join(f"{head} {cell}" for head, cell in zip(heads, cells, strict=True) if cell)
            for _, *cells in rows
        ]
        lines = [f"{row[0]}: {text}" for row, text in zip(rows, parts, strict=True)]
        return [*lines, *section.after]


def _rank_correlation(values: FloatArray, truth: FloatArray) -> float:
    from scipy.stats import spearmanr

    return float(spearmanr(values, truth).statistic)


def _worth(few: NodeSamples, hidden: NodeSamples, graph: Graph) -> float:
    """N / m, where m observations with the graph do as well as n alone on hidden ones."""
    n = int(np.median(few.sizes))
    options: dict[str, Any] = {"prior_ratio": 1.0, "random_state": 0}
    alone = GRULSIF(graph_penalty=0.0, **options).fit(few, graph).divergence(hidden).mean()
    sizes = np.unique(np.round(np.geomspace(2, n, _SIZES)).astype(int))
    rising: list[float] = []
    for m in sizes.tolist():
        parts = (few.subset(observations=at_random(few, m, draw)) for draw in range(_DRAWS))
        gains = [GRULSIF(**options).fit(part, graph).divergence(hidden).mean() for part in parts]
        rising.append(max([*rising, float(np.mean(gains))]))
        # Larger samples do better still, and no longer matter.
        if rising[-1] >= alone:
            break
    return float(n / np.exp(np.interp(alone, rising, np.log(sizes[: len(rising)]))))
