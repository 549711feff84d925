"""Slow is not lost: what counts as a sign of life, by a clock that the test moves."""

import asyncio

import pytest

from graphratio.distributed import WorkerLost
from graphratio.distributed import lifesigns as module
from graphratio.distributed.actors import DaskPartitions
from graphratio.distributed.lifesigns import LifeSigns

TIMEOUT = 20.0


class FakeCluster:
    """A client whose scheduler answers what the test says; its clock is hours ahead of ours."""

    def __init__(self, *addresses):
        self.stamps = dict.fromkeys(addresses, 1e6)
        self.silent = False
        self.scheduler = self
        self.now = 0.0

    async def identity(self, n_workers):
        assert n_workers == -1  # all of them
        if self.silent:
            raise TimeoutError
        return {"workers": {a: {"last_seen": stamp} for a, stamp in self.stamps.items()}}

    def sync(self, function, *arguments):
        return asyncio.run(function(*arguments))

    def beat(self, *addresses):
        for address in addresses:
            self.stamps[address] = 1e6 + self.now


@pytest.fixture
def cluster(monkeypatch):
    cluster = FakeCluster("a", "b")
    monkeypatch.setattr(module.time, "monotonic", lambda: cluster.now)
    monkeypatch.setattr(module.time, "sleep", lambda s: setattr(cluster, "now", cluster.now + s))
    return cluster


def first_trouble(cluster, signs, address, beats=(), until=100):
    """When a worker counts as lost, if something is expected of it from now on."""
    began = cluster.now
    while cluster.now < began + until:
        cluster.now += signs.every
        cluster.beat(*beats)
        cluster.sync(signs.look)
        if (trouble := signs.trouble(address, began)) is not None:
            return cluster.now - began, trouble
    return None, None


def test_silence_is_noticed_within_the_time_out(cluster):
    signs = LifeSigns(cluster, TIMEOUT)
    after, trouble = first_trouble(cluster, signs, "a", beats=["b"])
    assert 0.8 * TIMEOUT <= after <= TIMEOUT
    assert isinstance(trouble, TimeoutError)
    assert "no sign of life" in str(trouble)


def test_heartbeats_keep_a_slow_worker(cluster):
    signs = LifeSigns(cluster, TIMEOUT)
    assert first_trouble(cluster, signs, "a", beats=["a"]) == (None, None)


def test_silence_before_anything_was_expected_does_not_count(cluster):
    """Nobody looked for a long time, and then the scheduler is slow to answer."""
    signs = LifeSigns(cluster, TIMEOUT)
    cluster.sync(signs.look)
    cluster.now += 10 * TIMEOUT
    cluster.silent = True
    after, _ = first_trouble(cluster, signs, "a")
    assert 0.8 * TIMEOUT <= after <= TIMEOUT


def test_a_worker_that_the_scheduler_drops_is_lost_at_once(cluster):
    signs = LifeSigns(cluster, TIMEOUT)
    assert signs.trouble("c", 0.0) is None  # not looked yet
    del cluster.stamps["a"]
    after, trouble = first_trouble(cluster, signs, "a")
    assert after == signs.every
    assert isinstance(trouble, ConnectionError)


class TestWhereLostPartitionsGo:
    @pytest.fixture
    def engine(self, cluster):
        return DaskPartitions(cluster, [None, None], [None, None], TIMEOUT, 100.0)

    def test_to_workers_without_a_failure(self, engine):
        engine.shunned["a"] = None
        assert engine._room([0]) == ["b"]

    def test_if_there_are_none_to_those_alive_since(self, engine, cluster):
        """A worker that was only slow is better than giving up."""
        cluster.sync(engine.signs.look)
        engine.shunned = {"a": engine.signs.stamps["a"], "b": engine.signs.stamps["b"]}
        cluster.now += 1
        cluster.beat("b")
        assert engine._room([0]) == ["b"]

    def test_unknown_heartbeats_are_no_sign(self, engine):
        engine.shunned = {"a": None, "b": None}
        with pytest.raises(WorkerLost, match="no worker is left"):
            engine._room([0, 1])

    def test_a_worker_that_comes_back_is_waited_for(self, engine, cluster, monkeypatch):
        cluster.stamps.clear()
        wait = module.time.sleep

        def arrive(seconds):
            wait(seconds)
            if cluster.now > 0.5 * TIMEOUT:
                cluster.stamps["c"] = cluster.now

        monkeypatch.setattr(module.time, "sleep", arrive)
        assert engine._room([0]) == ["c"]
        assert cluster.now < TIMEOUT

    def test_a_scheduler_that_is_gone_is_not_waited_for(self, engine, cluster):
        cluster.sync(engine.signs.look)
        cluster.scheduler = None  # as the client has it when it could not connect again
        with pytest.raises(WorkerLost, match="scheduler is gone"):
            engine._room([0])
        assert cluster.now == 0

    def test_only_to_workers_that_may_be_used(self, cluster):
        engine = DaskPartitions(cluster, [None], [None], TIMEOUT, 100.0, workers=["b"])
        assert engine._room([0]) == ["b"]
