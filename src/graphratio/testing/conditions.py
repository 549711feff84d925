"""What a test needs: enough permutations, and nodes with enough distinct splits."""

from __future__ import annotations

import math

import numpy as np

from graphratio._utils.exceptions import Argument, InputError
from graphratio._utils.parameters import check_integer
from graphratio._utils.typing import BoolArray
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


def too_few_splits(
    units: Units, complete: BoolArray, level: float, correction: str | None, null: str
) -> BoolArray:
    """Nodes with so few distinct splits that they can hardly be rejected, shape (n_nodes,)."""
    n_tests = max(int(complete.sum()), 1)
    threshold = strictest_threshold(n_tests, level, correction if null == "node" else None)
    return np.asarray((units.smallest_p_values(len(complete)) > threshold) & complete)
