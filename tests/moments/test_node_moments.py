import numpy as np
import pytest
from numpy.testing import assert_allclose

from graphratio.moments.losses import PEARSON
from graphratio.moments.node_moments import (
    MomentSums,
    dense_moments,
    factored_moments,
    moments_without,
    node_moments,
)
from graphratio.moments.objective import moment_losses


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    sizes = np.array([[3, 7], [5, 5], [0, 4], [6, 0], [1, 1], [20, 2], [5, 5]])
    return rng.normal(size=(int(sizes.sum()), 3)), sizes


def by_hand(psi, sizes, alpha, rho):
    """Moments of every node written out."""
    ends = np.cumsum(sizes.ravel())
    parts = np.split(psi, ends[:-1])
    second, first = np.zeros((len(sizes), 3, 3)), np.zeros((len(sizes), 3))
    for v in range(len(sizes)):
        ref, tgt = parts[2 * v], parts[2 * v + 1]
        if len(ref) and len(tgt):
            second[v] = (1 - alpha) * ref.T @ ref / len(ref) + alpha * tgt.T @ tgt / len(tgt)
            mixture = (1 - alpha) * ref.mean(axis=0) + alpha * tgt.mean(axis=0)
            first[v] = tgt.mean(axis=0) - rho * mixture
    return second, first


@pytest.mark.parametrize("alpha", [0.0, 0.1, 0.7])
@pytest.mark.parametrize("rho", [0.0, 1.0, 0.4])
@pytest.mark.parametrize("form", ["sums", "dense", "factored"])
def test_every_mean_divides_by_its_own_size(data, alpha, rho, form):
    psi, sizes = data
    build = {
        "sums": lambda: MomentSums.of(psi, sizes).mixed(alpha, rho),
        "dense": lambda: dense_moments(psi, sizes, alpha, rho),
        "factored": lambda: factored_moments(psi, sizes, alpha, rho),
    }
    moments = build[form]()
    second, first = by_hand(psi, sizes, alpha, rho)
    assert_allclose(moments.second.dense(), second, atol=1e-13)
    assert_allclose(moments.first, first, atol=1e-13)
    assert moments.complete.tolist() == [True, True, False, False, True, True, True]
    theta = np.random.default_rng(1).normal(size=(7, 2, 3))
    assert_allclose(
        moments.second.apply(theta), np.einsum("vij,vcj->vci", second, theta), atol=1e-12
    )
    expected = np.einsum("vci,vij,vcj->vc", theta, second, theta)
    assert_allclose(moments.second.quadratic(theta), expected, atol=1e-12)
    assert_allclose(moments.second.mean(), second.mean(axis=0), atol=1e-13)


def test_folds_are_added_and_left_out(data):
    psi, sizes = data
    fold = np.arange(len(psi)) % 3
    segment = np.repeat(np.arange(sizes.size), sizes.ravel())
    parts = []
    for r in range(3):
        mine = fold == r
        counts = np.bincount(segment[mine], minlength=sizes.size).reshape(sizes.shape)
        parts.append(MomentSums.of(psi[mine], counts))
    total = parts[0] + parts[1] + parts[2]
    whole = MomentSums.of(psi, sizes)
    assert_allclose(total.second, whole.second, atol=1e-12)
    train = (parts[0] + parts[2]).mixed(0.2, 1.0)
    factored = factored_moments(psi, sizes, 0.2, 1.0, keep=fold != 1)
    assert_allclose(train.second.dense(), factored.second.dense(), atol=1e-12)
    assert_allclose(train.first, factored.first, atol=1e-12)
    assert (train.complete == factored.complete).all()
    again = moments_without(total, psi[fold == 1], parts[1].sizes, 0.2, 1.0)
    assert_allclose(again.second.dense(), train.second.dense(), atol=1e-13)
    assert_allclose(again.first, train.first, atol=1e-13)


def test_the_smaller_form_is_chosen():
    psi = np.random.default_rng(0).normal(size=(20, 8))
    few, many = np.array([[2, 2]] * 5), np.array([[10, 10]])
    assert type(node_moments(psi, few, 0.1).second).__name__ == "FactoredSecond"
    assert type(node_moments(psi, many, 0.1).second).__name__ == "DenseSecond"


@pytest.mark.parametrize("rho", [0.0, 1.0, 0.3])
def test_losses_from_moments_equal_losses_from_values(data, rho):
    psi, sizes = data
    theta = np.random.default_rng(2).normal(size=(7, 3))
    node = np.repeat(np.arange(7), sizes.sum(axis=1))
    ratios = rho + np.einsum("im,im->i", psi, theta[node])
    moments = MomentSums.of(psi, sizes).mixed(0.1, rho)
    direct = PEARSON.of_nodes(ratios, sizes, 0.1)
    assert_allclose(moment_losses(moments, theta[:, None])[:, 0], direct, atol=1e-12)
    assert np.isnan(direct).tolist() == [False, False, True, True, False, False, False]


def test_divergence_shrunk_towards_one_is_minus_the_loss_of_the_fitted_part(data):
    psi, sizes = data
    theta = np.random.default_rng(2).normal(size=(7, 3))
    node = np.repeat(np.arange(7), sizes.sum(axis=1))
    fitted = np.einsum("im,im->i", psi, theta[node])
    centred = MomentSums.of(psi, sizes).mixed(0.1, 1.0)
    expected = centred.first * theta - 0.5 * theta * np.einsum(
        "vij,vj->vi", centred.second.dense(), theta
    )
    complete = centred.complete
    found = PEARSON.divergences(1 + fitted, sizes, 0.1)
    assert_allclose(found[complete], expected.sum(axis=1)[complete], atol=1e-12)


def test_a_constant_ratio_of_one_has_no_divergence(data):
    psi, sizes = data
    found = PEARSON.divergences(np.ones(len(psi)), sizes, 0.1)
    assert_allclose(found[~np.isnan(found)], 0, atol=1e-15)
