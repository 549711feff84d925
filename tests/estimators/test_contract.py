"""One check list that every estimator passes."""

import pickle
from functools import cache

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import graphratio as gr
from graphratio.exceptions import DataWarning, InputError

NODES = ["k", "b", "z", "a"]
EDGES = [("k", "b"), ("b", "z"), ("z", "a")]


def make_samples(seed=0, shift=1.0, **kwargs):
    rng = np.random.default_rng(seed)
    sizes = {"k": (60, 50), "b": (42, 61), "z": (55, 55), "a": (39, 44)}
    reference = {v: rng.normal(size=(n, 2)) for v, (n, _) in sizes.items()}
    target = {v: rng.normal(shift * (v == "z"), 1, size=(n, 2)) for v, (_, n) in sizes.items()}
    return gr.NodeSamples.from_arrays(reference, target, **kwargs)


def make_graph():
    return gr.Graph.from_edges(EDGES, nodes=NODES)


ESTIMATORS = {
    "GraphRatio": lambda: gr.GraphRatio(
        n_profiles=1, bandwidth=1.5, graph_penalty=0.1, ridge=0.004, n_rounds=2, random_state=0
    ),
    "GraphRatio, selected": lambda: gr.GraphRatio(
        bandwidth=[1.0, 2.0], graph_penalty=[0.01, 0.1], ridge=[0.01, 0.1], random_state=0
    ),
    "GRULSIF": lambda: gr.GRULSIF(bandwidth=1.5, graph_penalty=0.04, ridge=0.004, random_state=0),
    "GRULSIF, prior 1": lambda: gr.GRULSIF(
        bandwidth=1.5, graph_penalty=0.04, ridge=0.004, prior_ratio=1.0, random_state=0
    ),
    "GRULSIF, selected": lambda: gr.GRULSIF(random_state=0),
    "GRULSIF, laplacian": lambda: gr.GRULSIF(
        kernel="laplacian", bandwidth=3.0, graph_penalty=0.04, ridge=0.004, random_state=0
    ),
    "GRULSIF, KL": lambda: gr.GRULSIF(
        loss="kl", bandwidth=1.5, graph_penalty=0.04, ridge=0.004, random_state=0
    ),
    "GRULSIF, KL, plain ratio": lambda: gr.GRULSIF(
        alpha=0, loss="kl", bandwidth=1.5, graph_penalty=0.04, ridge=0.04, random_state=0
    ),
    "GRULSIF, Jensen-Shannon": lambda: gr.GRULSIF(
        loss="jensen-shannon", bandwidth=1.5, graph_penalty=0.01, ridge=0.001, random_state=0
    ),
    "GraphRatio, KL, selected": lambda: gr.GraphRatio(
        loss="kl", bandwidth=[1.0, 2.0], graph_penalty=[0.01, 0.1], ridge=0.01, random_state=0
    ),
    "Pool, Jensen-Shannon": lambda: gr.Pool(
        loss="jensen-shannon", bandwidth=1.5, ridge=[0.003, 0.01], random_state=0
    ),
    "Pool": lambda: gr.Pool(bandwidth=1.5, ridge=0.04, random_state=0),
    "Pool, selected": lambda: gr.Pool(random_state=0),
    "RULSIF": lambda: gr.RULSIF(bandwidth=1.5, ridge=0.1, random_state=0),
    "RULSIF, selected": lambda: gr.RULSIF(random_state=0),
    "RULSIF, nonnegative": lambda: gr.RULSIF(nonnegative=True, random_state=0),
    "ULSIF": lambda: gr.ULSIF(bandwidth=1.5, ridge=0.1, random_state=0),
    "KLIEP": lambda: gr.KLIEP(bandwidth=1.5, ridge=0.01, random_state=0),
    "KLIEP, selected": lambda: gr.KLIEP(bandwidth=[1.0, 2.0], random_state=0),
}


@cache
def fitted(make):
    """One fit for all tests that only look at it."""
    return make().fit(make_samples(), make_graph())


every_estimator = pytest.mark.parametrize("make", ESTIMATORS.values(), ids=ESTIMATORS)


