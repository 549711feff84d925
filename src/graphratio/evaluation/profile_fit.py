"""The model of `GraphRatio` in comparisons: all graphs share the profiles, and join coordinates.

Every training part learns profiles of change from its first moments, without any graph. So all
candidates, and the fit without a graph, share profiles, and the graph only decides how coordinates
of neighbours are joined. The coordinates solve one quadratic problem for all penalties at once.

Symbols
-------
B           profiles, orthonormal over the data, shape (m, r)
s           typical size of the coordinates along each profile, after subtraction of noise
C           coordinates in units of s: the ratio of node v is prior + sum_k C_vk s_k g_k
c_0         coordinates that all nodes have in common
lam, rho    graph penalty and ridge of C
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy import linalg

from graphratio._utils.threads import computed_once
from graphratio._utils.typing import FloatArray, IntArray
from graphratio.data.graph import Graph
from graphratio.moments.node_moments import Moments
from graphratio.moments.second_moments import DenseSecond
from graphratio.selection.cross_validation import Coupling, SharedFit
from graphratio.solvers.alternating import START_RIDGE

# Most profiles of a fit; weak ones are shrunk.
COMPARED_PROFILES = 8
# Smallest s, relative to the largest.
SMALLEST_SIZE = 0.1
# The ridge of what all nodes have in common, in units of the metric.
COMMON_RIDGE = 1e-3
# Candidates in natural units: ridges relative to the noise of a first moment, and the weight of all
# neighbours of a node together relative to its ridge.
COUPLED_RIDGES = (0.03, 0.1, 0.4, 1.6)
LONE_RIDGES = (0.01, 0.017, 0.03, 0.055, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 10.0, 30.0)
NEIGHBOUR_WEIGHTS = (1.0, 4.0, 16.0, 64.0, 256.0)
# The widest bandwidth, relative to the largest of the usual grid: profiles are smooth.
BEYOND_GRID = 3.0


@dataclass(frozen=True, eq=False)
class Reduced:
    """Moments in r directions, and the directions B s, shape (m, r)."""

    moments: Moments
    directions: FloatArray

    @classmethod
    def of(cls, moments: Moments, most: int = COMPARED_PROFILES) -> Reduced:
        """Project on the directions in which the first moments of the nodes differ most."""
        used = moments.complete
        share = max(float(used.mean()), 1 / len(used))
        metric = moments.second.mean().astype(np.float64) / share
        values, vectors = np.linalg.eigh(metric)
        whitening = vectors / np.sqrt(np.maximum(values, 0.0) + START_RIDGE)
        white = moments.first[used].astype(np.float64) @ whitening
        if not white.any():
            white = np.ones((1, len(metric)))
        _, sizes, right = linalg.svd(white, full_matrices=False)
        squares = sizes**2 / len(white)
        # Directions behind the leading ones show how much of the squares is noise.
        noise = float(np.median(squares[most:])) if len(squares) > most else 0.0
        squares = np.maximum(squares[:most] - noise, SMALLEST_SIZE**2 * squares[0])
        dtype = moments.second.dtype
        directions = (whitening @ right[:most].T * np.sqrt(squares)).astype(dtype)
        return cls(_projected(moments, directions), directions)


def _projected(moments: Moments, directions: FloatArray) -> Moments:
    """Moments of the features times the directions, as blocks."""
    r = directions.shape[1]
    tiled = np.broadcast_to(directions.T, (len(moments.first), r, directions.shape[0]))
    blocks = moments.second.apply(np.ascontiguousarray(tiled)) @ directions
    first = (moments.first @ directions).astype(directions.dtype)
    return replace(moments, second=DenseSecond(blocks), first=first)


@dataclass(frozen=True, eq=False)
class ProfileFit:
    """Couple coordinates over a graph; without edges every node has its own.

    Coordinates shrink towards what all nodes have in common, which is also the prediction for
    nodes without data and neighbours.
    """

    graph: Graph

    @computed_once
    def _coupling(self) -> Coupling:
        return Coupling(self.graph)

    def solve(self, moments: Moments, lam: FloatArray, rho: FloatArray) -> FloatArray:
        """Coefficients of all pairs of penalties, shape (n_nodes, C, m)."""
        reduced = Reduced.of(moments)
        own, common = _centred(reduced.moments)
        coordinates = self._coupling.solve(own, lam, rho) + common
        return np.asarray(coordinates @ reduced.directions.T)


def own_deviations(moments: Moments, sizes: IntArray) -> FloatArray:
    """Coordinates of every node by itself minus those all nodes have in common, (n_nodes, r).

    `sizes` has shape (n_nodes, 2).
    """
    reduced = Reduced.of(moments)
    own, _ = _centred(reduced.moments)
    ridge = np.array([_noise(sizes)])
    alone = Coupling(Graph.empty(len(sizes))).solve(own, np.zeros(1), ridge)
    return alone[:, 0].astype(np.float64)


def _centred(moments: Moments) -> tuple[Moments, FloatArray]:
    """Moments of what differs from all nodes, and the coordinates c_0, (n_nodes, 1, r)."""
    common = SharedFit().solve(moments, np.zeros(1), np.array([COMMON_RIDGE]))
    return replace(moments, first=moments.first - moments.second.apply(common)[:, 0]), common


def _noise(sizes: IntArray) -> float:
    """Typical variance of a first moment, relative to that of a feature."""
    complete = sizes[(sizes > 0).all(axis=1)]
    return float((1 / complete).sum(axis=1).mean()) if len(complete) else 1.0


def profile_pairs(sizes: IntArray, mean_degree: float) -> tuple[FloatArray, FloatArray]:
    """Pairs of graph penalty and ridge, (n_pairs,) each; the first have no coupling.

    `sizes` has shape (n_nodes, 2). A `mean_degree` of 0 means no edges. The pairs without coupling
    are the same for all graphs, so that every graph can choose what the fit without one chooses.
    """
    noise = _noise(sizes)
    alone = np.array(LONE_RIDGES) * noise
    if not mean_degree:
        return np.zeros(alone.size), alone
    joined, ridges = np.meshgrid(NEIGHBOUR_WEIGHTS, np.array(COUPLED_RIDGES) * noise, indexing="ij")
    lam = np.concatenate([np.zeros(alone.size), (joined * ridges).ravel() / mean_degree])
    return lam, np.concatenate([alone, ridges.ravel()])


def wide_bandwidths(usual: FloatArray) -> FloatArray:
    """The middle and the largest of the usual bandwidths, and a wider one."""
    return np.unique([usual[len(usual) // 2], usual[-1], BEYOND_GRID * usual[-1]])
