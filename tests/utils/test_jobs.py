"""Tasks in threads: order, errors, nesting, memory, and the same bits whatever `n_jobs` is."""

import signal
import threading
import time
import weakref
from io import StringIO

import numpy as np
import pytest
from joblib import parallel_config
from sklearn import config_context, get_config
from sklearn.linear_model import Ridge
from threadpoolctl import threadpool_info, threadpool_limits

import graphratio as gr
from graphratio._utils.jobs import (
    SMALL_TASK,
    across_jobs,
    each,
    if_worth_it,
    in_parallel,
    in_stages,
    n_tasks,
    working,
)
from graphratio._utils.progress import ProgressBar
from graphratio.datasets import make_scenario
from graphratio.selection.cross_validation import Coupling


def blas_threads():
    return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}


@pytest.mark.parametrize("n_jobs", [None, 1, 2, 5])
def test_results_are_in_the_order_of_the_items(n_jobs):
    bar = ProgressBar(7, "work", enabled=False, stream=StringIO())
    with working(n_jobs):
        assert each(lambda x: x * x, range(7), bar) == [x * x for x in range(7)]
    assert bar.done == 7


@pytest.mark.parametrize("n_jobs", [None, 2, 3])
def test_stages_give_a_row_per_part(n_jobs):
    with working(n_jobs):
        found = in_stages(lambda a: 10 * a, [1, 2, 3], lambda a, b: a + b, [4, 5])
    assert found == [[14, 15], [24, 25], [34, 35]]
    with working(n_jobs):
        assert in_stages(lambda a: a, [], lambda a, b: b, [1]) == []


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_finished_parts_are_told_in_order_before_the_last_one_ends(n_jobs):
    told = []
    go_on = threading.Event()

    def work(part, item):
        if part == 2:
            assert go_on.wait(30)
        return part * item

    def finished(part, row):
        told.append((part, row))
        go_on.set()

    with working(n_jobs):
        in_stages(lambda a: a, [1, 2, 3], work, [4, 5], finished=finished)
    assert told == [(1, [4, 5]), (2, [8, 10]), (3, [12, 15])]


@pytest.mark.parametrize(("size", "tasks"), [(SMALL_TASK - 1, 1), (SMALL_TASK, 2)])
def test_small_tasks_run_one_after_the_other(size, tasks):
    with working(2):
        with if_worth_it(size):
            assert n_tasks() == tasks
        assert n_tasks() == 2


def test_a_small_selection_uses_one_thread(monkeypatch):
    scenario = make_scenario("Ia", n_nodes=20, n=30, random_state=0)
    seen = set()

    def solve(self, *args):
        seen.add(threading.current_thread())
        return plain(self, *args)

    plain = Coupling.solve
    monkeypatch.setattr(Coupling, "solve", solve)
    gr.GRULSIF(n_jobs=2, random_state=0).fit(scenario.samples, scenario.graph)
    assert seen == {threading.main_thread()}
    monkeypatch.setattr("graphratio._utils.jobs.SMALL_TASK", 0)
    gr.GRULSIF(n_jobs=2, random_state=0).fit(scenario.samples, scenario.graph)
    assert len(seen) > 1


@pytest.mark.parametrize("allowed", [0, 1])
def test_fewer_threads_than_asked_for_do_the_work(monkeypatch, allowed):
    start, left = threading.Thread.start, [allowed]

    def limited(self):
        if not left[0]:
            raise RuntimeError("can't start new thread")
        left[0] -= 1
        start(self)

    monkeypatch.setattr(threading.Thread, "start", limited)
    with working(2):
        assert each(lambda x: (x, n_tasks()), range(4)) == [(x, 1) for x in range(4)]


def test_tasks_really_run_side_by_side():
    meet = threading.Barrier(2, timeout=30)
    with working(2):
        each(lambda _: meet.wait(), [0, 1])


def test_at_most_three_parts_are_in_memory():
    class Big:
        pass

    alive, most = weakref.WeakSet(), []

    def make(_):
        big = Big()
        alive.add(big)
        return big

    def work(_, __):
        most.append(len(alive))

    with working(2):
        in_stages(make, range(8), work, range(4))
    assert max(most) <= 3


