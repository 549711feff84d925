"""Bounds on an engine are those of one process, and the observations stay where they are."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from tests.distributed.problems import FaultyEngine, arrays_in, loader_of, loader_that_fails, ring

import graphratio as gr
from graphratio.distributed import LocalEngine
from graphratio.exceptions import EngineError, InputError

# Left out by `make quick`.
pytestmark = pytest.mark.slow

FIXED = dict(n_profiles=2, bandwidth=1.2, graph_penalty=0.5, ridge=0.01, n_rounds=1)
SELECTED = dict(bandwidth=[0.8, 1.6], graph_penalty=[0.1, 1.0], ridge=[0.01], cv=2)
COLUMNS = ("true_divergence_lower_bound", "fitted_divergence", "fitted_divergence_interval")


def bounds(data, settings, engine=None, kind=gr.GraphRatio, **options):
    samples, graph = data
    samples = None if engine is not None and engine.loader is not None else samples
    model = kind(**settings, engine=engine)
    return gr.divergence_bounds(samples, graph, model, n_folds=3, random_state=3, **options)


def assert_same(found, expected, **tolerance):
    for name in COLUMNS:
        assert_allclose(getattr(found, name), getattr(expected, name), **tolerance)
    assert_array_equal(found.answerable_nodes, expected.answerable_nodes)
    assert_array_equal(found.n_pieces, expected.n_pieces)
    assert found.nodes == expected.nodes


@pytest.mark.parametrize("options", [{}, {"simultaneous": True, "n_repeats": 2}], ids=str)
@pytest.mark.parametrize("count", [1, 3])
def test_equal_those_of_one_process(options, count):
    data = ring()
    one = bounds(data, FIXED, **options)
    parted = bounds(data, FIXED, LocalEngine(count), **options)
    assert_same(parted, one, atol=1e-10)
    assert list(parted.to_frame()["node"]) == list(data[1].nodes)
    assert "90% confidence" in repr(parted)


def test_choices_inside_the_folds_are_those_of_one_process():
    data = ring()
    one, parted = bounds(data, SELECTED), bounds(data, SELECTED, LocalEngine(3))
    assert_same(parted, one, atol=1e-4)


def test_grulsif_is_fitted_again():
    """In one process GRULSIF has a closed form of the noise; on an engine it is refitted."""
    data = ring()
    points = np.random.default_rng(0).normal(size=(20, 2))
    fixed = {"bandwidth": 1.2, "graph_penalty": 0.5, "ridge": 0.01, "dictionary": points}
    one = bounds(data, fixed, kind=gr.GRULSIF)
    parted = bounds(data, fixed, LocalEngine(3), kind=gr.GRULSIF)
    assert_allclose(parted.fitted_divergence, one.fitted_divergence, atol=1e-3)
    assert (parted.true_divergence_lower_bound < parted.fitted_divergence).all()


def test_a_node_without_a_sample_has_no_bound():
    samples, whole = ring()
    target = {v: samples.target(v) for v in whole.nodes}
    target["v7"] = np.empty((0, 2))
    thin = gr.NodeSamples.from_arrays({v: samples.reference(v) for v in whole.nodes}, target)
    parted = bounds((thin, whole), FIXED, LocalEngine(3))
    assert_same(parted, bounds((thin, whole), FIXED), atol=1e-10)
    assert np.isnan(parted.true_divergence_lower_bound).sum() == 1


def test_no_observation_travels():
    """Also not as held-out ratios or in the sources without a fold."""
    samples, whole = ring(18, n_features=3)
    messages = []
    engine = LocalEngine(3, loader=loader_of(samples), observe=messages.append)
    centres = {**FIXED, "dictionary": "centres", "group_size": 6}
    found = bounds((samples, whole), centres, engine)
    observed = np.unique(samples.values)
    floats = [a for m in messages for a in arrays_in(m.payload) if a.dtype.kind == "f"]
    assert not any(np.isin(array, observed).any() for array in floats)
    sent = [m for m in messages if m.method == "apply" and m.outgoing]
    # Four numbers and an answer for every own node, nothing for observations.
    assert [sum(a.size for a in arrays_in(m.payload)) for m in sent] == [6 * 5] * 3
    assert_same(found, bounds((samples, whole), centres), atol=1e-10)


class TestFaults:
    def test_a_loss_changes_nothing(self):
        data = ring()
        expected = bounds(data, FIXED, FaultyEngine())
        for losses in ({0: (1,)}, {3: (0,)}, {1: (0, 2)}, {9: (2,)}):
            found = bounds(data, FIXED, FaultyEngine(losses=losses))
            for name in COLUMNS:
                assert_array_equal(getattr(found, name), getattr(expected, name))

    def test_a_worker_that_is_always_lost_is_an_error(self):
        with pytest.raises(EngineError, match="injected"):
            bounds(ring(), FIXED, FaultyEngine(losses={"apply": (1,)}))

    def test_a_loader_that_fails_later_is_named(self):
        samples, whole = ring()
        loader = loader_that_fails(samples)
        with pytest.raises(InputError, match=r"partition 0 .*raised OSError: disk gone"):
            bounds((samples, whole), FIXED, LocalEngine(3, loader=loader))


def test_what_it_cannot_do():
    whole = ring()[1]
    with pytest.raises(InputError, match="no samples, and the engine has no loader"):
        gr.divergence_bounds(None, whole, gr.GraphRatio(engine=LocalEngine(2)))
    few = gr.NodeSamples.from_arrays(*np.zeros((2, 2, 2, 1)))
    with pytest.raises(InputError, match="no node has 5 observations"):
        gr.divergence_bounds(few, None, gr.GraphRatio(engine=LocalEngine(2)))
    timed = gr.NodeSamples.from_arrays(
        *np.random.default_rng(0).normal(size=(2, 3, 20, 1)), block=5
    )
    with pytest.raises(InputError, match="cannot be split with an engine"):
        gr.divergence_bounds(timed, None, gr.GraphRatio(**FIXED, engine=LocalEngine(2)))


@pytest.mark.parametrize("ask", [gr.compare_graphs, gr.kinds_of_change])
def test_what_runs_in_one_process_says_so(ask):
    samples, whole = ring()
    model = gr.GRULSIF(engine=LocalEngine(2, loader=loader_of(samples)))
    with pytest.raises(InputError, match=r"no samples\. Pass .*; only fits, divergence_bounds"):
        ask(None, whole, model)
