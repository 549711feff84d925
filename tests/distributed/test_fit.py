"""A fit on partitions is the fit of a single process."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from tests.distributed.problems import FIXED, ring
from tests.problems import GRAPHS, graph

import graphratio as gr
from graphratio.datasets import make_scenario
from graphratio.distributed import LocalEngine, atoms, conjugate, scores
from graphratio.distributed.chebyshev import Chebyshev
from graphratio.exceptions import InputError
from graphratio.moments.folds import assign_folds
from graphratio.solvers.node_basis import component_indicators, interpolated_modes

# Left out by `make quick`.
pytestmark = pytest.mark.slow


def samples_for(whole, seed=0):
    rng = np.random.default_rng(seed)
    shape = (whole.n_nodes, 15, 2)
    return gr.NodeSamples.from_arrays(rng.normal(size=shape), rng.normal(size=shape) + 0.5)


@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize("count", [1, 3, 6])
@pytest.mark.parametrize(("penalty", "ridge"), [(0.0, 0.06), (6e-3, 6e-6), (60.0, 0.06)])
def test_equals_the_single_process(name, count, penalty, ridge):
    whole = graph(name)
    samples = samples_for(whole)
    settings = dict(bandwidth=1.5, graph_penalty=penalty, ridge=ridge, tol=1e-10)
    one = gr.GRULSIF(**settings, solver="direct").fit(samples, whole)
    parted = gr.GRULSIF(**settings, engine=LocalEngine(count)).fit(samples, whole)
    assert parted.solution_.converged
    assert parted.solution_.residual <= 1e-10
    # The history has the residual after every iteration, so the last one is small.
    assert len(parted.solution_.history) == parted.solution_.n_iter
    assert not parted.solution_.n_iter or parted.solution_.history[-1] <= 1e-10
    assert_array_equal(parted.dictionary_, one.dictionary_)
    assert_allclose(parted.coef_, one.coef_, atol=1e-7 * np.abs(one.coef_).max())
    assert_allclose(parted.divergence_, one.divergence_, atol=1e-8)


@pytest.mark.parametrize(
    "change",
    [
        {"prior_ratio": 1.0},
        {"kernel": "laplacian", "bandwidth": 2.0},
        {"alpha": 0.0},
        {"max_atoms": 5},
        {"dictionary": [[0.0, 0.0], [1.0, 1.0], [2.0, 0.0]]},
        {"graph_coherence": 0.6},
        {"group_size": 7, "dictionary": "centres"},
        {"bounds": [(-3, 3), (-2, 4)], "dictionary": "quasi-random"},
        {"random_state": np.random.RandomState(3)},
    ],
    ids=lambda change: next(iter(change)),
)
def test_every_parameter_counts(change):
    data = ring()
    settings = {**FIXED, "tol": 1e-10, **change}
    one = gr.GRULSIF(**settings).fit(*data)
    parted = gr.GRULSIF(**settings, engine=LocalEngine(3)).fit(*data)
    assert_array_equal(parted.dictionary_, one.dictionary_)
    assert_allclose(parted.coef_, one.coef_, atol=1e-7)


@pytest.mark.parametrize("name", ["Ia", "IIb"])
def test_same_selection(name):
    scenario = make_scenario(name, n_nodes=32, n=25, random_state=2)
    given = {"bandwidth": [0.7, 1.4], "random_state": 0}
    one = gr.GRULSIF(**given).fit(scenario.samples, scenario.graph)
    parted = gr.GRULSIF(**given, engine=LocalEngine(3)).fit(scenario.samples, scenario.graph)
    assert parted.bandwidth_ == one.bandwidth_
    assert parted.graph_penalty_ == one.graph_penalty_
    assert parted.ridge_ == one.ridge_
    best = one.cv_results_["rank"] <= 10
    difference = parted.cv_results_["mean_score"] - one.cv_results_["mean_score"]
    assert np.abs(difference[best]).max() < 1e-3
    assert_allclose(parted.coef_, one.coef_, atol=1e-5 * np.abs(one.coef_).max())


def test_folds_without_any_node_count_nowhere():
    """Each node has one observation per sample, so that some of the folds are empty."""
    rng = np.random.default_rng(0)
    data = list(rng.normal(size=(3, 1))), list(rng.normal(size=(3, 1)))
    graph = gr.Graph.from_edges([(0, 1), (1, 2)])
    settings = {"bandwidth": 1.0, "graph_penalty": 0.3, "ridge": [0.03, 0.3]}
    one = gr.GRULSIF(**settings, random_state=0).fit(data, graph)
    parted = gr.GRULSIF(**settings, random_state=0, engine=LocalEngine(2)).fit(data, graph)
    empty = [f"fold_{r}_score" for r in range(5) if np.isnan(one.cv_results_[f"fold_{r}_score"][0])]
    assert len(empty) >= 2
    assert all(np.isnan(parted.cv_results_[name]).all() for name in empty)
    # To the tolerance of the solves in a selection.
    assert_allclose(parted.cv_results_["mean_score"], one.cv_results_["mean_score"], atol=1e-3)


@pytest.mark.parametrize("block", [1, 3, 10_000])
def test_dictionary_is_that_of_one_process(monkeypatch, block):
    """Whatever the partitions and the size of the blocks that they send."""
    monkeypatch.setattr(atoms, "BLOCK", block)
    samples, whole = ring(n_features=3)
    one = gr.GRULSIF(**FIXED, node_coherence=0.5, graph_coherence=0.8).fit(samples, whole)
    for partitions in (1, 4, [whole.nodes[0::2], whole.nodes[1::2]]):
        parted = clone(one).set_params(engine=LocalEngine(partitions)).fit(samples, whole)
        assert_array_equal(parted.dictionary_, one.dictionary_)


def test_folds_are_those_of_one_process(monkeypatch):
    """Also where the random numbers come in several pieces."""
    monkeypatch.setattr("graphratio.distributed.fold_keys.KEYS_AT_ONCE", 50)
    samples, whole = ring()
    expected = assign_folds(samples, 4, np.random.default_rng(5))
    found = {}
    original = scores.fold_scores

    def spy(fleet, *args, **kwargs):
        for part in fleet.engine.parts.values():
            found[part.plan.index] = (part.plan.nodes, part.folds)
        return original(fleet, *args, **kwargs)

    monkeypatch.setattr("graphratio.estimators.partitioned.fold_scores", spy)
    model = gr.GRULSIF(bandwidth=[1.0, 2.0], graph_penalty=1.2, ridge=0.12, cv=4)
    rng = np.random.default_rng(5)
    model.set_params(engine=LocalEngine(3), random_state=rng).fit(samples, whole)
    for nodes, folds in found.values():
        assert_array_equal(folds, expected[np.isin(samples.node_index, nodes)])
    # The stream goes on where a single process would have left it.
    alone = np.random.default_rng(5)
    assign_folds(samples, 4, alone)
    assert rng.random() == alone.random()


def test_a_node_without_samples_borrows():
    samples, whole = ring()
    reference = {v: samples.reference(v) for v in whole.nodes}
    target = {v: samples.target(v) for v in whole.nodes}
    reference["v3"], target["v7"] = np.empty((0, 2)), np.empty((0, 2))
    thin = gr.NodeSamples.from_arrays(reference, target)
    one = gr.GRULSIF(**FIXED, tol=1e-10).fit(thin, whole)
    parted = gr.GRULSIF(**FIXED, tol=1e-10, engine=LocalEngine(4)).fit(thin, whole)
    assert_allclose(parted.coef_, one.coef_, atol=1e-7)
    assert_allclose(parted.divergence_, one.divergence_, atol=1e-7)
    assert_allclose(parted.sizes_with_borrowed(), one.sizes_with_borrowed(), rtol=1e-9)
    assert parted.notes_ == one.notes_


class TestLoader:
    def fit(self, loader, whole, **kwargs):
        engine = LocalEngine(3, loader=loader)
        return gr.GRULSIF(**FIXED, engine=engine, **kwargs).fit(None, whole)

    def test_gives_what_samples_give(self):
        samples, whole = ring()
        asked = []

        def loader(nodes):
            asked.append(nodes)
            return gr.NodeSamples.from_arrays(
                {v: samples.reference(v) for v in reversed(nodes)},
                {v: samples.target(v) for v in reversed(nodes)},
            )

        loaded = self.fit(loader, whole)
        given = gr.GRULSIF(**FIXED, engine=LocalEngine(3)).fit(samples, whole)
        assert sorted(node for nodes in asked for node in nodes) == sorted(whole.nodes)
        assert_array_equal(loaded.coef_, given.coef_)
        assert_array_equal(loaded.divergence_, given.divergence_)
        assert_array_equal(loaded.sizes_, given.sizes_)
        assert loaded.nodes_ == given.nodes_

    def test_unlabelled_samples_come_in_the_order_of_the_labels_asked_for(self):
        """Also where these labels are the numbers from 0 on in another order."""
        rng = np.random.default_rng(0)
        reference, target = rng.normal(size=(2, 6, 15, 2))
        target[:3] += 1
        labels = [1, 0, 2, 5, 3, 4]
        whole = gr.Graph.from_edges([(1, 0), (0, 2), (2, 5), (5, 3), (3, 4)], nodes=labels)
        given = gr.NodeSamples.from_arrays(reference, target, nodes=range(6))
        one = gr.GRULSIF(**FIXED, tol=1e-10).fit(given, whole)
        asked = []

        def loader(nodes):
            asked.append(nodes)
            return [reference[v] for v in nodes], [target[v] for v in nodes]

        model = self.fit(loader, whole, tol=1e-10)
        assert [1, 0] in asked
        assert_allclose(model.divergence_, one.divergence_, atol=1e-7)

    def test_everything_else_works_as_usual(self, tmp_path):
        samples, whole = ring()
        model = self.fit(
            lambda nodes: (
                [samples.reference(v) for v in nodes],
                [samples.target(v) for v in nodes],
            ),
            whole,
        )
        one = gr.GRULSIF(**FIXED).fit(samples, whole)
        x = np.random.default_rng(1).normal(size=(5, 2))
        assert_allclose(model.predict(x), one.predict(x), atol=1e-4)
        assert_allclose(model.divergence(samples), model.divergence_, atol=1e-12)
        frame, expected = model.to_frame(), one.to_frame()
        assert list(frame["node"]) == list(whole.nodes)
        assert list(frame.columns) == list(expected.columns)
        assert_allclose(model.sizes_with_borrowed(), one.sizes_with_borrowed(), rtol=1e-9)
        assert_allclose(frame["borrowed_share"], expected["borrowed_share"], rtol=1e-9)
        assert model.score(samples) == pytest.approx(one.score(samples), abs=1e-4)
        model.save(tmp_path / "model")
        again = gr.load(tmp_path / "model")
        assert again.engine is None
        assert again.solution_.partitions == 3
        assert again.solution_.describe() == model.solution_.describe()
        assert model.graph_learned_ is model.graph_
        assert model.n_rounds_ == 0
        assert_array_equal(again.predict(x), model.predict(x))
        assert clone(model).engine is model.engine

    def test_mistakes_are_named(self):
        samples, whole = ring()
        with pytest.raises(InputError, match=r"partition 0 .*raised KeyError: 'broken'"):
            self.fit(lambda nodes: {}["broken"], whole)
        with pytest.raises(InputError, match="did not return the samples of its nodes"):
            self.fit(lambda nodes: samples, whole)
        with pytest.raises(InputError, match="samples were given, but the loader of the engine"):
            gr.GRULSIF(engine=LocalEngine(2, loader=len)).fit(samples, whole)
        with pytest.raises(InputError, match="no samples, and the engine has no loader"):
            gr.GRULSIF(engine=LocalEngine(2)).fit(None, whole)
        with pytest.raises(InputError, match="a loader needs a graph"):
            gr.GRULSIF(engine=LocalEngine(2, loader=len)).fit(None)
        with pytest.raises(InputError, match="is not a function"):
            LocalEngine(2, loader="file.csv")

    def test_partitions_must_agree(self):
        samples, whole = ring()

        def own_names(nodes):
            first = "v0" in nodes
            return gr.NodeSamples.from_arrays(
                {v: samples.reference(v) for v in nodes},
                {v: samples.target(v) for v in nodes},
                feature_names=["a", "b"] if first else ["a", "c"],
            )

        with pytest.raises(InputError, match="has the features 'a', "):
            self.fit(own_names, whole)

        def own_scale(nodes):
            return gr.NodeSamples.from_arrays(
                {v: samples.reference(v) for v in nodes}, {v: samples.target(v) for v in nodes}
            ).standardized()

        with pytest.raises(InputError, match="standardised in different ways"):
            self.fit(own_scale, whole)


def test_standardised_samples_keep_their_scaling():
    samples, whole = ring()
    scaled = samples.standardized()
    bounded = {**FIXED, "dictionary": "quasi-random", "bounds": [(-3, 3), (-2, 4)], "tol": 1e-10}
    one = gr.GRULSIF(**bounded).fit(scaled, whole)
    parted = gr.GRULSIF(**bounded, engine=LocalEngine(3)).fit(scaled, whole)
    assert_array_equal(parted.dictionary_, one.dictionary_)
    x = samples.values[:7]
    assert_allclose(parted.predict(x), one.predict(x), atol=1e-6)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"solver": "direct"}, r'"direct" does not run on an engine.*solver="auto"'),
        ({"solver": "cbcgd"}, r'"cbcgd" does not run on an engine.*solver="auto"'),
        ({"selection_nodes": 5}, "only in one process, not with"),
        ({"max_memory": "4 GiB"}, "only in one process, not with"),
        ({"dictionary": "uniform"}, "needs all observations in one place"),
        ({"engine": "tcp://somewhere"}, "is not an engine"),
        ({"solver": "newton"}, "solver"),
        ({"dictionary": np.empty((0, 2))}, "no points"),
        ({"dictionary": "centres", "group_size": 99}, "no node has 99 observations"),
        ({"dictionary": "centres", "group_size": 2}, "group_size=2"),
        ({"dictionary": "quasi-random"}, "needs bounds"),
    ],
)
def test_what_an_engine_cannot_do(change, message):
    samples, whole = ring()
    model = gr.GRULSIF(**{**FIXED, "engine": LocalEngine(2), **change})
    with pytest.raises(InputError, match=message):
        model.fit(samples, whole)
    assert not hasattr(model, "coef_")


def test_edges_are_not_learned_on_an_engine_and_the_notes_say_so():
    samples, whole = ring()
    plain = gr.GRULSIF(**FIXED, engine=LocalEngine(2)).fit(samples, whole)
    adaptive = gr.GRULSIF(**FIXED, adaptive=True, engine=LocalEngine(2)).fit(samples, whole)
    assert_array_equal(adaptive.coef_, plain.coef_)
    assert adaptive.graph_learned_ is adaptive.graph_
    assert adaptive.n_rounds_ == 0
    assert any("edge weights were not learned" in note for note in adaptive.notes_)
    assert not any("edge weights" in note for note in plain.notes_)


def test_chebyshev_is_symmetric_positive_and_close_to_the_inverse():
    lattice = graph("weighted")
    lam, rho, w = np.array([0.5, 50.0]), np.array([0.05, 5e-3]), np.array([1.0, 0.01])
    inverse = Chebyshev.of(lattice.laplacian, w, lam, rho)
    for c in range(2):
        for j in range(2):
            unit = np.zeros((6, 6, 2, 2))
            unit[range(6), range(6), c, j] = 1.0
            matrix = np.array([inverse.apply(column)[:, c, j] for column in unit])
            assert_allclose(matrix, matrix.T, atol=1e-12 * np.abs(matrix).max())
            system = lam[c] * lattice.laplacian.toarray() + rho[c] * np.eye(6)
            product = np.linalg.eigvals(matrix @ (system + w[j] * np.eye(6))).real
            assert product.min() > 0
            assert product.max() < 1.2
    kept = inverse.restrict(np.array([False, True]))
    x = np.random.default_rng(0).normal(size=(6, 2, 2))
    assert_allclose(kept.apply(x[:, 1:]), inverse.apply(x)[:, 1:])


class TestInterpolatedModes:
    """Low modes of large graphs, found with work that is linear in the nodes."""

    def lattice(self, side=40):
        at = np.arange(side * side).reshape(side, side)
        pairs = [(at[:, :-1], at[:, 1:]), (at[:-1], at[1:])]
        edges = np.concatenate([np.column_stack([a.ravel(), b.ravel()]) for a, b in pairs])
        # A second component, and nodes without edges.
        edges = np.concatenate([edges, side * side + np.array([[0, 1], [1, 2], [2, 3]])])
        return gr.Graph.from_edges(edges, nodes=range(side * side + 6))

    def test_they_are_orthonormal_and_nearly_the_lowest(self):
        lattice = self.lattice()
        modes, vectors = interpolated_modes(lattice, 20, component_indicators(lattice, 20))
        lowest = np.linalg.eigvalsh(lattice.laplacian.toarray())[: len(modes)]
        assert_allclose(vectors.T @ vectors, np.eye(len(modes)), atol=1e-10)
        quotients = np.einsum("vk,vk->k", vectors, lattice.laplacian @ vectors)
        assert_allclose(modes, quotients, atol=1e-10)
        # No space has smaller values than the lowest modes, and this one has hardly larger ones.
        assert (modes >= lowest - 1e-10).all()
        assert (modes[: len(modes) // 2] <= 2 * lowest[: len(modes) // 2] + 1e-3).all()

    def test_they_serve_as_well(self, monkeypatch):
        lattice = self.lattice(20)
        rng = np.random.default_rng(0)
        shape = (lattice.n_nodes, 8, 1)
        data = rng.normal(size=shape), rng.normal(size=shape) + 0.5
        settings = dict(bandwidth=1.0, graph_penalty=60.0, ridge=6e-3, max_atoms=10, tol=1e-9)
        found = {}
        for limit in (0, 10**6):
            monkeypatch.setattr(conjugate, "LANCZOS_NODES", limit)
            found[limit] = gr.GRULSIF(**settings, engine=LocalEngine(4)).fit(data, lattice)
        assert_allclose(found[0].coef_, found[10**6].coef_, atol=1e-6)
        assert found[0].solution_.n_iter <= 1.3 * found[10**6].solution_.n_iter


def test_iterations_do_not_grow_with_the_number_of_partitions():
    samples, whole = ring(60)
    counts = []
    for partitions in (1, 4, 12):
        model = gr.GRULSIF(
            bandwidth=1.2, graph_penalty=60.0, ridge=6e-3, engine=LocalEngine(partitions)
        ).fit(samples, whole)
        counts.append(model.solution_.n_iter)
    assert max(counts) <= 40
    assert max(counts) <= 2 * min(counts)


def test_categories_are_refused():
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {
            "node": np.repeat(["a", "b", "c"], 40),
            "sample": np.tile(["before", "after"], 60),
            "level": rng.normal(size=120),
            "sky": rng.choice(["clear", "rain"], size=120),
        }
    )
    samples = gr.NodeSamples.from_frame(
        table, node="node", sample="sample", reference="before", target="after", categorical="sky"
    )
    graph = gr.Graph.from_edges([("a", "b"), ("b", "c")])
    with pytest.raises(InputError, match="'sky' cannot be used with an engine"):
        gr.GRULSIF(**FIXED, engine=LocalEngine(2)).fit(samples, graph)


def test_blocks_are_split_in_one_process_only():
    rng = np.random.default_rng(0)
    samples = gr.NodeSamples.from_arrays(*rng.normal(size=(2, 3, 20, 1)), block=5)
    graph = gr.Graph.from_edges([(0, 1), (1, 2)])
    with pytest.raises(InputError, match="cannot be split with an engine"):
        gr.GRULSIF(engine=LocalEngine(2)).fit(samples, graph)
    # Without a selection there are no folds.
    assert gr.GRULSIF(**FIXED, engine=LocalEngine(2)).fit(samples, graph).coef_.shape[0] == 3
