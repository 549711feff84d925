"""Degenerate data through the public API: a clear error or a finite answer, and symmetries."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import graphratio as gr
from graphratio.exceptions import ConvergenceWarning, DataWarning, InputError

PROFILE = settings(derandomize=True, deadline=None, max_examples=40)
KINDS = ["spread", "identical", "few values", "constant feature", "all zero", "one outlier"]
SCALES = [1e-140, 1e-90, 1e-8, 1.0, 1e8, 1e90]
DTYPES = [np.float64, np.float32, np.int64]


def path_graph(n_nodes):
    if n_nodes == 1:
        return gr.Graph.empty(1)
    return gr.Graph.from_edges([(i, i + 1) for i in range(n_nodes - 1)], nodes=range(n_nodes))


def degenerate(kind, rng, n_rows, n_features):
    """One sample of the given kind, of order one."""
    if kind == "identical":
        return np.full((n_rows, n_features), 0.7)
    if kind == "all zero":
        return np.zeros((n_rows, n_features))
    rows = rng.normal(size=(n_rows, n_features))
    if kind == "few values":
        return np.round(rows)
    if kind == "constant feature":
        rows[:, 0] = 3.0
    if kind == "one outlier" and n_rows:
        rows[0] = 1e6
    return rows


@st.composite
def data_sets(draw):
    """Samples and a graph on which something or other is degenerate."""
    rng = np.random.default_rng(draw(st.integers(0, 2**16)))
    n_nodes = draw(st.integers(1, 4))
    n_features = draw(st.sampled_from([1, 2, 40]))
    kinds = st.sampled_from(KINDS)
    scale, dtype = draw(st.sampled_from(SCALES)), draw(st.sampled_from(DTYPES))
    if dtype is np.int64:
        scale = min(max(scale, 1.0), 1e8)
    if dtype is np.float32:
        scale = min(max(scale, 1e-30), 1e30)

    def side():
        sizes = draw(st.lists(st.integers(0, 6), min_size=n_nodes, max_size=n_nodes))
        sizes[0] = max(sizes[0], 1)
        rows = [scale * degenerate(draw(kinds), rng, size, n_features) for size in sizes]
        return [part.astype(dtype) for part in rows]

    flat = n_features == 1 and draw(st.booleans())
    reference, target = side(), side()
    if flat:
        reference, target = [x.ravel() for x in reference], [x.ravel() for x in target]
    return reference, target, path_graph(n_nodes), scale


def check_finite(model, reference, target, graph):
    """Fit, and check everything that comes out; True if the data were accepted."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", DataWarning)
        warnings.simplefilter("ignore", ConvergenceWarning)
        try:
            model.fit((reference, target), graph)
        except InputError:
            return False
        points = np.concatenate([np.asarray(x, float) for x in (*reference, *target) if len(x)])
        both = np.array([len(r) > 0 and len(t) > 0 for r, t in zip(reference, target, strict=True)])
        assert np.isfinite(model.coef_).all()
        assert np.isfinite(model.divergence_[both]).all()
        assert np.isnan(model.divergence_[~both]).all()
        for x in (points, 2 * points, np.zeros_like(points)):
            ratios = model.predict(x)
            assert np.isfinite(ratios).all()
            assert ratios.min() >= 0
            assert ratios.max() <= 1 / model.alpha
            assert np.isfinite(model.predict(x, clip=False)).all()
        for weights in model.importance_weights((reference, target)).values():
            assert np.isfinite(weights).all()
        assert np.isfinite(model.score((reference, target)))
        repr(model)
    return True


