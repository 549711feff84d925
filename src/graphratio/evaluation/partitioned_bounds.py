"""Divergence bounds on an engine: fits without a fold, and bounds where the observations are.

As in one process for estimators that are not quadratic, the estimator is fitted again for every
fold. The partitions load their data again for each of these fits, without the fold. Then they get
the coefficients of all fits, and compute the bounds of their own nodes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import clone

from graphratio._utils.parameters import check_real
from graphratio._utils.progress import ProgressBar
from graphratio._utils.typing import BoolArray, FloatArray
from graphratio.data.alignment import align, as_graph, check_graph
from graphratio.data.blocks import Blocks
from graphratio.data.graph import Graph
from graphratio.data.samples import NodeSamples
from graphratio.distributed.fold_keys import FoldKeys, fold_keys
from graphratio.distributed.session import Session, open_session
from graphratio.estimators.dictionary_based import NystromEstimator
from graphratio.estimators.partitioned import check_engine
from graphratio.evaluation.bounds import BoundOptions, DivergenceBounds, bounds_from, judged_refits
from graphratio.evaluation.pieces import IndependentPieces
from graphratio.evaluation.recipe import check_split, in_scale_of
from graphratio.features.nystrom import NystromMap

# What the partitions need of a fit: features, the ratio it shrinks to, and own coefficients.
OwnFit = tuple[NystromMap, float, FloatArray]


def bounds_on_engine(
    estimator: NystromEstimator,
    samples: Any,
    graph: Graph | None,
    options: BoundOptions,
    random_state: np.random.Generator,
) -> DivergenceBounds:
    """Bounds of all nodes, from fits on the engine of the estimator."""
    settings = check_engine(estimator, samples, graph)
    alpha = check_real(estimator.alpha, "alpha", low=0, high=1, include_low=True)
    given = None
    if samples is not None:
        read = in_scale_of(estimator, samples)
        graph = as_graph(graph, read)
        given = align(read, graph)
    with open_session(settings, given, check_graph(graph)) as session:
        check_split(session.sizes, options.n_folds)
        keys = [
            fold_keys(session.fleet.nodes, session.sizes, options.n_folds, random_state)
            for _ in range(options.n_repeats)
        ]
        fits = _fits_without_folds(estimator, given, session, keys, options)
        return _bounds(session, keys, fits, alpha, options)


def _fits_without_folds(
    estimator: NystromEstimator,
    samples: NodeSamples | None,
    session: Session,
    keys: list[list[FoldKeys]],
    options: BoundOptions,
) -> list[list[NystromEstimator]]:
    """One fit per repeat and fold."""
    together = [[session.graph.nodes[i] for i in own] for own in session.fleet.nodes]
    fits: list[list[NystromEstimator]] = []
    total = options.n_repeats * options.n_folds
    with ProgressBar(total, "held-out fits", enabled=options.progress) as bar:
        for own in keys:
            fits.append([])
            for fold in range(options.n_folds):
                again: Any = clone(estimator)
                again.set_params(
                    engine=estimator.engine.without(together, own, fold), progress=False
                )
                again._is_copy = True
                fits[-1].append(again.fit(samples, session.graph))
                bar.advance()
    return fits


def _bounds(
    session: Session,
    keys: list[list[FoldKeys]],
    fits: list[list[NystromEstimator]],
    alpha: float,
    options: BoundOptions,
) -> DivergenceBounds:
    fleet = session.fleet
    own = [
        {
            "keys": [repeat[p] for repeat in keys],
            "fits": [
                [(fit.features_, fit.prior_ratio_, fit.coef_[nodes]) for fit in repeat]
                for repeat in fits
            ],
        }
        for p, nodes in enumerate(fleet.nodes)
    ]

    def ask(n_tests: int) -> list[FloatArray]:
        parts = fleet.ask(
            "apply",
            own,
            function=own_bounds,
            alpha=alpha,
            level=options.level,
            simultaneous=options.simultaneous,
            n_tests=n_tests,
        )
        return [fleet.whole(column) for column in zip(*parts, strict=True)]

    lower, estimate, interval, enough = ask(1)
    if options.simultaneous:
        lower, estimate, interval, enough = ask(int(np.isfinite(estimate).sum()))
    blocks = Blocks.elsewhere(session.sizes)
    return DivergenceBounds(
        nodes=session.graph.nodes,
        true_divergence_lower_bound=lower,
        fitted_divergence=estimate,
        fitted_divergence_interval=interval,
        level=options.level,
        simultaneous=options.simultaneous,
        pieces=IndependentPieces(session.sizes, enough.astype(bool), blocks),
        backend=session.backend,
    )


def own_bounds(
    samples: NodeSamples,
    keys: list[FoldKeys],
    fits: list[list[OwnFit]],
    alpha: float,
    level: float,
    simultaneous: bool,
    n_tests: int,
) -> tuple[FloatArray, FloatArray, FloatArray, BoolArray]:
    """Lower bound, estimate, interval, and whether there is an answer, for own nodes."""
    folds = [own.folds(samples) for own in keys]
    tables = [np.stack([fitted_ratios(samples, *fit) for fit in repeat]) for repeat in fits]
    ratios, noise = judged_refits(tables, folds, samples, alpha)
    found = bounds_from(
        samples, alpha, ratios, noise, level, simultaneous=simultaneous, n_tests=n_tests
    )
    return (
        found.true_divergence_lower_bound,
        found.fitted_divergence,
        found.fitted_divergence_interval,
        found.answerable_nodes,
    )


def fitted_ratios(
    samples: NodeSamples, features: NystromMap, prior_ratio: float, theta: FloatArray
) -> FloatArray:
    """Unclipped ratio at every own observation, from coefficients of shape (n_own, m)."""
    values = np.einsum("im,im->i", features(samples.values), theta[samples.node_index])
    return np.asarray(values + prior_ratio)
