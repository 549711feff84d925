"""Recovery from lost workers.

The state of a partition follows from its source and the calls that set it up. The fleet keeps
these calls and repeats them on a rebuilt partition. Iterations continue from the last copy of the
coefficients, since conjugate gradients may start anywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from graphratio._utils.errors import EngineError
from graphratio._utils.files import appearing
from graphratio._utils.typing import FloatArray
from graphratio.distributed.protocol import Engine, PerPart, WorkerLost

Result = TypeVar("Result")


class Fleet:
    """An engine, with no partition made yet, that rebuilds lost partitions.

    It gives up after `retries` recoveries in a row without progress. Progress is a copy of the
    coefficients after further iterations, or a finished piece of work. `saved` is the last copy of
    the coefficients of the current solve, by partition; the file `checkpoint` keeps it too.
    """

    def __init__(self, engine: Engine, retries: int, checkpoint: Path | None = None) -> None:
        self.engine = engine
        self.retries, self.checkpoint = retries, checkpoint
        self.n_recoveries = 0
        self.saved: list[FloatArray] | None = None
        self.nodes: Sequence[Any] = ()
        self._in_a_row = self._depth = 0
        self._furthest = -1
        self._setup: list[tuple[str, PerPart, dict[str, Any]]] = []

    def start(self) -> None:
        """Make all partitions."""
        everyone = range(self.engine.n_partitions)
        try:
            self.engine.rebuild(everyone)
        except WorkerLost as loss:
            # When one is lost, the others may not exist yet either.
            self._recover(WorkerLost(everyone, loss.reason))

    def setup(self, method: str, per_part: PerPart = None, **shared: Any) -> list[Any]:
        """Run a call that a rebuilt partition needs too.

        It replaces an earlier call of its name and those after it, which build on it.
        """
        names = [name for name, _, _ in self._setup]
        if method in names:
            del self._setup[names.index(method) :]
        # Recorded only when done, since `ask` repeats the call after a loss.
        values = self.ask(method, per_part, **shared)
        self._setup.append((method, per_part, shared))
        return values

    def ask(self, method: str, per_part: PerPart = None, **shared: Any) -> list[Any]:
        """Run a call that may be repeated; returns the values of all partitions."""
        return self.attempt(lambda: self.engine.gather(method, per_part, **shared))

    def attempt(self, work: Callable[[], Result]) -> Result:
        """Run work, and restart it after every loss.

        Only the outermost work counts as progress: a later failure could repeat nested ones for
        ever.
        """
        self._depth += 1
        try:
            while True:
                try:
                    result = work()
                except WorkerLost as loss:
                    self._recover(loss)
                else:
                    if self._depth == 1:
                        self._in_a_row = 0
                    return result
        finally:
            self._depth -= 1

    def begin(self, parts: list[FloatArray] | None) -> None:
        """Begin a solve from coefficients, None for zero."""
        self.saved, self._furthest = parts, -1

    def save(self, parts: list[FloatArray], n_iter: int) -> None:
        """Keep a copy of the coefficients; one after more iterations than ever is progress."""
        self.saved = parts
        if n_iter > self._furthest:
            self._furthest, self._in_a_row = n_iter, 0
        if self.checkpoint is not None:
            with appearing(self.checkpoint) as rough, rough.open("wb") as stream:
                np.save(stream, self.whole(parts), allow_pickle=False)

    def whole(self, parts: Sequence[FloatArray]) -> FloatArray:
        """Rows of all partitions in the order of the graph."""
        total = sum(len(part) for part in parts)
        rows = np.empty((total, *parts[0].shape[1:]), dtype=parts[0].dtype)
        for nodes, part in zip(self.nodes, parts, strict=True):
            rows[nodes] = part
        return rows

    def solution(self) -> FloatArray:
        """The last copy of the coefficients, shape (n_nodes, n_candidates, m)."""
        if self.saved is None:
            raise EngineError("there is no copy of the coefficients", "Solve first")
        return self.whole(self.saved)

    def parts(self, rows: FloatArray) -> list[FloatArray]:
        """Split rows in the order of the graph by partition."""
        return [rows[nodes] for nodes in self.nodes]

    def _recover(self, loss: WorkerLost) -> None:
        """Rebuild lost partitions, and those that are lost meanwhile."""
        missing: set[int] = set()
        while True:
            missing.update(loss.partitions)
            self._in_a_row += 1
            if self._in_a_row > self.retries:
                raise self._given_up(loss) from loss
            try:
                lost = sorted(missing)
                self.engine.rebuild(lost)
                for method, per_part, shared in self._setup:
                    self.engine.run(method, per_part, shared, lost)
            except WorkerLost as another:
                loss = another
            else:
                self.n_recoveries += 1
                return

    def _given_up(self, loss: WorkerLost) -> EngineError:
        kept = "there are no coefficients yet"
        remedy = "Look at the logs of the workers; raise timeout if they are slow rather than dead"
        if self.saved is not None:
            kept = "error.checkpoint has the last coefficients"
            kept += f", and so has {str(self.checkpoint)!r}" if self.checkpoint is not None else ""
            remedy += "; to continue from these, pass start=error.checkpoint to the engine"
        return EngineError(
            f"partitions {list(loss.partitions)} were lost ({loss.reason}) and {self.retries} "
            f"recoveries in a row did not help; {kept}",
            remedy,
            None if self.saved is None else self.solution(),
        )
