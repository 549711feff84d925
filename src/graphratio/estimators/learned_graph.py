"""The part that estimators with learned edge weights share."""

from __future__ import annotations

from sklearn.utils.validation import check_is_fitted

from graphratio._utils.parameters import check_real
from graphratio._utils.typing import Label
from graphratio.data.graph import Graph
from graphratio.data.links import CUT, Links


class LearnedGraphMixin:
    """The learned graph, and the links that were cut."""

    adaptive: bool

    graph_: Graph
    graph_learned_: Graph
    graph_penalty_: float
    n_rounds_: int

    @property
    def _coupling(self) -> Graph:
        return self.graph_learned_ if self.graph_penalty_ else Graph.empty(self.graph_.nodes)

    def cut_links(self, below: float = CUT) -> list[tuple[Label, Label]]:
        """Edges between nodes that are too different to learn from each other.

        Parameters
        ----------
        below : float, default 0.1
            An edge counts as cut below this share of the typical learned weight.

        Returns
        -------
        list of (label, label)
            The weakest first; empty unless the model is adaptive.

        Examples
        --------
        >>> import graphratio as gr
        >>> scenario = gr.datasets.make_scenario("Ia", n_nodes=60, random_state=1)
        >>> model = gr.GraphRatio(random_state=0)
        >>> cut = model.fit(scenario.samples, scenario.graph).cut_links()
        >>> len(cut), all(scenario.groups[u] != scenario.groups[v] for u, v in cut)
        (6, True)
        """
        check_is_fitted(self, "graph_learned_")
        check_real(below, "below", low=0, high=1, include_high=True)
        links = Links.compare(self.graph_, self.graph_learned_)
        nodes = self.graph_.nodes
        return [(nodes[links.rows[e]], nodes[links.columns[e]]) for e in links.cut(below)]
