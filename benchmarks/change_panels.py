"""Change-points of single series, panels and machines: the detector against skchange.

skchange's seeded binary segmentation scores changes of the mean, by CUSUM for one series and by
ESAC, which adapts to the number of series that change, for panels. Its penalty is chosen as the
detector chooses its threshold, by shuffled copies, of which 5 % may raise an alarm. The scale of
ESAC's penalty is what skchange calibrates too; copies that stay below the scale so far cost one
search each.

The machines are skchange's own data: vibrations of two ventilation units that are switched between
states on a daily schedule. The data have no labels; a switch is a step between levels that are far
apart, with an hour at least on both sides. The detector looks for changes of a stationary process,
and a schedule that goes on is none: with its defaults it takes the rhythm out, or finds that states
depend on each other over hours, and reports nothing. To cut a record into states is another
question. For that one switches rhythm, ranks and dependence off, as here.

These settings and the levels between states were chosen on the same records, after a look at them,
among four settings of the detector; skchange has its usual ones, and is ahead on both units.
"""

from __future__ import annotations

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


def cusum_penalty(values: np.ndarray, n_copies: int, seed: int) -> float:
    """What the highest score of 5 % of shuffled copies exceeds."""
    rng = np.random.default_rng(seed)
    scores = []
    for _ in range(n_copies):
        copy = rng.permutation(values)
        # Scores are returned less the penalty.
        found = SeededBinarySegmentation(CUSUM(), penalty=1.0).fit(copy).predict_all(copy)
        scores.append(float(np.max(found["interval_max_scores"])) + 1.0)
    return float(np.quantile(scores, 1 - LEVEL, method="higher"))


def esac_steps(values: np.ndarray, scale: float) -> list[int]:
    search = SeededBinarySegmentation(ESACScore(penalty_scale=scale)).fit(values)
    return [int(step) for step in search.predict(values)]


def esac_scale(values: np.ndarray, n_copies: int, seed: int) -> float:
    """The smallest scale at which none of 19 shuffled copies has a change, to within 1 %."""
    rng = np.random.default_rng(seed)
    scale = 0.1
    for _ in range(n_copies):
        copy = rng.permutation(values)
        if not esac_steps(copy, scale):
            continue
        low, high = scale, 2.0
        while high - low > 0.01 * low:
            middle = (low + high) / 2
            low, high = (middle, high) if esac_steps(copy, middle) else (low, middle)
        scale = high
    return scale


def their_series(values: np.ndarray, seed: int) -> list[int]:
    penalty = cusum_penalty(values, N_COPIES, seed)
    search = SeededBinarySegmentation(CUSUM(), penalty=penalty).fit(values)
    return [int(step) for step in search.predict(values)]


def panel(where: str, shift: float, seed: int) -> tuple[np.ndarray, gr.Graph]:
    """A panel on a grid; 16 nodes, one corner or scattered ones, are shifted."""
    rng = np.random.default_rng(seed)
    values = rng.normal(size=(N_TIMES, SIDE * SIDE))
    corner = [SIDE * i + j for i in range(4) for j in range(4)]
    values[CHANGE:, corner if where == "corner" else rng.permutation(SIDE * SIDE)[:16]] += shift
    edges = [(SIDE * i + j, SIDE * (i + 1) + j) for i in range(SIDE - 1) for j in range(SIDE)]
    edges += [(SIDE * i + j, SIDE * i + j + 1) for i in range(SIDE) for j in range(SIDE - 1)]
    return values, gr.Graph.from_edges(edges, nodes=list(range(SIDE * SIDE)))


def our_panel(values: np.ndarray, graph: gr.Graph, seed: int) -> bool:
    detector = gr.GraphChangePointDetector(n_surrogates=PANEL_COPIES, random_state=seed)
    return any(abs(step - CHANGE) <= NEAR for step in detector.fit(values, graph).predict()[:-1])


