"""How much memory a fit will take, before it starts, and the ways to take less.

The cost model counts what grows: the second moments, features that are kept, the vectors of
conjugate gradients, the inverses of a preconditioner, the graph and the data themselves.

Symbols
-------
N, m, n     nodes, features after whitening, observations of all nodes together
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from graphratio._utils.exceptions import InputError
from graphratio._utils.parameters import check_integer
from graphratio._utils.typing import IntArray

UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "ki": 2**10, "mi": 2**20, "gi": 2**30}

# Features and sums up to this size are kept in double precision: fastest for small problems.
KEEP_ALL = 2**30

# Second moments beyond this are kept in single precision; the answer is checked in double.
KEEP_DOUBLE = 2**30

# Python and its libraries, and the blocks that are being worked on.
FIXED = 300 * 2**20

# Vectors of length N m at the same time: iterates and moments, and those of a multigrid cycle.
DOUBLE_VECTORS = 14
SINGLE_VECTORS = 8


@dataclass(frozen=True)
class FitPlan:
    """How a fit keeps its data.

    Attributes
    ----------
    streamed : bool
        Features are computed block by block and dropped, not kept.
    factored : bool
        Second moments as features instead of blocks.
    single : bool
        Second moments in single precision.
    n_bytes : int
        Predicted peak, everything included.
    """

    streamed: bool
    factored: bool
    single: bool
    n_bytes: int


def parse_memory(value: Any) -> int | None:
    """Bytes of a cap given as a number or as text; None for no cap.

    Examples
    --------
    >>> parse_memory("4GiB"), parse_memory("500 MB"), parse_memory(None)
    (4294967296, 500000000, None)
    """
    if value is None:
        return None
    if isinstance(value, str):
        found = re.fullmatch(r"\s*([0-9.]+)\s*([kmg]i?|)b?\s*", value.lower())
        try:
            return int(float(found[1]) * UNITS[found[2]]) if found else _unreadable(value)
        except ValueError:
            return _unreadable(value)
    return check_integer(value, "max_memory", low=1)


def _unreadable(value: str) -> int:
    raise InputError(
        f"max_memory={value!r} is not an amount of memory",
        'Pass bytes as a whole number, or text such as "4GiB" or "500MB"',
    )


def plan_fit(
    sizes: IntArray, m: int, n_features: int, n_edges: int, cap: int | None = None
) -> FitPlan:
    """Choose how to keep the data of a fit: the fastest way that stays under the cap.

    Parameters
    ----------
    sizes : ndarray of shape (n_nodes, 2)
        Observations of every sample.
    m : int
        Features after whitening, or the most there can be.
    n_features, n_edges : int
    cap : int, optional
        Bytes.

    Examples
    --------
    >>> import numpy as np
    >>> plan = plan_fit(np.full((100_000, 2), 50), 64, n_features=2, n_edges=300_000)
    >>> plan.streamed, plan.single, f"{plan.n_bytes / 2**30:.1f} GiB"
    (True, True, '5.3 GiB')
    """
    factored = bool(sizes.sum() < len(sizes) * m)
    plans = [
        _plan(sizes, m, n_features, n_edges, streamed, factored, single)
        for streamed, single in ((False, False), (True, False), (True, True))
    ]
    entries = int(sizes.sum()) * m if factored else len(sizes) * m**2
    comfortable = [
        _kept(sizes, m, factored) <= KEEP_ALL,
        8 * entries <= KEEP_DOUBLE,
        True,
    ]
    for plan, fine in zip(plans, comfortable, strict=True):
        if fine and (cap is None or plan.n_bytes <= cap):
            return plan
    least = plans[-1].n_bytes
    raise InputError(
        f"the fit of {len(sizes)} nodes, {int(sizes.sum())} observations and up to {m} features "
        f"is predicted to take {least / 2**30:.2f} GiB, more than max_memory = "
        f"{(cap or 0) / 2**30:.2f} GiB",
        "Set max_atoms to a smaller number (memory grows with its square), raise max_memory, "
        "or fit parts of the graph",
    )


def _plan(
    sizes: IntArray,
    m: int,
    n_features: int,
    n_edges: int,
    streamed: bool,
    factored: bool,
    single: bool,
) -> FitPlan:
    n_nodes, n_rows = len(sizes), int(sizes.sum())
    width = 4 if single else 8
    # The values, where they came from, and the node and side of every row.
    data = n_rows * (16 * n_features + 9)
    second = (n_rows * (m + 1) if factored else n_nodes * m**2) * width
    inverses = int(1.4 * n_nodes * m**2) * 4
    if factored:
        inverses += n_nodes * m**2 * 4
    kept = 0 if streamed else _kept(sizes, m, factored)
    vectors = n_nodes * m * (8 * DOUBLE_VECTORS + 4 * SINGLE_VECTORS)
    graph = (2 * n_edges + n_nodes) * 100
    total = data + second + inverses + kept + vectors + graph + FIXED
    return FitPlan(streamed, factored, single, total)


def _kept(sizes: IntArray, m: int, factored: bool) -> int:
    """Bytes of the features of all observations, and of the sums that blocks come from."""
    return 8 * m * (int(sizes.sum()) + (0 if factored else 2 * len(sizes) * m))


def predict_input(sizes: IntArray, n_features: int) -> int:
    """Bytes of choosing bandwidths and dictionary, which work node by node."""
    return int(sizes.sum()) * (16 * n_features + 9) + FIXED


def check_cap(needed: int, cap: int | None, what: str) -> None:
    """Refuse work that is predicted to exceed the cap."""
    if cap is not None and needed > cap:
        raise InputError(
            f"{what} is predicted to take {needed / 2**30:.2f} GiB, more than max_memory = "
            f"{cap / 2**30:.2f} GiB",
            "Raise max_memory, or pass fewer nodes or observations",
        )
