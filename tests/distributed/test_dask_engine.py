"""The Dask engine on real worker processes: the same bits, and real faults."""

import asyncio
import logging
import os
import signal
import threading
import time
from collections import Counter
from concurrent.futures import Future

import dask
import numpy as np
import pytest
from distributed.utils import get_mp_context
from numpy.testing import assert_allclose, assert_array_equal
from tests.distributed.problems import FIXED, arrays_in, ring

import graphratio as gr
from distributed import Client, LocalCluster
from graphratio.distributed import LocalEngine
from graphratio.distributed.actors import DaskPartitions
from graphratio.exceptions import EngineError, InputError, MissingDependencyError

# Left out by `make quick`.
pytestmark = pytest.mark.slow

SELECTED = dict(bandwidth=[0.8, 1.6], graph_penalty=[0.24, 2.4], ridge=[0.1], cv=2, random_state=0)
TIMEOUT = 5.0
# A frozen worker is waited for this long. Losing another one on a busy machine is no error.
SHORT_TIMEOUT = 2.0
# Nothing here takes this long unless it hangs, on a busy machine neither.
HANG = 300.0

N_WORKERS = 4
# Processes that got a signal.
STRUCK = set()


@pytest.fixture(scope="module")
def cluster():
    # Workers are killed on purpose; what Dask has to say about it is of no interest.
    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    settings = {
        # A cluster drops workers that need longer than this to be started again.
        "distributed.deploy.lost-worker-timeout": "1h",
        # Workers are forked from a process that has imported everything, which takes seconds.
        "distributed.worker.multiprocessing-method": "forkserver",
    }
    with dask.config.set(settings):
        get_mp_context().set_forkserver_preload(["distributed", "graphratio.distributed.actors"])
        with LocalCluster(
            n_workers=N_WORKERS,
            threads_per_worker=1,
            # Any port that is free, since other clusters may run on this machine.
            dashboard_address="127.0.0.1:0",
            memory_limit=0,
        ) as running_cluster:
            yield running_cluster


@pytest.fixture
def client(cluster):
    """A client of a cluster that has all its workers, whatever happened to it before."""
    wait_until(lambda: len(running(cluster)) == N_WORKERS)
    with Client(cluster, set_as_default=False) as connected:
        yield connected


@pytest.fixture(scope="module")
def data():
    return ring()


@pytest.fixture
def few(monkeypatch):
    """Two nodes per partition in two groups: tests of nodes select and solve for every group."""
    monkeypatch.setattr("graphratio.testing.predictions.N_GROUPS", 2)
    monkeypatch.setattr("graphratio.testing.predictions.N_PARTS", 2)
    return ring(8)


@pytest.fixture(scope="module")
def whole(data):
    return gr.GRULSIF(**FIXED, tol=1e-10).fit(*data)


def running(cluster):
    """Process id by address of the workers that are up; their nannies replace killed ones."""
    up = {nanny.worker_address: nanny.pid for nanny in cluster.workers.values()}
    known = set(cluster.scheduler.workers)
    # Nannies and the scheduler take a while to notice that a worker has died.
    if set(up) != known or STRUCK & set(up.values()) or None in up.values():
        return {}
    return up


def wait_until(condition):
    deadline = time.monotonic() + HANG
    while not condition():
        assert time.monotonic() < deadline, "the cluster has not come up again"
        time.sleep(0.05)


def finished(work):
    """Run in a thread, so that a hang fails a test and does not stop all of them."""
    outcome = Future()

    def run():
        try:
            outcome.set_result(work())
        except BaseException as error:
            outcome.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    return outcome.result(timeout=HANG)


def same(one, other):
    for name in ("coef_", "divergence_", "dictionary_"):
        assert_array_equal(getattr(one, name), getattr(other, name))
    for name, column in (one.cv_results_ or {}).items():
        assert_array_equal(column, other.cv_results_[name])
    assert one.solution_.n_iter == other.solution_.n_iter
    assert one.solution_.history == other.solution_.history


def contents(message):
    arrays = [array.tobytes() for array in arrays_in(message.payload)]
    return message.partition, message.method, message.outgoing, arrays


