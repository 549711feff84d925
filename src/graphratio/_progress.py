"""A one-line progress bar on standard error, without dependencies."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import TextIO


class ProgressBar:
    """Show how much of a known amount of work is done.

    On a terminal the line is redrawn; elsewhere only the start and the end are written.

    Parameters
    ----------
    total : int
    label : str
    enabled : bool
        When False nothing is written.
    stream : text stream, optional
        Default standard error.

    Examples
    --------
    >>> with ProgressBar(2, "work", enabled=True, stream=sys.stdout) as bar:
    ...     bar.advance()
    ...     bar.advance()
    work: 0/2
    work: 2/2 in 0 s
    """

    def __init__(
        self, total: int, label: str, *, enabled: bool, stream: TextIO | None = None
    ) -> None:
        self.total = total
        self.label = label
        self.enabled = enabled
        self.stream = stream if stream is not None else sys.stderr
        self.done = 0
        self.began = time.monotonic()

    def __enter__(self) -> ProgressBar:
        self._draw(end="\r" if self._live else "\n")
        return self

    def advance(self, amount: int = 1) -> None:
        """Count work as done."""
        self.done += amount
        if self._live:
            self._draw(end="\r")

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._draw(end="\n", suffix=f" in {time.monotonic() - self.began:.0f} s")

    @property
    def _live(self) -> bool:
        return self.stream.isatty()

    def _draw(self, end: str, suffix: str = "") -> None:
        if not self.enabled:
            return
        bar = ""
        if self._live:
            filled = round(20 * self.done / max(self.total, 1))
            bar = f" [{'#' * filled}{'.' * (20 - filled)}]"
        self.stream.write(f"{self.label}:{bar} {self.done}/{self.total}{suffix}{end}")
        self.stream.flush()
