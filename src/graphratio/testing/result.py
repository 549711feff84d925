"""The outcome of a test: a table of nodes, connected regions, a p-value for the whole graph."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse import csgraph

from graphratio._utils.html import fields_html
from graphratio._utils.parameters import check_choice
from graphratio._utils.threads import computed_once
from graphratio._utils.typing import BoolArray, FloatArray, IntArray, Label
from graphratio.data import frames
from graphratio.data.blocks import Blocks
from graphratio.data.finding import SampleFinding
from graphratio.data.geography import Mappable
from graphratio.data.graph import Graph
from graphratio.data.node_correlation import Correlation
from graphratio.data.samples import NodeSamples
from graphratio.data.time_checks import rows, single_day
from graphratio.moments.objective import effect_sizes
from graphratio.testing import wording
from graphratio.testing.multiplicity import Answers, changed_at_least, strictest_threshold
from graphratio.testing.sensitivity import detectable_shifts, independent_sizes
from graphratio.testing.shared_times import OWN_SHARE_OF_LEVEL


@dataclass(frozen=True)
class Region:
    """Connected nodes that are all rejected.

    Attributes
    ----------
    nodes : tuple of labels
    changed_at_least : int
        Lower bound on how many of them truly changed, with confidence 1 - level.
    largest_effect, mean_effect : float
        Effect size of the most changed node, and on average.
    smallest_p_value : float

    Examples
    --------
    >>> import numpy as np
    >>> import graphratio as gr
    >>> rng = np.random.default_rng(0)
    >>> target = rng.normal(size=(6, 40)) + np.repeat([0.0, 2.0], 3)[:, None]
    >>> graph = gr.Graph.from_edges([(i, i + 1) for i in range(5)])
    >>> result = gr.two_sample_test((list(rng.normal(size=(6, 40))), list(target)), graph,
    ...                             random_state=0)
    >>> region = result.regions()[0]
    >>> region.nodes, region.size
    ((3, 4, 5), 3)
    """

    nodes: tuple[Label, ...]
    changed_at_least: int
    largest_effect: float
    mean_effect: float
    smallest_p_value: float

    @property
    def size(self) -> int:
        """Number of nodes."""
        return len(self.nodes)

    def _repr_html_(self) -> str:
        """Table for notebooks."""
        found = f"region of {self.size:,} nodes, at least {self.changed_at_least:,} changed"
        return fields_html(self, found)


@dataclass(frozen=True, eq=False, repr=False)
class TwoSampleResult(Mappable):
    """Result of `two_sample_test`, with nodes in the order of the graph.

    Attributes
    ----------
    nodes : tuple of labels, length n_nodes
    graph : Graph
    evidence : ndarray of shape (n_nodes,)
        The statistic of the test: about minus the logarithm of the smallest p-value of the single
        statistics, each divided by its share of the level. Zero with null="global".
    p_value : ndarray of shape (n_nodes,)
        Not adjusted for the number of nodes. From ranking the evidence, (b + 1) / (m + 1) where b
        of the m permutations of this node are at least as extreme; 1 at nodes that lack a sample.
    adjusted_p_value : ndarray of shape (n_nodes,)
        Corrected over nodes; compare it with the level.
    rejected : ndarray of bool, shape (n_nodes,)
    global_p_value : float
        For "nothing changed anywhere". With null="global" from the largest statistic over
        nodes; with null="node" the smallest adjusted p-value, so that it is at most the level
        if and only if a node is rejected. Without a correction it is the smallest p-value times
        the number of tested nodes (Bonferroni). It is valid under any dependence between nodes,
        except with "fdr", which needs independent or positively dependent nodes.
    scores, p_values : dict of str to ndarray of shape (n_nodes,)
        The single statistics on a standard normal scale, and their own p-values, by name; see
        `two_sample_test`.
    tested : ndarray of bool, shape (n_nodes,)
        False at nodes that lack a sample.
    null : {"node", "global"}
    correction : {"fwer", "fdr", "fdr-by"} or None
    level : float
    n_permutations : int
        Largest number of permutations of a node; nodes that are clearly not extreme get fewer.
    extrapolated : ndarray of bool, shape (n_nodes,)
        Nodes whose p-value is too small for the number of permutations and comes from a fitted
        tail.
    penalties : tuple of (bandwidth, graph_penalty, ridge)
        Of every group of nodes that was tested together; one with null="global", none with
        `halves`.
    blocks : Blocks
        Observations that were permuted together; see `NodeSamples.blocks`.
    joint : bool
        Whether all observations of one time or block of time were permuted together.
    halves : bool
        Whether the ratio was fitted on one half of the observations and tested on the other.
    answers : Answers
        Which nodes the data can judge: `nodes`, `n_pieces`, `needed`.
    cross_fitted : bool
        Whether nodes are correlated at the same times, so that the neighbours' prediction was
        learned at other times than those at which it was tested.
    timed : bool
        Whether the samples have times.
    samples : NodeSamples or None
        The data, in the order of the nodes. None if they stayed with the loader of an engine.
    correlation : Correlation or None
        Between neighbouring nodes: value, noise, by_stamp, is_high. None with null="global",
        and where observations of different nodes cannot be matched.
    backend : {"pandas", "polars"}

    Examples
    --------
    >>> import numpy as np
    >>> import graphratio as gr
    >>> rng = np.random.default_rng(0)
    >>> target = rng.normal(size=(6, 40)) + np.repeat([0.0, 2.0], 3)[:, None]
    >>> graph = gr.Graph.from_edges([(i, i + 1) for i in range(5)])
    >>> result = gr.two_sample_test((list(rng.normal(size=(6, 40))), list(target)), graph,
    ...                             random_state=0)
    >>> result.rejected.tolist(), result.n_rejected
    ([False, False, False, True, True, True], 3)
    """

    nodes: tuple[Label, ...]
    graph: Graph
    evidence: FloatArray
    p_value: FloatArray
    adjusted_p_value: FloatArray
    rejected: BoolArray
    global_p_value: float
    scores: dict[str, FloatArray]
    p_values: dict[str, FloatArray]
    tested: BoolArray
    null: str
    correction: str | None
    level: float
    n_permutations: int
    extrapolated: BoolArray
    penalties: tuple[tuple[float, float, float], ...]
    blocks: Blocks
    joint: bool
    halves: bool
    answers: Answers
    cross_fitted: bool
    timed: bool
    samples: NodeSamples | None
    correlation: Correlation | None
    backend: frames.Backend = "pandas"
    # Effect sizes, and detectable shifts of all nodes, where the samples are not here.
    measured: tuple[FloatArray, FloatArray] | None = None

    @property
    def remarks(self) -> list[SampleFinding]:
        """Findings about the order of the rows and about the times; none without the samples."""
        if self.samples is None:
            return []
        return [*rows(self.samples), *single_day(self.samples)]

    @computed_once
    def effect_size(self) -> FloatArray:
        """Mean distance between the quantiles of the two samples, shape (n_nodes,).

        In standard deviations within the node, the largest over features; NaN at nodes that lack
        a sample.
        """
        if self.samples is None:
            return self._measured[0]
        return effect_sizes(self.samples)

    @computed_once
    def detectable_shift(self) -> FloatArray:
        """Smallest shift that the test would have found with probability 80 %, (n_nodes,).

        Of any one feature, in standard deviations within the node, if this node had changed alone.
        Infinite at nodes that cannot be judged, NaN with null="global" and `halves`. A node that
        was not found changed may still have changed by less.
        """
        if self.halves or self.null == "global":
            return np.full(len(self.nodes), np.nan)
        if self.samples is None:
            shifts = self._measured[1]
        else:
            sizes = independent_sizes(self.samples.sizes, self.answers.n_pieces, self.blocks)
            shifts = detectable_shifts(self.samples, sizes, self.threshold)
        return np.where(self.answerable_nodes, shifts, np.inf)

    @property
    def _measured(self) -> tuple[FloatArray, FloatArray]:
        if self.measured is None:
            raise RuntimeError("the result has neither samples nor what was measured on them")
        return self.measured

    @property
    def threshold(self) -> float:
        """Largest p-value, not adjusted, with which one more node is rejected."""
        n_tests = max(int(self.tested.sum()), 1)
        strictest = strictest_threshold(n_tests, self.level, self.correction)
        if self.correction in ("fdr", "fdr-by"):
            strictest *= self.n_rejected + 1
        elif self.correction == "fwer":
            strictest *= n_tests / max(n_tests - self.n_rejected, 1)
        own = OWN_SHARE_OF_LEVEL if self.cross_fitted and "predicted" in self.p_values else 1.0
        return own * min(self.level, strictest)

    @property
    def order(self) -> IntArray:
        """Positions of the tested nodes, smallest p-value first, then largest effect."""
        ranked = np.lexsort((-np.nan_to_num(self.effect_size), self.p_value))
        return np.asarray(ranked[self.tested[ranked]])

    @property
    def answerable(self) -> bool:
        """Whether the data can say that any node changed.

        If not, the data have too few independent pieces for this level and correction, and it means
        nothing that no node was rejected. See `answerable_nodes` for single nodes.
        """
        return self.answers.any

    @property
    def answerable_nodes(self) -> BoolArray:
        """Nodes about which the data can say whether they changed, shape (n_nodes,)."""
        return self.answers.nodes

    @property
    def n_rejected(self) -> int:
        """Number of rejected nodes."""
        return int(self.rejected.sum())

    def to_frame(self) -> Any:
        """One row per node: effect size, p-values, rejected, answerable, numbers of pieces.

        The pieces are the independent blocks or observations of each sample.

        A polars frame if the samples came from one, otherwise pandas.
        """
        columns: dict[str, Any] = {
            "node": list(self.nodes),
            "effect_size": self.effect_size,
            "p_value": self.p_value,
            "adjusted_p_value": self.adjusted_p_value,
            "rejected": self.rejected,
            "detectable_shift": self.detectable_shift,
            "answerable": self.answerable_nodes,
            "n_pieces_reference": self.answers.n_pieces[:, 0],
            "n_pieces_target": self.answers.n_pieces[:, 1],
        }
        return frames.make_frame(columns, self.backend)

    def regions(self, dependence: str = "any") -> list[Region]:
        """Connected sets of rejected nodes, the largest first.

        Parameters
        ----------
        dependence : {"any", "positive"}
            Assumption on the p-values of different nodes behind the lower bound on the number
            of truly changed nodes. The bounds come from closed testing and hold for all
            regions at once with probability 1 - level, although the data chose the regions.
            "any" assumes nothing and uses Bonferroni's inequality: it counts the nodes that
            Holm rejects. "positive" uses Simes' inequality, valid for independent or positively
            dependent p-values, and is sharper for regions found with correction="fdr". With
            null="global" the bounds are exploratory.

        Returns
        -------
        list of Region
            Ordered by size, then by the smallest p-value.

        Examples
        --------
        See `two_sample_test`.
        """
        check_choice(dependence, "dependence", ("any", "positive"))
        members = np.flatnonzero(self.rejected)
        if not members.size:
            return []
        among = sparse.csr_array(self.graph.adjacency[members][:, members])
        count, part = csgraph.connected_components(among, directed=False)
        found = [self._region(members[part == i], dependence) for i in range(count)]
        return sorted(found, key=lambda region: (-region.size, region.smallest_p_value))

    def _region(self, members: Any, dependence: str) -> Region:
        mask = np.zeros(len(self.nodes), dtype=bool)
        mask[members] = True
        tested = self.tested
        return Region(
            tuple(self.nodes[v] for v in members),
            changed_at_least(self.p_value[tested], mask[tested], self.level, dependence),
            float(self.effect_size[members].max()),
            float(self.effect_size[members].mean()),
            float(self.p_value[members].min()),
        )

    def plot(self, ax: Any = None, **options: Any) -> Any:
        """Draw the graph with its nodes coloured by effect size, rejected ones outlined.

        Parameters
        ----------
        ax : matplotlib Axes, optional
        **options
            names, edges and n_labels, as for `graphratio.plot_graph`.

        Returns
        -------
        matplotlib Axes
        """
        from graphratio.plotting.graph_map import plot_significance

        return plot_significance(self, ax, **options)

    @property
    def summary(self) -> str:
        """The outcome in a sentence."""
        return wording.headline(self)

    @property
    def assumptions(self) -> tuple[str, ...]:
        """The assumptions of the p-values, in plain language."""
        return wording.assumptions(self)

    @property
    def notes(self) -> tuple[str, ...]:
        """Remarks on the data and the test, in plain language."""
        return wording.notes(self)

    def __repr__(self) -> str:
        lines = [
            f"TwoSampleResult(null={self.null!r}, correction={self.correction!r}, "
            f"level={self.level:g}, n_permutations={self.n_permutations:,})",
            f"  {self.summary}",
            *(f"  note: {note}" for note in self.notes),
        ]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        """Table for notebooks."""
        return wording.result_html(self)
