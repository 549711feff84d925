"""Thresholds for a panel whose changes are not known yet: find some, cut there, look again."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from graphratio._utils.typing import FloatArray
from graphratio.changepoints.calibration import Calibration, Calibrator
from graphratio.changepoints.scan import GraphScan
from graphratio.changepoints.smoother import Smoother
from graphratio.changepoints.stream import ChangeStream
from graphratio.changepoints.windows import scan_times, window_differences

# Surrogates while the suspected changes are being found, and how often they may be revised.
PILOT_SURROGATES = 39
MOST_REVISIONS = 8


def calibrated(
    psi: FloatArray,
    smoother: Smoother,
    new_stream: Callable[[Calibration], ChangeStream],
    *,
    window: int,
    step: int,
    block: int | None,
    false_alarm: float,
    n_surrogates: int,
    random_state: np.random.Generator,
    progress: bool,
) -> Calibration:
    """Calibrate with the panel cut at the changes found and at one more suspect.

    It starts with the one time at which the windows differ most. As long as changes are found
    that are not among the cuts, they are added; every change that is cut out lowers the
    threshold for the others.
    """
    pilot = min(n_surrogates, max(PILOT_SURROGATES, math.ceil(2 / false_alarm) - 1))
    cuts = [_strongest(psi, smoother, window, step)]
    for _ in range(MOST_REVISIONS):
        calibrator = Calibrator(psi, cuts, smoother, window=window, step=step, block=block)
        calibrator.draw(pilot, random_state)
        stream = new_stream(calibrator.result(false_alarm))
        stream.replay(psi)
        found = [one.step for one in stream.changes()]
        revised = sorted({*found, *_next_best(stream, found, window)})
        if len(revised) <= len(cuts):
            break
        cuts = revised
    calibrator.draw(n_surrogates, random_state, progress=progress)
    return calibrator.result(false_alarm)


def _strongest(psi: FloatArray, smoother: Smoother, window: int, step: int) -> int:
    """The time at which the windows differ most, all nodes together."""
    delta = window_differences(psi, window, step)
    scan = GraphScan.of(smoother, psi - psi.mean(axis=1, keepdims=True), 1, window)
    return window + scan.strongest(scan.energy(delta)) * step


def _next_best(stream: ChangeStream, found: list[int], window: int) -> list[int]:
    """The highest peak of the scan away from all that was found, if there is room for one."""
    times = scan_times(stream.windows.n_seen, window, stream.step)
    values = np.array(stream.statistic)
    for step in found:
        values[np.abs(times - step) < window] = -np.inf
    best = int(np.argmax(values))
    return [int(times[best])] if np.isfinite(values[best]) else []
