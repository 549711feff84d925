"""Scales, dictionary, features and penalties of a panel, fixed before any comparison.

Symbols
-------
psi         features of the observations, shape (m, n_times, n_nodes)
w           eigenvalues of the pooled covariance of the features, largest first, shape (m,)
lam, rho    graph penalty and ridge, as in `moments.objective`

All of it comes from the first two windows, without the order of time. The features are principal
directions of the kernel space, so the pooled second moment (the mean field) is diagonal. Windows
of equal length mean alpha = 1/2: the right-hand side of GRULSIF, shrunk towards 1, is half the
difference of the mean features. A ratio has mean one, so the second moment is centred.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from graphratio._utils.errors import InputError
from graphratio._utils.parameters import check_flag, check_real
from graphratio._utils.typing import FloatArray
from graphratio.data.graph import Graph
from graphratio.data.samples import NodeSamples
from graphratio.estimators.base import NodeRatioEstimator
from graphratio.features.dictionary import DictionaryRecipe
from graphratio.features.kernels import Kernel, get_kernel, median_bandwidths
from graphratio.features.nystrom import NystromMap

# Ridge, and pull along the edges of a node of mean degree, as shares of the total variance of the
# features. Directions with less variance than the ridge hardly matter and are left out.
RIDGE_SHARE = 0.01
COUPLING_SHARE = 0.1

PANEL_ATOMS = 60


@dataclass(frozen=True, eq=False)
class PanelFeatures:
    """Features of a panel in m principal directions, with their penalties, as in GRULSIF.

    Observations are first shifted and scaled, shape (n_nodes, n_features), and features lose their
    mean in the first two windows, `centre`. `coupling`, shape (m,), is the factor of the Laplacian:
    the graph penalty, times w if the estimator measures differences over the data.
    """

    shift: FloatArray
    scale: FloatArray
    features: NystromMap
    centre: FloatArray
    second: FloatArray
    dictionary: FloatArray
    graph_penalty: float
    ridge: float
    coupling: FloatArray

    def __call__(self, values: FloatArray) -> FloatArray:
        """Features of observations (n_times, n_nodes, n_features), shape (m, n_times, n_nodes)."""
        n_times, n_nodes, n_features = values.shape
        scaled = (values - self.shift) / self.scale
        psi = self.features(scaled.reshape(-1, n_features)) - self.centre
        return np.ascontiguousarray(psi.reshape(n_times, n_nodes, -1).transpose(2, 0, 1))


def look(
    values: FloatArray,
    graph: Graph,
    estimator: NodeRatioEstimator | None,
    *,
    standardize: bool,
    max_directions: int,
    random_state: np.random.Generator,
) -> PanelFeatures:
    """Fix the features from the first observations, shape (n_times, n_nodes, n_features)."""
    given: dict[str, Any] = {} if estimator is None else estimator.get_params(deep=False)
    kernel = get_kernel(given.get("kernel", "gaussian"))
    shift, scale = _node_scales(values, standardize=standardize)
    scaled = (values - shift) / scale
    # Alternating, so that neither half is earlier; the steps below pool the two.
    samples = NodeSamples.from_arrays(
        np.swapaxes(scaled[0::2], 0, 1), np.swapaxes(scaled[1::2], 0, 1)
    )
    sigma = median_bandwidths(samples, kernel)
    bandwidth = _fixed(given, "bandwidth") or float(np.median(sigma))
    shared = "dictionary" in given
    recipe = DictionaryRecipe.of(estimator) if shared else DictionaryRecipe()
    recipe = replace(recipe, max_atoms=recipe.max_atoms or PANEL_ATOMS)
    dictionary = recipe.build(samples, kernel, sigma, random_state)
    lam = _fixed(given, "graph_penalty")
    # Centres of every node by itself have a ridge of another kind.
    rho = _fixed(given, "ridge") if shared else None
    if not graph.n_edges or (estimator is not None and not estimator._couples):
        lam = 0.0
    features, centre, second, total = _principal(
        kernel, dictionary, bandwidth, samples.values, max_directions
    )
    over_data = estimator is not None and estimator._over_data and lam is not None
    lam = COUPLING_SHARE * total / graph.mean_degree if lam is None else lam
    rho = RIDGE_SHARE * total if rho is None else rho
    return PanelFeatures(
        shift=shift,
        scale=scale,
        features=features,
        centre=centre,
        second=second,
        dictionary=dictionary,
        graph_penalty=lam,
        ridge=rho,
        coupling=lam * (second if over_data else np.ones_like(second)),
    )


def _node_scales(values: FloatArray, *, standardize: bool) -> tuple[FloatArray, FloatArray]:
    """Mean and spread of every feature at every node; constant ones get the spread of others."""
    if not check_flag(standardize, "standardize"):
        return np.zeros(values.shape[1:]), np.ones(values.shape[1:])
    shift, spread = values.mean(axis=0), values.std(axis=0)
    constant = spread <= 1e-12 * np.abs(values).max(axis=0)
    elsewhere = [column[~fixed] for column, fixed in zip(spread.T, constant.T, strict=True)]
    usual = np.array([np.median(column) if column.size else 1.0 for column in elsewhere])
    return shift, np.where(constant, usual, spread)


def _fixed(given: dict[str, Any], name: str) -> float | None:
    """A number that the estimator fixes, or None; only a graph penalty may be 0."""
    value = given.get(name)
    if value is None:
        return None
    if np.ndim(value):
        raise InputError(
            f"the estimator has several candidates for {name}: {value!r}",
            "Pass one number, or None for the rule of the detector",
        )
    return check_real(value, name, low=0, include_low=name == "graph_penalty")


def _principal(
    kernel: Kernel,
    dictionary: FloatArray,
    bandwidth: float,
    points: FloatArray,
    max_directions: int,
) -> tuple[NystromMap, FloatArray, FloatArray, float]:
    """Features in principal directions, their mean, the eigenvalues, and the total variance."""
    whole = NystromMap.build(kernel, dictionary, bandwidth)
    psi = whole(points)
    w, vectors = np.linalg.eigh(np.cov(psi, rowvar=False, bias=True).reshape(psi.shape[1], -1))
    w, vectors = np.maximum(w[::-1], 0.0), vectors[:, ::-1]
    total = float(w.sum())
    if not total > 0:
        raise InputError(
            "all observations in the first two windows are equal", "Pass a panel that varies"
        )
    kept = min(max_directions, max(1, int(np.count_nonzero(w >= RIDGE_SHARE * total))))
    transform = np.ascontiguousarray(whole.transform @ vectors[:, :kept])
    rotated = NystromMap(kernel, bandwidth, whole.pivots, transform)
    return rotated, psi.mean(axis=0) @ vectors[:, :kept], w[:kept], total
