import os
import subprocess
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier, current_thread, main_thread

import numpy as np
import pytest
from sklearn.base import BaseEstimator, RegressorMixin
from threadpoolctl import threadpool_info, threadpool_limits

import graphratio as gr
from graphratio._utils.jobs import in_parallel
from graphratio._utils.threads import computed_once, single_thread


def blas_threads():
    return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]


@pytest.fixture(autouse=True)
def two_threads():
    """Start from a setting that a forgotten limit would change."""
    with threadpool_limits(2, user_api="blas"):
        yield


def test_one_thread_inside_and_things_as_they_were_outside():
    before = blas_threads()
    with single_thread():
        assert set(blas_threads()) == {1}
    assert blas_threads() == before


def test_overlapping_limits_are_lifted_by_the_last_to_leave():
    before = blas_threads()
    first, second = single_thread(), single_thread()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert set(blas_threads()) == {1}
    second.__exit__(None, None, None)
    assert blas_threads() == before


def test_a_limit_is_lifted_after_an_exception():
    before = blas_threads()
    with pytest.raises(RuntimeError), single_thread():
        raise RuntimeError
    assert blas_threads() == before


def test_fits_that_overlap_in_threads_leave_the_setting_and_agree():
    before = threadpool_info()
    rng = np.random.default_rng(0)
    reference, target = rng.normal(size=(2, 12, 40, 1))
    graph = gr.Graph.from_edges([(i, (i + 1) % 12) for i in range(12)])
    together = Barrier(3)

    def fit(_):
        together.wait()
        return gr.GRULSIF(random_state=0).fit((reference, target), graph).coef_

    with ThreadPoolExecutor(3) as pool:
        found = list(pool.map(fit, range(3)))
    assert threadpool_info() == before
    assert all((each == found[0]).all() for each in found)


def test_a_child_forked_inside_is_not_limited_for_ever():
    code = """
import os
from threadpoolctl import threadpool_info, threadpool_limits
from graphratio._utils.threads import single_thread
threads = lambda: {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}
with threadpool_limits(2, user_api="blas"):
    import numpy
    with single_thread():
        child = os.fork()
        if not child:
            outside = threads()
            with single_thread():
                inside = threads()
            ok = (outside, inside, threads()) == ({2}, {1}, {2})
        else:
            _, status = os.waitpid(child, 0)
    if not child:
        # The child has left the block that it inherited; later limits must still work.
        with single_thread():
            ok = ok and threads() == {1}
        os._exit(0 if ok and threads() == {2} else 1)
    assert threads() == {2}
raise SystemExit(os.waitstatus_to_exitcode(status))
"""
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "2", "OMP_NUM_THREADS": "2"}
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60, env=environment)


@pytest.mark.parametrize("threads", ["1", "3"])
def test_pieces_of_parallel_work_are_all_done(monkeypatch, threads):
    monkeypatch.setenv("OMP_NUM_THREADS", threads)
    squares = [0] * 4
    in_parallel(lambda i: squares.__setitem__(i, i * i), 4)
    assert squares == [0, 1, 4, 9]


class Line(RegressorMixin, BaseEstimator):
    """A straight line; models of scikit-learn change the filters of warnings to check input."""

    def fit(self, x, y, sample_weight=None):
        self.coef_ = np.polyfit(x[:, 0], y, 1, w=np.sqrt(sample_weight) + 1e-3)
        return self

    def predict(self, x):
        return np.polyval(self.coef_, x[:, 0])


class Meddling(Line):
    """A line that leaves a filter behind in threads."""

    def fit(self, x, y, sample_weight=None):
        if current_thread() is not main_thread():
            warnings.simplefilter("ignore", ResourceWarning)
        return super().fit(x, y, sample_weight)


def transfer(seed, model=Line, n_jobs=None):
    rng = np.random.default_rng(0)
    reference = rng.normal(size=(6, 40, 1))
    target = rng.normal(size=(6, 40, 1)) + np.repeat([0.0, 0.6], 3)[:, None, None]
    labels = list(reference[:, :, 0] ** 2)
    estimator = gr.GRULSIF(dictionary="kmeans", max_atoms=20, random_state=seed)
    fitted = gr.NodewiseTransfer(model(), estimator, n_jobs=n_jobs, random_state=seed)
    return fitted.fit((reference, target), labels)


def test_models_in_threads_leave_no_filters_of_warnings():
    transfer(0)
    before = list(warnings.filters)
    assert transfer(0, Meddling, n_jobs=2).is_reweighted_.any()
    assert list(warnings.filters) == before


def test_overlapping_calls_leave_the_filters_of_warnings_alone():
    """Filters belong to the process, so that two threads that change them would leave some."""
    # Packages that are imported on first use may set filters of their own.
    transfer(0)
    before = list(warnings.filters)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(transfer, range(8)))
    assert list(warnings.filters) == before


def test_values_computed_once_hold_no_lock():
    """Another thread can read the property of another instance meanwhile."""

    class Slow:
        def __init__(self, other=None):
            self.other = other

        @computed_once
        def value(self):
            if self.other is None:
                return 1
            with ThreadPoolExecutor(1) as pool:
                return pool.submit(lambda: self.other.value).result(timeout=10) + 1

    slow = Slow(Slow())
    assert slow.value == 2
    assert slow.__dict__["value"] == 2
    assert isinstance(Slow.value, computed_once)
