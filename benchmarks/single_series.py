"""Change-points of a single series: the detector against ruptures.

Series of 400 observations with a change at 200, in their mean, their spread, or not at all.
ruptures minimises the cost of segments with the same Gaussian kernel; its penalty must be chosen
by the user. So that both do the same work it is chosen as the detector chooses its threshold: the
smallest with which at most 5 % of 99 shuffled copies of the series would have a change-point, from
the gain of the best single split of each. `KernelCPD` is ruptures' compiled search.
"""

from __future__ import annotations

import numpy as np
import ruptures

import graphratio as gr
from measure import Piece, compare

N_TIMES, CHANGE, MIN_SIZE, NEAR = 400, 200, 10, 15
N_COPIES, LEVEL = 99, 0.05
N_SERIES = 20


def series(kind: str, seed: int) -> np.ndarray:
    """One series of shape (n_times, 1)."""
    values = np.random.default_rng(seed).normal(size=(N_TIMES, 1))
    if kind == "mean":
        values[CHANGE:] += 1.0
    elif kind == "spread":
        values[CHANGE:] *= 2.0
    return values


def ours(values: np.ndarray, seed: int) -> list[int]:
    detector = gr.GraphChangePointDetector(n_surrogates=N_COPIES, random_state=seed)
    return detector.fit(values).predict()[:-1]


def calibrated_penalty(values: np.ndarray, seed: int) -> float:
    """Smallest penalty with which few shuffled copies have a change-point."""
    rng = np.random.default_rng(seed)
    gains = []
    for _ in range(N_COPIES):
        copy = rng.permutation(values)
        search = ruptures.KernelCPD(kernel="rbf", min_size=MIN_SIZE).fit(copy)
        split = search.predict(n_bkps=1)
        gains.append(search.cost.error(0, N_TIMES) - search.cost.sum_of_costs(split))
    return float(np.quantile(gains, 1 - LEVEL, method="higher"))


def theirs(values: np.ndarray, seed: int, penalty: float | None = None) -> list[int]:
    """Change-points by ruptures, with a given penalty or one from shuffled copies."""
    if penalty is None:
        penalty = calibrated_penalty(values, seed)
    search = ruptures.KernelCPD(kernel="rbf", min_size=MIN_SIZE).fit(values)
    return search.predict(pen=penalty)[:-1]


def right(kind: str, found: list[int]) -> bool:
    """Exactly what is there: one change near the true one, or none."""
    if kind == "none":
        return not found
    return len(found) == 1 and abs(found[0] - CHANGE) <= NEAR


def piece(rounds: int = 7) -> Piece:
    found = Piece(
        "Single series: change-points against ruptures",
        f"{N_TIMES} observations, both with a chance of {LEVEL:.0%} of a false alarm from "
        f"{N_COPIES} shuffled copies; accuracy is the share of {N_SERIES} series with exactly the "
        f"right change-points, within {NEAR} steps.",
    )
    for kind in ("mean", "spread", "none"):
        drawn = [series(kind, seed) for seed in range(N_SERIES)]
        scores = [
            float(np.mean([right(kind, method(x, seed)) for seed, x in enumerate(drawn)]))
            for method in (ours, theirs)
        ]
        found.comparisons.append(
            compare(
                f"change of the {kind}" if kind != "none" else "no change",
                "ruptures KernelCPD",
                lambda x=drawn[0]: ours(x, 0),
                lambda x=drawn[0]: theirs(x, 0),
                rounds,
                "share that is right",
                (scores[0], scores[1]),
            )
        )
    x = series("mean", 0)
    penalty = calibrated_penalty(x, 0)
    found.comparisons.append(
        compare(
            "change of the mean, somebody else has chosen the penalty of ruptures",
            "ruptures KernelCPD",
            lambda: ours(x, 0),
            lambda: theirs(x, 0, penalty),
            rounds,
        )
    )
    return found