def on_large_arrays(work, items):
    in_parallel(work, len(items))


@pytest.mark.parametrize("run", [each, on_large_arrays])
@pytest.mark.parametrize("n_jobs", [None, 2])
def test_the_first_error_ends_the_work(run, n_jobs):
    done = []

    def work(x):
        done.append(x)
        if x == 1:
            raise ValueError("one")
        time.sleep(0.001)

    with working(n_jobs), pytest.raises(ValueError, match="one"):
        run(work, range(1000))
    assert len(done) < 100


@pytest.mark.parametrize("n_jobs", [1, 2, 3])
def test_a_part_that_cannot_be_made_is_an_error(n_jobs):
    def make(k):
        if k == 1:
            raise ValueError("part 1")
        time.sleep(0.01)

    with working(n_jobs), pytest.raises(ValueError, match="part 1"):
        in_stages(make, range(4), lambda _, x: x, range(3))


@pytest.mark.usefixtures("interruptible")
@pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="needs signals to threads")
@pytest.mark.parametrize("run", [each, on_large_arrays])
def test_an_interruption_ends_the_work(run):
    done = []

    def work(x):
        done.append(x)
        if x == 3:
            time.sleep(0.5)  # until all are submitted and the main thread waits
            signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
        time.sleep(0.02)

    with working(2), pytest.raises(KeyboardInterrupt):
        run(work, range(200))
    assert len(done) < 100


@pytest.mark.usefixtures("interruptible")
@pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="needs signals to threads")
def test_an_interruption_at_the_start_of_many_tasks_does_not_hang():
    def work(x):
        if x == 0:
            signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
        time.sleep(0.001)

    for _ in range(10):
        with working(2), pytest.raises(KeyboardInterrupt):
            each(work, range(2_000))


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_one_task_uses_one_blas_thread_too(n_jobs):
    """Otherwise the bits of a sum would depend on `n_jobs`."""
    found = []
    with threadpool_limits(2, user_api="blas"), working(n_jobs):
        found += each(lambda _: blas_threads(), [0])
        in_parallel(lambda _: found.append(blas_threads()), 2)
    assert found == [{1}] * 3


def test_tasks_use_one_blas_thread_and_start_no_others():
    with threadpool_limits(2, user_api="blas"):
        with working(2):
            inside = each(lambda _: (blas_threads(), n_tasks()), [0, 1])
            with working(4):  # the outermost decides
                assert n_tasks() == 2
            assert blas_threads() == {1}  # between tasks too
        assert blas_threads() == {2}
    assert inside == [({1}, 1)] * 2


def test_settings_of_numpy_hold_in_tasks():
    with np.errstate(divide="raise"), working(2), pytest.raises(FloatingPointError):
        each(lambda x: np.ones(2) / x, [np.zeros(2)] * 2)


def test_settings_of_scikit_learn_hold_in_tasks():
    with config_context(transform_output="pandas", assume_finite=True), working(2):
        inside = each(lambda _: get_config(), [0, 1])
        assert inside == [get_config()] * 2
    assert not get_config()["assume_finite"]


def test_none_means_one_unless_joblib_says_otherwise(monkeypatch):
    with working(None):
        assert n_tasks() == 1
    with parallel_config("threading", n_jobs=3), working(None):
        assert n_tasks() == 3
    with working(-1):
        assert n_tasks() >= 1
    assert n_tasks() == 1


def test_large_arrays_follow_n_jobs(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "4")
    seen = set()
    with working(1):
        in_parallel(lambda _: seen.add(threading.get_ident()), 8)
    assert seen == {threading.get_ident()}


def test_a_function_passes_its_jobs_on():
    @across_jobs
    def work(*, n_jobs=None):
        return n_tasks()

    assert (work(), work(n_jobs=2), work(n_jobs=None)) == (1, 2, 1)


