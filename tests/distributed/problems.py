"""Small problems and a faulty engine, shared by the tests of the engine."""

from __future__ import annotations

from types import FunctionType

import numpy as np

import graphratio as gr
from graphratio.distributed import LocalEngine, WorkerLost
from graphratio.distributed.fold_keys import FoldKeys, OwnKeys
from graphratio.distributed.local import LocalPartitions
from graphratio.features.kernels import Kernel
from graphratio.features.nystrom import NystromMap
from graphratio.moments.second_moments import Leading

FIXED = dict(bandwidth=1.2, graph_penalty=0.6, ridge=0.03, random_state=0)


def ring(n_nodes: int = 12, n_features: int = 2, seed: int = 0):
    """A ring with two chords, ragged samples, and a changed arc."""
    rng = np.random.default_rng(seed)
    nodes = [f"v{i}" for i in range(n_nodes)]
    edges = [(nodes[i], nodes[(i + 1) % n_nodes], 1.0 + i % 3) for i in range(n_nodes)]
    edges += [(nodes[0], nodes[n_nodes // 2], 0.5), (nodes[2], nodes[n_nodes - 3], 2.0)]
    graph = gr.Graph.from_edges(edges, nodes=nodes)
    reference, target = {}, {}
    for i, node in enumerate(nodes):
        n, n_target = rng.integers(12, 25, size=2)
        reference[node] = rng.normal(size=(n, n_features))
        target[node] = rng.normal(size=(n_target, n_features)) + (i < n_nodes // 3)
    return gr.NodeSamples.from_arrays(reference, target), graph


# What may be in a message beside arrays and numbers: no data hides in these.
PLAIN = (bool, int, str, type, FunctionType, np.integer, np.random.Generator, Kernel)


def arrays_in(payload):
    """All arrays of a message, however deep; a single number is an array too."""
    if isinstance(payload, np.ndarray):
        yield payload
    elif isinstance(payload, float | np.floating):
        yield np.array([payload])
    elif isinstance(payload, dict):
        for value in payload.values():
            yield from arrays_in(value)
    elif isinstance(payload, tuple | list):
        for value in payload:
            yield from arrays_in(value)
    elif isinstance(payload, NystromMap):
        yield from (payload.pivots, payload.transform)
    elif isinstance(payload, Leading):
        yield from (payload.vectors, payload.weights)
    elif isinstance(payload, FoldKeys):
        yield from (payload.starts, payload.offset)
    elif isinstance(payload, OwnKeys):
        yield from (payload.starts, payload.counts)
    elif payload is not None and not isinstance(payload, PLAIN):
        # Samples and plans are for building partitions only.
        raise AssertionError(f"a message has something of type {type(payload).__name__}")


def loader_of(samples):
    """A loader that brings these samples."""
    return lambda nodes: gr.NodeSamples.from_arrays(
        {v: samples.reference(v) for v in nodes}, {v: samples.target(v) for v in nodes}
    )


def loader_that_fails(samples):
    """A loader that reads three times, and then no more."""
    asked = []

    def loader(nodes):
        asked.append(nodes)
        if len(asked) > 3:
            raise OSError("disk gone")
        return loader_of(samples)(nodes)

    return loader


def assert_no_observation_in(messages, samples, least):
    """No number in any message is one of an observation, and there are at least so many numbers."""
    observed = np.unique(samples.values)
    floats = [a for m in messages for a in arrays_in(m.payload) if a.dtype.kind == "f"]
    assert sum(a.size for a in floats) > least
    rounded = samples.values.astype(np.float32)
    for array in floats:
        assert not np.isin(array, observed).any()
        # In single precision one number may agree by chance, all of an observation do not.
        assert not np.isin(rounded, array.astype(np.float32)).all(axis=1).any()


class FaultyPartitions(LocalPartitions):
    """Partitions that are lost at given calls.

    `losses` maps the number of a delivery, or a method to mean every delivery of it, to the
    partitions lost in it, `bad_rebuilds` the number of a rebuild. In a delivery the others have
    done their part when the loss shows, in a rebuild nobody has been made.
    """

    def __init__(self, plans, sources, losses, bad_rebuilds, log):
        super().__init__(plans, sources)
        self.losses, self.bad_rebuilds, self.log = losses, bad_rebuilds, log
        self.n_delivered = self.n_rebuilt = 0

    def _make(self, partitions):
        number, self.n_rebuilt = self.n_rebuilt, self.n_rebuilt + 1
        for p in self.bad_rebuilds.get(number, ()):
            self.parts.pop(p, None)
        if number in self.bad_rebuilds:
            raise WorkerLost(self.bad_rebuilds[number], "injected while rebuilding")
        super()._make(partitions)

    def _deliver(self, partitions, calls, slow):
        number, self.n_delivered = self.n_delivered, self.n_delivered + 1
        self.log.append(calls[0].method)
        lost = self.losses.get(number, self.losses.get(calls[0].method, ()))
        if not lost:
            return super()._deliver(partitions, calls, slow)
        for p in lost:
            self.parts.pop(p, None)
        kept = [(p, call) for p, call in zip(partitions, calls, strict=True) if p not in lost]
        super()._deliver([p for p, _ in kept], [call for _, call in kept], slow)
        raise WorkerLost(lost, "injected")


class FaultyEngine(LocalEngine):
    """A local engine with injected faults; `log` has the methods in order."""

    def __init__(self, partitions=3, losses=None, bad_rebuilds=None, **kwargs):
        super().__init__(partitions, **kwargs)
        self.losses, self.bad_rebuilds = losses or {}, bad_rebuilds or {}
        self.log: list[str] = []

    def open(self, plans, sources):
        return FaultyPartitions(plans, sources, self.losses, self.bad_rebuilds, self.log)
