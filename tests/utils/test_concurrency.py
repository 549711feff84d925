"""Fits side by side: in threads, in processes, with joblib, and a fork while another one runs."""

import multiprocessing
import os
import threading
import time
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
    model = KINDS[kind](random_state=0).fit((reference, target + 0.5), graph)
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


# Python 3.12 warns of forks beside threads, which is what is tried here.
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs a fork")
def test_a_child_forked_during_a_fit_can_fit(alone):
    before = threadpool_info()
    stop = threading.Event()
    found = []

    def busy():
        while not stop.is_set():
            found.append(fitted(0))

    other = threading.Thread(target=busy)
    other.start()
    try:
        for _ in range(3):
            time.sleep(0.02)
            child = multiprocessing.get_context("fork").Process(
                target=lambda: os._exit(0 if fitted(1) == alone[1] else 1)
            )
            child.start()
            child.join(60)
            assert child.exitcode == 0
    finally:
        stop.set()
        other.join(60)
    assert not other.is_alive()
    assert set(found) == {alone[0]}
    assert threadpool_info() == before