@pytest.mark.parametrize("wrong", [0, 1.5, "two", True])
def test_wrong_numbers_are_named(wrong):
    with pytest.raises(ValueError, match=r"n_jobs=.*-1 for all cores"):
        gr.RULSIF(n_jobs=wrong).fit(([[0.0, 1.0, 2.0] * 3], [[1.0, 2.0, 3.0] * 3]))
    with pytest.raises(ValueError, match=r"n_jobs="):
        gr.divergence_bounds(([[0.0, 1.0]], [[1.0, 2.0]]), n_jobs=wrong)


# Few candidates and folds, but several of each, so that there is work to share.
FEW = {"bandwidth": [0.7, 1.4], "graph_penalty": [0.1, 1.0], "ridge": [0.01, 0.1]}
SCENARIO = gr.datasets.make_scenario("Ia", n_nodes=16, n=24, random_state=3)
SAMPLES, GRAPH = SCENARIO.samples, SCENARIO.graph
PANEL = np.random.default_rng(0).normal(size=(160, 4))
PANEL[90:] += 1


def estimate(model):
    return lambda n: model(n_jobs=n, random_state=0).fit(SAMPLES, GRAPH).coef_


def transferred(n):
    labels = [SAMPLES.reference(node)[:, 0] for node in SAMPLES.nodes]
    model = gr.NodewiseTransfer(Ridge(), gr.Pool(), n_jobs=n, random_state=0)
    return model.fit(SAMPLES, labels, GRAPH).weights_.sample_weight


def compared(n):
    options = {"n_folds": 3, "n_repeats": 1, "n_jobs": n, "random_state": 0}
    found = gr.compare_graphs(SAMPLES, GRAPH, **options)
    return np.concatenate([[found.losses["graph"].mean], found.worth["graph"].joined])


def watched(n):
    detector = gr.GraphChangePointDetector(n_surrogates=29, n_jobs=n, random_state=0).fit(PANEL)
    for row in PANEL[:12]:
        detector.update(row)
    return np.concatenate([detector.statistic_, [detector.p_value_, detector.evidence_]])


WORK = {
    "GraphRatio": estimate(gr.GraphRatio),
    "GRULSIF": estimate(gr.GRULSIF),
    "adaptive": estimate(lambda **options: gr.GRULSIF(adaptive=True, **options)),
    "Pool": estimate(gr.Pool),
    "RULSIF": estimate(gr.RULSIF),
    "ULSIF": estimate(gr.ULSIF),
    "KLIEP": estimate(gr.KLIEP),
    "test": lambda n: gr.two_sample_test(SAMPLES, GRAPH, n_jobs=n, random_state=0).p_value,
    "global": lambda n: (
        gr.two_sample_test(SAMPLES, GRAPH, null="global", n_jobs=n, random_state=0).p_value
    ),
    "bounds": lambda n: (
        gr.divergence_bounds(
            SAMPLES, GRAPH, gr.GRULSIF(), n_jobs=n, random_state=0
        ).fitted_divergence_interval
    ),
    "bounds of GraphRatio": lambda n: (
        gr.divergence_bounds(
            SAMPLES, GRAPH, gr.GraphRatio(**FEW), n_folds=3, n_jobs=n, random_state=0
        ).fitted_divergence_interval
    ),
    "graphs": compared,
    "kinds": lambda n: np.array(
        gr.kinds_of_change(SAMPLES, GRAPH, gr.GraphRatio(**FEW), n_jobs=n, random_state=0).kinds,
        dtype=str,
    ),
    "detector": watched,
    "transfer": transferred,
}


@pytest.fixture
def small_tasks_in_threads(monkeypatch):
    monkeypatch.setattr("graphratio._utils.jobs.SMALL_TASK", 0)


@pytest.mark.usefixtures("small_tasks_in_threads")
@pytest.mark.parametrize("name", WORK)
def test_the_same_bits_whatever_n_jobs_is(name):
    np.testing.assert_array_equal(WORK[name](1), WORK[name](2))


@pytest.mark.usefixtures("small_tasks_in_threads")
def test_none_gives_the_same_bits_too():
    np.testing.assert_array_equal(WORK["GRULSIF"](None), WORK["GRULSIF"](2))