@every_estimator
class TestContract:
    def test_results_follow_the_graph(self, make):
        model = fitted(make)
        assert model.nodes_ == tuple(NODES)
        assert model.divergence_.shape == (4,)
        assert np.isfinite(model.divergence_).all()
        assert int(model.divergence_.argmax()) == NODES.index("z")
        frame = model.to_frame()
        assert frame["node"].tolist() == NODES
        assert frame["n_reference"].tolist() == [60, 42, 55, 39]
        assert frame["n_target"].tolist() == [50, 61, 55, 44]
        assert frame["degree"].tolist() == [1, 2, 2, 1]
        assert_array_equal(frame["divergence"], model.divergence_)

    def test_order_of_the_given_dicts_does_not_matter(self, make):
        samples = make_samples()
        given = dict(nodes=NODES[::-1])
        turned = gr.NodeSamples.from_arrays(
            {v: samples.reference(v) for v in given["nodes"]},
            {v: samples.target(v) for v in given["nodes"]},
        )
        one, other = fitted(make), make().fit(turned, make_graph())
        assert_array_equal(one.divergence_, other.divergence_)

    def test_predict_one_node_and_all(self, make):
        model = fitted(make)
        x = np.random.default_rng(1).normal(size=(7, 2))
        everywhere = model.predict(x)
        assert everywhere.shape == (7, 4)
        for i, node in enumerate(NODES):
            assert_allclose(model.predict(x, node=node), everywhere[:, i], atol=1e-12)

    def test_clipping(self, make):
        model = make().fit(make_samples(shift=5.0), make_graph())
        x = np.random.default_rng(1).normal(2, 4, size=(500, 2))
        raw, clipped = model.predict(x, clip=False), model.predict(x)
        upper = 1 / model.alpha if getattr(model, "alpha", 0) else np.inf
        assert_allclose(clipped, np.clip(raw, 0, upper))

    def test_divergence_of_the_training_samples(self, make):
        samples = make_samples()
        model = make().fit(samples, make_graph())
        assert_allclose(model.divergence(samples), model.divergence_, rtol=1e-12)
        assert model.score(samples) > model.score(make_samples(seed=5, shift=-2.0))

    def test_importance_weights(self, make):
        samples = make_samples()
        model = make().fit(samples, make_graph())
        for relative in (True, False):
            weights = model.importance_weights(samples, relative=relative)
            assert list(weights) == NODES
            for node in NODES:
                assert weights[node].shape == (len(samples.reference(node)),)
                assert weights[node].min() >= 0
                assert weights[node].mean() == pytest.approx(1)
        z = samples.reference("z")
        weights = model.importance_weights(samples)["z"]
        assert np.corrcoef(weights, z.sum(axis=1))[0, 1] > 0.3

    def test_same_seed_same_result(self, make):
        one, other = fitted(make), make().fit(make_samples(), make_graph())
        assert_array_equal(one.divergence_, other.divergence_)

    def test_clone_refit_and_params(self, make):
        model = fitted(make)
        copy = clone(model)
        assert not hasattr(copy, "divergence_")
        assert repr(copy) == repr(make())
        copy.set_params(**model.get_params()).fit(make_samples(seed=1), make_graph())
        copy.fit(make_samples(), make_graph())
        assert_array_equal(copy.divergence_, model.divergence_)

    def test_not_fitted(self, make):
        for call in (
            lambda m: m.predict([[0.0, 0.0]]),
            lambda m: m.divergence(make_samples()),
            lambda m: m.score(make_samples()),
            lambda m: m.importance_weights(make_samples()),
            lambda m: m.to_frame(),
            lambda m: m.save("nowhere"),
        ):
            with pytest.raises(NotFittedError):
                call(make())

    def test_pickle_and_save_round_trip_bit_for_bit(self, make, tmp_path):
        samples = make_samples()
        model = make().fit(samples, make_graph())
        model.save(tmp_path / "m.graphratio")
        for copy in (gr.load(tmp_path / "m.graphratio"), pickle.loads(pickle.dumps(model))):
            x = np.random.default_rng(1).normal(size=(7, 2))
            assert_array_equal(copy.predict(x), model.predict(x))
            assert_array_equal(copy.divergence_, model.divergence_)
            assert_array_equal(copy.divergence(samples), model.divergence(samples))
            assert copy.nodes_ == model.nodes_
            assert copy.get_params() == model.get_params()
            assert repr(copy) == repr(model)
            assert copy.to_frame().equals(model.to_frame())

    def test_standardised_samples_keep_their_scaling(self, make, tmp_path):
        raw = make_samples()
        wide = gr.NodeSamples.from_arrays(
            {v: 50 + 10 * raw.reference(v) for v in NODES},
            {v: 50 + 10 * raw.target(v) for v in NODES},
        )
        scaled = wide.standardized()
        model = make().fit(scaled, make_graph())
        model.save(tmp_path / "m.graphratio")
        x = np.array([[50.0, 50.0], [60.0, 45.0]])
        expected = model.predict(x)
        assert_allclose(gr.load(tmp_path / "m.graphratio").predict(x), expected)
        plain = make().fit(
            gr.NodeSamples.from_arrays(
                {v: scaled.reference(v) for v in NODES}, {v: scaled.target(v) for v in NODES}
            ),
            make_graph(),
        )
        assert_allclose(plain.predict(scaled.scaling.apply(x)), expected, rtol=1e-9)
        assert_allclose(model.divergence(wide), model.divergence_, rtol=1e-9)
        assert_allclose(model.divergence(scaled), model.divergence_, rtol=1e-9)

    def test_wrong_points(self, make):
        model = fitted(make)
        for x, message in (
            ([[1.0, 2.0, 3.0]], "3 features, but the model was fitted with 2"),
            ([[np.nan, 0.0]], r"NaN or infinite values in rows 0"),
            ([1.0, 2.0], r"reshape\(1, -1\)"),
            ([["a", "b"]], "not numbers"),
        ):
            with pytest.raises(InputError, match=message):
                model.predict(x)
        with pytest.raises(InputError, match=r"no node 'K'. Did you mean 'k'|no node 'K'"):
            model.predict([[0.0, 0.0]], node="K")

    def test_wrong_data(self, make):
        with pytest.raises(InputError, match=r"in the samples but not in the graph: 'a'"):
            make().fit(make_samples(), gr.Graph.from_edges(EDGES[:2]))
        with pytest.raises(InputError, match=r"from_edges"):
            make().fit(make_samples(), np.eye(4))
        with pytest.raises(InputError, match=r"tuple \(reference, target\)"):
            make().fit(np.zeros((3, 2)), make_graph())
        model = fitted(make)
        with pytest.raises(InputError, match=r"1 feature, but the model"):
            model.divergence(([[0.0]] * 4, [[0.0]] * 4))

    def test_inputs_are_not_modified(self, make):
        reference = [np.arange(12.0).reshape(6, 2) + v for v in range(4)]
        target = [np.arange(12.0).reshape(6, 2) * 0.5 + v for v in range(4)]
        kept = [x.copy() for x in reference + target]
        make().fit((reference, target), make_graph())
        for before, after in zip(kept, reference + target, strict=True):
            assert_array_equal(before, after)

    def test_repr_says_what_the_ratio_is(self, make):
        model = fitted(make)
        text = repr(model)
        assert "ratio = target / reference at 4 nodes, 2 features" in text
        assert "divergence: 'z'" in text
        assert len(repr(make()).splitlines()) <= 3


