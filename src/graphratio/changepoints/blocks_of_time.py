"""How many steps of a panel must stay together: the dependence, apart from changes.

A change looks like dependence: observations before it are alike, and so are those after it. So the
panel is cut where it differs most, and the dependence is measured again within the pieces. Cuts
remove true dependence too, so they count only if they shorten the blocks to a quarter. Few nodes
show less of the remaining dependence, so they allow fewer cuts: three, or one in 100 steps. Calm
and restless times of few nodes are hard to tell from changes of the spread. Where squares depend on
each other and values do not, many nodes allow three cuts. Few nodes then allow one cut, and only if
a third of the panel is one block without it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np

from graphratio._utils.typing import FloatArray, IntArray
from graphratio.changepoints.intervals import MARGIN
from graphratio.data.dependence import LOST, Dependence, measure
from graphratio.data.series import Series

# Fewest blocks that a search needs. With eight blocks a change in the middle is the largest of 35
# equally likely ways to divide them; with seven no p-value falls below 5 %.
FEWEST_TIME_BLOCKS = 8

# Most cuts; few nodes allow one in _STEPS_PER_CUT steps, restless nodes _RESTLESS_CUTS.
_MOST_CUTS = 8
_STEPS_PER_CUT = 100
_RESTLESS_CUTS = 3

# Cuts count only if they shorten the blocks to this share.
_CLEARLY_SHORTER = 0.25

# Below this autocorrelation time, in steps, values hardly depend on each other.
_CALM = 4.0

# Fewer nodes do not show after a cut whether calm and restless times go on.
_FEW_NODES = 8

# Fewest steps per block of few nodes that are restless, or whose spread changed.
_RESTLESS_BLOCK = 30

# Probability of seeing dependence that is not there. It costs power; overlooked dependence costs
# false alarms.
CAUTION = 0.3

# The dependence is measured at no more nodes than these.
_MOST_NODES = 150


def panel_dependence(z: FloatArray, cuts: Sequence[int]) -> Dependence:
    """Dependence of scores (n_times, n_nodes, n_measured) within the pieces between the cuts."""
    n_times, n_nodes, _ = z.shape
    if n_nodes > _MOST_NODES:
        z = z[:, np.linspace(0, n_nodes - 1, _MOST_NODES).round().astype(np.intp)]
    piece = np.searchsorted(np.asarray(sorted(cuts), dtype=np.intp), np.arange(n_times), "right")
    values = np.swapaxes(z, 0, 1)
    n_pieces = len(cuts) + 1
    # Every piece of a node is a sample of its own.
    segment = 2 * (np.arange(len(values))[:, np.newaxis] * n_pieces + piece)
    stamp = np.broadcast_to(np.arange(n_times), segment.shape)
    there = np.isfinite(values).all(axis=2)
    series = Series.of(
        values[there], segment[there], stamp[there], None, 2 * len(values) * n_pieces
    )
    return measure(series, chance=CAUTION)


def _steps(found: Dependence) -> int:
    """Steps per block: as many as samples need, and more where calm and restless times are long.

    A scan has many more chances than a comparison of two samples to find two blocks that are alike
    by chance. So squares may lose no more of their long-run variance than values do.
    """
    length = found.length
    if found.squared_tau > 1.5 * found.tau:
        needed = int(np.ceil(2 * found.squared_slowness / LOST))
        length = max(length, min(needed, 2 * length))
    return length


def block_length(z: FloatArray, suspect: Callable[[int, int], tuple[int, float]]) -> int:
    """Steps per block; `suspect` gives the likeliest change in a stretch and its strength."""
    found = panel_dependence(z, [])
    restless = found.tau < _CALM and found.squared_tau > 1.5 * found.tau
    few = z.shape[1] < _FEW_NODES
    most = int(np.clip(len(z) // _STEPS_PER_CUT, _RESTLESS_CUTS, _MOST_CUTS)) if few else _MOST_CUTS
    if restless:
        most = _RESTLESS_CUTS if not few else int(found.length > len(z) / 3)
    cuts: list[int] = []
    while found.length > 1 and len(cuts) < most:
        pieces = [(a, b) for a, b in pairwise([0, *sorted(cuts), len(z)]) if b - a >= 4 * MARGIN]
        if not pieces:
            break
        cuts.append(max((suspect(a, b) for a, b in pieces), key=lambda pair: pair[1])[0])
        apart = panel_dependence(z, cuts)
        if apart.length <= _CLEARLY_SHORTER * found.length:
            found = apart
    # Restless times that a cut explains may go on within the pieces.
    return max(_steps(found), _RESTLESS_BLOCK) if restless and few and cuts else _steps(found)


def shuffled(n_times: int, block: int, rng: np.random.Generator) -> IntArray:
    """Steps with their blocks in random order; the first block begins at a random step."""
    if block <= 1:
        return np.asarray(rng.permutation(n_times))
    n_blocks = max(n_times // block, 1)
    block = min(block, n_times)
    first = int(rng.integers(n_times))
    order = rng.permutation(n_blocks)[:, np.newaxis] * block + np.arange(block)
    rest = np.arange(n_blocks * block, n_times)
    return np.asarray((np.concatenate([order.ravel(), rest]) + first) % n_times)


def long_run_ratio(
    rest: FloatArray, variance: FloatArray, block: int, fewest: int = 1
) -> FloatArray:
    """Long-run variance over variance of centred values, from sums over blocks.

    1 if there are fewer than `fewest` whole blocks. Has the shape of `variance`, which is that of
    `rest` without times.
    """
    n_blocks = len(rest) // max(block, 1)
    if block <= 1 or n_blocks < fewest:
        return np.ones(np.shape(variance))
    sums = rest[: n_blocks * block].reshape(n_blocks, block, *rest.shape[1:]).sum(axis=1)
    return np.asarray((sums**2).mean(axis=0) / (block * np.maximum(variance, 1e-300)))
