"""Fits side by side: in threads, in processes, with joblib, and a fork while another one runs."""

import multiprocessing
import os
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor

import numpy as np
import pytest
from joblib import Parallel, delayed
from threadpoolctl import threadpool_info

import graphratio as gr

KINDS = (gr.GRULSIF, gr.GraphRatio, gr.Pool, gr.RULSIF)


def fitted(kind):
    """Coefficients of a small fit with selection, as bytes."""
    rng = np.random.default_rng(0)
    reference, target = rng.normal(size=(2, 6, 15, 1))
    graph = gr.Graph.from_edges([(i, (i + 1) % 6) for i in range(6)])
    model = KINDS[kind](bandwidth=[0.7, 1.4], random_state=0).fit((reference, target + 0.5), graph)
    return model.coef_.tobytes()


@pytest.fixture(scope="module")
def alone():
    return [fitted(kind) for kind in range(len(KINDS))]


def in_threads(work):
    with ThreadPoolExecutor(4) as pool:
        return list(pool.map(fitted, work))


def in_processes(work):
    with ProcessPoolExecutor(2, multiprocessing.get_context("spawn")) as pool:
        return list(pool.map(fitted, work))


def with_joblib(work):
    return Parallel(2)(delayed(fitted)(kind) for kind in work)


@pytest.mark.slow
@pytest.mark.parametrize("run", [in_threads, in_processes, with_joblib])
def test_same_bits_wherever_a_fit_runs(run, alone):
    before = threadpool_info()
    assert run([*range(len(KINDS))] * 2) == alone * 2
    assert threadpool_info() == before


FORKS = """
import multiprocessing, os, threading, time, warnings
from threadpoolctl import threadpool_info
from tests.utils.test_concurrency import fitted

# Python 3.12 warns of forks beside threads, which is what is tried here.
warnings.simplefilter("ignore", DeprecationWarning)
alone, before, stop, found = [fitted(0), fitted(1)], threadpool_info(), threading.Event(), []

def busy():
    while not stop.is_set():
        found.append(fitted(0))

other = threading.Thread(target=busy)
other.start()
codes = []
for _ in range(4):
    time.sleep(0.02)
    child = multiprocessing.get_context("fork").Process(
        target=lambda: os._exit(0 if fitted(1) == alone[1] else 1)
    )
    child.start()
    child.join(60)
    codes.append(child.exitcode)
    if child.exitcode is None:
        child.kill()
stop.set()
other.join(60)
assert codes == [0] * 4, codes
assert set(found) == {alone[0]} and threadpool_info() == before
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs a fork")
def test_a_child_forked_during_a_fit_can_fit():
    """In a process of its own: other libraries of the tests may not survive a fork."""
    subprocess.run([sys.executable, "-c", FORKS], check=True, timeout=300)