@pytest.mark.parametrize("lacking", ["reference", "target", "both"])
def test_a_node_without_a_sample_borrows(lacking):
    samples = make_samples()
    sides = {
        side: {
            v: getattr(samples, side)(v) for v in NODES if v != "b" or lacking not in (side, "both")
        }
        for side in ("reference", "target")
    }
    reduced = gr.NodeSamples.from_arrays(*sides.values(), nodes=None)
    if lacking == "both":
        sides["reference"]["b"] = np.empty((0, 2))
        reduced = gr.NodeSamples.from_arrays(*sides.values())
    model = ESTIMATORS["GRULSIF"]().fit(reduced, make_graph())
    position = NODES.index("b")
    assert np.isnan(model.divergence_).nonzero()[0].tolist() == [position]
    assert any("borrow" in note and "'b'" in note for note in model.notes_)
    assert np.isfinite(model.coef_).all()
    # With no data of its own, its coefficients solve (lam d + rho) theta_b = lam (neighbours).
    lam, rho = model.graph_penalty_, model.ridge_
    neighbours = lam * (model.coef_[0] + model.coef_[2])
    assert_allclose((2 * lam + rho) * model.coef_[position], neighbours, rtol=1e-5)
    with pytest.warns(DataWarning, match=r"undefined \(NaN\).*'b'"):
        model.divergence(reduced)
    assert np.isfinite(model.score(reduced))
    with pytest.raises(InputError, match=r"no connection.*'b'"):
        gr.GRULSIF().fit(reduced, gr.Graph.from_edges([("k", "z"), ("z", "a")], nodes=NODES))
    for alone in (gr.Pool(), gr.RULSIF(), gr.KLIEP(), gr.GRULSIF(graph_penalty=0)):
        with pytest.raises(InputError, match=r"observations: 'b'\. This estimator needs both"):
            alone.fit(reduced, make_graph())


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"alpha": 1.0}, "alpha=1.0"),
        ({"alpha": -0.1}, "alpha"),
        ({"alpha": "x"}, "alpha"),
        ({"kernel": "gausian"}, "did you mean 'gaussian'"),
        ({"bandwidth": 0.0}, "bandwidth"),
        ({"bandwidth": [1.0, -1.0]}, "bandwidth"),
        ({"bandwidth": []}, "sequence of candidates"),
        ({"graph_penalty": -0.01}, "graph_penalty"),
        ({"ridge": 0}, "ridge"),
        ({"ridge": np.nan}, "ridge"),
        ({"solver": "cg"}, "solver"),
        ({"tol": 0}, "tol"),
        ({"max_iter": 0}, "max_iter"),
        ({"cv": 1, "bandwidth": None}, "cv"),
        ({"max_atoms": 0}, "max_atoms"),
        ({"node_coherence": 0.0}, "node_coherence"),
        ({"prior_ratio": -1}, "prior_ratio"),
        ({"dictionary": "nothing"}, "dictionary"),
        ({"random_state": "seed"}, "random_state"),
    ],
)
def test_bad_parameters_are_named(parameters, message):
    given = {"bandwidth": 1.5, "graph_penalty": 0.04, "ridge": 0.004, **parameters}
    with pytest.raises(InputError, match=message):
        gr.GRULSIF(**given).fit(make_samples(), make_graph())


