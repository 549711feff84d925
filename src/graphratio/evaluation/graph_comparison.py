"""Did the graph help, and which of several graphs fits best: held-out losses compared.

Two questions need two measures. *Does it help to couple the nodes?* Single observations are held
out and predicted from the rest of the node's data and, through the graph, from its neighbours'.
The rivals are fits of every node by itself and of all nodes as one. *Which graph joins similar
nodes?* Whole nodes are held out and predicted from their neighbours alone. Only the graph counts
here, so this separates graphs that are almost equally good next to a node's own data. Where nodes
move together, neighbours show the fluctuations of a node that is left out. So only observations
are held out then, at all nodes at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from graphratio._utils.errors import InputError, listing
from graphratio._utils.jobs import across_jobs
from graphratio._utils.parameters import (
    as_generator,
    check_choice,
    check_integer,
    check_real,
)
from graphratio._utils.progress import ProgressBar
from graphratio._utils.typing import FloatArray, IntArray, RandomState
from graphratio.data.alignment import align, check_graph
from graphratio.data.graph import Graph
from graphratio.data.node_correlation import held_out_together, high_correlation
from graphratio.data.node_scales import nodes_differ
from graphratio.data.sample_scaling import in_own_units
from graphratio.data.samples import NodeSamples
from graphratio.estimators import GraphRatio
from graphratio.estimators.contract import check_estimator
from graphratio.evaluation.comparison import GraphComparison, Losses
from graphratio.evaluation.node_means import Difference, loss_terms
from graphratio.evaluation.recipe import SMALLEST_SPLIT, Recipe, in_scale_of, repeated_folds
from graphratio.evaluation.refits import fold_ratios, held_out
from graphratio.evaluation.verdict import ALONE, LEARNED, SHARED, UNNAMED
from graphratio.evaluation.ways import Ways, at_strongest, compares_profiles
from graphratio.evaluation.where import Agreement
from graphratio.evaluation.worth import worth_of
from graphratio.moments.losses import PEARSON, get_loss
from graphratio.selection.cross_validation import Fit
from graphratio.selection.nested import MANY_NODES, Contender

_RESERVED = (ALONE, SHARED, LEARNED)

UNITS_OF_NODES = ("auto", "given", "own")
# Chance of keeping the given units without need.
UNITS_LEVEL = 0.05


@across_jobs
def compare_graphs(
    samples: Any,
    graphs: Mapping[str, Graph | None] | Graph | None = None,
    estimator: Any = None,
    *,
    level: float = 0.05,
    n_folds: int = 5,
    n_repeats: int | None = None,
    learn: bool | None = None,
    units: str = "auto",
    worth: bool | int = True,
    n_jobs: int | None = None,
    random_state: RandomState = None,
    progress: bool = False,
) -> GraphComparison:
    """Compare graphs, and fits without one, by their losses on held-out data.

    Parameters
    ----------
    samples : NodeSamples or (reference, target)
    graphs : mapping of name to Graph or None, a Graph, or None
        None stands for no graph. All graphs have the same nodes.
    estimator : estimator that couples nodes, optional
        `GraphRatio` or `GRULSIF`, fitted or not; default `GraphRatio()`. It is fitted with every
        graph, and without one. Hyperparameters that are not fixed are chosen inside the training
        folds. The fit "all nodes as one" is quadratic, with the same features.
    level : float in (0, 1), default 0.05
        Error probability of the verdict, and of an interval.
    n_folds : int, default 5
        Number of folds, at least 3.
    n_repeats : int, optional
        How often the data are split. Default 2 for `GRULSIF` up to 1,000 nodes, else 1.
    learn : bool, optional
        Also learn a graph from the data, inside the training folds. Default: only if there is
        no graph to compare.
    units : {"auto", "given", "own"}
        "own" shifts and scales every node to mean 0 and standard deviation 1 over both its samples:
        nodes of very different location or scale then show what their changes have in common.
        "auto" does so if nodes differ much, unless it clearly raises the held-out loss without a
        graph, and only for `GraphRatio` with its own choice of bandwidth and dictionary.
    worth : bool or int, default True
        Also measure how many observations each graph replaces. A number limits the observations
        that are used for it: connected patches then stand for the whole network.
    n_jobs : int, optional
        Threads, as in scikit-learn: None stands for 1, -1 for all cores. The result is the same.
    random_state : int, numpy Generator, RandomState or None
    progress : bool

    Returns
    -------
    GraphComparison
        With `verdict`, `best`, `worth`, `to_frame()`, `summary()`, `plot()`, `learned_graph`.

    Examples
    --------
    >>> import graphratio as gr
    >>> scenario = gr.datasets.make_scenario("Ia", n_nodes=60, n=60, random_state=0)
    >>> ring = gr.Graph.from_edges([(i, (i + 17) % 60) for i in range(60)], nodes=range(60))
    >>> model = gr.GRULSIF(prior_ratio=1, bandwidth=1.0)
    >>> found = gr.compare_graphs(
    ...     scenario.samples, {"clusters": scenario.graph, "ring": ring}, model, random_state=0)
    >>> found.ranking, found.tied  # the first is clearly better than the second
    (['clusters', 'ring'], [])
    """
    level = check_real(level, "level", low=0, high=1)
    n_folds = check_integer(n_folds, "n_folds", low=SMALLEST_SPLIT)
    check_choice(units, "units", UNITS_OF_NODES)
    limit = None if isinstance(worth, bool) else check_integer(worth, "worth", low=1)
    rng = as_generator(random_state)
    template: Any = check_estimator(estimator, rng, GraphRatio)
    if not template._couples:
        raise InputError(
            f"{type(template).__name__} fits every node by itself, whatever the graph",
            "Pass an estimator that couples nodes, such as gr.GraphRatio() or gr.GRULSIF()",
        )
    read = in_scale_of(template, samples)
    if read.n_nodes < 2:
        raise InputError(
            "there is only one node, and graphs need several to be compared",
            "Pass samples of several nodes",
        )
    named = _named(graphs, read)
    data = align(read, next(iter(named.values())))
    coupled = {name: g for name, g in named.items() if g.n_edges}
    correlation = high_correlation(data, coupled.values())
    if correlation is not None:
        data = held_out_together(data)
    if n_repeats is None:
        n_repeats = 2 if template._is_quadratic and data.n_nodes <= MANY_NODES else 1
    n_repeats = check_integer(n_repeats, "n_repeats", low=1)
    learn = bool(learn) or (learn is None and not coupled)
    folds = repeated_folds(data, n_folds, n_repeats, rng)
    recipe, own = _in_units(units, template, data, folds, rng)
    with_graphs = _GraphFits(Ways(recipe), coupled, progress)
    losses, at_end = with_graphs.losses(folds, rivals=True, learn=learn)
    unseen: dict[str, Losses] = {}
    # Neighbours that move with a node give it away even if it is left out.
    if coupled and correlation is None and data.n_nodes >= 2 * n_folds:
        whole = repeated_folds(data, n_folds, n_repeats, rng, by_node=True)
        unseen, _ = with_graphs.losses(whole)
    measured = worth and coupled and not with_graphs.ways.refits
    return GraphComparison(
        data.nodes,
        losses,
        unseen,
        level,
        tuple(coupled),
        with_graphs.ways.learn_now() if learn else None,
        next((name for name, g in named.items() if not g.n_edges), None),
        data.backend,
        {name: g.n_neighbors > 0 for name, g in coupled.items()},
        "own" if own else "given",
        at_end,
        worth_of(recipe, coupled, level, rng, limit) if measured else {},
        with_graphs.agreement(level, rng) if correlation is None else {},
        correlation,
    )


def _in_units(
    units: str, template: Any, data: NodeSamples, folds: list[IntArray], rng: np.random.Generator
) -> tuple[Recipe, bool]:
    """The data in units that suit a fit without a graph, and whether they are the nodes' own."""
    recipe = None if units == "own" else Recipe.of(template, data, rng)
    if recipe is not None and (
        units == "given"
        or not compares_profiles(template)
        or hasattr(template, "coef_")
        or not (template.bandwidth is None and isinstance(template.dictionary, str))
        or not nodes_differ(data)
    ):
        return recipe, False
    own = Recipe.of(template, in_own_units(data), rng)
    if recipe is None:
        return own, True
    # No graph takes part in this choice, so that it favours none.
    given, other = (
        node_losses(one, {ALONE: one.run({ALONE: Ways(one).alone(())}, folds)[ALONE].ratios})
        for one in (recipe, own)
    )
    apart = Difference.of(other[ALONE].means.mean, given[ALONE].means.mean)
    worse = apart.judged(UNITS_LEVEL) == "worse"
    return (recipe if worse else own), not worse


