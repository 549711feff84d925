"""From a curve over time to alarms and peaks, one value after the other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


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