class TestFiniteOrRefused:
    @pytest.mark.parametrize("kernel", ["gaussian", "laplacian"])
    @given(data_sets(), st.sampled_from([1e-3, 1.0, 1e3]))
    @PROFILE
    def test_grulsif_given_everything(self, kernel, data, width):
        reference, target, graph, scale = data
        model = gr.GRULSIF(kernel=kernel, bandwidth=width * scale, graph_penalty=0.3, ridge=0.003)
        check_finite(model, reference, target, graph)

    @given(data_sets(), st.sampled_from(["coherence", "uniform", "kmeans", "all", "centres"]))
    @PROFILE
    def test_grulsif_chooses_the_bandwidth(self, data, dictionary):
        reference, target, graph, _ = data
        model = gr.GRULSIF(
            graph_penalty=0.3, ridge=0.003, dictionary=dictionary, cv=2, random_state=0
        )
        check_finite(model, reference, target, graph)

    @given(data_sets())
    @PROFILE
    def test_pool(self, data):
        reference, target, graph, scale = data
        check_finite(gr.Pool(bandwidth=scale, ridge=0.03), reference, target, graph)
        check_finite(gr.Pool(ridge=0.03, cv=2, random_state=0), reference, target, graph)

    @given(data_sets())
    @settings(PROFILE, max_examples=15)
    def test_everything_chosen(self, data):
        reference, target, graph, _ = data
        check_finite(gr.GRULSIF(cv=2, random_state=0), reference, target, graph)

    @given(data_sets())
    @PROFILE
    def test_standardized(self, data):
        reference, target, graph, _ = data
        samples = gr.NodeSamples.from_arrays(reference, target).standardized()
        assert np.isfinite(samples.values).all()
        model = gr.GRULSIF(bandwidth=1.0, graph_penalty=0.3, ridge=0.003)
        try:
            model.fit(samples, graph)
        except InputError:
            return
        assert np.isfinite(model.coef_).all()

    @pytest.mark.parametrize("kind", KINDS)
    @pytest.mark.parametrize("scale", SCALES)
    @pytest.mark.parametrize("bandwidth", [None, 1.0])
    def test_regular_sizes_are_accepted(self, kind, scale, bandwidth):
        rng = np.random.default_rng(0)
        reference = [scale * degenerate(kind, rng, 5, 2) for _ in range(3)]
        target = [scale * degenerate(kind, rng, 4, 2) for _ in range(3)]
        model = gr.GRULSIF(
            bandwidth=None if bandwidth is None else bandwidth * scale,
            graph_penalty=0.3,
            ridge=0.003,
            cv=2,
            random_state=0,
        )
        assert check_finite(model, reference, target, path_graph(3))

    @pytest.mark.parametrize("bandwidth", [None, 50.0])
    @pytest.mark.parametrize("dtype", [np.float64, np.float32])
    def test_thousands_of_features(self, bandwidth, dtype):
        rng = np.random.default_rng(0)
        reference, target = rng.normal(size=(2, 3, 6, 2000)).astype(dtype)
        model = gr.GRULSIF(
            bandwidth=bandwidth, graph_penalty=0.3, ridge=0.003, cv=2, random_state=0
        )
        assert check_finite(model, list(reference), list(target), path_graph(3))

    @pytest.mark.parametrize("kernel", ["gaussian", "laplacian"])
    @pytest.mark.parametrize("n_features", [2, 40])
    @pytest.mark.parametrize("distance", [1e9, 1e90])
    def test_points_far_apart_for_the_bandwidth(self, kernel, n_features, distance):
        reference, target = distance * np.random.default_rng(0).normal(size=(2, 3, n_features))
        model = gr.Pool(kernel=kernel, bandwidth=1.0, ridge=0.1, dictionary="all")
        assert check_finite(model, [reference], [target], gr.Graph.empty(1))
        # Every observation is known only by itself, and there it has unit weight.
        expected = 1 / 3 / (0.1 / 3 + 0.1)
        np.testing.assert_allclose(model.predict(target)[:, 0], expected)

    @pytest.mark.parametrize("bandwidth", [None, 1.0])
    def test_one_observation_everywhere(self, bandwidth):
        model = gr.Pool(bandwidth=bandwidth, ridge=0.2, cv=2, random_state=0)
        assert check_finite(model, [[1.0], [2.0]], [[3.0], [2.0]], gr.Graph.empty(2))

    @pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e101, 1e308])
    @pytest.mark.parametrize("side", [0, 1])
    def test_values_that_cannot_be_used(self, value, side):
        pair = [[1.0, 2.0], [3.0]], [[1.0], [2.0]]
        pair[side][1][0] = value
        with pytest.raises(InputError):
            gr.Pool(bandwidth=1.0, ridge=0.2).fit(pair)
        fitted = gr.Pool(bandwidth=1.0, ridge=0.1).fit(([1.0], [2.0]))
        with pytest.raises(InputError):
            fitted.predict([value])


