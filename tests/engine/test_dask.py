"""The Dask engine on real worker processes: the same bits, and real faults."""

import logging
import os
import signal
import threading
import time

import numpy as np
import pytest
from distributed import Client, LocalCluster
from numpy.testing import assert_allclose, assert_array_equal
from tests.engine.problems import FIXED, ring

import graphratio as gr
from graphratio.engine import LocalEngine
from graphratio.exceptions import EngineError, InputError, MissingDependencyError

SELECTED = dict(
    bandwidth=[0.8, 1.6], graph_penalty=[0.02, 0.2], node_penalty=[0.1], cv=2, random_state=0
)
TIMEOUT = 3.0

# A worker that is killed leaves open sockets and half-read messages behind, which Python
# reports when they are collected, at any later time.
pytestmark = [
    pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


@pytest.fixture(scope="module")
def cluster():
    # Workers are killed on purpose; what Dask has to say about it is of no interest.
    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    with LocalCluster(
        n_workers=4, threads_per_worker=1, dashboard_address=None, memory_limit=0
    ) as running:
        yield running


@pytest.fixture
def client(cluster):
    with Client(cluster, set_as_default=False) as connected:
        yield connected


@pytest.fixture(scope="module")
def data():
    return ring()


@pytest.fixture(scope="module")
def whole(data):
    return gr.GRULSIF(**FIXED, tol=1e-10).fit(*data)


def wait_for_all(client):
    """Killed workers are started again by their nannies."""
    client.wait_for_workers(4, timeout=120)


def same(one, other):
    for name in ("coef_", "divergence_", "dictionary_"):
        assert_array_equal(getattr(one, name), getattr(other, name))
    for name, column in (one.cv_results_ or {}).items():
        assert_array_equal(column, other.cv_results_[name])
    assert one.solution_.n_iter == other.solution_.n_iter
    assert one.solution_.history == other.solution_.history


def test_two_and_four_workers_give_the_bits_of_one_process(cluster, client, data):
    here = gr.GRULSIF(**SELECTED, engine=LocalEngine(4)).fit(*data)
    addresses = list(client.scheduler_info()["workers"])
    for n_workers in (2, 4):
        engine = gr.DaskEngine(client, 4, workers=addresses[:n_workers])
        there = gr.GRULSIF(**SELECTED, engine=engine).fit(*data)
        same(here, there)
    descent = dict(bandwidth=1.2, graph_penalty=0.05, node_penalty=5.0, solver="cbcgd", tol=1e-3)
    here = gr.GRULSIF(**descent, engine=LocalEngine(4)).fit(*data)
    there = gr.GRULSIF(**descent, engine=gr.DaskEngine(cluster.scheduler_address)).fit(*data)
    assert "4 partitions" in there.solution_.method  # one for every worker
    same(here, there)


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
    lock = threading.Lock()
    with pytest.raises(InputError, match="cannot be sent to workers"):
        gr.DaskEngine(client, 2, loader=lambda nodes: lock)
    with pytest.raises(InputError, match="is not a cluster"):
        gr.DaskEngine(3)
    with pytest.raises(EngineError, match="no Dask scheduler at"):
        gr.GRULSIF(engine=gr.DaskEngine("tcp://127.0.0.1:9", 2, timeout=1)).fit(*data)


def test_without_dask_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "distributed", None)
    with pytest.raises(MissingDependencyError, match=r"graphratio\[dask\]"):
        gr.DaskEngine("tcp://127.0.0.1:9")


class Attack:
    """Send signals to workers at certain messages to partitions; `plan` has (method, count)."""

    def __init__(self, client, plan):
        self.client, self.plan = client, dict(plan)
        self.seen, self.victims, self.frozen = {}, [], []
        self.pids = client.run(os.getpid)

    def __call__(self, message):
        if message.outgoing:
            return
        count = self.seen[message.method] = self.seen.get(message.method, 0) + 1
        for kind in self.plan.pop((message.method, count), ()):
            self.strike(kind)

    def strike(self, kind):
        alive = [pid for pid in self.pids.values() if pid not in self.victims]
        self.victims.append(alive[0])
        os.kill(alive[0], kind)
        if kind == signal.SIGSTOP:
            self.frozen.append(alive[0])

    def clean_up(self):
        for pid in self.frozen:
            os.kill(pid, signal.SIGKILL)


KILL, STOP = signal.SIGKILL, signal.SIGSTOP
# Every step sends one message to each of four partitions; the fifth of a method that sets up is
# the first one of a recovery.
FAULTS = {
    "killed": {("conjugate.direction", 17): (KILL,)},
    "frozen": {("conjugate.advance", 17): (STOP,)},
    "two at once": {("conjugate.direction", 17): (KILL, STOP)},
    "during recovery": {("conjugate.advance", 17): (KILL,), ("set_problem", 5): (KILL,)},
    "frozen while setting up": {("set_features", 1): (STOP,)},
}


@pytest.mark.parametrize("name", FAULTS)
def test_real_faults_end_in_the_right_answer(cluster, client, data, whole, name):
    wait_for_all(client)
    attack = Attack(client, FAULTS[name])
    engine = gr.DaskEngine(client, 4, timeout=TIMEOUT, observe=attack, checkpoint_every=2)
    try:
        began = time.monotonic()
        model = gr.GRULSIF(**FIXED, tol=1e-9, engine=engine).fit(*data)
        seconds = time.monotonic() - began
    finally:
        attack.clean_up()
    assert not attack.plan
    assert "recoveries" in model.solution_.method
    assert model.solution_.converged
    assert_allclose(model.coef_, whole.coef_, atol=1e-7)
    assert seconds < 3 * TIMEOUT + 10


def test_retries_exhausted_is_a_clear_error(client, data, tmp_path):
    wait_for_all(client)
    path = tmp_path / "theta.npy"
    attack = Attack(client, {("conjugate.direction", 17): (KILL,)})
    engine = gr.DaskEngine(
        client, 4, timeout=TIMEOUT, observe=attack, checkpoint_every=2, retries=0, checkpoint=path
    )
    with pytest.raises(EngineError, match="0 recoveries in a row did not help") as info:
        gr.GRULSIF(**FIXED, tol=1e-9, engine=engine).fit(*data)
    assert_array_equal(np.load(path), info.value.checkpoint)
    wait_for_all(client)
    resumed = gr.DaskEngine(client, 4, start=info.value.checkpoint)
    model = gr.GRULSIF(**FIXED, tol=1e-9, engine=resumed).fit(*data)
    fresh = gr.GRULSIF(**FIXED, tol=1e-9, engine=LocalEngine(4)).fit(*data)
    assert_allclose(model.coef_, fresh.coef_, atol=1e-7)
    assert model.solution_.history[0] < fresh.solution_.history[0]
