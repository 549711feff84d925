"""The running detector: it takes in features and finds changes.

The panel of a fit comes in at once and later observations step by step, with equal results. The
thresholds need a panel that is cut at its changes, which are unknown at first: find changes, cut
there, calibrate again.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from graphratio._utils.typing import FloatArray
from graphratio.changepoints.calibration import Calibration, Calibrator
from graphratio.changepoints.dating import date
from graphratio.changepoints.events import Found
from graphratio.changepoints.scan import GraphScan
from graphratio.changepoints.smoother import Smoother
from graphratio.changepoints.windows import (
    KEPT_WINDOWS,
    MovingWindows,
    scan_times,
    window_differences,
)

# Surrogates while the suspected changes are searched, and the most revisions of these.
PILOT_SURROGATES = 39
MOST_REVISIONS = 8


class ChangeStream:
    """Scans features of shape (m, n_nodes) per step as they come in.

    `settled` changes have a final peak. Differences of nodes that vary more since they changed are
    scaled down by `gain`, shape (m, n_nodes), so that their new variance raises no alarm.
    """

    def __init__(
        self, calibration: Calibration, window: int, step: int, level: float, shape: tuple[int, int]
    ) -> None:
        self.calibration = calibration
        self.window, self.step, self.level = window, step, level
        self.windows = MovingWindows(window, shape)
        self.tracker = PeakTracker(window)
        self.settled: list[Found] = []
        self.gain = np.ones(shape)
        self.statistic: list[float] = []

    def replay(self, psi: FloatArray) -> None:
        """Take in the features of a whole panel, (m, n_times, n_nodes), at an empty start."""
        delta = window_differences(psi, self.window, self.step)
        times = scan_times(psi.shape[1], self.window, self.step).tolist()
        values = self._curve(delta)
        for i, t in enumerate(times):
            if self.tracker.observe(t, values[i]) == "peak":
                # Use only the features seen by this time.
                self._settle(psi[:, : t + self.window], 0)
                values[i + 1 :] = self._curve(delta[:, i + 1 :])
        self.statistic = values.tolist()
        self.windows.n_seen = max(psi.shape[1] - KEPT_WINDOWS * self.window, 0)
        for t in range(self.windows.n_seen, psi.shape[1]):
            self.windows.push(psi[:, t])
        # The sums lack the steps before these; sum the last windows again.
        self.windows.sum_again()

    def push(self, psi: FloatArray) -> Found | None:
        """Take in one step, (m, n_nodes); return a change when an alarm is raised."""
        delta = self.windows.push(psi)
        t = self.windows.n_seen - self.window
        if delta is None or (t - self.window) % self.step:
            return None
        value = float(self._curve(delta[:, np.newaxis])[0])
        self.statistic.append(value)
        state = self.tracker.observe(t, value)
        if state == "peak":
            self._settle(*self._kept())
        return self.open() if state == "alarm" else None

    def open(self) -> Found | None:
        """Return the change of an alarm that is not over yet, as known so far."""
        return None if self.tracker.peak is None else self._found(*self._kept())

    def changes(self) -> list[Found]:
        """All changes so far, in the order of time."""
        last = self.open()
        return [*self.settled, *([] if last is None else [last])]

    def _kept(self) -> tuple[FloatArray, int]:
        """Features in the buffer, and the step of the first."""
        first = max(self.windows.n_seen - KEPT_WINDOWS * self.window, 0)
        return self.windows.stretch(first, self.windows.n_seen), first

    def _curve(self, delta: FloatArray) -> FloatArray:
        """The scan from differences, shape (n_scans,)."""
        return self.calibration.statistic(delta * self.gain[:, np.newaxis])

    def _settle(self, psi: FloatArray, first: int) -> None:
        found = self._found(psi, first)
        self.settled.append(found)
        self.tracker.settle(found.step)
        nodes = list(found.nodes)
        now = psi[:, found.step - first :, nodes].var(axis=1)
        usual = self.calibration.marginal[:, nodes]
        self.gain[:, nodes] = np.sqrt(usual / np.maximum(now, usual))

    def _found(self, psi: FloatArray, first: int) -> Found:
        """Date the current peak from features that begin at the step `first`."""
        peak, alarm = self.tracker.peak, self.tracker.alarm
        if peak is None or alarm is None:
            raise RuntimeError("there is no peak to date")
        previous = self.settled[-1].step if self.settled else 0
        begin = max(peak - 2 * self.window, previous, first)
        around = psi[:, begin - first : peak + 2 * self.window - first] * self.gain[:, np.newaxis]
        dated = date(around, peak - begin, self.window, self.calibration, self.level)
        low, high = dated.interval
        return Found(
            step=begin + dated.change,
            interval=(begin + low, begin + high),
            nodes=tuple(dated.nodes.tolist()),
            onsets=tuple((begin + dated.onsets).tolist()),
            statistic=self.tracker.height,
            alarm=alarm + self.window - 1,
        )


def calibrated_stream(
    psi: FloatArray,
    smoother: Smoother,
    *,
    window: int,
    step: int,
    block: int | None,
    level: float,
    n_surrogates: int,
    random_state: np.random.Generator,
    progress: bool,
) -> ChangeStream:
    """Calibrate on a panel cut at the changes found and at one more suspect, and scan it.

    The first cut is where the windows differ most. Every cut lowers the threshold for the others.
    """

    def scanned(calibrator: Calibrator) -> ChangeStream:
        shape = (psi.shape[0], psi.shape[2])
        stream = ChangeStream(calibrator.result(level), window, step, level, shape)
        stream.replay(psi)
        return stream

    pilot = min(n_surrogates, max(PILOT_SURROGATES, math.ceil(2 / level) - 1))
    cuts = [_strongest(psi, smoother, window, step)]
    for _ in range(MOST_REVISIONS):
        calibrator = Calibrator(psi, cuts, smoother, window=window, step=step, block=block)
        calibrator.draw(pilot, random_state)
        stream = scanned(calibrator)
        found = [one.step for one in stream.changes()]
        revised = sorted({*found, *_next_best(stream, found, window)})
        if len(revised) <= len(cuts):
            break
        cuts = revised
    calibrator.draw(n_surrogates, random_state, progress=progress)
    return scanned(calibrator)


def _strongest(psi: FloatArray, smoother: Smoother, window: int, step: int) -> int:
    """The time at which the windows differ most, all nodes together."""
    delta = window_differences(psi, window, step)
    scan = GraphScan.of(smoother, psi - psi.mean(axis=1, keepdims=True), 1, window)
    return window + scan.strongest(scan.energy(delta)) * step


def _next_best(stream: ChangeStream, found: list[int], window: int) -> list[int]:
    """The highest peak of the scan away from the changes found, if there is room for one."""
    times = scan_times(stream.windows.n_seen, window, stream.step)
    values = np.array(stream.statistic)
    for step in found:
        values[np.abs(times - step) < window] = -np.inf
    best = int(np.argmax(values))
    return [int(times[best])] if np.isfinite(values[best]) else []


@dataclass
class PeakTracker:
    """Finds where a curve exceeds 1, the `alarm`, and its peaks, at least a window apart.

    A peak is final when a window has passed without a higher value. Values count again from
    `blocked_until`, a window after the change: windows that contain it must not raise an alarm.
    """

    window: int
    blocked_until: int = 0
    alarm: int | None = None
    peak: int | None = None
    height: float = 0.0

    def observe(self, time: int, value: float) -> Literal["alarm", "peak"] | None:
        """Take in the value at a time; say "alarm" when one begins, "peak" when one is final."""
        if time < self.blocked_until:
            return None
        if self.peak is None:
            if value <= 1:
                return None
            self.alarm, self.peak, self.height = time, time, value
            return "alarm"
        if value > self.height:
            self.peak, self.height = time, value
        return "peak" if time - self.peak >= self.window else None

    def settle(self, change: int) -> None:
        """Close the current peak, whose change was dated at `change`."""
        self.blocked_until = max(change, self.peak or 0) + self.window
        self.alarm, self.peak, self.height = None, None, 0.0
