"""Calls to the partitions of a fit, ordered sums of their answers, and mail between them.

A *step* calls one method on every partition and adds the values in the order of the partitions, so
that the sum is the same to the last bit wherever they are. A partition leaves rows for another one
in its outbox; they are in the other's inbox at the next step.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from graphratio._utils.errors import GraphRatioError
from graphratio._utils.typing import FloatArray, Label
from graphratio.data.samples import NodeSamples

Mail = dict[int, FloatArray]

# The source of a partition's samples: the samples, or a function of labels that returns them.
Source = NodeSamples | Callable[[list[Label]], Any]

# Arguments that differ between partitions.
PerPart = Sequence[dict[str, Any]] | None


@dataclass(frozen=True, eq=False)
class Call:
    """One method call on one partition, with rows from other partitions in the `inbox`."""

    method: str
    inbox: Mail
    arguments: dict[str, Any]


@dataclass(frozen=True, eq=False)
class Reply:
    """The answer to a call, with rows for other partitions in the `outbox`."""

    value: Any = None
    outbox: Mail = field(default_factory=dict)


class WorkerLost(Exception):
    """Partitions did not answer: their worker is gone or frozen."""

    def __init__(self, partitions: Sequence[int], reason: str) -> None:
        self.partitions = tuple(sorted(partitions))
        self.reason = reason
        super().__init__(f"partitions {self.partitions} lost: {reason}")


class PartitionFailed(GraphRatioError, RuntimeError):
    """Code of a partition raised an error, which a second attempt would raise again."""


@dataclass(frozen=True, eq=False)
class Message:
    """Data that crossed the border of a partition, `outgoing` or not, for observers."""

    partition: int
    method: str
    outgoing: bool
    payload: Any


class Engine:
    """The partitions of one fit, placed by subclasses; `observe` is called with every message."""

    def __init__(self, n_partitions: int, observe: Callable[[Message], None] | None = None) -> None:
        self.n_partitions = n_partitions
        self.observe = observe
        self._mail: list[Mail] = [{} for _ in range(n_partitions)]

    def _deliver(self, partitions: Sequence[int], calls: Sequence[Call], slow: bool) -> list[Reply]:
        """Run the calls and return the replies in order, or raise `WorkerLost`."""
        raise NotImplementedError

    def _make(self, partitions: Sequence[int]) -> None:
        """Create partitions, in place of existing ones."""
        raise NotImplementedError

    def step(self, method: str, per_part: PerPart = None, **shared: Any) -> Any:
        """Run on every partition and return the ordered sum of the values.

        Outboxes become the inboxes of the next step. Raises `WorkerLost` within a time-out.
        """
        inboxes, self._mail = self._mail, [{} for _ in range(self.n_partitions)]
        replies = self.run(method, per_part, shared, inboxes=inboxes, slow=False)
        for sender, reply in enumerate(replies):
            for receiver, rows in reply.outbox.items():
                self._mail[receiver][sender] = rows
        return ordered_sum([reply.value for reply in replies])

    def gather(self, method: str, per_part: PerPart = None, **shared: Any) -> list[Any]:
        """Run on every partition and return the values one by one; mail stays where it is."""
        return [reply.value for reply in self.run(method, per_part, shared)]

    def run(
        self,
        method: str,
        per_part: PerPart,
        shared: dict[str, Any],
        partitions: Sequence[int] | None = None,
        inboxes: Sequence[Mail] | None = None,
        slow: bool = True,
    ) -> list[Reply]:
        """Run on some partitions, default all; replies in order."""
        chosen = range(self.n_partitions) if partitions is None else partitions
        calls = [
            Call(
                method,
                {} if inboxes is None else inboxes[p],
                shared if per_part is None else {**shared, **per_part[p]},
            )
            for p in chosen
        ]
        observe = self.observe or (lambda _: None)
        for p, call in zip(chosen, calls, strict=True):
            observe(Message(p, method, False, (call.inbox, call.arguments)))
        replies = self._deliver(chosen, calls, slow)
        for p, reply in zip(chosen, replies, strict=True):
            observe(Message(p, method, True, (reply.value, reply.outbox)))
        return replies

    def rebuild(self, partitions: Sequence[int]) -> None:
        """Create these partitions again, without state, and drop pending mail."""
        self._mail = [{} for _ in range(self.n_partitions)]
        self._make(partitions)

    def close(self) -> None:
        """Release resources; nothing by default."""


def ordered_sum(values: Sequence[Any]) -> Any:
    """Add values first to last; tuples entry by entry, None stays None."""
    if values[0] is None:
        return None
    if isinstance(values[0], tuple):
        return tuple(ordered_sum(entries) for entries in zip(*values, strict=True))
    total = values[0] + np.zeros_like(values[0]) if isinstance(values[0], np.ndarray) else values[0]
    for value in values[1:]:
        total = total + value
    return total
