"""Transfer to the target of every node: what is fitted, on what weights, and what is refused."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.ensemble import RandomForestRegressor
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures

import graphratio as gr
from graphratio.exceptions import DataWarning, InputError
from graphratio.transfer.shift import shift_p_values
from graphratio.transfer.weight_powers import USUAL

NODES = [f"n{i}" for i in range(12)]
QUICK = {"bandwidth": 1.0, "graph_penalty": 0.12, "ridge": 0.012}


def ratio():
    return gr.GRULSIF(**QUICK)


def problem(seed=0, shift=1.2, n=50):
    """Two cliques of six nodes; the second one shifts. Squares, to be fitted by a line."""
    rng = np.random.default_rng(seed)
    edges = [(a, b) for part in (NODES[:6], NODES[6:]) for a in part for b in part if a < b]
    graph = gr.Graph.from_edges([*edges, (NODES[0], NODES[6])], nodes=NODES)
    reference = {v: rng.normal(size=(n, 1)) for v in NODES}
    moved = {v: shift * (i >= 6) for i, v in enumerate(NODES)}
    target = {v: rng.normal(size=(n, 1)) + moved[v] for v in NODES}
    y = {v: x[:, 0] ** 2 + 0.3 * rng.normal(size=n) for v, x in reference.items()}
    truth = {v: x[:, 0] ** 2 for v, x in target.items()}
    return reference, target, y, truth, graph


def fitted(predictor=None, seed=0, **params):
    reference, target, y, _, graph = problem(seed)
    params = {"estimator": ratio(), "random_state": 0, **params}
    return gr.NodewiseTransfer(
        LinearRegression() if predictor is None else predictor, **params
    ).fit((reference, target), y, graph)


class TestFit:
    def test_reweights_the_shifted_nodes(self):
        model = fitted()
        assert model.nodes_ == tuple(NODES)
        assert_array_equal(model.is_reweighted_[6:], True)
        assert model.is_reweighted_[:6].sum() <= 1
        assert list(model.models_) == NODES
        assert model.sharpness_ >= 1

    def test_models_are_weighted_fits(self):
        model = fitted(own_share=0)
        reference, target, y, _, _ = problem()
        for node in NODES:
            own = LinearRegression().fit(
                reference[node], y[node], sample_weight=model.weights_[node]
            )
            assert_allclose(model.models_[node].coef_, own.coef_)
            assert model.weights_[node].mean() == pytest.approx(1)
        kept = np.array(NODES)[~model.is_reweighted_]
        assert all(np.all(model.weights_[node] == 1) for node in kept)
        weights = model.estimator_.importance_weights((reference, target))["n11"]
        power = np.maximum(weights, 1e-3) ** model.sharpness_
        assert_allclose(model.weights_["n11"], power / power.mean())

    def test_lowers_the_target_error_where_there_is_a_shift(self):
        gains = []
        for seed in range(3):
            reference, target, y, truth, _ = problem(seed)
            model = fitted(seed=seed)
            for node in NODES[6:]:
                plain = LinearRegression().fit(reference[node], y[node]).predict(target[node])
                own = model.predict(target[node], node=node)
                gains.append(
                    np.mean((plain - truth[node]) ** 2) - np.mean((own - truth[node]) ** 2)
                )
        assert np.mean(gains) > 3 * np.std(gains) / np.sqrt(len(gains))

    def test_a_correct_model_is_not_reweighted_more(self):
        reference, target, _, _, graph = problem()
        rng = np.random.default_rng(1)
        y = {v: x[:, 0] + 0.5 * rng.normal(size=len(x)) for v, x in reference.items()}
        model = gr.NodewiseTransfer(LinearRegression(), ratio(), random_state=0)
        assert model.fit((reference, target), y, graph).sharpness_ <= USUAL

    def test_all_nodes_and_a_given_sharpness(self):
        model = fitted(level=1, sharpness=1, own_share=0)
        assert model.is_reweighted_.all()
        reference, target, *_ = problem()
        raw = model.estimator_.importance_weights((reference, target))
        assert_allclose(model.weights_["n0"], raw["n0"], rtol=2e-3, atol=2e-3)

    def test_a_ratio_of_single_nodes_is_not_blended(self):
        params = {"estimator": gr.RULSIF(n_centers=10, random_state=0), "sharpness": 1}
        one, other = (fitted(own_share=share, **params) for share in (0, 0.5))
        assert_array_equal(one.weights_.sample_weight, other.weights_.sample_weight)

    def test_order_of_nodes_and_lists(self):
        reference, target, y, _, graph = problem()
        order = NODES[::-1]
        samples = gr.NodeSamples.from_arrays(reference, target, nodes=order)
        params = {"estimator": ratio(), "level": 1, "sharpness": 1, "random_state": 0}
        by_label = gr.NodewiseTransfer(LinearRegression(), **params).fit(samples, y, graph)
        listed = [y[v] for v in order]
        by_place = gr.NodewiseTransfer(LinearRegression(), **params).fit(samples, listed, graph)
        for node in NODES:
            assert_array_equal(by_label.models_[node].coef_, by_place.models_[node].coef_)

    def test_same_seed_same_result(self):
        forest = RandomForestRegressor(n_estimators=3, max_depth=2)
        one, other = (fitted(forest, sharpness=1.0) for _ in range(2))
        x = [[0.5]]
        assert_array_equal(one.predict(x, node="n7"), other.predict(x, node="n7"))

    def test_standardised_samples(self):
        reference, target, y, _, graph = problem()
        samples = gr.NodeSamples.from_arrays(reference, target).standardized()
        model = gr.NodewiseTransfer(LinearRegression(), ratio(), random_state=0)
        model.fit(samples, y, graph)
        scaled = samples.scaling.apply(target["n9"])
        assert_allclose(model.predict(target["n9"], node="n9"), model.models_["n9"].predict(scaled))

    def test_other_ratio_estimators(self):
        model = fitted(estimator=gr.RULSIF(n_centers=10, random_state=0))
        assert model.is_reweighted_[6:].mean() > 0.5

    def test_the_default_estimator(self):
        model = fitted(estimator=None)
        assert type(model.estimator_) is gr.GraphRatio
        assert_array_equal(model.is_reweighted_[6:], True)
        assert model.is_reweighted_[:6].sum() <= 1


class TestMissingSamples:
    def test_without_target_the_neighbours_decide(self):
        reference, target, y, _, graph = problem()
        target["n8"] = target["n2"] = np.empty((0, 1))
        model = gr.NodewiseTransfer(LinearRegression(), ratio(), random_state=0)
        model.fit((reference, target), y, graph)
        assert np.isnan(model.p_values_[[2, 8]]).all()
        assert_array_equal(model.is_reweighted_[[2, 8]], [False, True])

    def test_without_reference_the_pooled_model(self):
        reference, target, y, _, graph = problem()
        reference["n3"], y["n3"] = np.empty((0, 1)), []
        model = gr.NodewiseTransfer(LinearRegression(), ratio(), random_state=0)
        model.fit((reference, target), y, graph)
        x = np.concatenate([reference[v] for v in NODES])
        pooled = LinearRegression().fit(
            x, np.concatenate([y[v] for v in NODES]), sample_weight=model.weights_
        )
        assert_allclose(model.models_["n3"].coef_, pooled.coef_)

    def test_without_reference_nothing_is_reweighted(self):
        reference, target, y, _, graph = problem()
        reference["n8"], y["n8"] = np.empty((0, 1)), []
        model = gr.NodewiseTransfer(LinearRegression(), ratio(), random_state=0)
        model.fit((reference, target), y, graph)
        assert model.is_reweighted_[[7, 9]].all()
        assert not model.is_reweighted_[8]
        assert model.evidence_.reason[8] == "no reference"
        assert "uses the model of all nodes" in model.evidence_.describe("n8")
        count = model.is_reweighted_.sum()
        assert f"{count} of {count} nodes with a shift are reweighted" in repr(model.evidence_)


class TestModels:
    @pytest.mark.parametrize(
        "predictor",
        [
            make_pipeline(PolynomialFeatures(2), Ridge()),
            GridSearchCV(Ridge(), {"alpha": [0.1, 1.0]}, cv=2),
        ],
    )
    def test_wrapped_predictors_get_the_weights(self, predictor):
        one, other = (fitted(predictor, level=1, sharpness=s) for s in (0.0, 1.5))
        x = [[2.0]]
        assert one.predict(x, node="n9") != pytest.approx(other.predict(x, node="n9"), rel=1e-6)

    def test_predictors_without_weights_are_refused(self):
        for predictor in (KNeighborsRegressor(), make_pipeline(KNeighborsRegressor())):
            with pytest.raises(InputError, match="takes no sample_weight"):
                fitted(predictor)

    def test_classes(self):
        reference, target, y, _, graph = problem()
        named = {v: np.where(values > 0.5, "high", "low") for v, values in y.items()}
        named["n0"] = np.full(50, "low")
        named["n1"] = np.where(reference["n1"][:, 0] > 0, "high", "medium")
        model = gr.NodewiseTransfer(LogisticRegression(), ratio(), sharpness=1.0, random_state=0)
        with pytest.warns(DataWarning, match="single class.*'n0'"):
            model.fit((reference, target), named, graph)
        assert list(model.classes_) == ["high", "low", "medium"]
        assert set(model.predict(target["n0"], node="n0")) == {"low"}
        chances = model.predict_proba(target)
        assert_allclose(chances["n1"].sum(axis=1), 1)
        assert_array_equal(chances["n1"][:, 1], 0)
        assert not hasattr(gr.NodewiseTransfer(Ridge()), "predict_proba")

    def test_parameters(self):
        model = gr.NodewiseTransfer(Ridge(alpha=2.0), gr.GRULSIF())
        model.set_params(predictor__alpha=3.0, estimator__alpha=0.2)
        copy = clone(model)
        assert copy.get_params()["predictor__alpha"] == 3.0
        assert copy.estimator.alpha == 0.2


class TestUse:
    def test_predict_and_score_over_nodes(self):
        model = fitted()
        reference, target, _, truth, _ = problem()
        by_label = model.predict(target)
        by_place = model.predict([target[v] for v in NODES])
        by_samples = model.predict(gr.NodeSamples.from_arrays(reference, target))
        for node in NODES:
            single = model.predict(target[node], node=node)
            for found in (by_label, by_place, by_samples):
                assert_array_equal(found[node], single)
        scores = [model.score(target[v], truth[v], node=v) for v in NODES]
        assert model.score(target, truth) == pytest.approx(np.mean(scores))

    def test_nodes_that_are_standardised_by_themselves(self):
        reference, target, y, _, graph = problem()
        samples = gr.NodeSamples.from_arrays(reference, target).standardized(by_node=True)
        own = gr.NodewiseTransfer(Ridge(), random_state=0).fit(samples, y, graph)
        found = own.predict(target)
        for node in NODES:
            placed = samples.target(node)
            expected = own.models_[node].predict(placed)
            np.testing.assert_allclose(found[node], expected)

    def test_table(self):
        table = fitted().to_frame()
        assert list(table["node"]) == NODES
        assert table["reweighted"].sum() >= 6

    def test_refusals(self):
        reference, target, y, _, graph = problem()
        model = gr.NodewiseTransfer(LinearRegression(), ratio())
        with pytest.raises(NotFittedError):
            model.predict([[0.0]], node="n0")
        with pytest.raises(InputError, match="'n4' has shape"):
            model.fit((reference, target), {**y, "n4": y["n4"][1:]}, graph)
        with pytest.raises(InputError, match="'n5' has 1 missing"):
            model.fit((reference, target), {**y, "n5": [np.nan, *y["n5"][1:]]}, graph)
        with pytest.raises(InputError, match="'elsewhere'"):
            model.fit((reference, target), {**y, "elsewhere": [1.0]}, graph)
        with pytest.raises(InputError, match="3 entries for 12 nodes"):
            model.fit((reference, target), [[1.0]] * 3, graph)
        with pytest.raises(InputError, match="not numeric"):
            model.fit((reference, target), {v: ["a"] * 50 for v in NODES}, graph)
        with pytest.raises(InputError, match=r"estimator=Ridge.*not an estimator of this library"):
            clone(model).set_params(estimator=Ridge()).fit((reference, target), y, graph)
        with pytest.raises(InputError, match="which node"):
            fitted().predict(target["n0"])


def test_evidence_keeps_its_level_next_to_changed_nodes():
    rejected = []
    for seed in range(12):
        reference, target, _, _, graph = problem(seed, n=30)
        # One unchanged node among five that changed.
        target["n6"] = np.random.default_rng(1000 + seed).normal(size=(30, 1))
        samples = gr.NodeSamples.from_arrays(reference, target)
        model = ratio().fit(samples, graph)
        p = shift_p_values(model, samples, graph, 5, np.random.default_rng(seed))
        rejected.append(p[:7] <= 0.1)
        assert np.median(p[7:]) < 0.01
    # 84 unchanged nodes at a level of 10 %: more than 17 has a probability below 0.2 %.
    assert np.sum(rejected) <= 17


def test_without_a_shift_nothing_is_reweighted():
    touched = 0
    for seed in range(6):
        reference, target, y, _, graph = problem(seed, shift=0.0)
        model = gr.NodewiseTransfer(LinearRegression(), ratio(), sharpness=1.0, random_state=0)
        touched += model.fit((reference, target), y, graph).is_reweighted_.any()
    # Each draw has a chance of 10 %: four of six or more happens once in 800 times.
    assert touched <= 3
