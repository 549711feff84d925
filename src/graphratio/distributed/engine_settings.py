"""The settings that all engines share."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from copy import copy
from pathlib import Path
from typing import Any, Self

import numpy as np

from graphratio._utils.errors import InputError
from graphratio._utils.parameters import check_choice, check_integer
from graphratio._utils.typing import FloatArray, Label
from graphratio.data.graph import Graph
from graphratio.distributed.fold_keys import OwnFolds, WithoutFold
from graphratio.distributed.partition import METHODS, PartitionPlan
from graphratio.distributed.protocol import Engine, Message, Source


class EngineSettings:
    """Where and how a fit runs: base class of the engines; `DaskEngine` has the parameters."""

    def __init__(
        self,
        partitions: int | Sequence[Iterable[Label]] | None = None,
        *,
        loader: Callable[[list[Label]], Any] | None = None,
        partitioner: str = "bisection",
        retries: int = 3,
        checkpoint_every: int = 10,
        checkpoint: str | os.PathLike[str] | None = None,
        start: FloatArray | str | os.PathLike[str] | None = None,
        observe: Callable[[Message], None] | None = None,
    ) -> None:
        if loader is not None and not callable(loader):
            raise InputError(
                f"loader={loader!r} is not a function",
                "Pass a function of a list of labels that returns their NodeSamples",
            )
        self.partitions = partitions
        self.loader = loader
        self.partitioner = check_choice(partitioner, "partitioner", METHODS)
        self.retries = check_integer(retries, "retries", low=0)
        self.checkpoint_every = check_integer(checkpoint_every, "checkpoint_every", low=1)
        self.checkpoint = None if checkpoint is None else Path(checkpoint)
        if self.checkpoint is not None and not self.checkpoint.parent.is_dir():
            raise InputError(
                f"there is no directory {str(self.checkpoint.parent)!r} for the checkpoint",
                "Create it, or name a file elsewhere",
            )
        self.start, self.observe = start, observe
        self._left_out: tuple[Sequence[OwnFolds], int] | None = None

    def on(self, partitions: Sequence[Iterable[Label]]) -> Self:
        """Run on these partitions."""
        other = copy(self)
        other.partitions = partitions
        # Checkpoints belong to the fit on all data.
        other.start = other.checkpoint = None
        return other

    def without(
        self, partitions: Sequence[Iterable[Label]], keys: Sequence[OwnFolds], fold: int
    ) -> Self:
        """Run on these partitions, without the observations of a fold."""
        other = self.on(partitions)
        other._left_out = keys, fold
        return other

    def sources(self, sources: Sequence[Source]) -> list[Source]:
        """The sources of all partitions, without a fold if one is left out."""
        if self._left_out is None:
            return list(sources)
        keys, fold = self._left_out
        return [WithoutFold(source, own, fold) for source, own in zip(sources, keys, strict=True)]

    def start_for(self, n_nodes: int, m: int) -> FloatArray | None:
        """Coefficients to start from, checked; None for zero."""
        if self.start is None:
            return None
        theta: Any = self.start
        if isinstance(theta, str | os.PathLike):
            try:
                theta = np.load(theta, allow_pickle=False)
            except (OSError, ValueError) as error:
                raise InputError(
                    f"{str(self.start)!r} cannot be read as a checkpoint ({error})",
                    "Pass the path that was given as checkpoint=",
                ) from error
        theta = np.asarray(theta)
        if theta.shape != (n_nodes, 1, m) or not np.isfinite(theta).all():
            raise InputError(
                f"start has the shape {theta.shape} or values that are not finite, but the "
                f"problem needs {(n_nodes, 1, m)}",
                "Use a checkpoint of the same fit, or leave out start=",
            )
        return np.asarray(theta, dtype=np.float64)

    def planned(self, graph: Graph) -> int | Sequence[Iterable[Label]]:
        """The partitions asked for; by default two."""
        return min(2, graph.n_nodes) if self.partitions is None else self.partitions

    def open(self, plans: Sequence[PartitionPlan], sources: Sequence[Source]) -> Engine:
        """Start with empty partitions; `rebuild` fills them."""
        raise NotImplementedError

    def __deepcopy__(self, memo: dict[int, Any]) -> EngineSettings:
        # Copies of an estimator run in the same place.
        return self
