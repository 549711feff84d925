"""The outcome of comparing graphs: losses, gains, a verdict, tables, a plot."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, cast

import numpy as np
from scipy import stats

from graphratio._utils.errors import InputError
from graphratio._utils.threads import computed_once
from graphratio._utils.typing import BoolArray, FloatArray, Label
from graphratio.data import frames
from graphratio.data.geography import Mappable
from graphratio.data.graph import Graph
from graphratio.data.node_correlation import Correlation
from graphratio.data.samples import NodeSamples
from graphratio.evaluation.node_means import Difference, Judgement, NodeMeans
from graphratio.evaluation.pieces import Answered, IndependentPieces
from graphratio.evaluation.verdict import ALONE, LEARNED, comparison_html, in_words
from graphratio.evaluation.where import Agreement
from graphratio.evaluation.worth_result import Worth
from graphratio.selection.cross_validation import defined_means

# The effect of a graph, or of the neighbours of a node, on the held-out loss.
Effect = Literal["helped", "hurt", "unclear", "not assessed"]


@dataclass(frozen=True, eq=False)
class Losses:
    """Held-out loss of one fit: terms of independent pieces, and their means over nodes."""

    terms: FloatArray
    means: NodeMeans
    pieces: IndependentPieces

    @classmethod
    def of(cls, terms: FloatArray, samples: NodeSamples) -> Losses:
        """Average the terms of all observations."""
        pieces = IndependentPieces.of(samples)
        terms = pieces.terms(terms, samples.sizes)
        return cls(terms, NodeMeans.of(terms, pieces.counts), pieces)

    @property
    def mean(self) -> float:
        """Mean over nodes with a loss."""
        return float(defined_means(self.means.mean, 0))


@dataclass(frozen=True, eq=False, repr=False)
class GraphComparison(Answered, Mappable):
    """Held-out losses of several graphs and of fits without one.

    Attributes
    ----------
    nodes : tuple of labels
    losses : dict of name to Losses
        Loss of every fit on held-out observations. The fits are the graphs, "without a graph" and
        "all nodes as one".
    unseen : dict of name to Losses
        Loss of the graphs and of "without a graph" on held-out nodes, predicted from others.
    level : float
        Error probability of the verdict, and of the intervals of nodes.
    graphs : tuple of str
        Names of the candidates that have edges.
    learned_graph : Graph or None
        The graph learned from all data, if one was asked for, ready for `fit`.
    without_graph : str or None
        Name of the candidate without edges, if there is one: the fit "without a graph".
    joined : dict of name to ndarray of bool, shape (n_nodes,)
        Nodes that have neighbours in each graph. Gains are NaN at the others.
    units : {"given", "own"}
        "own" if observations are in units of their node, see `compare_graphs`.
    at_grid_end : tuple of str
        Graphs for which most folds chose the strongest coupling of all candidates.
    worth : dict of name to Worth
        How many observations each graph replaces: `estimate`, `low`, `high`. Tables, pages and
        the verdict state it only for graphs that are better than none, see `stated_worth`.
    agreement : dict of name to Agreement
        Where neighbours in each graph change alike, by region and node.
    correlation : Correlation or None
        Correlation between nodes, if it is high. Whole nodes are then not held out, because their
        neighbours show the same fluctuations.
    answerable, answerable_nodes, n_pieces, blocks
        As in `DivergenceBounds`. Only answerable nodes are judged; without any there is no verdict.

    Examples
    --------
    >>> import graphratio as gr
    >>> scenario = gr.datasets.make_scenario("Ia", n_nodes=20, n=50, random_state=0)
    >>> found = gr.compare_graphs(scenario.samples, scenario.graph, random_state=0,
    ...                           estimator=gr.GRULSIF(prior_ratio=1, bandwidth=1.0))
    >>> sorted(found.losses)
    ['all nodes as one', 'graph', 'without a graph']
    """

    nodes: tuple[Label, ...]
    losses: Mapping[str, Losses]
    unseen: Mapping[str, Losses]
    level: float
    graphs: tuple[str, ...]
    learned_graph: Graph | None
    without_graph: str | None = None
    backend: frames.Backend = "pandas"
    joined: Mapping[str, BoolArray] = field(default_factory=dict)
    units: Literal["given", "own"] = "given"
    at_grid_end: tuple[str, ...] = ()
    worth: Mapping[str, Worth] = field(default_factory=dict)
    agreement: Mapping[str, Agreement] = field(default_factory=dict)
    correlation: Correlation | None = None

    @property
    def pieces(self) -> IndependentPieces:  # type: ignore[override]
        """Independent pieces of the samples."""
        return next(iter(self.losses.values())).pieces

    @computed_once
    def ranking(self) -> list[str]:
        """Graphs from best to worst, by held-out nodes, or else by held-out observations."""
        by = self.unseen or self.losses
        names = self.graphs or ((LEARNED,) if LEARNED in self.losses else ())
        return sorted(names, key=lambda name: by[name].mean)

    @property
    def fits(self) -> list[str]:
        """Names of all fits, with the lowest mean loss first."""
        return sorted(self.losses, key=lambda name: self.losses[name].mean)

    @property
    def level_of_each(self) -> float:
        """The level of a single comparison.

        `level` is divided by the number of graphs, any of which could be better than none by
        chance. So the chance that `best`, or a worth, is stated for a graph that is not better
        than none is at most `level`: there are two ways to be better, and each counts one of the
        two sides of its test. Every verdict, and every interval of a difference between fits,
        uses this level.
        """
        return self.level / max(len(self.ranking), 1)

    @computed_once
    def best(self) -> str | None:
        """The graph that is clearly better than none and than every other, or None."""
        if not self.ranking or self.tied or self.against_none(self.ranking[0]) != "better":
            return None
        return self.ranking[0]

    def against_none(self, name: str) -> Judgement:
        """Whether a graph is clearly better or worse than none.

        It is better if it lowers the loss of held-out observations, or predicts held-out nodes
        better than all nodes together do, and if neither is clearly worse.
        """
        if not self.answerable:
            return "unclear"
        found = {self.judged(name, ALONE), self.predicts(name)} - {"unclear"}
        return found.pop() if len(found) == 1 else "unclear"

    @property
    def stated_worth(self) -> dict[str, Worth]:
        """The worth of the graphs that are clearly better than none.

        The worth of the others may only come from what all nodes have in common.
        """
        return {
            name: own for name, own in self.worth.items() if self.against_none(name) == "better"
        }

    def predicts(self, name: str) -> Judgement:
        """Whether a graph predicts held-out nodes better or worse than no graph does."""
        if not {name, ALONE} <= self.unseen.keys():
            return "unclear"
        return self.on_held_out_nodes(name).judged(self.level_of_each)

    def on_held_out_nodes(self, name: str) -> Difference:
        """Difference to no graph of the losses on held-out nodes."""
        return self._apart(self.unseen[name], self.unseen[ALONE])

    @property
    def tied(self) -> list[str]:
        """Graphs that are not clearly worse than the best-ranked one."""
        first, *rest = self.ranking or [""]
        return [name for name in rest if self.judged(first, name) == "unclear"]

    @property
    def effect(self) -> Effect:
        """Effect of the best-ranked graph on held-out observations, compared with no graph."""
        if not self.ranking or not self.answerable:
            return "not assessed"
        words: dict[Judgement, Effect] = {"better": "helped", "worse": "hurt", "unclear": "unclear"}
        return words[self.judged(self.ranking[0], ALONE)]

    def between(self, first: str, second: str) -> Difference:
        """Difference of the losses of two fits; negative if the first is better.

        Two graphs are compared on held-out nodes, all other fits on held-out observations; always
        at the nodes that are answerable.
        """
        both = {first, second} <= self.unseen.keys() - {ALONE}
        one, other = ((self.unseen if both else self.losses)[name] for name in (first, second))
        return self._apart(one, other)

    def _apart(self, one: Losses, other: Losses) -> Difference:
        own = np.where(self.answerable_nodes, one.means.mean, np.nan)
        return Difference.of(
            own, other.means.mean, self.pieces.error_over_blocks(one.terms - other.terms)
        )

    def judged(self, first: str, second: str) -> Judgement:
        """Whether the first of two fits is clearly better or worse than the second."""
        return self.between(first, second).judged(self.level_of_each)

    def against_alone(self, name: str) -> tuple[float, float]:
        """Mean loss of a fit minus that without a graph, and half the width of its interval."""
        apart = self.between(name, ALONE)
        return apart.mean, apart.half_width(self.level_of_each)

    @computed_once
    def gains(self) -> tuple[FloatArray, FloatArray]:
        """Gains of the best-ranked graph over no graph, and half widths of intervals.

        The gain of a node is its loss without a graph minus its loss with the graph; both of shape
        (n_nodes,).
        """
        gain, half = self._interval(self._gain_means)
        known = self.answerable_nodes & self.joined.get(self.ranking[0], True)
        return np.where(known, gain, np.nan), half

    @computed_once
    def _gain_means(self) -> NodeMeans:
        alone, best = self.losses[ALONE], self.losses[self.ranking[0]]
        return NodeMeans.of(alone.terms - best.terms, self.n_pieces)

    def node_losses(self, name: str) -> tuple[FloatArray, FloatArray]:
        """Held-out loss of one fit at every node, and half the width of its interval."""
        return self._interval(self.losses[name].means)

    def _interval(self, means: NodeMeans) -> tuple[FloatArray, FloatArray]:
        return means.mean, stats.t.ppf(1 - self.level / 2, means.freedom) * means.error

    @property
    def neighbors(self) -> list[Effect]:
        """Effect of the neighbours at every node.

        Among the nodes called helped or hurt, the expected share of false alarms is at most
        `level` (Benjamini-Hochberg).
        """
        if not self.ranking:
            return ["not assessed"] * len(self.nodes)
        gain, _ = self.gains
        means = self._gain_means
        known = np.isfinite(gain)
        words = np.full(len(gain), "not assessed", dtype=object)
        with np.errstate(divide="ignore", invalid="ignore"):
            size = np.where(gain == 0, 0.0, np.abs(gain) / means.error)
        p_values = 2 * stats.t.sf(size[known], means.freedom[known])
        clear = stats.false_discovery_control(p_values) <= self.level if known.any() else p_values
        words[known] = np.where(
            clear.astype(bool), np.where(gain[known] > 0, "helped", "hurt"), "unclear"
        )
        return cast(list[Effect], words.tolist())

    def helped(self) -> list[Label]:
        """Nodes whose loss is significantly lower with the graph."""
        return self._where("helped")

    def hurt(self) -> list[Label]:
        """Nodes whose loss is significantly higher with the graph."""
        return self._where("hurt")

    def _where(self, effect: Effect) -> list[Label]:
        return [node for node, own in zip(self.nodes, self.neighbors, strict=True) if own == effect]

    @property
    def verdict(self) -> str:
        """The outcome in plain language."""
        return in_words(self)

    def summary(self) -> Any:
        """One row per fit: mean loss, its difference to no graph with half width, worth.

        The worth is NaN unless the graph is clearly better than none.
        """
        names = self.fits
        apart, half = zip(*map(self.against_alone, names), strict=True)
        unseen = [self.unseen[name].mean if name in self.unseen else np.nan for name in names]
        rows: dict[str, list[Any]] = {
            "fit": names,
            "loss": [self.losses[name].mean for name in names],
            "minus_alone": list(apart),
            "half_width": list(half),
            "loss_unseen_nodes": unseen,
        }
        if self.worth:
            stated = self.stated_worth
            for part in ("estimate", "low", "high"):
                values = [getattr(stated.get(name), part, np.nan) for name in names]
                rows["worth" if part == "estimate" else f"worth_{part}"] = values
        return frames.make_frame(rows, self.backend)

    def to_frame(self) -> Any:
        """One row per node: losses and gains with intervals, and the effect of the neighbours.

        For every fit its loss and the half width of the interval. For the best-ranked graph
        `gain`, `gain_low`, `gain_high`, and `neighbors`: "helped", "hurt", "unclear", or "not
        assessed" at nodes without neighbours or with fewer than two observations in a sample.
        `agreement` of a node with its neighbours, the number of its `region`, and
        `neighbors_in_region`: "alike", "not alike", "unclear" or "not assessed". `worth`,
        `worth_low` and `worth_high` of the region of the node, drawn towards the worth of the
        network; NaN where the data cannot tell.
        """
        columns: dict[str, Any] = {"node": list(self.nodes)}
        for name in self.losses:
            columns[f"loss, {name}"], columns[f"half width, {name}"] = self.node_losses(name)
        if self.ranking:
            gain, half = self.gains
            columns |= {"gain": gain, "gain_low": gain - half, "gain_high": gain + half}
            columns["neighbors"] = self.neighbors
            if (own := self.agreement.get(self.ranking[0])) is not None:
                columns |= {"agreement": own.at_nodes, "region": own.region}
                columns["neighbors_in_region"] = own.effect_at_nodes()
            if self.worth:
                columns |= zip(
                    ("worth", "worth_low", "worth_high"), self.worth_at_nodes, strict=True
                )
        return frames.make_frame(columns, self.backend)

    @property
    def worth_at_nodes(self) -> FloatArray:
        """Estimate, low and high of the best-ranked graph at every node, shape (3, n_nodes)."""
        own = self.stated_worth.get(self.ranking[0]) if self.ranking else None
        return np.full((3, len(self.nodes)), np.nan) if own is None else own.at_nodes

    def plot(self, ax: Any = None) -> Any:
        """Gain of every node, sorted, with intervals; returns the Axes."""
        from graphratio.plotting import plot_gains

        if not self.ranking:
            raise InputError("no graph was compared, so there are no gains to plot", "Pass a graph")
        gain, half = self.gains
        return plot_gains(gain, half, ax=ax)

    def __repr__(self) -> str:
        lines = [f"GraphComparison of {len(self.losses)} fits at {len(self.nodes)} nodes"]
        if self.answerable:
            lines += [f"  {name}: held-out loss {self.losses[name].mean:.4f}" for name in self.fits]
        return "\n".join([*lines, f"  {self.verdict}"])

    def _repr_html_(self) -> str:
        """Table for notebooks."""
        return comparison_html(self)
