"""Series and panels for the study of change-points, with and without a change."""

from __future__ import annotations

from functools import cache

import numpy as np
from scipy.signal import lfilter

import graphratio as gr
from graphratio._utils.typing import FloatArray, IntArray
from graphratio.datasets.random_graphs import clustered

BURN_IN = 200

# What a single series of 400 steps goes through, and when.
SINGLE = {"mean +1": [200], "mean +0.6": [200], "spread x 2": [200], "up and down": [150, 250]}
SINGLE_STEPS = 400

# Panels of 100 nodes on a grid and 600 steps; 16 nodes change at step 300.
PANEL_CHANGE = 300


@cache
def grid(side: int) -> gr.Graph:
    """A square grid; a path of three nodes, or a single one, for small sides."""
    if side == 1:
        return gr.Graph.empty(1)
    edges = [(i * side + j, (i + 1) * side + j) for i in range(side - 1) for j in range(side)]
    edges += [(i * side + j, i * side + j + 1) for i in range(side) for j in range(side - 1)]
    return gr.Graph.from_edges(edges, nodes=list(range(side * side)))


@cache
def graph_of(n_nodes: int) -> gr.Graph:
    """The graph of a quiet panel: a path of three nodes, or a grid."""
    if n_nodes == 3:
        return gr.Graph.from_edges([(0, 1), (1, 2)])
    return grid(round(n_nodes**0.5))


def single_series(case: str, seed: int) -> FloatArray:
    """A series of shape (400, 1)."""
    x = np.random.default_rng(seed).normal(size=(SINGLE_STEPS, 1))
    if case == "mean +1":
        x[200:] += 1
    elif case == "mean +0.6":
        x[200:] += 0.6
    elif case == "spread x 2":
        x[200:] *= 2
    elif case == "up and down":
        x[150:250] += 1
    return x


def found_exactly(case: str, found: list[int], near: int = 15) -> bool:
    """As many changes as there are, each near a true one."""
    true = SINGLE.get(case, [])
    pairs = zip(sorted(found), true, strict=False)
    return len(found) == len(true) and all(abs(a - b) <= near for a, b in pairs)


def quiet_panel(kind: str, n_times: int, n_nodes: int, seed: int) -> FloatArray:
    """A panel without change: independent, heavy tails, autocorrelated, restless and others."""
    rng = np.random.default_rng((seed, n_times, n_nodes))
    shape = (n_times + BURN_IN, n_nodes)
    x = rng.normal(size=shape)
    if kind == "t with 3 degrees":
        x = rng.standard_t(3, size=shape)
    elif kind.startswith("AR"):
        x = lfilter([1], [1, -float(kind.split()[1])], x, axis=0)
    elif kind == "GARCH":
        variance = np.ones(n_nodes)
        for t in range(len(x)):
            x[t] *= np.sqrt(variance)
            variance = 0.05 + 0.1 * x[t] ** 2 + 0.85 * variance
    elif kind == "correlation 0.3":
        x = np.sqrt(0.7) * x + np.sqrt(0.3) * rng.normal(size=(len(x), 1))
    elif kind == "unequal nodes":
        x[:, 0::3] = lfilter([1], [1, -0.6], x[:, 0::3], axis=0)
        x[:, 1::3] = 5 * rng.standard_t(3, size=x[:, 1::3].shape)
    return np.asarray(x[BURN_IN:])


def grid_panel(case: str, seed: int) -> tuple[FloatArray, gr.Graph, IntArray]:
    """A panel of 600 steps on a 10 x 10 grid, and the nodes that change at step 300."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(600, 100))
    corner = np.array([10 * i + j for i in range(4) for j in range(4)])
    nodes = rng.permutation(100)[:16] if "scattered" in case else corner
    if "common factor" in case:
        x = np.sqrt(0.7) * x + np.sqrt(0.3) * rng.normal(size=(600, 1))
    after = x[PANEL_CHANGE:, nodes]
    moved = after * 1.4 if "spread" in case else after + float(case.split()[1].rstrip(","))
    x[PANEL_CHANGE:, nodes] = moved
    if "missing" in case:
        x[rng.uniform(size=x.shape) < 0.05] = np.nan
    return x, grid(10), nodes


def clustered_panel(case: str, seed: int) -> tuple[FloatArray, gr.Graph, IntArray]:
    """A panel of 1,000 steps, 100 nodes in four clusters; one changes at step 600."""
    rng = np.random.default_rng(seed)
    adjacency, groups = clustered(100, rng)
    changed = np.flatnonzero(groups == "C2")
    n_features = 2 if case in ("spread x 1.5", "correlation 0.7") else 1
    shape = (1000 + BURN_IN, 100, n_features)
    noise = rng.normal(size=shape)
    if "common factor" in case:
        common = rng.normal(size=(shape[0], 1, n_features))
        noise = np.sqrt(0.7) * noise + np.sqrt(0.3) * common
    if "AR" in case:
        noise = lfilter([np.sqrt(0.75)], [1, -0.5], noise, axis=0)
    panel = noise[BURN_IN:]
    after = panel[600:, changed]
    if case == "spread x 1.5":
        after = after * 1.5
    elif case == "correlation 0.7":
        mixed = 0.7 * after[:, :, 0] + np.sqrt(1 - 0.7**2) * after[:, :, 1]
        after = np.stack([after[:, :, 0], mixed], axis=2)
    else:
        after = after + 1.0
    panel[600:, changed] = after
    return panel, gr.Graph.from_adjacency(adjacency), changed
