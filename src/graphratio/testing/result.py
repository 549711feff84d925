"""The outcome of a test: a table of nodes, connected regions, a p-value for the whole graph."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse import csgraph

from graphratio._utils.parameters import check_choice
from graphratio._utils.typing import BoolArray, FloatArray, Label
from graphratio.data import frames
from graphratio.data.blocks import Blocks
from graphratio.data.finding import SampleFinding
from graphratio.data.graph import Graph
from graphratio.data.samples import NodeSamples
from graphratio.data.time_checks import rows, single_day
from graphratio.testing import wording
from graphratio.testing.answers import Answers
from graphratio.testing.multiplicity import changed_at_least
from graphratio.testing.node_correlation import Correlation


@dataclass(frozen=True)
class Region:
    """Connected nodes that are all rejected.

    Attributes
    ----------
    nodes : tuple of labels
    changed_at_least : int
        How many of them truly changed, at least, with confidence 1 - level.
    largest_statistic, mean_statistic : float
        Divergence of the most changed node, and on average.
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
    largest_statistic: float
    mean_statistic: float
    smallest_p_value: float

    @property
    def size(self) -> int:
        """Number of nodes."""
        return len(self.nodes)


@dataclass(frozen=True, eq=False, repr=False)
class TwoSampleResult:
    """Result of `two_sample_test`, with nodes in the order of the graph.

    Attributes
    ----------
    nodes : tuple of labels, length n_nodes
    graph : Graph
    statistic : ndarray of shape (n_nodes,)
        Size of the change: Pearson divergence of the target from the pooled sample, estimated
        with the help of the neighbours. The p-value combines it with three more statistics. With
        `halves` the mean of the ratio over the held-out target minus over both samples.
    p_value : ndarray of shape (n_nodes,)
        From the combination of the four statistics, (b + 1) / (n_permutations + 1) where b
        counts permutations that are at least as extreme; 1 at nodes that lack a sample.
    adjusted_p_value : ndarray of shape (n_nodes,)
        Corrected over nodes; compare it with the level.
    rejected : ndarray of bool, shape (n_nodes,)
    global_p_value : float
        For "nothing changed anywhere". With null="global" from the largest statistic over
        nodes; with null="node" the smallest p-value times the number of tested nodes
        (Bonferroni), which is valid under any dependence, but conservative.
    statistics, p_values : dict of str to ndarray of shape (n_nodes,)
        The four statistics and their own p-values: "divergence", "norm", "witness", "mmd"; with
        `halves` only "held-out ratio".
    tested : ndarray of bool, shape (n_nodes,)
        False at nodes that lack a sample.
    null : {"node", "global"}
    correction : {"fwer", "fdr", "fdr-by"} or None
    level : float
    n_permutations : int
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
        Which nodes the data can say anything about: `nodes`, `n_pieces`, `needed`.
    alone : bool
        Whether neighbours were not used, since nodes are correlated at the same times.
    timed : bool
        Whether the samples have times.
    samples : NodeSamples
        The data, in the order of the nodes.
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
    statistic: FloatArray
    p_value: FloatArray
    adjusted_p_value: FloatArray
    rejected: BoolArray
    global_p_value: float
    statistics: dict[str, FloatArray]
    p_values: dict[str, FloatArray]
    tested: BoolArray
    null: str
    correction: str | None
    level: float
    n_permutations: int
    penalties: tuple[tuple[float, float, float], ...]
    blocks: Blocks
    joint: bool
    halves: bool
    answers: Answers
    alone: bool
    timed: bool
    samples: NodeSamples
    correlation: Correlation | None
    backend: frames.Backend = "pandas"

    @property
    def remarks(self) -> list[SampleFinding]:
        """What the order of rows, or the times, show about the data."""
        return [*rows(self.samples), *single_day(self.samples)]

    @property
    def answerable(self) -> bool:
        """Whether the data can say of any node that it changed.

        If not, they have too few independent pieces for this level and correction, and that no
        node was rejected means nothing. `answerable_nodes` says it of every node.
        """
        return self.answers.any

    @property
    def answerable_nodes(self) -> BoolArray:
        """Nodes of which the data can say whether they changed, shape (n_nodes,)."""
        return self.answers.nodes

    @property
    def n_rejected(self) -> int:
        """Number of rejected nodes."""
        return int(self.rejected.sum())

    def to_frame(self) -> Any:
        """One row per node: node, statistic, p-values, rejected, answerable, numbers of pieces.

        The pieces are the independent blocks or observations of each sample.

        A polars frame if the samples came from one, otherwise pandas.
        """
        columns: dict[str, Any] = {
            "node": list(self.nodes),
            "statistic": self.statistic,
            "p_value": self.p_value,
            "adjusted_p_value": self.adjusted_p_value,
            "rejected": self.rejected,
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
            float(self.statistic[members].max()),
            float(self.statistic[members].mean()),
            float(self.p_value[members].min()),
        )

    def plot(self, ax: Any = None, **options: Any) -> Any:
        """Draw the graph with its nodes coloured by their p-values, rejected ones outlined.

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
