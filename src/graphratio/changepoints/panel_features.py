"""The features that are compared before and after: functions of a node's observations, in groups.

Symbols
-------
z           normal scores of the observations, shape (n_times, n_nodes, n_measured)
psi         principal directions of the kernel space, shape (n_points, m)
w           their variances

Every observation becomes the normal score of its rank at its node, so outliers, units and skewness
do not matter. The groups are: the scores ("mean"), their squares ("spread"), products of two
measured features ("correlation"), and principal directions of the kernel space ("shape"), which see
every change. All are bounded.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import ndtri
from scipy.stats import rankdata

from graphratio._utils.errors import InputError
from graphratio._utils.parameters import check_flag, check_real
from graphratio._utils.typing import FloatArray
from graphratio.data.samples import NodeSamples
from graphratio.estimators.base import NodeRatioEstimator
from graphratio.features.dictionary import DictionaryRecipe
from graphratio.features.kernels import Kernel, get_kernel, median_bandwidths
from graphratio.features.nystrom import NystromMap

# Ridge as a share of the total variance of the features. Directions with less than a fifth of it
# hardly matter and are left out.
RIDGE_SHARE = 0.05

PANEL_ATOMS = 60

# Squares and products count up to this much: beyond, single observations would decide.
_LARGEST_SQUARE = 5.0

# At most this many observations fix the kernel; at most this many pairs of features are compared.
_LOOK_ROWS = 2_000
_MOST_PAIRS = 15

_CHUNK_ROWS = 50_000


@dataclass(frozen=True, eq=False)
class ScoreMap:
    """Normal scores of observations by their rank among a reference, node by node.

    `ordered` is the sorted reference, shape (n, n_nodes, n_measured), infinite beyond `counts`. If
    there are no ranks, scores are (x - shift) / scale.
    """

    ordered: FloatArray | None
    counts: FloatArray
    shift: FloatArray
    scale: FloatArray

    @classmethod
    def of(cls, values: FloatArray, *, standardize: bool) -> tuple[ScoreMap, FloatArray]:
        """The map, and the scores of the reference itself; NaN where a value is missing."""
        counts = np.isfinite(values).sum(axis=0)
        if not check_flag(standardize, "standardize"):
            shift, spread = np.nanmean(values, axis=(0, 1)), np.nanstd(values, axis=(0, 1))
            one = cls(None, counts, shift, np.where(spread > 0, spread, 1.0))
            return one, one(values)
        filled = np.where(np.isfinite(values), values, np.inf)
        one = cls(np.sort(filled, axis=0), counts, np.zeros(1), np.ones(1))
        scores = ndtri((rankdata(filled, axis=0) - 0.5) / np.maximum(counts, 1))
        return one, np.where(np.isfinite(values), scores, np.nan)

    def __call__(self, values: FloatArray) -> FloatArray:
        """Scores of other observations, shape (n_times, n_nodes, n_measured)."""
        if self.ordered is None:
            return (values - self.shift) / self.scale
        counts = np.maximum(self.counts, 1)
        scores = np.empty_like(values)
        for step, row in enumerate(values):
            below = (self.ordered < row).sum(axis=0) + (self.ordered <= row).sum(axis=0)
            share = np.clip(below / (2 * counts), 0.5 / counts, 1 - 0.5 / counts)
            scores[step] = np.where(np.isfinite(row), ndtri(share), np.nan)
        return scores


@dataclass(frozen=True, eq=False)
class PanelFeatures:
    """The kernel of a panel, fixed once, and all features of scores.

    `weights`, shape (n_groups, n_features), says how the squares of features add up in a group.
    `damping`, shape (m,), is w / (w + ridge) of the kernel features, and `variance` their total
    variance.
    """

    kernel_map: NystromMap
    centre: FloatArray
    dictionary: FloatArray
    ridge: float
    groups: tuple[str, ...]
    weights: FloatArray
    damping: FloatArray
    variance: float
    n_measured: int

    def __call__(self, z: FloatArray) -> FloatArray:
        """Features of scores, shape (n_times, n_features, n_nodes); missing ones are NaN."""
        n_times, n_nodes, d = z.shape
        result = np.empty((n_times, self.weights.shape[1], n_nodes), dtype=np.float32)
        chunk = max(1, _CHUNK_ROWS // n_nodes)
        for begin in range(0, n_times, chunk):
            part = z[begin : begin + chunk]
            rows = part.reshape(-1, d)
            lacking = ~np.isfinite(rows).all(axis=1)
            columns = [part[:, :, j] for j in range(d)]
            columns += [np.minimum(part[:, :, j] ** 2, _LARGEST_SQUARE) for j in range(d)]
            columns += [
                np.clip(part[:, :, i] * part[:, :, j], -_LARGEST_SQUARE, _LARGEST_SQUARE)
                for i, j in measured_pairs(d)
            ]
            psi = self.kernel_map(np.nan_to_num(rows)) - self.centre
            psi[lacking] = np.nan
            columns += list(np.moveaxis(psi.reshape(*part.shape[:2], -1), 2, 0))
            result[begin : begin + chunk] = np.stack(columns, axis=1)
        return result


def measured_pairs(n_measured: int) -> list[tuple[int, int]]:
    """Pairs of measured features whose correlation is compared; none if there are too many."""
    pairs = [(i, j) for j in range(n_measured) for i in range(j)]
    return pairs if len(pairs) <= _MOST_PAIRS else []


def look(
    z: FloatArray,
    estimator: NodeRatioEstimator | None,
    *,
    max_directions: int,
    random_state: np.random.Generator,
) -> PanelFeatures:
    """Fix the kernel from scores, in an order that ignores time."""
    given: dict[str, Any] = {} if estimator is None else estimator.get_params(deep=False)
    kernel = get_kernel(given.get("kernel", "gaussian"))
    d = z.shape[2]
    rows = z.reshape(-1, d)
    rows = rows[np.isfinite(rows).all(axis=1)]
    if not len(rows) or np.ptp(rows, axis=0).max() == 0:
        raise InputError("all observations of the panel are equal", "Pass a panel that varies")
    rows = rows[random_state.permutation(len(rows))[:_LOOK_ROWS]]
    samples = NodeSamples.from_arrays(rows[0::2][np.newaxis], rows[1::2][np.newaxis])
    sigma = median_bandwidths(samples, kernel)
    bandwidth = _fixed(given, "bandwidth") or float(np.median(sigma))
    shared = "dictionary" in given
    recipe = DictionaryRecipe.of(estimator) if shared else DictionaryRecipe()
    if isinstance(recipe.strategy, str) and recipe.strategy == "coherence":
        # The paper's filter is for samples of many nodes; of one it keeps two or three atoms.
        recipe = replace(recipe, strategy="uniform")
    elif isinstance(recipe.strategy, str) and recipe.strategy == "quasi-random":
        raise InputError(
            'a detector fits to scores without units, for which dictionary="quasi-random" has no '
            "bounds",
            'Use dictionary="centres"',
        )
    recipe = replace(recipe, max_atoms=recipe.max_atoms or PANEL_ATOMS)
    dictionary = recipe.build(samples, kernel, sigma, random_state)
    # Centres of every node by itself have a ridge of another kind.
    ridge = _fixed(given, "ridge") if shared else None
    features, centre, w, total = _principal(kernel, dictionary, bandwidth, rows, max_directions)
    ridge = RIDGE_SHARE * total if ridge is None else ridge
    sizes = {"mean": d, "spread": d, "correlation": len(measured_pairs(d)), "shape": len(w)}
    sizes = {name: size for name, size in sizes.items() if size}
    weights = np.zeros((len(sizes), sum(sizes.values())))
    begin = 0
    for row, (name, size) in zip(weights, sizes.items(), strict=True):
        damped = w / (w + ridge) if name == "shape" else np.ones(size)
        row[begin : begin + size] = damped / damped[0]
        begin += size
    return PanelFeatures(
        kernel_map=features,
        centre=centre,
        dictionary=dictionary,
        ridge=ridge,
        groups=tuple(sizes),
        weights=weights,
        damping=w / (w + ridge),
        variance=total,
        n_measured=d,
    )


def given_smoothing(
    estimator: NodeRatioEstimator | None, features: PanelFeatures
) -> tuple[float, ...] | None:
    """Strengths of smoothing that an estimator fixes: () without coupling, None if left open.

    In the mean field a graph penalty acts relative to the variance of the features, unless it
    measures differences over the data.
    """
    if estimator is None:
        return None
    penalty = _fixed(estimator.get_params(deep=False), "graph_penalty")
    if not estimator._couples or penalty == 0:
        return ()
    if penalty is None:
        return None
    return (penalty if estimator._over_data else penalty / features.variance,)


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
    kept = min(max_directions, max(1, int(np.count_nonzero(w >= RIDGE_SHARE / 5 * total))))
    transform = np.ascontiguousarray(whole.transform @ vectors[:, :kept])
    rotated = NystromMap(kernel, bandwidth, whole.pivots, transform)
    return rotated, psi.mean(axis=0) @ vectors[:, :kept], w[:kept], total
