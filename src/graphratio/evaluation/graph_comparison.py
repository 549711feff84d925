"""Did the graph help, and which of several graphs fits best: held-out losses compared.

Two questions need two measures. *Does it help to couple the nodes?* Single observations are held
out and predicted from the rest of the node's data and, through the graph, from its neighbours'.
The rivals are fits of every node by itself and of all nodes as one. *Which graph joins similar
nodes?* Whole nodes are held out and predicted from their neighbours alone. Only the graph counts
here, so this separates graphs that are almost equally good next to a node's own data.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from graphratio._utils.errors import InputError, listing
from graphratio._utils.parameters import as_generator, check_integer, check_real
from graphratio._utils.typing import RandomState
from graphratio.data.alignment import align
from graphratio.data.graph import Graph
from graphratio.data.samples import NodeSamples
from graphratio.estimators import GRULSIF, Pool
from graphratio.evaluation.comparison import GraphComparison, Losses
from graphratio.evaluation.neighbours import LearnedFit, learned_graph
from graphratio.evaluation.node_means import loss_terms
from graphratio.evaluation.recipe import Recipe, in_scale_of
from graphratio.evaluation.verdict import ALONE, LEARNED, SHARED, UNNAMED
from graphratio.selection.fold_fits import Fit
from graphratio.selection.grids import GRAPH_PENALTIES, Candidates
from graphratio.selection.nested import MANY_NODES, Contender, HeldOut

_RESERVED = (ALONE, SHARED, LEARNED)

# Neighbours of a node in a learned graph.
LEARNED_NEIGHBORS = 10


def compare_graphs(
    samples: Any,
    graphs: Mapping[str, Graph | None] | Graph | None = None,
    *,
    model: Any = None,
    confidence: float = 0.95,
    n_folds: int = 5,
    n_repeats: int | None = None,
    learn: bool | None = None,
    random_state: RandomState = None,
    progress: bool = False,
) -> GraphComparison:
    """Compare graphs, and fits without one, by their losses on held-out data.

    Parameters
    ----------
    samples : NodeSamples or (reference, target)
    graphs : mapping of name to Graph or None, a Graph, or None
        None stands for no graph. All graphs have the same nodes.
    model : GRULSIF, optional
        Gives alpha, kernel, candidates, ... Default `GRULSIF(prior_ratio=1)`. Hyperparameters
        that are not fixed are chosen inside the training folds. Each node alone and all nodes
        as one always choose their own penalty.
    confidence : float in (0, 1), default 0.95
        Of the verdict and of the intervals.
    n_folds : int, default 5
        Number of folds, at least 3.
    n_repeats : int, optional
        How often the data are split. Default 2, or 1 beyond 1,000 nodes.
    learn : bool, optional
        Also learn a graph from the data, inside the training folds. Default: only if there is
        no graph to compare.
    random_state : int, numpy Generator, RandomState or None
    progress : bool

    Returns
    -------
    GraphComparison
        With `verdict`, `best`, `to_frame()`, `summary()`, `plot()` and `learned_graph`.

    Examples
    --------
    >>> import graphratio as gr
    >>> scenario = gr.datasets.make_scenario("Ia", n_nodes=40, n=100, random_state=0)
    >>> ring = gr.Graph.from_edges([(i, (i + 17) % 40) for i in range(40)], nodes=range(40))
    >>> model = gr.GRULSIF(prior_ratio=1, bandwidth=1.0)
    >>> found = gr.compare_graphs(
    ...     scenario.samples, {"clusters": scenario.graph, "ring": ring}, model=model,
    ...     random_state=0)
    >>> found.best
    'clusters'
    """
    confidence = check_real(confidence, "confidence", low=0, high=1)
    n_folds = check_integer(n_folds, "n_folds", low=3)
    rng = as_generator(random_state)
    template = GRULSIF(prior_ratio=1.0) if model is None else model
    if isinstance(template, Pool):
        raise InputError("Pool fits every node by itself, whatever the graph", "Pass a GRULSIF")
    read = in_scale_of(template, samples)
    if read.n_nodes < 2:
        raise InputError(
            "there is only one node, and graphs need several to be compared",
            "Pass samples of several nodes",
        )
    named = _named(graphs, read)
    recipe = Recipe.of(template, align(read, next(iter(named.values()))), rng)
    data = recipe.samples
    if n_repeats is None:
        n_repeats = 2 if data.n_nodes <= MANY_NODES else 1
    n_repeats = check_integer(n_repeats, "n_repeats", low=1)
    coupled: dict[str, Contender[Fit]] = {
        name: recipe.coupled(g) for name, g in named.items() if g.n_edges
    }
    fits: dict[str, Contender[Fit]] = {ALONE: recipe.alone(), SHARED: recipe.shared(), **coupled}
    if learn or (learn is None and not coupled):
        fits[LEARNED] = _learned(recipe)
    found = recipe.run(fits, n_folds, n_repeats, rng, progress=progress)
    unseen: dict[str, Losses] = {}
    if len(coupled) > 1 and data.n_nodes >= 2 * n_folds:
        left_out = recipe.run(coupled, n_folds, n_repeats, rng, by_node=True, progress=progress)
        unseen = node_losses(recipe, left_out)
    graph = _learn_now(recipe, found[LEARNED].chosen[0][0]) if LEARNED in fits else None
    return GraphComparison(
        data.nodes,
        node_losses(recipe, found),
        unseen,
        confidence,
        tuple(coupled),
        graph,
        next((name for name, g in named.items() if not g.n_edges), None),
        data.backend,
    )


def node_losses(recipe: Recipe, found: Mapping[str, HeldOut]) -> dict[str, Losses]:
    """Losses of all nodes from held-out ratios."""
    data, alpha = recipe.samples, float(recipe.template.alpha)
    return {
        name: Losses.of(loss_terms(part.ratios, data.is_target, alpha), data)
        for name, part in found.items()
    }


def _named(graphs: Any, samples: NodeSamples) -> dict[str, Graph]:
    """Every candidate as a graph on the same nodes, in the order of the first."""
    if graphs is None or isinstance(graphs, Graph):
        graphs = {UNNAMED: graphs}
    if not isinstance(graphs, Mapping) or not graphs:
        what = "an empty mapping" if isinstance(graphs, Mapping) else f"a {type(graphs).__name__}"
        raise InputError(
            f"graphs is {what}, with nothing to compare",
            'Pass a mapping such as {"roads": graph, "none": None}',
        )
    if len({str(name) for name in graphs}) < len(graphs):
        raise InputError(
            f"two of the names {listing(list(graphs))} are the same as text", "Choose other names"
        )
    wrong = [name for name, g in graphs.items() if not (g is None or isinstance(g, Graph))]
    if wrong:
        raise InputError(
            f"the candidates {listing(wrong)} are not graphs",
            "Build them with gr.Graph.from_edges, from_adjacency, ..., or pass None for none",
        )
    taken = [name for name in graphs if name in _RESERVED]
    if taken:
        raise InputError(
            f"the names {listing(taken)} are used for other fits", "Choose other names"
        )
    given = [g for g in graphs.values() if g is not None]
    empty = Graph.empty(samples.nodes if samples.labelled else samples.n_nodes)
    first = given[0] if given else empty
    named = {
        str(name): Graph.empty(first.nodes) if g is None else _in_order(g, first, str(name))
        for name, g in graphs.items()
    }
    if not samples.labelled and first.nodes != samples.nodes:
        for name, g in graphs.items():
            if g is not None and g.nodes != first.nodes:
                raise InputError(
                    f"graph {str(name)!r} has its nodes in another order than the first, and the "
                    "samples have no labels",
                    "Pass NodeSamples.from_arrays(..., nodes=[...]) with the label of each sample",
                )
    return named


def _in_order(graph: Graph, first: Graph, name: str) -> Graph:
    if graph.nodes == first.nodes:
        return graph
    if set(graph.nodes) != set(first.nodes):
        odd = [
            node
            for node in {*graph.nodes, *first.nodes}
            if (node in graph.nodes) != (node in first.nodes)
        ]
        raise InputError(
            f"graph {name!r} has other nodes than the first: {listing(odd)}",
            "Give all graphs the same nodes; nodes=[...] adds those without edges",
        )
    order = np.array([graph.position(node) for node in first.nodes])
    return Graph.from_adjacency(graph.adjacency[order][:, order], nodes=first.nodes)


def _learned(recipe: Recipe) -> Contender[LearnedFit]:
    # The graph hardly depends on the bandwidth: use one in the middle.
    width = recipe.bandwidths[len(recipe.bandwidths) // 2 :][:1]
    penalties = np.array(GRAPH_PENALTIES) / LEARNED_NEIGHBORS
    candidates = Candidates(width, penalties, recipe.node_penalties)
    return Contender(LearnedFit(recipe.samples.nodes, LEARNED_NEIGHBORS), candidates)


def _learn_now(recipe: Recipe, bandwidth: float) -> Graph:
    """Learn the graph from all data."""
    everything = np.zeros(recipe.samples.n_observations, dtype=np.intp)
    _, data = recipe.split(everything, 1, np.float32).at(bandwidth)
    return learned_graph(data.without(), recipe.samples.nodes, LEARNED_NEIGHBORS)
