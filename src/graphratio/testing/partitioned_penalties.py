"""Penalties and pooled features of the node test on partitions; see `predictions` and `pooled`."""

from __future__ import annotations

import numpy as np

from graphratio._utils.typing import FloatArray, IntArray
from graphratio.data.samples import NodeSamples
from graphratio.distributed import EngineSettings
from graphratio.distributed.protocol import ordered_sum
from graphratio.distributed.scores import (
    fold_scores,
    own_alpha,
    scattered_rows,
    scores_in_place,
    share_folds,
)
from graphratio.distributed.session import Session, open_session
from graphratio.features.nystrom import NystromMap
from graphratio.moments.node_moments import has_both
from graphratio.selection.cross_validation import (
    SOLVE_ITERATIONS,
    SOLVE_TOLERANCE,
    best_candidate,
    precision_for,
)
from graphratio.selection.patches import choose_patches
from graphratio.testing.partitioned_rows import SelectionRows
from graphratio.testing.pooled import POOLED_FLOOR, RatioSettings, whitened
from graphratio.testing.predictions import MOST_SELECTED_ON, Penalties


def reduced_map(
    session: Session, method: str, features: NystromMap, dtype: type[np.floating]
) -> NystromMap:
    """Rotate features to the directions that matter, by the moments that a method returns."""
    fleet = session.fleet
    rows = [{"rows": own} for own in scattered_rows(fleet.nodes, session.sizes)]
    rough = ordered_sum(fleet.ask(method, rows, features=features, dtype=dtype))
    used, _ = features.rotated(rough, POOLED_FLOOR)
    moment = ordered_sum(fleet.ask(method, features=used, rows=None, dtype=dtype))
    return used.rotated(moment, 0.0)[0]


def penalties_on_engine(
    session: Session,
    engine: EngineSettings,
    samples: NodeSamples | None,
    groups: IntArray,
    settings: RatioSettings,
    dictionary: FloatArray,
    rng: np.random.Generator,
) -> Penalties:
    """Bandwidth, graph penalty and ridge of every group, as `selected_penalties` chooses them.

    Those of a large graph are selected on patches, which the partitions load by themselves.
    """
    n_groups, graph = int(groups.max()) + 1, session.graph
    if len(settings.candidates) == 1:
        return [settings.middle] * n_groups
    if graph.n_nodes <= MOST_SELECTED_ON:
        return _select(session, n_groups, groups, settings, dictionary, rng)
    chosen = choose_patches(graph, MOST_SELECTED_ON, has_both(session.sizes), rng)
    labels = [graph.nodes[v] for v in chosen]
    own = [[graph.nodes[v] for v in np.intersect1d(part, chosen)] for part in session.fleet.nodes]
    given = None if samples is None else samples.subset(labels)
    placed = engine.on([part for part in own if part])
    with open_session(placed, given, graph.subset(labels)) as patches:
        patches.fleet.setup("attach", name="test", make=SelectionRows)
        return _select(patches, n_groups, groups[chosen], settings, dictionary, rng)


def _select(
    session: Session,
    n_groups: int,
    groups: IntArray,
    settings: RatioSettings,
    dictionary: FloatArray,
    rng: np.random.Generator,
) -> Penalties:
    fleet, sizes, candidates = session.fleet, session.sizes, settings.candidates
    # The share of the target in the pooled sample of every node.
    alpha = sizes[:, 1] / np.maximum(sizes.sum(axis=1), 1)
    dtype, system = precision_for([session.graph]), session.system(*candidates.pairs)
    maps = [whitened(settings.kernel, dictionary, float(width)) for width in candidates.bandwidth]
    shared = None
    if len(maps) == 1:
        shared = reduced_map(session, "test.labelled_moment", maps[0], dtype)
    chosen = []
    for group in range(n_groups):
        members = groups == group
        left = sizes * ~members[:, np.newaxis]
        if not has_both(left).any():
            # No other group has a node with both samples.
            chosen.append(settings.middle)
            continue
        fleet.setup("test.leave_out", [{"members": own} for own in fleet.parts(members)])
        share_folds(fleet, left, settings.n_folds, rng)
        if shared is None:
            scores = fold_scores(
                fleet,
                maps,
                left,
                system,
                settings.n_folds,
                alpha=alpha,
                prior_ratio=1.0,
                floor=POOLED_FLOOR,
                tol=SOLVE_TOLERANCE,
                max_iter=SOLVE_ITERATIONS,
                dtype=dtype,
                advance=_nothing,
            )
        else:
            mixing, kept = own_alpha(fleet, alpha), np.eye(shared.n_components)
            fleet.setup("set_features", mixing, features=shared, dtype=dtype)
            fleet.setup("rotate_features", mixing, rotation=kept, prior_ratio=1.0, folded=True)
            scores = scores_in_place(
                fleet, system, settings.n_folds, SOLVE_TOLERANCE, SOLVE_ITERATIONS, _nothing
            )[np.newaxis]
        found = best_candidate(candidates, scores, session.graph.n_nodes)
        chosen.append((found.bandwidth, found.graph_penalty, found.ridge))
    return chosen


def _nothing() -> None:
    """Take the place of a progress bar."""
