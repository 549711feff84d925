import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.spatial import cKDTree
from threadpoolctl import threadpool_limits

from graphratio.data.samples import NodeSamples
from graphratio.exceptions import InputError
from graphratio.features import dictionary
from graphratio.features.dictionary import DictionaryRecipe, graph_filter, largest_free, node_filter
from graphratio.features.kernels import KERNELS, get_kernel, median_bandwidths
from graphratio.features.numbered import fixed_number
from graphratio.features.nystrom import NystromMap


@pytest.fixture
def samples():
    rng = np.random.default_rng(0)
    sizes = [(3, 8), (15, 2), (0, 6), (9, 9), (1, 0)]
    return NodeSamples.from_arrays(
        [rng.normal(v, 1, size=(n, 2)) for v, (n, _) in enumerate(sizes)],
        [rng.normal(v, 2, size=(n, 2)) for v, (_, n) in enumerate(sizes)],
    )


def literal_filter(points, kernel, bandwidth, threshold):
    """The greedy pass of the paper's dictionary building, point by point."""
    kept: list[int] = []
    for i, point in enumerate(points):
        values = kernel(points[kept], point[None], bandwidth) if kept else np.zeros(1)
        if values.max() <= threshold:
            kept.append(i)
    return kept


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("coherence", [0.05, 0.5, 0.95, 1.0])
def test_node_stage_is_the_papers_greedy_pass(samples, name, coherence):
    kernel = get_kernel(name)
    sigma = median_bandwidths(samples, kernel)
    expected = []
    for v in range(samples.n_nodes):
        start, end = samples.offsets[2 * v], samples.offsets[2 * v + 2]
        own = literal_filter(samples.values[start:end], kernel, sigma[v], coherence)
        expected += [start + i for i in own]
    assert_array_equal(node_filter(samples, kernel, sigma, coherence), expected)


@pytest.mark.parametrize("block", [1, 7, 512])
@pytest.mark.parametrize("coherence", [0.3, 0.99])
def test_graph_stage_is_the_papers_greedy_pass(samples, block, coherence, monkeypatch):
    monkeypatch.setattr("graphratio.features.dictionary._BLOCK", block)
    kernel = get_kernel("gaussian")
    found = graph_filter(samples.values, kernel, 2.0, coherence)
    assert_array_equal(found, literal_filter(samples.values, kernel, 2.0, coherence))


def test_without_a_coherence_it_grows_until_there_are_enough_atoms(samples, monkeypatch):
    kernel = get_kernel("gaussian")
    sigma = median_bandwidths(samples, kernel)

    def built(coherence):
        return DictionaryRecipe("coherence", node_coherence=coherence).build(samples, kernel, sigma)

    sizes = [len(built(coherence)) for coherence in dictionary.NODE_COHERENCES]
    assert sizes == sorted(set(sizes))
    # 53 observations ask for one atom, which the first threshold gives.
    assert_array_equal(built(None), built(dictionary.NODE_COHERENCES[0]))
    monkeypatch.setattr(dictionary, "OBSERVATIONS_OF_AN_ATOM", 53 / (sizes[0] + 1))
    assert_array_equal(built(None), built(dictionary.NODE_COHERENCES[1]))
    # More than the last one gives cannot be had.
    monkeypatch.setattr(dictionary, "OBSERVATIONS_OF_AN_ATOM", 0.5)
    monkeypatch.setattr(dictionary, "ENOUGH_ATOMS", 100)
    assert_array_equal(built(None), built(dictionary.NODE_COHERENCES[-1]))
    # A few atoms are enough, however many observations there are.
    monkeypatch.setattr(dictionary, "ENOUGH_ATOMS", sizes[0])
    assert_array_equal(built(None), built(dictionary.NODE_COHERENCES[0]))


def test_coherence_is_at_most_the_threshold(samples):
    kernel = get_kernel("gaussian")
    sigma = median_bandwidths(samples, kernel)
    atoms = DictionaryRecipe("coherence", graph_coherence=0.4).build(samples, kernel, sigma)
    gram = kernel(atoms, atoms, float(np.median(sigma))) - np.eye(len(atoms))
    assert len(atoms) > 2
    assert gram.max() <= 0.4


@pytest.mark.parametrize("strategy", ["coherence", "uniform", "kmeans", "all"])
@pytest.mark.parametrize("max_atoms", [1, 6, 1000])
def test_max_atoms(samples, strategy, max_atoms):
    kernel = get_kernel("gaussian")
    sigma = median_bandwidths(samples, kernel)
    rng = np.random.default_rng(0)
    recipe = DictionaryRecipe(strategy, node_coherence=0.9, max_atoms=max_atoms)
    atoms = recipe.build(samples, kernel, sigma, rng)
    assert 1 <= len(atoms) <= max_atoms
    assert len(np.unique(atoms, axis=0)) == len(atoms)


def test_overflow_keeps_what_is_represented_worst():
    points = np.array([[0.0], [0.1], [0.2], [5.0], [9.0]])
    samples = NodeSamples.from_arrays(points, points)
    kernel = get_kernel("gaussian")
    atoms = DictionaryRecipe("all", max_atoms=3).build(samples, kernel, np.array([1.0]))
    assert_allclose(atoms.ravel(), [0, 5, 9])


def test_given_points_are_taken_as_they_are(samples):
    kernel = get_kernel("gaussian")
    points = np.array([[0.0, 1.0], [2.0, 3.0]])
    atoms = DictionaryRecipe(points).build(samples, kernel, np.ones(5))
    assert_array_equal(atoms, points)
    with pytest.raises(InputError, match="dictionary has 3 features"):
        DictionaryRecipe(np.zeros((2, 3))).build(samples, kernel, np.ones(5))
    with pytest.raises(InputError, match=r"'coherent'.*did you mean 'coherence'"):
        DictionaryRecipe("coherent").build(samples, kernel, np.ones(5))


