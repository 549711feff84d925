"""Permutation tests that look at each node by itself, for comparison."""

from __future__ import annotations

import numpy as np
from scipy.spatial.distance import cdist

import graphratio as gr
from graphratio.features.kernels import get_kernel, median_bandwidths
from graphratio.testing.permutations import random_labels

# Ridges of the ratio. A test would have to settle on one without looking; all are shown, so
# that the best of them can be compared with.
RIDGES = (0.1, 0.01, 0.001)


def per_node_p_values(
    samples: gr.NodeSamples, n_permutations: int, rng: np.random.Generator
) -> dict[str, np.ndarray]:
    """P-values of every node by RULSIF, MMD, energy distance and Kolmogorov-Smirnov (if d = 1).

    All nodes have samples of the same sizes. RULSIF is the divergence of the relative ratio of
    the target to the pooled sample with a centre at every observation, MMD the distance of the
    mean embeddings, both with the median distance of the node's pooled sample as bandwidth.
    """
    kernel = get_kernel("gaussian")
    n, m = int(samples.n_reference[0]), int(samples.n_target[0])
    labels = np.vstack(
        [np.repeat([False, True], [n, m]), random_labels(n_permutations, n + m, m, rng)]
    ).astype(float)
    # Weights of the mean of the target minus that of the pooled sample.
    weights = labels / m - 1 / (n + m)
    found: dict[str, list[float]] = {f"RULSIF {ridge:g}": [] for ridge in RIDGES}
    found |= {"MMD": [], "energy": []}
    if samples.n_features == 1:
        found["KS"] = []
    for node in samples.nodes:
        x = np.vstack([samples.reference(node), samples.target(node)])
        alone = gr.NodeSamples.from_arrays([x], [x[:0]])
        gram = kernel(x, x, float(median_bandwidths(alone, kernel)[0]))
        for ridge in RIDGES:
            form = _ratio_form(gram, ridge)
            found[f"RULSIF {ridge:g}"].append(_p_value(_quadratic(weights, form)))
        found["MMD"].append(_p_value(_quadratic(weights, gram)))
        centre = np.eye(n + m) - 1 / (n + m)
        found["energy"].append(_p_value(_quadratic(weights, -centre @ cdist(x, x) @ centre)))
        if "KS" in found:
            along = np.cumsum(weights[:, np.argsort(x[:, 0], kind="stable")], axis=1)
            found["KS"].append(_p_value(np.abs(along).max(axis=1)))
    return {name: np.array(values) for name, values in found.items()}


def _ratio_form(gram: np.ndarray, ridge: float) -> np.ndarray:
    """The divergence as a quadratic form in the weights: b' (G - G A G / 2) b in features."""
    values, vectors = np.linalg.eigh(gram)
    features = vectors * np.sqrt(np.maximum(values, 0))
    second = features.T @ features / len(gram)
    inverse = np.linalg.inv(second + ridge * np.eye(len(gram)))
    inner = inverse - 0.5 * inverse @ second @ inverse
    return np.asarray(features @ inner @ features.T)


def _quadratic(weights: np.ndarray, form: np.ndarray) -> np.ndarray:
    # Directions far below the largest do not matter, and most are.
    values, vectors = np.linalg.eigh(form)
    kept = values > 1e-6 * values[-1]
    projected = weights @ (vectors[:, kept] * np.sqrt(values[kept]))
    return np.asarray(np.einsum("bi,bi->b", projected, projected))


def _p_value(statistic: np.ndarray) -> float:
    return float(np.mean(statistic >= statistic[0] * (1 - 1e-9)))