@dataclass(frozen=True, eq=False)
class _GraphFits:
    """Fits of one estimator with several graphs."""

    ways: Ways
    graphs: Mapping[str, Graph]
    progress: bool

    def losses(
        self, folds: list[IntArray], *, rivals: bool = False, learn: bool = False
    ) -> tuple[dict[str, Losses], tuple[str, ...]]:
        """Losses with every graph and without one, and which fits are at the end of their grid.

        With `rivals` observations are left out, otherwise nodes. `learn` adds a learned graph.
        """
        ways, recipe, graphs = self.ways, self.ways.recipe, dict(self.graphs)
        fits: dict[str, Contender[Fit]] = {}
        if rivals:
            fits[SHARED] = recipe.shared()
        else:
            fits[ALONE] = ways.average()
        if not ways.refits:
            fits |= {name: ways.joined(graph) for name, graph in graphs.items()}
            fits |= {ALONE: ways.alone(graphs.values())} if rivals else {}
            fits |= {LEARNED: ways.learned()} if learn else {}
        elif rivals:
            graphs[ALONE] = Graph.empty(recipe.samples.nodes)
        found = recipe.run(fits, folds, progress=self.progress)
        ratios = {name: part.ratios for name, part in found.items()}
        if ways.refits:
            ratios |= self._refitted(folds, graphs, learn)
        at_end = at_strongest({name: found[name] for name in self.graphs if name in found}, fits)
        return node_losses(recipe, ratios), at_end

    def agreement(self, level: float, rng: np.random.Generator) -> dict[str, Agreement]:
        """Where neighbours in every graph change alike."""
        if not self.graphs:
            return {}
        deviations, known = self.ways.deviations(), self.ways.recipe.samples.complete
        return {
            name: Agreement.of(graph, deviations, known, level, rng)
            for name, graph in self.graphs.items()
        }

    def _refitted(
        self, folds: list[IntArray], graphs: Mapping[str, Graph], learn: bool
    ) -> dict[str, FloatArray]:
        """Held-out ratios of an estimator that is fitted again, (n_repeats, n_observations)."""
        template, data = self.ways.recipe.template, self.ways.recipe.samples
        limit = 1 / float(template.alpha) if template.alpha else None
        used: dict[str, Graph | None] = {**graphs, **({LEARNED: None} if learn else {})}
        steps = len(used) * sum(int(one.max()) + 1 for one in folds)
        found = {}
        with ProgressBar(steps, "fits with each graph", enabled=self.progress) as bar:
            for name, graph in used.items():
                each = []
                for one in folds:
                    of_fold = (
                        self.ways.learned_without(one) if graph is None else lambda _, g=graph: g
                    )
                    each.append(held_out(fold_ratios(template, data, of_fold, one, bar=bar), one))
                found[name] = np.clip(np.stack(each), 0.0, limit)
        return found