def test_polars_in_polars_out():
    polars = pytest.importorskip("polars")
    table = polars.DataFrame(
        {"s": ["a", "a", "b", "b"] * 5, "p": ["x", "y"] * 10, "v": np.linspace(0, 1, 20)}
    )
    samples = gr.NodeSamples.from_frame(table, node="s", sample="p", reference="x", target="y")
    model = gr.Pool(bandwidth=1.0, ridge=0.2).fit(samples)
    assert isinstance(model.to_frame(), polars.DataFrame)
    assert model.to_frame()["node"].to_list() == ["a", "b"]


def test_columns_of_a_frame_are_taken_by_name():
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    table = pandas.DataFrame(rng.normal(size=(40, 2)), columns=["b", "a"])
    table["s"], table["p"] = "v", ["x", "y"] * 20
    samples = gr.NodeSamples.from_frame(
        table, node="s", sample="p", reference="x", target="y", features=["a", "b"]
    )
    model = gr.Pool(bandwidth=1.0, ridge=0.1).fit(samples)
    expected = model.predict(table[["a", "b"]].to_numpy(), node="v")
    assert_array_equal(model.predict(table, node="v"), expected)
    with pytest.raises(InputError, match=r"no column 'a'"):
        model.predict(table[["b"]], node="v")


def test_a_failed_fit_leaves_the_model_as_it_was():
    model = ESTIMATORS["GRULSIF"]().fit(make_samples(), make_graph())
    before = repr(model)
    model.set_params(ridge=-1.0)
    with pytest.raises(InputError):
        model.fit(([[0.0, 1.0]], [[1.0, 0.0]]))
    model.set_params(ridge=0.004)
    assert repr(model) == before
    assert model.predict([[0.0, 0.0]]).shape == (1, 4)


@every_estimator
def test_parameters_set_after_the_fit_wait_for_the_next(make):
    model = make().fit(make_samples(), make_graph())
    expected = model.divergence(make_samples())
    if "alpha" in model.get_params():
        model.set_params(alpha=0.7)
        assert_array_equal(model.divergence(make_samples()), expected)


def test_samples_with_other_feature_names_are_refused():
    samples = make_samples(feature_names=["pm25", "no2"])
    model = ESTIMATORS["GRULSIF"]().fit(samples, make_graph())
    turned = make_samples(feature_names=["no2", "pm25"])
    with pytest.raises(InputError, match=r"'no2', 'pm25'.*fitted with 'pm25', 'no2'"):
        model.divergence(turned)
    assert_array_equal(model.divergence(make_samples()), model.divergence(samples))


def test_a_forgotten_graph_is_noted():
    model = ESTIMATORS["GRULSIF"]().fit(make_samples())
    assert any("no edges" in note for note in model.notes_)
    assert ESTIMATORS["Pool"]().fit(make_samples()).notes_ == []
