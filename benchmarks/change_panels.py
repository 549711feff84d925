"""Change-points of single series, panels and machines: the detector against skchange.

skchange's seeded binary segmentation scores changes of the mean, by CUSUM for one series and by
ESAC, which adapts to the number of series that change, for panels. Its threshold is chosen as the
detector chooses its own: by shuffled copies, 5 % of which exceed it. The machines are skchange's
own data: vibrations of two ventilation units that are switched on and off.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from skchange.datasets import load_hvac_system_data
from skchange.detectors import SeededBinarySegmentation
from skchange.interval_scorers import CUSUM, ESACScore

import graphratio as gr
from measure import Piece, compare
from single_series import N_COPIES, right, series
from single_series import ours as our_series

LEVEL, NEAR = 0.05, 15
N_SERIES, N_PANELS, PANEL_COPIES = 20, 6, 19
SIDE, N_TIMES, CHANGE = 10, 600, 300


def largest_score(values: np.ndarray, score: Callable[[], object]) -> tuple[float, int]:
    """The highest penalised score of any interval, and where it splits."""
    search = SeededBinarySegmentation(score(), penalty=1.0) if score is CUSUM else None
    search = search or SeededBinarySegmentation(score())
    found = search.fit(values).predict_all(values)
    best = int(np.argmax(found["interval_max_scores"]))
    height = float(found["interval_max_scores"][best])
    return height + (score is CUSUM), int(found["interval_argmax_splits"][best])


def threshold(values: np.ndarray, score: Callable[[], object], n_copies: int, seed: int) -> float:
    """What 5 % of shuffled copies exceed."""
    rng = np.random.default_rng(seed)
    scores = [largest_score(rng.permutation(values), score)[0] for _ in range(n_copies)]
    return float(np.quantile(scores, 1 - LEVEL, method="higher"))


def their_series(values: np.ndarray, seed: int) -> list[int]:
    penalty = threshold(values, CUSUM, N_COPIES, seed)
    search = SeededBinarySegmentation(CUSUM(), penalty=penalty).fit(values)
    return [int(step) for step in search.predict(values)]


def panel(shift: float, seed: int) -> tuple[np.ndarray, gr.Graph]:
    """A panel on a grid; one corner of 16 nodes is shifted."""
    values = np.random.default_rng(seed).normal(size=(N_TIMES, SIDE * SIDE))
    corner = [SIDE * i + j for i in range(4) for j in range(4)]
    values[CHANGE:, corner] += shift
    edges = [(SIDE * i + j, SIDE * (i + 1) + j) for i in range(SIDE - 1) for j in range(SIDE)]
    edges += [(SIDE * i + j, SIDE * i + j + 1) for i in range(SIDE) for j in range(SIDE - 1)]
    return values, gr.Graph.from_edges(edges, nodes=list(range(SIDE * SIDE)))


def our_panel(values: np.ndarray, graph: gr.Graph, seed: int) -> bool:
    detector = gr.GraphChangePointDetector(n_surrogates=PANEL_COPIES, random_state=seed)
    return any(abs(step - CHANGE) <= NEAR for step in detector.fit(values, graph).predict()[:-1])


def their_panel(values: np.ndarray, seed: int) -> bool:
    height, step = largest_score(values, ESACScore)
    high = height > threshold(values, ESACScore, PANEL_COPIES, seed)
    return high and abs(step - CHANGE) <= NEAR


def machines() -> list[np.ndarray]:
    data = load_hvac_system_data()
    return [data["data"][data["unit_id"] == unit] for unit in (0, 1)]


def switched(values: np.ndarray) -> np.ndarray:
    """Steps at which the vibration crosses the middle of its range for at least an hour."""
    on = values[:, 0] > values.max() / 2
    steps = np.flatnonzero(np.diff(on.astype(int)) != 0) + 1
    lengths = np.diff([0, *steps, len(on)])
    return steps[(lengths[:-1] >= 6) & (lengths[1:] >= 6)]


def recall(values: np.ndarray, found: list[int]) -> float:
    true = switched(values)
    return float(np.mean([np.min(np.abs(np.array(found) - step)) <= 3 for step in true]))


def our_machine(values: np.ndarray) -> list[int]:
    # Switching on and off is what is looked for: no rhythm is removed, states are no dependence.
    detector = gr.GraphChangePointDetector(
        season=None, block=1, n_surrogates=PANEL_COPIES, random_state=0
    )
    return detector.fit(values).predict()[:-1]


def their_machine(values: np.ndarray) -> list[int]:
    penalty = threshold(values, CUSUM, PANEL_COPIES, 0)
    search = SeededBinarySegmentation(CUSUM(), penalty=penalty).fit(values)
    return [int(step) for step in search.predict(values)]


def piece(rounds: int = 3) -> Piece:
    found = Piece(
        "Change-points of series, panels and machines against skchange",
        f"Both with a chance of {LEVEL:.0%} of a false alarm from shuffled copies. Accuracy: the "
        f"share of {N_SERIES} series of 400 steps with exactly the right change-points, of "
        f"{N_PANELS} panels of 100 nodes and {N_TIMES} steps with the change within {NEAR} steps, "
        "and of the switches of the machines found within half an hour.",
    )
    drawn = [series("mean", seed) for seed in range(N_SERIES)]
    scores = [
        float(np.mean([right("mean", method(x, seed)) for seed, x in enumerate(drawn)]))
        for method in (our_series, their_series)
    ]
    found.comparisons.append(
        compare(
            "one series, change of the mean",
            "skchange CUSUM",
            lambda: our_series(drawn[0], 0),
            lambda: their_series(drawn[0], 0),
            rounds,
            "share that is right",
            (scores[0], scores[1]),
        )
    )
    for shift in (0.5, 0.35, 0.2):
        panels = [panel(shift, seed) for seed in range(N_PANELS)]
        scores = [
            float(np.mean([our_panel(x, graph, seed) for seed, (x, graph) in enumerate(panels)])),
            float(np.mean([their_panel(x, seed) for seed, (x, _) in enumerate(panels)])),
        ]
        found.comparisons.append(
            compare(
                f"panel, corner of 16 nodes shifted by {shift}",
                "skchange ESAC",
                lambda first=panels[0]: our_panel(*first, 0),
                lambda first=panels[0]: their_panel(first[0], 0),
                rounds,
                "share found",
                (scores[0], scores[1]),
            )
        )
    for unit, values in enumerate(machines()):
        found.comparisons.append(
            compare(
                f"ventilation unit {unit}, {len(values)} steps",
                "skchange CUSUM",
                lambda x=values: our_machine(x),
                lambda x=values: their_machine(x),
                rounds,
                "share of switches found",
                (recall(values, our_machine(values)), recall(values, their_machine(values))),
            )
        )
    return found