def node_losses(recipe: Recipe, ratios: Mapping[str, FloatArray]) -> dict[str, Losses]:
    """Losses of all nodes from held-out ratios, shape (n_repeats, n_observations) each."""
    data, alpha = recipe.samples, float(recipe.template.alpha)
    loss = get_loss(getattr(recipe.template, "loss", PEARSON.name))
    return {
        name: Losses.of(loss_terms(part, data.is_target, alpha, loss), data)
        for name, part in ratios.items()
    }


def _named(graphs: Any, samples: NodeSamples) -> dict[str, Graph]:
    """Every candidate as a graph on the same nodes, in the order of the first."""
    if not isinstance(graphs, Mapping):
        graphs = {UNNAMED: None if graphs is None else check_graph(graphs, "graphs")}
    if not graphs:
        raise InputError(
            "graphs is an empty mapping, with nothing to compare",
            'Pass a mapping such as {"roads": graph, "none": None}',
        )
    if len({str(name) for name in graphs}) < len(graphs):
        raise InputError(
            f"two of the names {listing(list(graphs))} are the same as text", "Choose other names"
        )
    if wrong := [name for name, g in graphs.items() if not isinstance(g, Graph | None)]:
        raise InputError(
            f"the candidates {listing(wrong)} are not graphs",
            "Build them with gr.Graph.from_edges, from_adjacency, ..., or pass None for none",
        )
    if taken := [name for name in graphs if name in _RESERVED]:
        raise InputError(
            f"the names {listing(taken)} are used for other fits", "Choose other names"
        )
    empty = Graph.empty(samples.nodes if samples.labelled else samples.n_nodes)
    first = next((g for g in graphs.values() if g is not None), empty)
    named = {
        str(name): Graph.empty(first.nodes) if g is None else _in_order(g, first, str(name))
        for name, g in graphs.items()
    }
    turned = [str(name) for name, g in graphs.items() if g is not None and g.nodes != first.nodes]
    if turned and not samples.labelled and first.nodes != samples.nodes:
        raise InputError(
            f"graph {turned[0]!r} has its nodes in another order than the first, and the samples "
            "have no labels",
            "Pass NodeSamples.from_arrays(..., nodes=[...]) with the label of each sample",
        )
    return named


def _in_order(graph: Graph, first: Graph, name: str) -> Graph:
    if odd := {*graph.nodes} ^ {*first.nodes}:
        raise InputError(
            f"graph {name!r} has other nodes than the first: {listing(sorted(odd, key=str))}",
            "Give all graphs the same nodes; nodes=[...] adds those without edges",
        )
    return graph if graph.nodes == first.nodes else graph.subset(first.nodes)
