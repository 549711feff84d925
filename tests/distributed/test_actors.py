"""Slow is not lost: what pings tell about workers, on a cluster whose answers the test sets."""

import asyncio
from types import SimpleNamespace

import pytest

from graphratio.distributed import WorkerLost
from graphratio.distributed import actors as module
from graphratio.distributed.actors import MISSED_PINGS, DaskPartitions

# So short that no test has to wait; what is counted are pings, not seconds.
TIMEOUT = 0.05


class FakeCluster:
    """A client whose workers answer pings, or not, as the test says."""

    def __init__(self, *addresses):
        self.workers = dict.fromkeys(addresses, 1)
        self.silent = set()
        self.answers = {}
        self.pinged = []
        self.removed = []
        self.scheduler = self
        self.rpc = SimpleRPC(self)

    async def ncores(self):
        return self.workers

    async def ping(self, address):
        self.pinged.append(address)
        answers = self.answers.get(address)
        if not (next(answers) if answers else address not in self.silent):
            await asyncio.Event().wait()

    def sync(self, function, *arguments):
        return asyncio.run(function(*arguments))


class SimpleRPC:
    def __init__(self, cluster):
        self.cluster = cluster

    def __call__(self, address):
        return SimpleNamespace(echo=lambda: self.cluster.ping(address))

    def remove(self, address):
        self.cluster.removed.append(address)


@pytest.fixture
def cluster():
    return FakeCluster("a", "b")


@pytest.fixture
def engine(cluster):
    """Partition 0 on worker a, partition 1 on worker b."""
    engine = DaskPartitions(cluster, [None, None], [None, None], TIMEOUT, 100.0)
    engine.address = {0: "a", 1: "b"}
    engine.hosts = {p: (None, SimpleNamespace(status="finished")) for p in (0, 1)}
    return engine


class TestWhatCountsAsLost:
    def test_a_worker_that_misses_pings_in_a_row(self, engine, cluster):
        cluster.silent.add("a")
        loss = asyncio.run(engine._loss(0))
        assert isinstance(loss, TimeoutError)
        assert "no answer to 4 pings" in str(loss)
        assert cluster.pinged == ["a"] * MISSED_PINGS

    def test_one_answer_makes_up_for_missed_pings(self, engine, cluster):
        """As when this process was asleep while the answer came."""
        almost = [False] * (MISSED_PINGS - 1)
        cluster.answers["a"] = iter([*almost, True, *almost, True, *almost, False])
        asyncio.run(engine._loss(0))
        assert len(cluster.pinged) == 3 * MISSED_PINGS

    def test_a_worker_that_dask_drops_at_once(self, engine, cluster):
        engine.hosts[0] = (None, SimpleNamespace(status="error"))
        loss = asyncio.run(engine._loss(0))
        assert isinstance(loss, ConnectionError)
        assert not cluster.pinged

    def test_a_slow_answer_is_waited_for(self, engine, cluster):
        async def slow():
            while len(cluster.pinged) < 3 * MISSED_PINGS:
                await asyncio.sleep(0)
            return "done", 7

        assert engine._collect({0: slow}, slow=True) == {0: 7}
        assert not engine.shunned

    def test_only_the_partition_without_an_answer(self, engine, cluster):
        async def answer():
            return "done", 7

        cluster.silent.add("b")
        with pytest.raises(WorkerLost, match="no answer to 4 pings") as info:
            engine._collect({0: answer, 1: asyncio.Event().wait}, slow=False)
        assert info.value.partitions == (1,)
        assert engine.shunned == {"b"}
        assert cluster.removed == ["b"]

    def test_nobody_waits_for_an_answer_after_an_interrupt(self, engine):
        async def interrupted():
            asked = asyncio.Event()

            async def never():
                asked.set()
                await asyncio.Event().wait()

            waiting = asyncio.ensure_future(engine._answers({0: never}, 100.0))
            await asked.wait()
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
            # Tasks that were cancelled end in the next round.
            await asyncio.sleep(0)
            return asyncio.all_tasks() - {asyncio.current_task()}

        assert not asyncio.run(interrupted())

    def test_an_answer_that_never_comes(self, engine, cluster):
        engine.load_timeout = 0.02
        with pytest.raises(WorkerLost, match=r"no answer within 0\.02 s"):
            engine._collect({0: asyncio.Event().wait}, slow=True)


class TestWhereLostPartitionsGo:
    def test_to_workers_without_a_failure(self, engine, cluster):
        engine.shunned.add("a")
        assert engine._room([0]) == ["b"]
        assert not cluster.pinged

    def test_if_there_are_none_to_those_that_answer(self, engine, cluster):
        """A worker that was only slow is better than giving up."""
        engine.shunned |= {"a", "b"}
        cluster.silent.add("a")
        assert engine._room([0]) == ["b"]

    def test_nowhere_if_nobody_answers(self, engine, cluster):
        engine.shunned |= {"a", "b"}
        cluster.silent |= {"a", "b"}
        with pytest.raises(WorkerLost, match="no worker is left"):
            engine._room([0, 1])

    def test_a_worker_that_comes_back_is_waited_for(self, engine, cluster, monkeypatch):
        cluster.workers = {}
        monkeypatch.setattr(module.time, "sleep", lambda _: cluster.workers.update(c=1))
        assert engine._room([0]) == ["c"]

    def test_a_scheduler_that_is_gone_is_not_waited_for(self, engine, cluster):
        cluster.scheduler = None  # as the client has it when it could not connect again
        with pytest.raises(WorkerLost, match="scheduler is gone"):
            engine._room([0])

    def test_only_to_workers_that_may_be_used(self, cluster):
        engine = DaskPartitions(cluster, [None], [None], TIMEOUT, 100.0, workers=["b"])
        assert engine._room([0]) == ["b"]
