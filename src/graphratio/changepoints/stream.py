"""The running detector: features in, changes out; the same for a whole panel and step by step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from graphratio._utils.typing import FloatArray
from graphratio.changepoints.calibration import Calibration
from graphratio.changepoints.dating import date
from graphratio.changepoints.windows import (
    KEPT_WINDOWS,
    MovingWindows,
    scan_times,
    window_differences,
)


@dataclass(frozen=True)
class Found:
    """A change, in steps and positions.

    Attributes
    ----------
    step : int
    interval : (int, int)
    nodes, onsets : tuple of int
        Positions of the nodes that changed, and the step at which each did.
    statistic : float
    alarm : int
        The last step that had been seen when the alarm was raised.
    """

    step: int
    interval: tuple[int, int]
    nodes: tuple[int, ...]
    onsets: tuple[int, ...]
    statistic: float
    alarm: int


class ChangeStream:
    """Scans features as they come in.

    Parameters
    ----------
    calibration : Calibration
    window, step : int
    level : float
        Expected share of unchanged nodes among those named in an event.
    shape : (m, n_nodes)

    Attributes
    ----------
    windows : MovingWindows
    tracker : PeakTracker
    settled : list of Found
        Changes whose peak is final.
    gain : ndarray of shape (m, n_nodes)
        At most 1: nodes that vary more since they changed count as much less, so that what is
        usual for them now raises no alarm.
    statistic : list of float
        The curve, one value per scan time, in units of the threshold.
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
                # No more than had been seen at this time.
                self._settle(psi[:, : t + self.window], 0)
                values[i + 1 :] = self._curve(delta[:, i + 1 :])
        self.statistic = values.tolist()
        self.windows.n_seen = max(psi.shape[1] - KEPT_WINDOWS * self.window, 0)
        for t in range(self.windows.n_seen, psi.shape[1]):
            self.windows.push(psi[:, t])
        # The sums began in the middle; from here on they are those of the last windows.
        self.windows.sum_again()

    def push(self, psi: FloatArray) -> Found | None:
        """Take in one step, (m, n_nodes); return a change when an alarm is raised."""
        delta = self.windows.push(psi)
        t = self.windows.scan_time
        if delta is None or (t - self.window) % self.step:
            return None
        value = float(self._curve(delta[:, np.newaxis])[0])
        self.statistic.append(value)
        said = self.tracker.observe(t, value)
        if said == "peak":
            self._settle(*self._kept())
        return self.open() if said == "alarm" else None

    def open(self) -> Found | None:
        """Return the change of an alarm that is not over yet, as far as it is known."""
        return None if self.tracker.peak is None else self._found(*self._kept())

    def changes(self) -> list[Found]:
        """All changes so far, in the order of time."""
        last = self.open()
        return [*self.settled, *([] if last is None else [last])]

    def _kept(self) -> tuple[FloatArray, int]:
        """Features that are kept, and the step of the first."""
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


@dataclass
class PeakTracker:
    """Finds where a curve exceeds 1, and the peaks, which are at least a window apart.

    A peak is final when a window has passed without a higher value. What a change leaves in
    windows that still contain it is no second change: after a final peak nothing counts before
    a window after the change.

    Attributes
    ----------
    window : int
    blocked_until : int
        Times before this do not count.
    alarm, peak : int or None
        Since when the curve has been too high, and where it was highest since; None when quiet.
    height : float

    Examples
    --------
    >>> tracker = PeakTracker(window=2)
    >>> [tracker.observe(t, value) for t, value in enumerate([0.5, 1.2, 1.5, 0.3, 0.2])]
    [None, 'alarm', None, None, 'peak']
    >>> tracker.peak
    2
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
