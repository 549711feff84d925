"""What a test needs and assumes, said before and after it."""

from __future__ import annotations

import math

import numpy as np

from graphratio._utils.exceptions import Argument, InputError, listing
from graphratio._utils.parameters import check_integer
from graphratio.data.graph import Graph
from graphratio.data.samples import NodeSamples
from graphratio.testing.multiplicity import strictest_threshold
from graphratio.testing.permutations import Units

# Permutations when nothing else asks for more.
_FEWEST_BY_DEFAULT = 999


def enough_permutations(
    asked: int | None, n_tests: int, level: float, correction: str | None, null: str
) -> int:
    """Number of permutations, after checking that a rejection is possible."""
    if null == "global":
        correction = None
    needed = math.ceil(round(1 / strictest_threshold(max(n_tests, 1), level, correction), 6)) - 1
    if asked is None:
        return max(_FEWEST_BY_DEFAULT, 10 * (needed + 1) - 1)
    count = check_integer(asked, "n_permutations", low=1)
    if count < needed:
        where = f"{n_tests} nodes, " if correction is not None else ""
        raise InputError(
            f"with {count} permutations the smallest p-value is 1/{count + 1}, and nothing can be "
            f"rejected ({where}level {level:g}, correction {correction!r})",
            (
                f"Use at least {needed:,} permutations, better {10 * (needed + 1) - 1:,}, or leave",
                " out ",
                Argument("n_permutations"),
            ),
        )
    return count


def data_notes(
    samples: NodeSamples,
    graph: Graph,
    units: Units,
    level: float,
    correction: str | None,
    null: str,
) -> list[str]:
    """What a reader of the result should know about the data."""
    notes = []
    lacking = [samples.nodes[v] for v in np.flatnonzero(~samples.complete)]
    if lacking:
        notes.append(
            f"nodes without reference or target observations cannot be tested, their p-value "
            f"is 1: {listing(lacking)}"
        )
    if not graph.n_edges and graph.n_nodes > 1:
        notes.append("the graph has no edges: every node is tested by itself")
    n_tests = max(int(samples.complete.sum()), 1)
    threshold = strictest_threshold(n_tests, level, correction if null == "node" else None)
    floor = units.smallest_p_values(graph.n_nodes)
    coarse = [samples.nodes[v] for v in np.flatnonzero((floor > threshold) & samples.complete)]
    if coarse:
        notes.append(
            "too few observations or blocks for the level: the splits of these nodes are so few "
            f"that they can hardly be rejected: {listing(coarse)}"
        )
    return notes


def assumptions(null: str, joint: bool, block_length: int | None) -> tuple[str, ...]:
    """What the p-values rely on, in plain language."""
    single = (
        "within a node the observations are independent of each other"
        if block_length is None
        else f"within a node blocks of {block_length} observations are independent of each other"
    )
    if null == "node":
        return single, "nodes are independent of each other, changed or not"
    if joint:
        what = "time stamps" if block_length is None else f"blocks of {block_length} time stamps"
        return (f"{what} are independent of each other; nodes may depend on each other",)
    return single, "nodes are independent of each other"
