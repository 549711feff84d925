import multiprocessing
import os
import signal
import subprocess
import sys
import time

import pytest
from threadpoolctl import threadpool_info

from graphratio._utils.beside import beside
from graphratio._utils.jobs import at_most, n_tasks, working

FORKS = sys.platform.startswith("linux")


def test_the_work_is_done_in_another_process_meanwhile():
    with working(2), beside(os.getpid) as result:
        where = result()
    assert (where != os.getpid()) == FORKS


def until(condition):
    """Wait for it, at most half a minute."""
    end = time.monotonic() + 30
    while not condition() and time.monotonic() < end:
        time.sleep(0.01)
    return condition()


@pytest.mark.skipif(not FORKS, reason="needs forks")
def test_two_processes_share_the_cores_and_the_last_one_has_them_all():
    begun = multiprocessing.Event()

    def work():
        alone = n_tasks()
        begun.set()
        return alone, until(lambda: n_tasks() == 3)

    with working(3):
        with beside(work) as result:
            assert begun.wait(30)
            assert n_tasks() == 2
            assert result() == (1, True)
            assert n_tasks() == 3
        assert n_tasks() == 3


@pytest.mark.skipif(not FORKS, reason="needs forks")
def test_a_child_that_has_finished_leaves_its_core():
    with working(2), beside(os.getpid) as result:
        assert until(lambda: n_tasks() == 2)
        # It has ended, but its result is still there, and the work is not done again.
        time.sleep(0.2)
        assert result() != os.getpid()


@pytest.mark.skipif(not FORKS, reason="needs forks")
def test_two_children_work_at_a_time_and_start_none_themselves():
    def begins_another():
        with beside(os.getpid) as own:
            return own.started, os.getpid()

    with working(2), beside(begins_another) as first, beside(begins_another) as second:
        assert first.started
        assert second.started
        (again, one), (_, other) = first(), second()
    assert not again
    assert len({one, other, os.getpid()}) == 3


@pytest.mark.skipif(not FORKS, reason="needs forks")
def test_cores_of_children_that_have_finished_are_used_again():
    ends = [multiprocessing.Event() for _ in range(3)]
    with working(4):
        with beside(lambda: ends[0].wait(30)):
            assert n_tasks() == 3
            with beside(lambda: ends[1].wait(30)) as second:
                assert n_tasks() == 2
                ends[0].set()
                assert until(lambda: n_tasks() == 3)
                ends[1].set()
                assert until(lambda: n_tasks() == 4)
                assert second()
                assert n_tasks() == 4
            assert n_tasks() == 4
            with beside(lambda: ends[2].wait(30)):
                assert n_tasks() == 3
            # Its block has ended, and the child with it.
            assert n_tasks() == 4
        assert n_tasks() == 4


@pytest.mark.skipif(not FORKS, reason="needs forks")
@pytest.mark.parametrize("outer_first", [True, False])
def test_a_child_that_is_waited_for_has_what_no_other_process_uses(outer_first):
    end = multiprocessing.Event()

    def waited_for():
        two = until(lambda: n_tasks() > 1) and n_tasks()
        end.set()
        return two, until(lambda: n_tasks() == 3)

    works = [waited_for, lambda: end.wait(30) and n_tasks()]
    if not outer_first:
        works.reverse()
    with working(3), beside(works[0]) as one, beside(works[1]) as other:
        first, last = (one, other) if outer_first else (other, one)
        assert first() == (2, True)
        # Nobody waited for this one before it ended.
        assert last() == 1
        assert n_tasks() == 3


def test_a_limit_between_two_blocks_holds():
    with working(3), beside(os.getpid), at_most(1), beside(os.getpid):
        assert n_tasks() == 1


def test_a_child_works_quietly():
    with working(2), beside(lambda: "loud", quietly=lambda: "quiet") as result:
        assert result() == ("quiet" if FORKS else "loud")
    with working(1), beside(lambda: "loud", quietly=lambda: "quiet") as result:
        assert not result.started
        assert result() == "loud"