def test_actors_that_are_made_at_once_all_belong_to_the_client(cluster, client, monkeypatch):
    """Dask fetches together what several wait for, in the context of the first of them."""
    engine = DaskPartitions(client, [None] * 16, [None] * 16, TIMEOUT, HANG)
    addresses, submit = sorted(running(cluster)), client.submit

    def uneven(function, *arguments, **where):
        if function is exec:
            # Some imports take longer than others.
            arguments = (f"import time; time.sleep({next(seconds)})",)
        return submit(function, *arguments, **where)

    async def made():
        return await asyncio.gather(*(engine._create(addresses[k % 4]) for k in range(16)))

    monkeypatch.setattr(client, "submit", uneven)
    for _ in range(5):
        seconds = iter(0.002 * np.arange(16))
        assert all(actor._client is client for _, (actor, _) in client.sync(made))


def test_two_and_four_workers_give_the_bits_of_one_process(cluster, client, data):
    sent = []
    here = gr.GRULSIF(**SELECTED, engine=LocalEngine(4, observe=sent.append)).fit(*data)
    addresses = sorted(running(cluster))
    for n_workers in (2, 4):
        crossed = []
        engine = gr.DaskEngine(client, 4, workers=addresses[:n_workers], observe=crossed.append)
        there = gr.GRULSIF(**SELECTED, engine=engine).fit(*data)
        same(here, there)
        assert [contents(m) for m in crossed] == [contents(m) for m in sent]
    here = gr.GRULSIF(**FIXED, engine=LocalEngine(4)).fit(*data)
    there = gr.GRULSIF(**FIXED, engine=gr.DaskEngine(cluster.scheduler_address)).fit(*data)
    assert there.solution_.partitions == 4  # one for every worker
    same(here, there)


PROFILES = dict(bandwidth=1.2, n_profiles=2, ridge=0.03, random_state=0)


def test_profiles_have_the_bits_of_one_process(client, data):
    """With a search for the strength of the graph and the rounds."""
    given = {**PROFILES, "graph_penalty": [0.24, 2.4], "cv": 2}
    here = gr.GraphRatio(**given, engine=LocalEngine(4)).fit(*data)
    there = gr.GraphRatio(**given, engine=gr.DaskEngine(client, 4)).fit(*data)
    same(here, there)
    assert_array_equal(here.coordinates_, there.coordinates_)
    assert_array_equal(here.graph_learned_.adjacency.data, there.graph_learned_.adjacency.data)


def test_bounds_have_the_bits_of_one_process(client, data):
    given = {**PROFILES, "graph_penalty": 0.6, "n_rounds": 1}
    options = {"n_folds": 3, "random_state": 0}
    here, there = (
        gr.divergence_bounds(*data, gr.GraphRatio(**given, engine=engine), **options)
        for engine in (LocalEngine(4), gr.DaskEngine(client, 4))
    )
    for name in ("true_divergence_lower_bound", "fitted_divergence_interval"):
        assert_array_equal(getattr(here, name), getattr(there, name))


# Few permutations: they are counted within a partition, whatever their number.
TESTS = {"correction": None, "n_permutations": 199, "random_state": 0}


def test_node_tests_have_the_bits_of_one_process(client, few):
    for kind, given in (
        (gr.GRULSIF, {**FIXED, "graph_penalty": [0.24, 2.4], "cv": 2}),
        (gr.GraphRatio, {**PROFILES, "graph_penalty": 0.6, "n_rounds": 1}),
    ):
        here, there = (
            gr.two_sample_test(*few, kind(**given, engine=engine), **TESTS)
            for engine in (LocalEngine(4), gr.DaskEngine(client, 4))
        )
        for name in ("evidence", "p_value", "adjusted_p_value", "rejected"):
            assert_array_equal(getattr(here, name), getattr(there, name))
        assert here.penalties == there.penalties


def test_loader_runs_on_the_worker(client, data, tmp_path):
    samples, graph = data
    for node in graph.nodes:
        np.savez(tmp_path / node, ref=samples.reference(node), tgt=samples.target(node))

    def loader(nodes):
        files = [np.load(tmp_path / f"{node}.npz") for node in nodes]
        (tmp_path / f"pid-{os.getpid()}").touch()
        return [file["ref"] for file in files], [file["tgt"] for file in files]

    there = gr.GRULSIF(**FIXED, engine=gr.DaskEngine(client, 3, loader=loader)).fit(None, graph)
    same(gr.GRULSIF(**FIXED, engine=LocalEngine(3)).fit(*data), there)
    pids = {int(path.name[4:]) for path in tmp_path.glob("pid-*")}
    assert pids <= set(client.run(os.getpid).values())
    assert len(pids) == 3


