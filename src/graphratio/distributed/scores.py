"""Cross-validation on partitions: all pairs of penalties of a fold in lockstep.

The steps are those of `selection.cross_validation`, with sums over partitions instead of nodes. The
folds are those that a single process would draw.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from graphratio._utils.typing import FloatArray, IntArray
from graphratio.distributed.conjugate import PartitionedSystem, solve_conjugate
from graphratio.distributed.fold_keys import fold_keys
from graphratio.distributed.protocol import ordered_sum
from graphratio.distributed.recovery import Fleet
from graphratio.features.nystrom import NystromMap, principal_rows


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
    alpha: float | FloatArray,
    prior_ratio: float,
    *,
    floor: float,
    dtype: type[np.floating],
    folded: bool,
) -> FloatArray:
    """Features and moments, by fold if `folded`, in principal directions above `floor`.

    `alpha` is one number or one per node. Returns the rotation from the features to the principal
    ones, shape (m, n_kept).
    """
    used, mixing = features, own_alpha(fleet, alpha)
    if floor > 0:
        rows = [
            {"rows": rows, **own}
            for rows, own in zip(scattered_rows(fleet.nodes, sizes), mixing, strict=True)
        ]
        used, _ = used.rotated(ordered_sum(fleet.ask("moment_of_rows", rows, features=used)), floor)
    moment = ordered_sum(fleet.setup("set_features", mixing, features=used, dtype=dtype))
    _, rotation = used.rotated(moment, 0.0)
    rotation = np.ascontiguousarray(rotation)
    fleet.setup(
        "rotate_features", mixing, rotation=rotation, prior_ratio=prior_ratio, folded=folded
    )
    return rotation


def own_alpha(fleet: Fleet, alpha: float | FloatArray) -> list[dict[str, Any]]:
    """The argument `alpha` of every partition, from one number or one per node."""
    if isinstance(alpha, np.ndarray):
        return [{"alpha": own} for own in fleet.parts(alpha)]
    return [{"alpha": alpha} for _ in fleet.nodes]


def fold_scores(
    fleet: Fleet,
    maps: Sequence[NystromMap],
    sizes: IntArray,
    system: PartitionedSystem,
    n_folds: int,
    *,
    alpha: float | FloatArray,
    prior_ratio: float,
    floor: float,
    tol: float,
    max_iter: int,
    dtype: type[np.floating],
    advance: Callable[[], None],
) -> FloatArray:
    """Minus the held-out losses, shape (n_bandwidths, n_pairs, n_folds), one map per bandwidth."""
    scores = np.empty((len(maps), len(system.lam), n_folds))
    for i, features in enumerate(maps):
        rotate_features(
            fleet, features, sizes, alpha, prior_ratio, floor=floor, dtype=dtype, folded=True
        )
        scores[i] = scores_in_place(fleet, system, n_folds, tol, max_iter, advance)
    return scores


def scores_in_place(
    fleet: Fleet,
    system: PartitionedSystem,
    n_folds: int,
    tol: float,
    max_iter: int,
    advance: Callable[[], None],
) -> FloatArray:
    """Minus the held-out losses with the features in place, shape (n_pairs, n_folds)."""
    scores = np.empty((len(system.lam), n_folds))

    def score() -> FloatArray:
        # The solution stays on the partitions, so a lost partition loses its rows.
        solve_conjugate(fleet, system, tol, max_iter, every=None)
        total, count = ordered_sum(fleet.engine.gather("held_out_loss"))
        return np.asarray(-total / count) if count else np.full(len(system.lam), np.nan)

    for fold in range(n_folds):
        fleet.setup("take_fold", fold=fold)
        scores[:, fold] = fleet.attempt(score)
        advance()
    return scores


def scattered_rows(nodes: Sequence[IntArray], sizes: IntArray) -> list[IntArray]:
    """Rows of every partition that belong to a fixed random subset of all observations."""
    per_node = sizes.sum(axis=1)
    chosen = np.sort(principal_rows(int(per_node.sum())))
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
