import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_allclose
from scipy.spatial.distance import pdist

from graphratio.data.samples import NodeSamples
from graphratio.features.kernels import (
    KERNELS,
    bandwidth_grid,
    fill_unknown,
    get_kernel,
    median_bandwidths,
)

points = arrays(np.float64, (5, 2), elements=st.floats(-1e3, 1e3))


@pytest.mark.parametrize("name", KERNELS)
@given(x=points, bandwidth=st.floats(1e-3, 1e3))
@settings(derandomize=True, deadline=None, max_examples=50)
def test_unit_norm_symmetric_and_positive_semidefinite(name, x, bandwidth):
    gram = get_kernel(name)(x, x, bandwidth)
    assert_allclose(np.diagonal(gram), 1, rtol=1e-12)
    assert_allclose(gram, gram.T, atol=1e-12)
    assert np.linalg.eigvalsh(gram)[0] >= -1e-10


def test_values_by_the_formula():
    x, y = np.array([[0.0, 0.0]]), np.array([[3.0, 4.0]])
    assert get_kernel("gaussian")(x, y, 5.0)[0, 0] == pytest.approx(np.exp(-0.5))
    assert get_kernel("laplacian")(x, y, 7.0)[0, 0] == pytest.approx(np.exp(-1.0))


@pytest.mark.parametrize("name", KERNELS)
def test_many_features_take_another_way_to_the_same_values(name):
    rng = np.random.default_rng(0)
    x, y = 1e4 + rng.normal(size=(7, 40)), 1e4 + rng.normal(size=(5, 40))
    kernel = get_kernel(name)
    direct = np.array([kernel.rowwise(np.tile(row, (5, 1)), y, np.full(5, 9.0)) for row in x])
    assert_allclose(kernel(x, y, 9.0), direct, rtol=1e-9)


def gaussian_by_differences(x, y, bandwidth):
    apart = (x[:, np.newaxis] - y).astype(np.longdouble)
    return np.exp(-np.square(apart).sum(axis=2) / (2 * np.longdouble(bandwidth) ** 2))


@pytest.mark.parametrize("n_features", [1, 2, 16, 17, 40])
@pytest.mark.parametrize("offset", [0.0, 1e9])
@pytest.mark.parametrize("far", [None, 1e4, 1e200])
@pytest.mark.parametrize("bandwidth", [0.1, 1.0, 1e8])
def test_a_product_is_as_accurate_as_differences(n_features, offset, far, bandwidth):
    """Whatever the common offset of all points is, and however far others are."""
    rng = np.random.default_rng(0)
    x, y = (offset + rng.normal(size=(size, n_features)) for size in (60, 30))
    x[:5] = y[:5]
    if far is not None:
        x[7] = far
    sigma = bandwidth * n_features**0.5
    values = get_kernel("gaussian")(x, y, sigma)
    with np.errstate(over="ignore"):
        exact = gaussian_by_differences(x, y, sigma).astype(np.float64)
    assert_allclose(values, exact, rtol=0, atol=3e-13)
    assert (np.diagonal(values)[:5] == 1).all()
    assert (np.diagonal(get_kernel("gaussian")(y, y, sigma)) == 1).all()


@pytest.mark.parametrize("n_features", [1, 20])
def test_other_points_of_a_call_do_not_change_a_value(n_features):
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=(50, n_features)), rng.normal(size=(30, n_features))
    y[:10] = x[:10] + 3e-7 * rng.normal(size=(10, n_features))
    kernel = get_kernel("gaussian")
    for far in (20.0, 1e6, 1e200):
        among = kernel(np.vstack([x, np.full((1, n_features), far)]), y, 1.0)[:-1]
        assert_allclose(among, kernel(x, y, 1.0), rtol=0, atol=1e-14)


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (0, 0)])
def test_no_points_give_an_empty_matrix(name, shape):
    x, y = (np.zeros((size, 2)) for size in shape)
    assert get_kernel(name)(x, y, 1.0).shape == shape


@pytest.mark.parametrize(
    ("name", "metric"), [("gaussian", "euclidean"), ("laplacian", "cityblock")]
)
@pytest.mark.parametrize("n_features", [1, 3, 20])
def test_median_heuristic(name, metric, n_features):
    rng = np.random.default_rng(1)
    reference = [rng.normal(size=(n, n_features)) for n in (2, 7, 40, 7, 60)]
    samples = NodeSamples.from_arrays(reference, [rng.normal(size=(3, n_features))] * 5)
    expected = [np.median(pdist(x, metric)) for x in reference]
    assert_allclose(median_bandwidths(samples, get_kernel(name)), expected, rtol=1e-10)


def test_median_heuristic_of_a_large_sample_is_close_to_the_full_one():
    x = np.random.default_rng(2).normal(size=(2000, 2))
    samples = NodeSamples.from_arrays(x, x[:1])
    found = median_bandwidths(samples, get_kernel("gaussian"))[0]
    assert found == pytest.approx(np.median(pdist(x)), rel=0.03)


def test_median_heuristic_of_alternating_rows():
    """Regular steps would see only the narrow half."""
    x = np.where(np.arange(512) % 2 == 0, 1.0, 10.0) * np.random.default_rng(0).normal(size=512)
    found = median_bandwidths(NodeSamples.from_arrays(x, x[:1]), get_kernel("gaussian"))[0]
    assert found == pytest.approx(np.median(pdist(x[:, None])), rel=0.15)


def test_median_heuristic_where_it_is_degenerate():
    kernel = get_kernel("gaussian")
    same = [1.0] * 6
    mostly_same = [*same, 3.0]
    samples = NodeSamples.from_arrays(
        [mostly_same, [1.0], [], same], [[0.0], [1.0, 5.0], [2.0, 8.0], same]
    )
    # Zero median: the others; one observation: the target's; none at all: the median over nodes.
    assert_allclose(median_bandwidths(samples, kernel), [2, 4, 6, 4])
    constant = NodeSamples.from_arrays([same], [same])
    assert_allclose(median_bandwidths(constant, kernel), [1])


def test_bandwidth_grid_drops_repeats():
    assert bandwidth_grid(np.array([2.0, 2.0])).tolist() == [2.0]


def test_unknown_bandwidths_are_filled():
    assert fill_unknown(np.array([1.0, np.nan, 3.0])).tolist() == [1.0, 2.0, 3.0]
    assert fill_unknown(np.array([np.nan])).tolist() == [1.0]
