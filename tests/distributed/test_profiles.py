"""`GraphRatio` on partitions is that of a single process, and survives losses."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from tests.distributed.problems import FaultyEngine, arrays_in, loader_of, ring

import graphratio as gr
from graphratio.datasets import make_scenario
from graphratio.distributed import LocalEngine
from graphratio.exceptions import EngineError, InputError

# Left out by `make quick`.
pytestmark = pytest.mark.slow

FIXED = dict(bandwidth=1.2, n_profiles=2, graph_penalty=0.6, ridge=0.03, n_rounds=2, random_state=0)
# Few candidates, with profiles and without.
SELECTED = dict(bandwidth=[0.8, 1.6], graph_penalty=[0.24, 2.4], ridge=[0.1], cv=2, random_state=0)


def assert_same_fit(parted, one, *, atol=1e-8):
    """The same to the tolerance of the solvers; profiles may differ in sign."""
    assert parted.shared_ == one.shared_
    assert parted.n_profiles_ == one.n_profiles_
    assert_array_equal(parted.dictionary_, one.dictionary_)
    scale = np.abs(one.coef_).max()
    assert_allclose(parted.coef_, one.coef_, atol=atol * scale)
    if one.shared_:
        assert_allclose(parted.coordinates_ @ parted.profiles_.T, parted.coef_, atol=1e-10 * scale)
    assert_allclose(parted.divergence_, one.divergence_, atol=atol)
    learned = one.graph_learned_.adjacency
    assert_allclose(
        parted.graph_learned_.adjacency.toarray(), learned.toarray(), rtol=1e-5, atol=1e-8
    )
    assert_allclose(parted.sizes_with_borrowed(), one.sizes_with_borrowed(), rtol=1e-4)


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"adaptive": False},
        {"n_rounds": 0},
        {"graph_penalty": 0.0},
        {"graph_penalty": 60.0},
        {"n_profiles": 1, "prior_ratio": 0.0},
        {"kernel": "laplacian", "bandwidth": 2.0},
        {"dictionary": "centres", "group_size": 6},
        {"n_profiles": 0, "n_rounds": None, "tol": 1e-10},
    ],
    ids=str,
)
@pytest.mark.parametrize("count", [1, 4])
def test_equals_the_single_process(change, count):
    data = ring()
    settings = {**FIXED, **change}
    one = gr.GraphRatio(**settings).fit(*data)
    parted = gr.GraphRatio(**settings, engine=LocalEngine(count)).fit(*data)
    assert_same_fit(parted, one)
    assert parted.solution_.partitions == count
    assert parted.solution_.converged


@pytest.mark.parametrize("name", ["Ia", "IIb"])
def test_same_search(name):
    scenario = make_scenario(name, n_nodes=32, n=25, random_state=2)
    given = {"bandwidth": [0.7, 1.4], "random_state": 0, "tol": 1e-10}
    one = gr.GraphRatio(**given).fit(scenario.samples, scenario.graph)
    parted = gr.GraphRatio(**given, engine=LocalEngine(3)).fit(scenario.samples, scenario.graph)
    for chosen in ("bandwidth_", "graph_penalty_", "ridge_", "n_rounds_"):
        assert getattr(parted, chosen) == getattr(one, chosen)
    assert_same_fit(parted, one)
    assert parted.notes_ == one.notes_
    # The same candidates were tried, but for those that rounding decides about between penalties
    # that are equally good, and have the same scores where they matter.
    here, there = scores(one), scores(parted)
    both = here.keys() & there.keys()
    best = sorted(both, key=here.get)[-10:]
    assert max(abs(here[tried] - there[tried]) for tried in best) < 1e-3
    assert best[-1] == max(here, key=here.get) == max(there, key=there.get)
    assert len(both) > 0.9 * len(here.keys() | there.keys())
    assert_allclose(parted.divergence_held_out_, one.divergence_held_out_, atol=1e-2)


def scores(model):
    """The score of each candidate that the model tried."""
    table = model.cv_results_
    names = ("n_profiles", "bandwidth", "graph_penalty", "ridge", "n_rounds")
    return dict(
        zip(zip(*(table[name] for name in names), strict=True), table["mean_score"], strict=True)
    )


def test_nodes_without_a_sample_borrow():
    samples, whole = ring()
    reference = {v: samples.reference(v) for v in whole.nodes}
    target = {v: samples.target(v) for v in whole.nodes}
    reference["v3"], target["v7"] = np.empty((0, 2)), np.empty((0, 2))
    thin = gr.NodeSamples.from_arrays(reference, target)
    one = gr.GraphRatio(**FIXED).fit(thin, whole)
    parted = gr.GraphRatio(**FIXED, engine=LocalEngine(4)).fit(thin, whole)
    assert_same_fit(parted, one)


def test_a_saved_model_reads_back(tmp_path):
    samples, whole = ring()
    model = gr.GraphRatio(**FIXED, engine=LocalEngine(3)).fit(samples, whole)
    model.save(tmp_path / "model")
    again = gr.load(tmp_path / "model")
    assert again.engine is None
    assert again.solution_.describe() == model.solution_.describe()
    assert_array_equal(again.predict(samples.values[:5]), model.predict(samples.values[:5]))
    assert_array_equal(
        again.profile_values(samples.values[:5]), model.profile_values(samples.values[:5])
    )


def test_no_observation_travels_with_centres():
    samples, whole = ring(18, n_features=3)
    messages = []
    engine = LocalEngine(3, loader=loader_of(samples), observe=messages.append)
    centres = {"dictionary": "centres", "group_size": 6}
    model = gr.GraphRatio(**SELECTED, **centres, engine=engine).fit(None, whole)
    observed = np.unique(samples.values)
    floats = [a for m in messages for a in arrays_in(m.payload) if a.dtype.kind == "f"]
    assert sum(a.size for a in floats) > 10_000
    assert not any(np.isin(array, observed).any() for array in floats)
    assert {"profiles.projected", "held_out_losses"} <= {m.method for m in messages}
    assert model.n_atoms_ > 10


def test_what_a_round_sends():
    """r (r + 1) numbers per node for coordinates, and sums of the size of the profiles."""
    messages = []
    data = ring(24)
    engine = LocalEngine(3, observe=messages.append)
    model = gr.GraphRatio(**FIXED, engine=engine).fit(*data)
    m, r, n_own = model.n_components_, 2, 8
    sizes = {}
    for message in messages:
        if message.outgoing and message.method.startswith("profiles."):
            size = sum(array.size for array in arrays_in(message.payload))
            sizes.setdefault(message.method, set()).add(size)
    assert sizes["profiles.projected"] == {n_own * r * (r + 1)}
    assert sizes["profiles.pooled"] == {r * (r + 1) // 2 * m * m + r * m}
    assert sizes["profiles.first"] == {n_own * m}


class TestFaults:
    def test_a_loss_at_any_call_changes_nothing(self):
        data = ring()
        plain = FaultyEngine()
        expected = gr.GraphRatio(**FIXED, engine=plain).fit(*data)
        assert len(plain.log) > 15
        for number in range(len(plain.log)):
            engine = FaultyEngine(losses={number: (number % 3,)})
            model = gr.GraphRatio(**FIXED, engine=engine).fit(*data)
            assert_array_equal(model.coef_, expected.coef_)
            assert_array_equal(model.divergence_, expected.divergence_)
            assert model.solution_.recoveries + model.solution_.partitions >= 3

    def test_a_loss_during_the_search_changes_nothing(self):
        data = ring()
        plain = FaultyEngine()
        expected = gr.GraphRatio(**SELECTED, engine=plain).fit(*data)
        for number in np.linspace(0, len(plain.log) - 1, 7).astype(int).tolist():
            engine = FaultyEngine(losses={number: (2,)})
            model = gr.GraphRatio(**SELECTED, engine=engine).fit(*data)
            for name, column in expected.cv_results_.items():
                assert_array_equal(model.cv_results_[name], column)
            assert_allclose(model.coef_, expected.coef_, atol=1e-6)

    def test_a_call_that_always_kills_its_worker_ends(self):
        engine = FaultyEngine(losses={"profiles.pooled": (1,)})
        with pytest.raises(EngineError, match="injected"):
            gr.GraphRatio(**FIXED, engine=engine).fit(*ring())

    def test_a_loader_that_fails_is_named(self):
        graph = ring()[1]
        engine = LocalEngine(3, loader=lambda nodes: {}["broken"])
        with pytest.raises(InputError, match=r"partition 0 .*raised KeyError: 'broken'"):
            gr.GraphRatio(engine=engine).fit(None, graph)
