"""Moving windows: differences of mean features, updated step by step.

At scan time t the reference window is [t - window, t) and the target window [t, t + window).
"""

from __future__ import annotations

import numpy as np

from graphratio._utils.typing import FloatArray, IntArray

# Length of the online buffer, in windows. An event is dated one window after the peak of the scan,
# which itself lags one window behind. Dating looks back two windows before the peak. One more
# window allows for scans that skip steps.
KEPT_WINDOWS = 5


def scan_times(n_times: int, window: int, step: int) -> IntArray:
    """Times with a whole window on either side."""
    return np.arange(window, n_times - window + 1, step)


def window_differences(psi: FloatArray, window: int, step: int) -> FloatArray:
    """Mean over the target minus mean over the reference window, (m, n_scans, n_nodes)."""
    m, n_times, n_nodes = psi.shape
    sums = np.zeros((m, n_times + 1, n_nodes), dtype=psi.dtype)
    np.cumsum(psi, axis=1, out=sums[:, 1:])
    last = n_times - 2 * window + 1
    delta = sums[:, 2 * window :: step] - sums[:, window : window + last : step]
    delta -= sums[:, window : window + last : step]
    delta += sums[:, :last:step]
    delta /= window
    return delta


class MovingWindows:
    """The same differences of shape (m, n_nodes) one step at a time.

    `recent`, shape (m, 5 * window, n_nodes), is a ring: step i is in column i modulo its length.
    """

    def __init__(self, window: int, shape: tuple[int, int]) -> None:
        self.window = window
        self.n_seen = 0
        self.recent = np.zeros((shape[0], KEPT_WINDOWS * window, shape[1]))
        self.reference = np.zeros(shape)
        self.target = np.zeros(shape)

    def push(self, psi: FloatArray) -> FloatArray | None:
        """Take in one step, (m, n_nodes); return the difference once two windows are full."""
        w, now = self.window, self.n_seen
        if now >= w:
            middle = self._column(now - w)
            self.target -= middle
            self.reference += middle
        if now >= 2 * w:
            self.reference -= self._column(now - 2 * w)
        self.recent[:, now % self.recent.shape[1]] = psi
        self.target += psi
        self.n_seen += 1
        if self.n_seen % w == 0:
            # Rounding errors would accumulate.
            self.sum_again()
        return (self.target - self.reference) / w if self.n_seen >= 2 * w else None

    def stretch(self, begin: int, end: int) -> FloatArray:
        """Features of steps in the buffer, shape (m, end - begin, n_nodes)."""
        return np.asarray(self.recent[:, np.arange(begin, end) % self.recent.shape[1]])

    def _column(self, step: int) -> FloatArray:
        return self.recent[:, step % self.recent.shape[1]]

    def sum_again(self) -> None:
        """Sum both windows from the buffer."""
        now, w = self.n_seen, self.window
        self.target = self.stretch(max(now - w, 0), now).sum(axis=1)
        self.reference = self.stretch(max(now - 2 * w, 0), max(now - w, 0)).sum(axis=1)