def test_mistakes_come_back_as_clear_errors(client, data):
    graph = data[1]

    class Stubborn(Exception):
        def __reduce__(self):
            raise TypeError("not to be pickled")

    def failing(nodes):
        raise Stubborn("no such table")

    with pytest.raises(InputError, match=r"loader, for partition \d .*Stubborn: no such table"):
        gr.GRULSIF(engine=gr.DaskEngine(client, 2, loader=failing)).fit(None, graph)

    class Secretive(InputError):
        def __reduce__(self):
            raise TypeError("not to be pickled")

    for kind, text in ((Secretive, "no such table"), (SystemExit, "gone"), (ValueError, "\udc80")):

        def raising(nodes, kind=kind, text=text):
            raise kind(text)

        engine = gr.DaskEngine(client, 2, loader=raising, retries=0)
        with pytest.raises(gr.exceptions.GraphRatioError, match=r"no such table|gone|\udc80"):
            finished(lambda engine=engine: gr.GRULSIF(engine=engine).fit(None, graph))
    lock = threading.Lock()
    with pytest.raises(InputError, match="cannot be sent to workers"):
        gr.DaskEngine(client, 2, loader=lambda nodes: lock)
    with pytest.raises(InputError, match="is not a cluster"):
        gr.DaskEngine(3)
    with pytest.raises(EngineError, match="no Dask scheduler at"):
        gr.GRULSIF(engine=gr.DaskEngine("tcp://127.0.0.1:9", 2, timeout=1)).fit(*data)


def test_without_dask_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "distributed", None)
    with pytest.raises(MissingDependencyError, match=r'"\.\[dask\]"'):
        gr.DaskEngine("tcp://127.0.0.1:9")


class Attack(gr.DaskEngine):
    """Send signals to workers at certain messages to partitions; `plan` has (method, count)."""

    def __init__(self, cluster, client, plan, timeout=TIMEOUT, **settings):
        super().__init__(client, N_WORKERS, timeout=timeout, checkpoint_every=2, **settings)
        self.observe = self.look
        self.pids, self.plan = running(cluster), dict(plan)
        self.frozen, self.seen, self.log = [], Counter(), []

    def open(self, plans, sources):
        self.opened = super().open(plans, sources)
        return self.opened

    def look(self, message):
        if message.outgoing:
            return
        self.seen[message.method] += 1
        self.log.append(message.method)
        for kind in self.plan.pop((message.method, self.seen[message.method]), ()):
            # The worker that the message goes to, then others that have a partition.
            used = [self.opened.address[message.partition], *self.opened.address.values()]
            pid = next(self.pids[a] for a in used if self.pids.get(a, 0) not in {0, *STRUCK})
            STRUCK.add(pid)
            os.kill(pid, kind)
            self.log.append(kind)
            if kind == STOP:
                self.frozen.append(pid)

    def clean_up(self):
        for pid in self.frozen:
            os.kill(pid, KILL)


KILL, STOP = signal.SIGKILL, signal.SIGSTOP
# Every step sends one message to each of four partitions; the fifth of a method that sets up is
# the first one of a recovery.
FAULTS = {
    "killed": {("conjugate.direction", 17): (KILL,)},
    "frozen": {("conjugate.advance", 17): (STOP,)},
    "two at once": {("conjugate.direction", 17): (KILL, STOP)},
    "killed during recovery": {("conjugate.advance", 17): (KILL,), ("set_problem", 5): (KILL,)},
    "frozen while setting up": {("set_features", 1): (STOP,)},
}


@pytest.mark.parametrize("name", FAULTS)
def test_real_faults_end_in_the_right_answer(cluster, client, data, whole, name):
    freezes = any(STOP in kinds for kinds in FAULTS[name].values())
    timeout = SHORT_TIMEOUT if freezes else TIMEOUT
    attack = Attack(cluster, client, FAULTS[name], timeout=timeout)
    try:
        model = finished(lambda: gr.GRULSIF(**FIXED, tol=1e-9, engine=attack).fit(*data))
    finally:
        attack.clean_up()
    assert not attack.plan
    assert model.solution_.recoveries
    assert model.solution_.converged
    assert_allclose(model.coef_, whole.coef_, atol=1e-7)
    if name == "killed during recovery":
        first = attack.log.index(KILL)
        second = attack.log.index(KILL, first + 1)
        between = attack.log[first + 1 : second]
        # From the advance on nothing but the calls that set up had been sent.
        assert "conjugate.direction" not in between
        assert "conjugate.restart" not in between