def test_a_dictionary_that_would_not_fit_is_refused(samples, monkeypatch):
    monkeypatch.setattr("graphratio.features.dictionary.LARGEST_DICTIONARY", 10)
    with pytest.raises(InputError, match=r"more than 10.*Set max_atoms"):
        DictionaryRecipe("all").build(samples, get_kernel("gaussian"), np.ones(5))


@pytest.mark.parametrize("name", KERNELS)
def test_features_reproduce_the_kernel_on_the_dictionary(samples, name):
    kernel = get_kernel(name)
    atoms = samples.values[:12]
    psi = NystromMap.build(kernel, atoms, 1.5)(atoms)
    assert_allclose(psi @ psi.T, kernel(atoms, atoms, 1.5), atol=1e-8)


def test_near_null_directions_are_dropped():
    line = np.linspace(0, 1, 60)[:, None]
    kernel = get_kernel("gaussian")
    features = NystromMap.build(kernel, line, 1.0)
    assert features.n_components < 15
    psi = features(line)
    assert_allclose(psi @ psi.T, kernel(line, line, 1.0), atol=1e-7)
    assert np.abs(features.transform).max() < 1e7
    coarse = NystromMap.build(kernel, line, 1.0, tolerance=1e-6)
    assert coarse.n_components < features.n_components


def test_which_directions_matter_does_not_hang_on_the_order_of_the_rows(monkeypatch):
    """Two samples in alternation: regular steps through the rows would see only one."""
    monkeypatch.setattr("graphratio.features.nystrom.PRINCIPAL_ROWS", 50)
    rows = np.zeros((400, 1))
    rows[1::2] = 8.0
    features = NystromMap.build(get_kernel("gaussian"), np.array([[0.0], [8.0]]), 1.0)
    rotated, _ = features.principal(rows, np.ones(400), floor=1e-6)
    assert rotated.n_components == 2


def test_principal_features_diagonalise_and_keep_the_kernel(samples):
    kernel = get_kernel("gaussian")
    plain = NystromMap.build(kernel, samples.values[:15], 1.5)
    weights = np.linspace(0.1, 1, samples.n_observations)
    rotated, psi = plain.principal(samples.values, weights)
    assert_allclose(rotated(samples.values), psi, atol=1e-10)
    moment = psi.T @ (psi * weights[:, None])
    w = np.diagonal(moment)
    assert_allclose(moment, np.diag(w), atol=1e-10 * w[0])
    assert (np.diff(w) <= 1e-12).all()
    other = plain(samples.values)
    assert_allclose(psi @ psi.T, other @ other.T, atol=1e-9)
    fewer, short = plain.principal(samples.values, weights, floor=1e-3)
    assert fewer.n_components == (w >= 1e-3 * w.sum()).sum() < rotated.n_components
    assert_allclose(np.abs(short), np.abs(psi[:, : fewer.n_components]), atol=1e-8)


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("coherence", [0.5, 0.9])
def test_long_lists_go_through_a_search_tree_with_the_same_result(name, coherence, monkeypatch):
    """Long blocks of mostly redundant points, with many repeated ones that tie exactly."""
    monkeypatch.setattr("graphratio.features.dictionary._BLOCK", 64)
    searched = []

    class CountingTree(cKDTree):
        def query(self, x, **kwargs):
            searched.append(len(x))
            return super().query(x, **kwargs)

    monkeypatch.setattr("graphratio.features.dictionary.cKDTree", CountingTree)
    kernel = get_kernel(name)
    points = np.round(np.random.default_rng(0).normal(size=(4000, 2)), 1)
    found = graph_filter(points, kernel, 1.0, coherence)
    assert_array_equal(found, literal_filter(points, kernel, 1.0, coherence))
    assert sum(searched) > 500


def test_a_threshold_on_a_lattice_is_decided_as_in_the_plain_pass(monkeypatch):
    """Distances on a lattice that fall exactly on the threshold."""
    monkeypatch.setattr("graphratio.features.dictionary._BLOCK", 16)
    kernel = get_kernel("gaussian")
    rng = np.random.default_rng(0)
    points = rng.integers(0, 6, size=(3000, 2)) * 0.1
    threshold = float(kernel(np.zeros((1, 2)), np.array([[0.1, 0.2]]), 1.0)[0, 0])
    found = graph_filter(points, kernel, 1.0, threshold)
    assert_array_equal(found, literal_filter(points, kernel, 1.0, largest_free(threshold)))


def test_node_stage_in_ranges_of_nodes(samples, monkeypatch):
    kernel = get_kernel("gaussian")
    sigma = median_bandwidths(samples, kernel)
    whole = node_filter(samples, kernel, sigma, 0.5)
    monkeypatch.setattr("graphratio.features.dictionary._FILTER_ROWS", 10)
    assert_array_equal(node_filter(samples, kernel, sigma, 0.5), whole)


def test_cluster_centres_have_the_same_bits_whatever_openmp_may_use():
    samples = NodeSamples.from_arrays(
        *map(list, np.random.default_rng(0).normal(size=(2, 40, 500, 3)))
    )
    found = []
    for most in (1, 4):
        with threadpool_limits(most, user_api="openmp"):
            found.append(fixed_number("kmeans", samples, 30, np.random.default_rng(0)))
    assert_array_equal(*found)
