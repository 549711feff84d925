"""The part of `GRULSIF`, `GraphRatio` and `Pool` that depends on the loss.

With loss="pearson" the model is the ratio itself, f = prior_ratio + psi' theta. With the others it
is a log-ratio with an intercept b, which is positive by construction:

    "kl"               f = exp(b + psi' theta)
    "jensen-shannon"   f = 1 / (alpha + (1 - alpha) exp(-b - psi' theta)), inside (0, 1 / alpha)
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from graphratio._utils.errors import InputError
from graphratio._utils.parameters import check_choice, check_real
from graphratio._utils.typing import FloatArray
from graphratio.data.graph import Graph
from graphratio.data.samples import NodeSamples
from graphratio.moments.log_ratio import LogRatioObjective, with_intercepts
from graphratio.moments.losses import Loss
from graphratio.moments.memory import FIXED, check_cap
from graphratio.moments.node_moments import Moments, node_moments
from graphratio.moments.node_rows import LOG_RATIO_LOSSES, NodeRows
from graphratio.solvers.bases import basis_of
from graphratio.solvers.learned_edges import adaptive_rounds
from graphratio.solvers.newton import solve_log_ratios
from graphratio.solvers.path import SOLVERS

if TYPE_CHECKING:
    from graphratio.estimators.dictionary_based import NystromEstimator

# Larger log-ratios would overflow.
LARGEST_LOG = 700.0

# With many observations the fit drops directions below this share of the second moment.
LOG_RATIO_FLOOR = 1e-7

# Fits from which edge weights are learned stop at this relative norm of the gradient.
LEARNING_TOLERANCE = 1e-4

_SOLVERS = ("auto", "pcg")


def linked_ratios(loss: Loss, log_ratios: FloatArray, alpha: float) -> FloatArray:
    """Relative ratios from the log-ratios that a model with such a loss estimates."""
    bounded = np.clip(log_ratios, -LARGEST_LOG, LARGEST_LOG)
    if loss.name == "kl":
        return np.asarray(np.exp(bounded))
    return np.asarray(1.0 / (alpha + (1.0 - alpha) * np.exp(-bounded)))


def check_loss(model: NystromEstimator) -> None:
    """Refuse parameters that a log-ratio loss cannot use."""
    name = model._loss.name
    if model.engine is not None:
        raise InputError(
            f"loss={name!r} does not run on an engine", "Leave out engine, or use loss='pearson'"
        )
    if check_choice(model.solver, "solver", SOLVERS) not in _SOLVERS:
        raise InputError(
            f"solver={model.solver!r} solves one linear system, and loss={name!r} needs several",
            "Pass solver='auto'",
        )
    asked = getattr(model, "n_profiles", None)
    if asked is not None and not (np.isscalar(asked) and asked == 0):
        raise InputError(
            f"n_profiles={asked!r} needs loss='pearson': with {name!r} nodes share no profiles",
            "Pass n_profiles=None",
        )
    if check_real(model.prior_ratio, "prior_ratio") not in (0, 1):
        raise InputError(
            f"prior_ratio={model.prior_ratio!r} does nothing with loss={name!r}, which shrinks "
            "ratios towards 1",
            "Leave it out",
        )


def fit_log_ratios(
    model: NystromEstimator, samples: NodeSamples, graph: Graph, cap: int | None
) -> tuple[FloatArray, Moments]:
    """Fit at the chosen hyperparameters; returns features of all rows and plain moments."""
    model._build_features(samples, LOG_RATIO_FLOOR)
    n_rows, m = samples.n_observations, model.n_components_
    needed = 8 * (3 * n_rows * m + 30 * len(model.sizes_) * m + 12 * n_rows)
    needed += 12 * len(model.sizes_) * m**2 + FIXED
    check_cap(needed, cap, f"the fit with loss={model._loss.name!r}")
    psi, rows = _rows_of(model, samples)
    lam, rho = np.array([model.graph_penalty_]), np.array([model.ridge_])
    objective = LogRatioObjective(rows, graph.laplacian, lam, rho)
    coupled = graph.n_edges > 0 and model.graph_penalty_ > 0
    basis = basis_of(graph) if coupled else None
    solution = solve_log_ratios(objective, basis, float(model.tol), model.max_iter)
    whole = with_intercepts(rows, solution.theta[:, np.newaxis], graph, lam)[:, 0]
    model.intercept_ = whole[:, -1].copy()
    model.solution_ = replace(solution, theta=np.ascontiguousarray(whole[:, :-1]))
    return psi, node_moments(psi, model.sizes_, model.alpha_, 1.0)


def learn_graph(model: NystromEstimator, samples: NodeSamples, n_rounds: int) -> Graph:
    """The graph with weights learned in `n_rounds` rounds at the chosen hyperparameters."""
    model._build_features(samples, LOG_RATIO_FLOOR)
    path = adaptive_rounds(
        _rows_of(model, samples)[1],
        model.graph_,
        model.graph_penalty_,
        model.ridge_,
        n_rounds,
        LEARNING_TOLERANCE,
        model.max_iter,
    )
    return path[-1].graph


def _rows_of(model: NystromEstimator, samples: NodeSamples) -> tuple[FloatArray, NodeRows]:
    psi = model._rows(samples)
    loss = LOG_RATIO_LOSSES[model._loss.name]
    return psi, NodeRows.of(psi, model.sizes_, model.alpha_, loss)