@pytest.mark.parametrize(("jobs", "wanted"), [(1, True), (2, False)])
def test_without_a_second_core_or_need_it_is_done_here_and_only_when_asked(jobs, wanted):
    calls = []
    with working(jobs), beside(lambda: calls.append(1), wanted=wanted) as result:
        assert not calls
        result()
    assert calls == [1]


def test_an_error_of_the_work_is_raised_here():
    def fails():
        raise ValueError("the data")

    with working(2), beside(fails) as result, pytest.raises(ValueError, match="the data"):
        result()


def test_the_work_is_done_here_if_the_child_is_killed():
    parent = os.getpid()

    def killed():
        if os.getpid() != parent:
            os.kill(os.getpid(), signal.SIGKILL)
        return "done"

    with working(2), beside(killed) as result:
        assert result() == "done"


@pytest.mark.parametrize("jobs", [1, 2])
def test_the_result_is_kept(jobs):
    with working(jobs), beside(object) as result:
        assert result() is result()


class Unreadable:
    """Cannot be unpickled."""

    def __reduce__(self):
        return int, ("no number",)


def test_the_work_is_done_here_if_its_result_cannot_be_read():
    with working(2), beside(Unreadable) as result:
        assert isinstance(result(), Unreadable)


def test_the_child_ends_with_the_block():
    begin = time.monotonic()
    with (
        pytest.raises(KeyboardInterrupt),
        working(2),
        beside(lambda: time.sleep(60), wanted=FORKS),
    ):
        raise KeyboardInterrupt
    assert time.monotonic() - begin < 30


def test_large_results_arrive():
    with working(2), beside(lambda: b"x" * 10_000_000) as result:
        assert len(result()) == 10_000_000


def test_linear_algebra_has_one_thread_in_the_child_too():
    def threads():
        return {each["num_threads"] for each in threadpool_info() if each["user_api"] == "blas"}

    with working(2), beside(threads) as result:
        assert result() == {1}


CLUSTERS = """
import numpy as np
from graphratio._utils.threads import single_thread
with single_thread():  # the library looks for OpenMP before there is any
    pass
from sklearn.cluster import KMeans
from graphratio._utils.beside import beside
from graphratio._utils.jobs import working

def work():
    values = np.random.default_rng(0).normal(size=(2000, 2))
    return KMeans(4, n_init=1, random_state=0).fit(values).n_iter_

here = work()
with working(2), beside(work) as result:
    assert result() == here
"""


@pytest.mark.skipif(not FORKS, reason="without forks there is no child")
def test_openmp_can_be_used_here_and_then_in_a_child():
    several = {**os.environ, "OMP_NUM_THREADS": "2"}
    subprocess.run([sys.executable, "-c", CLUSTERS], env=several, timeout=60, check=True)


PARENT = """
import os, time
from graphratio._utils.beside import beside
from graphratio._utils.jobs import working

def work():
    print(os.getpid(), flush=True)
    time.sleep(60)

with working(2), beside(work):
    time.sleep(60)
"""


@pytest.mark.skipif(not FORKS, reason="without forks there is no child")
@pytest.mark.parametrize("by", [signal.SIGTERM, signal.SIGKILL])
def test_the_child_ends_if_the_parent_is_killed(by):
    with subprocess.Popen([sys.executable, "-c", PARENT], stdout=subprocess.PIPE) as parent:
        assert int(parent.stdout.readline()) != parent.pid
        begin = time.monotonic()
        parent.send_signal(by)
        # The pipe ends when the child, which holds it too, is gone.
        assert parent.stdout.read() == b""
    assert time.monotonic() - begin < 30


def test_the_child_ends_though_it_ignores_requests():
    begin = time.monotonic()
    before = signal.signal(signal.SIGTERM, signal.SIG_IGN)
    try:
        with working(2), beside(lambda: time.sleep(60), wanted=FORKS):
            pass
    finally:
        signal.signal(signal.SIGTERM, before)
    assert time.monotonic() - begin < 30
