"""Cross-validation on partitions: all pairs of penalties of a fold in lockstep.

The steps are those of `selection.cross_validation`, with sums over partitions instead of nodes. The
folds are those that a single process would draw.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from graphratio._utils.typing import FloatArray, IntArray
from graphratio.distributed.conjugate import PartitionedSystem, solve_conjugate
from graphratio.distributed.fold_keys import fold_keys
from graphratio.distributed.protocol import ordered_sum
from graphratio.distributed.recovery import Fleet
from graphratio.features.nystrom import PRINCIPAL_ROWS, NystromMap


def share_folds(
    fleet: Fleet, sizes: IntArray, n_folds: int, random_state: np.random.Generator
) -> None:
    """Every partition draws the same random numbers and keeps its own, so no folds travel."""
    keys = fold_keys(fleet.nodes, sizes, n_folds, random_state)
    fleet.setup(
        "assign_folds",
        [{"starts": own.starts, "offset": own.offset} for own in keys],
        generator=keys[0].generator,
        total=keys[0].total,
        n_folds=n_folds,
    )


def rotate_features(
    fleet: Fleet,
    features: NystromMap,
    sizes: IntArray,
    alpha: float,
    prior_ratio: float,
    *,
    floor: float,
    dtype: type[np.floating],
    folded: bool,
) -> FloatArray:
    """Features and moments, by fold if `folded`, in principal directions above `floor`.

    Returns the rotation from the features to the principal ones, shape (m, n_kept).
    """
    used = features
    if floor > 0:
        rows = _scattered_rows(fleet.nodes, sizes)
        rough = ordered_sum(
            fleet.ask("moment_of_rows", [{"rows": own} for own in rows], features=used, alpha=alpha)
        )
        used, _ = used.rotated(rough, floor)
    moment = ordered_sum(fleet.setup("set_features", features=used, alpha=alpha, dtype=dtype))
    _, rotation = used.rotated(moment, 0.0)
    rotation = np.ascontiguousarray(rotation)
    fleet.setup(
        "rotate_features", rotation=rotation, alpha=alpha, prior_ratio=prior_ratio, folded=folded
    )
    return rotation


def fold_scores(
    fleet: Fleet,
    maps: Sequence[NystromMap],
    sizes: IntArray,
    system: PartitionedSystem,
    n_folds: int,
    *,
    alpha: float,
    prior_ratio: float,
    floor: float,
    tol: float,
    max_iter: int,
    dtype: type[np.floating],
    advance: Callable[[], None],
) -> FloatArray:
    """Minus the held-out losses, shape (n_bandwidths, n_pairs, n_folds), one map per bandwidth."""
    scores = np.empty((len(maps), len(system.lam), n_folds))

    def score() -> FloatArray:
        # The solution stays on the partitions, so a lost partition loses its rows.
        solve_conjugate(fleet, system, tol, max_iter, every=None)
        total, count = ordered_sum(fleet.engine.gather("held_out_loss"))
        return np.asarray(-total / count) if count else np.full(len(system.lam), np.nan)

    for i, features in enumerate(maps):
        rotate_features(
            fleet, features, sizes, alpha, prior_ratio, floor=floor, dtype=dtype, folded=True
        )
        for fold in range(n_folds):
            fleet.setup("take_fold", fold=fold)
            scores[i, :, fold] = fleet.attempt(score)
            advance()
    return scores


def _scattered_rows(nodes: Sequence[IntArray], sizes: IntArray) -> list[IntArray]:
    """Rows of every partition that belong to a fixed random subset of all observations."""
    per_node = sizes.sum(axis=1)
    total = int(per_node.sum())
    chosen = np.random.default_rng(0).choice(total, min(PRINCIPAL_ROWS, total), replace=False)
    chosen.sort()
    ends = np.cumsum(per_node)
    node = np.searchsorted(ends, chosen, side="right")
    within = chosen - (ends - per_node)[node]
    rows = []
    for own in nodes:
        place = np.searchsorted(own, node)
        here = (place < len(own)) & (own[np.minimum(place, len(own) - 1)] == node)
        before = np.cumsum(per_node[own]) - per_node[own]
        rows.append(before[place[here]] + within[here])
    return rows