@st.composite
def regular_problems(draw):
    """Ragged samples, weights, and a given dictionary, on which the answer is well determined."""
    rng = np.random.default_rng(draw(st.integers(0, 2**16)))
    n_nodes, n_features = draw(st.integers(2, 5)), draw(st.sampled_from([1, 3]))
    sizes = draw(st.lists(st.integers(1, 8), min_size=2 * n_nodes, max_size=2 * n_nodes))
    parts = [rng.normal(size=(size, n_features)) for size in sizes]
    weights = np.triu(
        rng.uniform(size=(n_nodes, n_nodes)) * (rng.uniform(size=(n_nodes,) * 2) < 0.6), 1
    )
    atoms = rng.normal(size=(draw(st.integers(1, 6)), n_features))
    order = draw(st.permutations(range(n_nodes)))
    return parts[::2], parts[1::2], weights + weights.T, atoms, np.array(order), rng


def fit(kind, reference, target, weights, atoms, *, labels=None, scale=1.0, **options):
    graph = gr.Graph.from_adjacency(weights, nodes=labels)
    penalties = {"ridge": 0.2}
    if kind is gr.GRULSIF:
        penalties = {"graph_penalty": 0.8, "ridge": 0.04, "tol": 1e-12}
    model = kind(bandwidth=scale, dictionary=scale * atoms, **penalties, **options)
    data = [scale * x for x in reference], [scale * x for x in target]
    samples = gr.NodeSamples.from_arrays(*data, nodes=labels)
    return model.fit(samples, graph)


KIND = pytest.mark.parametrize("kind", [gr.GRULSIF, gr.Pool])


class TestSymmetries:
    @KIND
    @given(regular_problems())
    @PROFILE
    def test_relabelling_permutes_the_answer(self, kind, problem):
        reference, target, weights, atoms, order, rng = problem
        x = rng.normal(size=(5, atoms.shape[1]))
        one = fit(kind, reference, target, weights, atoms)
        labels = [f"node {i}" for i in order]
        other = fit(
            kind,
            [reference[i] for i in order],
            [target[i] for i in order],
            weights[np.ix_(order, order)],
            atoms,
            labels=labels,
        )
        assert other.nodes_ == tuple(labels)
        expected = one.predict(x, clip=False)[:, order]
        np.testing.assert_allclose(other.predict(x, clip=False), expected, rtol=1e-8, atol=1e-8)
        np.testing.assert_allclose(other.divergence_, one.divergence_[order], rtol=1e-8, atol=1e-8)

    @KIND
    @given(regular_problems())
    @PROFILE
    def test_order_of_observations_does_not_matter(self, kind, problem):
        reference, target, weights, atoms, _, rng = problem
        x = rng.normal(size=(5, atoms.shape[1]))
        one = fit(kind, reference, target, weights, atoms)
        shuffled = [[rng.permutation(rows) for rows in side] for side in (reference, target)]
        other = fit(kind, *shuffled, weights, atoms)
        for found, expected in (
            (other.predict(x, clip=False), one.predict(x, clip=False)),
            (other.divergence_, one.divergence_),
        ):
            np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-8)

    @KIND
    @given(regular_problems(), st.sampled_from([1e-90, 1e-3, 7.0, 1e90]))
    @PROFILE
    def test_units_of_the_features_do_not_matter(self, kind, problem, scale):
        reference, target, weights, atoms, _, rng = problem
        x = rng.normal(size=(5, atoms.shape[1]))
        one = fit(kind, reference, target, weights, atoms)
        other = fit(kind, reference, target, weights, atoms, scale=scale)
        for found, expected in (
            (other.predict(scale * x, clip=False), one.predict(x, clip=False)),
            (other.divergence_, one.divergence_),
        ):
            np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-8)

    @KIND
    def test_inputs_are_not_modified(self, kind):
        rng = np.random.default_rng(0)
        arrays = [rng.normal(size=(4, 2)) for _ in range(6)]
        weights, atoms = np.ones((3, 3)) - np.eye(3), rng.normal(size=(3, 2))
        before = [array.copy() for array in (*arrays, weights, atoms)]
        fit(kind, arrays[:3], arrays[3:], weights, atoms).predict(atoms)
        for array, copy in zip((*arrays, weights, atoms), before, strict=True):
            np.testing.assert_array_equal(array, copy)
