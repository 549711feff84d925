"""Kinds of change: which nodes changed, by a test, and which of them changed alike."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from graphratio._utils.errors import InputError
from graphratio._utils.jobs import across_jobs
from graphratio._utils.parameters import as_generator
from graphratio._utils.progress import ProgressBar
from graphratio._utils.typing import RandomState
from graphratio.data.alignment import align, as_graph, as_samples
from graphratio.data.graph import Graph
from graphratio.estimators import GraphRatio
from graphratio.estimators.base import NodeRatioEstimator
from graphratio.estimators.contract import check_estimator, data_of_fit, graph_of_fit
from graphratio.testing.grouping import (
    CANNOT_SAY,
    CHANGED,
    NOT_TESTED,
    UNCHANGED,
    named,
    number_of_kinds,
)
from graphratio.testing.kind_gains import N_FOLDS, ChangedNodes
from graphratio.testing.kinds_result import KindsOfChange
from graphratio.testing.procedure import two_sample_test
from graphratio.testing.result import TwoSampleResult


@across_jobs
def kinds_of_change(
    samples: Any,
    graph: Graph | None = None,
    estimator: Any = None,
    *,
    level: float = 0.05,
    correction: str | None = "fdr",
    n_permutations: int | None = None,
    n_jobs: int | None = None,
    random_state: RandomState = None,
    progress: bool = False,
) -> KindsOfChange:
    """Find the nodes that changed, and group those that changed alike.

    `two_sample_test` decides which nodes changed: a node without evidence of its own is
    "no change found", whatever its neighbours did. The estimator says in which way the others
    changed: nodes with similar ratios are of one kind. Held-out data decide how many kinds there
    are, and whether there are any.

    Parameters
    ----------
    samples : NodeSamples, or a tuple (reference, target)
    graph : Graph, optional
        Aligned with the samples by label. Default: the graph of a fitted estimator, or no edges.
    estimator : estimator, optional
        Any estimator of the library; default `GraphRatio()`. A fitted one is used as it is, with
        the samples of its fit; others are fitted if any node changed. The test does not use it.
    level : float, default 0.05
        Level of the test.
    correction : {"fdr", "fwer", "fdr-by"} or None
        Correction over nodes. With "fdr" (Benjamini-Hochberg) the expected share of unchanged
        nodes among those called changed is at most the level; if nothing changed anywhere, so is
        the probability that any node is called changed. This is proven for independent p-values.
        P-values of neighbours are weakly dependent; in simulations the probability was at or below
        the level. With "fwer" (Holm) the probability that any unchanged node is called changed is
        at most the level under any dependence, and fewer changed nodes are found.
    n_permutations : int, optional
        As in `two_sample_test`.
    n_jobs : int, optional
        Threads, as in scikit-learn: None stands for 1, -1 for all cores. The result is the same.
    random_state : int, numpy Generator, RandomState or None
    progress : bool, default False

    Returns
    -------
    KindsOfChange

    Notes
    -----
    The level covers which nodes are called changed. It does not cover the kinds, which are
    estimates.

    The changed nodes are grouped by k-means on their ratios. For the number of kinds the
    estimator is fitted again on five training folds, with the hyperparameters that it chose. One
    or two more kinds must lower the held-out loss of the changed nodes by a standard error, and
    by 5 % of what the kinds gain over "no change". A kind has at least two nodes, and must beat
    "no change" by a standard error. A node is "other" if its own ratio, or no change, describes
    its held-out observations clearly better than its kind does. If kinds describe less than 80 %
    of the changed nodes, or reach less than 90 % of what their own ratios gain, there are no
    kinds: all changed nodes are "changed".

    Examples
    --------
    >>> import graphratio as gr
    >>> scenario = gr.datasets.make_scenario("Ib", n_nodes=40, random_state=1)
    >>> found = gr.kinds_of_change(scenario.samples, scenario.graph, random_state=0)
    >>> found.n_kinds, found.counts
    (2, {'kind 1': 10, 'kind 2': 10, 'no change found': 20})
    """
    chosen = check_estimator(estimator, default=GraphRatio)
    rng = as_generator(random_state)
    read = as_samples(samples)
    fitted = hasattr(chosen, "divergence_")
    if fitted:
        graph = graph_of_fit(chosen, graph)
        read = read.scaled(chosen.scaling_)
    else:
        graph = as_graph(graph, read)
    test = two_sample_test(
        read,
        graph,
        correction=correction,
        level=level,
        n_permutations=n_permutations,
        random_state=rng,
        progress=progress,
    )
    if fitted:
        return kinds_from(read, chosen, test, random_state=rng, progress=progress)
    if not test.n_rejected:
        return KindsOfChange(test.nodes, _without_kinds(test), test, None, align(read, graph))
    copy = check_estimator(chosen, rng)._again(fixed=False)
    if "progress" in copy.get_params(deep=False):
        copy.set_params(progress=progress)
    return kinds_from(read, copy.fit(read, graph), test, random_state=rng, progress=progress)


@across_jobs
def kinds_from(
    samples: Any,
    model: NodeRatioEstimator,
    test: TwoSampleResult,
    *,
    random_state: RandomState = None,
    progress: bool = False,
) -> KindsOfChange:
    """Kinds of change from a fitted model and a test of its nodes, without repeating either."""
    check_is_fitted(model, "divergence_")
    if test.null != "node" or test.nodes != model.nodes_:
        raise InputError(
            'kinds of change need a test with null="node" of the nodes of the model',
            "Pass the samples and the graph of the model to two_sample_test",
        )
    data = data_of_fit(model, samples)
    kinds = _without_kinds(test)
    members = np.flatnonzero(test.rejected)
    if members.size > 1:
        rng = as_generator(random_state)
        with ProgressBar(N_FOLDS, "kinds of change", enabled=progress) as bar:
            nodes = ChangedNodes(model, data, members, rng, bar)
            count = number_of_kinds(nodes.gains_by_number())
            kinds[members] = named(nodes.groups(count), nodes.gains(count))
    return KindsOfChange(test.nodes, kinds, test, model, data)


def _without_kinds(test: TwoSampleResult) -> np.ndarray:
    silent = np.where(test.tested, CANNOT_SAY, NOT_TESTED)
    kinds = np.where(test.answerable_nodes, UNCHANGED, silent)
    return np.where(test.rejected, CHANGED, kinds)
