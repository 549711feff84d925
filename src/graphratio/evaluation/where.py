"""Where the edges of a graph join nodes that change alike, region by region.

Every node is fitted by itself, and its deviation from what all nodes have in common is compared
with the mean deviation of its neighbours. If nodes are observed independently of each other, both
come from different data, so that they agree on average only if neighbours change alike. A single
node says little; a region says more.

Symbols
-------
c_v         deviation of node v: coordinates along the leading profiles, shape (r,)
a_v         agreement, c_v' (mean of c_u over its neighbours u) / mean |c|^2
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy import sparse, stats

from graphratio._utils.typing import BoolArray, FloatArray, IntArray
from graphratio.data.graph import Graph
from graphratio.evaluation.regions import shown_regions

# In a region that is "not alike", neighbours have less than this share of their changes in common.
LITTLE_IN_COMMON = 0.25
# Permutations of the nodes.
SHUFFLES = 999

# Whether neighbours in a region change alike; "not alike" if they are clearly further apart.
Alike = Literal["alike", "not alike", "unclear", "not assessed"]


@dataclass(frozen=True, eq=False)
class Agreement:
    """Agreement of neighbours in a graph.

    Attributes
    ----------
    at_nodes : ndarray of shape (n_nodes,)
        About 1 if neighbours change as the node does, 0 if they have nothing in common, NaN at
        nodes without neighbours or data. Noise of the estimates lowers it.
    region : ndarray of int, shape (n_nodes,)
        Region of every node.
    mean, p_value : ndarray of shape (n_regions,)
        Mean of each region, and its p-value: how often as much agreement arises if the nodes are
        permuted. NaN and 1 in regions without known nodes.
    effect : list of str, one per region
        "alike", "not alike" (neighbours are clearly further apart than in the other regions),
        "unclear" or "not assessed". Benjamini-Hochberg corrects for the number of regions.

    Examples
    --------
    >>> import graphratio as gr
    >>> scenario = gr.datasets.make_scenario("Ia", n_nodes=40, n=60, random_state=0)
    >>> found = gr.compare_graphs(scenario.samples, scenario.graph, worth=False, random_state=0)
    >>> own = found.agreement["graph"]
    >>> own.at_nodes.shape, len(own.effect) == len(own.mean)
    ((40,), True)
    """

    at_nodes: FloatArray
    region: IntArray
    mean: FloatArray
    p_value: FloatArray
    effect: list[Alike]

    @classmethod
    def of(
        cls,
        graph: Graph,
        deviations: FloatArray,
        known: BoolArray,
        level: float,
        rng: np.random.Generator,
    ) -> Agreement:
        """Compare deviations (n_nodes, r) of neighbours; only known nodes count."""
        region = shown_regions(graph)
        weights = sparse.csr_array(graph.adjacency * known[np.newaxis])
        total = np.asarray(weights.sum(axis=1))
        judged = known & (total > 0)
        average = sparse.diags_array(np.where(total > 0, 1 / np.where(total > 0, total, 1), 0.0))
        neighbours = sparse.csr_array(average @ weights)
        unit = max(float(np.square(deviations[known]).sum(axis=1).mean()), 1e-300)

        def agreement(points: FloatArray) -> FloatArray:
            return np.asarray((points * (neighbours @ points)).sum(axis=1) / unit)

        own = np.where(judged, agreement(deviations), np.nan)
        count = np.bincount(region[judged], minlength=region.max() + 1)

        def means(values: FloatArray) -> FloatArray:
            sums = np.bincount(region[judged], values[judged], len(count))
            return np.asarray(sums / np.maximum(count, 1))

        mean, places = means(own), np.flatnonzero(known)
        reached = np.ones(len(count))
        for _ in range(SHUFFLES):
            shuffled = deviations.copy()
            shuffled[places] = deviations[rng.permutation(places)]
            reached += means(agreement(shuffled)) >= mean
        p_value = np.where(count > 0, reached / (SHUFFLES + 1), 1.0)
        around = neighbours @ deviations
        apart = np.where(judged, np.square(deviations - around).sum(axis=1), np.nan)
        size = np.where(judged, (np.square(deviations) + np.square(around)).sum(axis=1), np.nan)
        # What neighbours have in common, between 0 (nothing) and 1 (they are equal).
        common = 1 - means(apart) / np.maximum(means(size), 1e-300)
        effect = _effects(apart, region, count, p_value, common < LITTLE_IN_COMMON, level)
        return cls(own, region, np.where(count > 0, mean, np.nan), p_value, effect)

    def effect_at_nodes(self) -> list[Alike]:
        """Effect of the region of every node; "not assessed" at nodes without neighbours."""
        known = np.isfinite(self.at_nodes)
        found = np.where(known, np.array(self.effect)[self.region], "not assessed")
        return found.tolist()  # type: ignore[no-any-return]


def _effects(
    apart: FloatArray,
    region: IntArray,
    count: IntArray,
    p_value: FloatArray,
    little: BoolArray,
    level: float,
) -> list[Alike]:
    """Regions with agreement, and those whose neighbours are clearly further apart than others.

    A region that changed little has little to agree on, but its neighbours are not far apart. So
    squared distances between neighbours are compared, and `little` in common is needed too.
    """
    used = np.flatnonzero(count > 1)
    effect: list[Alike] = ["unclear" if number > 1 else "not assessed" for number in count]
    if not len(used):
        return effect
    alike = stats.false_discovery_control(p_value[used]) <= level
    finite = np.isfinite(apart)
    less = np.array(
        [
            _further(apart[finite & (region == r)], apart[finite & (region != r)])
            for r in used.tolist()
        ]
    )
    less[~little[used]] = 1.0
    fewer = stats.false_discovery_control(less) <= level
    for r, is_alike, is_less in zip(used.tolist(), alike, fewer, strict=True):
        if is_alike:
            effect[r] = "alike"
        elif is_less:
            effect[r] = "not alike"
    return effect


def _further(inside: FloatArray, outside: FloatArray) -> float:
    """One-sided p-value that distances inside are larger than outside, by their ranks."""
    if not len(outside):
        return 1.0
    return float(stats.mannwhitneyu(inside, outside, alternative="greater").pvalue)