def test_profiles_survive_a_killed_worker(cluster, client, data):
    given = {**PROFILES, "graph_penalty": 0.6, "n_rounds": 2}
    attack = Attack(cluster, client, {("profiles.projected", 6): (KILL,)})
    try:
        model = finished(lambda: gr.GraphRatio(**given, engine=attack).fit(*data))
    finally:
        attack.clean_up()
    assert not attack.plan
    assert model.solution_.recoveries
    expected = gr.GraphRatio(**given, engine=LocalEngine(4)).fit(*data)
    assert_array_equal(model.coef_, expected.coef_)


def test_bounds_survive_a_killed_worker(cluster, client, data):
    given = {**PROFILES, "graph_penalty": 0.6, "n_rounds": 1}
    options = {"n_folds": 3, "random_state": 0}
    attack = Attack(cluster, client, {("apply", 2): (KILL,)})
    try:
        found = finished(
            lambda: gr.divergence_bounds(*data, gr.GraphRatio(**given, engine=attack), **options)
        )
    finally:
        attack.clean_up()
    assert not attack.plan
    here = gr.GraphRatio(**given, engine=LocalEngine(4))
    expected = gr.divergence_bounds(*data, here, **options)
    assert_array_equal(found.true_divergence_lower_bound, expected.true_divergence_lower_bound)


@pytest.mark.parametrize("method", ["test.predicted", "test.count"])
def test_node_tests_survive_a_killed_worker(cluster, client, few, method):
    attack = Attack(cluster, client, {(method, 2): (KILL,)})
    try:
        found = finished(
            lambda: gr.two_sample_test(*few, gr.GRULSIF(**FIXED, engine=attack), **TESTS)
        )
    finally:
        attack.clean_up()
    assert not attack.plan
    here = gr.GRULSIF(**FIXED, engine=LocalEngine(4))
    expected = gr.two_sample_test(*few, here, **TESTS)
    assert_array_equal(found.evidence, expected.evidence)
    assert_array_equal(found.p_value, expected.p_value)


def test_retries_exhausted_is_a_clear_error(cluster, client, data, tmp_path):
    path = tmp_path / "theta.npy"
    plan = {("conjugate.direction", 17): (KILL,)}
    attack = Attack(cluster, client, plan, retries=0, checkpoint=path)
    model = gr.GRULSIF(**FIXED, tol=1e-9, engine=attack)
    with pytest.raises(EngineError, match="0 recoveries in a row did not help") as info:
        finished(lambda: model.fit(*data))
    assert_array_equal(np.load(path), info.value.checkpoint)
    # Those that are left go on from there.
    resumed = gr.DaskEngine(client, 4, start=info.value.checkpoint)
    model = finished(lambda: gr.GRULSIF(**FIXED, tol=1e-9, engine=resumed).fit(*data))
    fresh = gr.GRULSIF(**FIXED, tol=1e-9, engine=LocalEngine(4)).fit(*data)
    assert_allclose(model.coef_, fresh.coef_, atol=1e-7)
    assert model.solution_.history[0] < fresh.solution_.history[0]


def test_slow_is_not_lost(client, data):
    """A loader that takes longer than the time-out, on a worker that is alive."""
    samples, graph = data
    loader = load_after(samples, lambda nodes: time.sleep(3.6))
    engine = gr.DaskEngine(client, 2, loader=loader, timeout=3.0)
    model = finished(lambda: gr.GRULSIF(**FIXED, engine=engine).fit(None, graph))
    assert not model.solution_.recoveries


def test_a_call_that_never_ends_is_a_clear_error(client, data, tmp_path):
    """The worker is alive, but a loader hangs wherever its partition is put."""
    samples, graph = data

    def hang(nodes):
        while "v0" in nodes and not (tmp_path / "enough").exists():
            time.sleep(0.05)

    engine = gr.DaskEngine(client, 4, loader=load_after(samples, hang), load_timeout=1, retries=1)
    model = gr.GRULSIF(**FIXED, engine=engine)
    try:
        with pytest.raises(EngineError, match=r"no answer within 1 s\).* 1 recoveries"):
            finished(lambda: model.fit(None, graph))
        # The next fit on the same workers does not wait for it: it ends while the loader still
        # hangs. Without retries any loss is an error that names its reason, and with these limits
        # a busy machine is none.
        patient = gr.DaskEngine(client, 4, timeout=HANG, load_timeout=HANG, retries=0)
        later = gr.GRULSIF(**FIXED, engine=patient)
        finished(lambda: later.fit(*data))
        assert not later.solution_.recoveries
        assert not (tmp_path / "enough").exists()
    finally:
        (tmp_path / "enough").touch()


def load_after(samples, wait):
    def loader(nodes):
        wait(nodes)
        return [samples.reference(v) for v in nodes], [samples.target(v) for v in nodes]

    return loader
