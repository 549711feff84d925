"""A one-line progress bar on standard error, without dependencies."""

from __future__ import annotations

import sys
import time
from typing import TextIO

from graphratio._utils.parameters import check_flag

# Earlier the pace is too uncertain to predict the remaining time.
_SILENT_SECONDS = 3.0


def duration(seconds: float) -> str:
    """A length of time in words."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    hours, minutes = divmod(round(seconds / 60), 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min"


class ProgressBar:
    """Show how much work is done.

    On a terminal the line is redrawn with the remaining time; elsewhere it is written twice, at the
    beginning and at the end.
    """

    def __init__(
        self, total: int, label: str, *, enabled: bool, stream: TextIO | None = None
    ) -> None:
        self.total = total
        self.label = label
        self.enabled = check_flag(enabled, "progress")
        self.stream = stream if stream is not None else sys.stderr
        self.done = 0
        self._length = 0
        self.began = time.monotonic()

    def __enter__(self) -> ProgressBar:
        self._draw(end="\r" if self._live else "\n")
        return self

    def advance(self, amount: int = 1) -> None:
        """Count work as done."""
        self.done += amount
        if self._live:
            self._draw(end="\r", suffix=self._remaining())

    def __exit__(self, *error: object) -> None:
        self._draw(end="\n", suffix=f" in {time.monotonic() - self.began:.0f} s")

    @property
    def _live(self) -> bool:
        return self.stream.isatty()

    def _remaining(self) -> str:
        elapsed = time.monotonic() - self.began
        if elapsed < _SILENT_SECONDS or self.done >= self.total:
            return ""
        left = elapsed * (self.total - self.done) / self.done
        return f", about {duration(left)} left"

    def _draw(self, end: str, suffix: str = "") -> None:
        if not self.enabled:
            return
        bar = ""
        if self._live:
            filled = round(20 * self.done / max(self.total, 1))
            bar = f" [{'#' * filled}{'.' * (20 - filled)}]"
        line = f"{self.label}:{bar} {self.done}/{self.total}{suffix}"
        # Overwrite the rest of a longer previous line.
        blank = " " * (self._length - len(line)) if self._live else ""
        self._length = len(line)
        self.stream.write(f"{line}{blank}{end}")
        self.stream.flush()