def their_panel(values: np.ndarray, seed: int) -> bool:
    found = esac_steps(values, esac_scale(values, PANEL_COPIES, seed))
    return any(abs(step - CHANGE) <= NEAR for step in found)


# Levels between the states of each unit.
LEVELS = ((0.03, 0.2), (0.02,))


def machines() -> list[np.ndarray]:
    data = load_hvac_system_data()
    return [data["data"][data["unit_id"] == unit] for unit in (0, 1)]


def switched(values: np.ndarray, levels: tuple[float, ...]) -> np.ndarray:
    """Steps at which the state changes, with at least an hour in the states before and after."""
    state = np.digitize(values[:, 0], levels)
    steps = np.flatnonzero(np.diff(state) != 0) + 1
    lengths = np.diff([0, *steps, len(state)])
    return steps[(lengths[:-1] >= 6) & (lengths[1:] >= 6)]


def agreement(true: np.ndarray, found: list[int]) -> float:
    """F score of found steps within half an hour of true ones."""
    far = np.abs(true[:, np.newaxis] - np.array(found)) > 3
    recall, precision = np.mean(~far.all(axis=1)), np.mean(~far.all(axis=0))
    return float(2 * recall * precision / (recall + precision))


def our_machine(values: np.ndarray) -> list[int]:
    detector = gr.GraphChangePointDetector(
        season=None, block=1, standardize=False, n_surrogates=PANEL_COPIES, random_state=0
    )
    return detector.fit(values).predict()[:-1]


def their_machine(values: np.ndarray) -> list[int]:
    penalty = cusum_penalty(values, PANEL_COPIES, 0)
    search = SeededBinarySegmentation(CUSUM(), penalty=penalty).fit(values)
    return [int(step) for step in search.predict(values)]


def piece(rounds: int = 3) -> Piece:
    found = Piece(
        "Change-points of series, panels and machines against skchange",
        f"Both with a chance of {LEVEL:.0%} of a false alarm from shuffled copies, skchange with "
        "numba. Accuracy: the "
        f"share of {N_SERIES} series of 400 steps with exactly the right change-points, of "
        f"{N_PANELS} panels of 100 nodes and {N_TIMES} steps with the change within {NEAR} steps; "
        "for the machines the F score of switches between states, found within half an hour. "
        "The detector asks whether a machine leaves its schedule, and with its defaults reports "
        "nothing here; to cut the record into states it runs without rhythm, ranks and blocks. "
        "These settings, of four, and the levels between states were chosen on the same records. "
        "The detector's further steps lie within states, where the level drifts: where only large "
        "steps of the mean matter, CUSUM is the better and faster tool.",
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
    for where, shift in (("corner", 0.35), ("corner", 0.2), ("scattered", 0.5)):
        panels = [panel(where, shift, seed) for seed in range(N_PANELS)]
        scores = [
            float(np.mean([our_panel(x, graph, seed) for seed, (x, graph) in enumerate(panels)])),
            float(np.mean([their_panel(x, seed) for seed, (x, _) in enumerate(panels)])),
        ]
        found.comparisons.append(
            compare(
                f"panel, 16 nodes ({where}) shifted by {shift}",
                "skchange ESAC",
                lambda first=panels[0]: our_panel(*first, 0),
                lambda first=panels[0]: their_panel(first[0], 0),
                rounds,
                "share found",
                (scores[0], scores[1]),
            )
        )
    for unit, (values, levels) in enumerate(zip(machines(), LEVELS, strict=True)):
        true = switched(values, levels)
        found.comparisons.append(
            compare(
                f"ventilation unit {unit}, {len(values)} steps, {len(true)} switches",
                "skchange CUSUM",
                lambda x=values: our_machine(x),
                lambda x=values: their_machine(x),
                rounds,
                "F score of switches",
                (agreement(true, our_machine(values)), agreement(true, their_machine(values))),
            )
        )
    return found
