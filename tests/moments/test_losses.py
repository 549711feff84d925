"""Losses: their terms, their slopes, and the divergences that they bound."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import integrate, stats

from graphratio.exceptions import InputError
from graphratio.moments.losses import JENSEN_SHANNON, KL, LOSSES, PEARSON, get_loss

P, Q = stats.norm(0, 1), stats.norm(0.8, 0.7)
every_loss = pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES)


def population(loss, f, alpha):
    """Shift minus the loss of a ratio f under P and Q, by quadrature."""

    def terms(x, is_target):
        return float(loss.terms(np.array([f(x)]), np.array([is_target]), alpha)[0])

    means = [
        integrate.quad(lambda x, law=law, t=t: law.pdf(x) * terms(x, t), -8, 8, limit=200)[0]
        for law, t in ((P, False), (Q, True))
    ]
    return loss.shift - sum(means)


def true_ratio(alpha):
    return lambda x: Q.pdf(x) / ((1 - alpha) * P.pdf(x) + alpha * Q.pdf(x))


def exact(loss, alpha):
    mixed = lambda x: (1 - alpha) * P.pdf(x) + alpha * Q.pdf(x)  # noqa: E731
    half = lambda x: 0.5 * (P.pdf(x) + Q.pdf(x))  # noqa: E731
    formulas = {
        PEARSON: lambda x: 0.5 * mixed(x) * (Q.pdf(x) / mixed(x) - 1) ** 2,
        KL: lambda x: Q.pdf(x) * np.log(Q.pdf(x) / mixed(x)),
        JENSEN_SHANNON: lambda x: (
            0.5 * Q.pdf(x) * np.log(Q.pdf(x) / half(x))
            + 0.5 * P.pdf(x) * np.log(P.pdf(x) / half(x))
        ),
    }
    return integrate.quad(formulas[loss], -8, 8, limit=200)[0]


@every_loss
@pytest.mark.parametrize("alpha", [0.0, 0.1, 0.6])
def test_the_true_ratio_attains_the_divergence_and_others_do_not(loss, alpha):
    truth = exact(loss, alpha)
    assert population(loss, true_ratio(alpha), alpha) == pytest.approx(truth, abs=1e-6)
    for other in (lambda x: 1.0, lambda x: 0.5 * true_ratio(alpha)(x) + 0.4):
        assert population(loss, other, alpha) < truth - 1e-3
    assert truth < loss.ceiling(alpha)


@every_loss
@pytest.mark.parametrize("alpha", [0.0, 0.1])
def test_slopes_by_finite_differences(loss, alpha):
    f = np.array([0.02, 0.5, 1.0, 3.0, 9.0])
    for side in (False, True):
        is_target = np.full(len(f), side)
        step = 1e-6 * f
        high, low = (loss.terms(f + sign * step, is_target, alpha) for sign in (1, -1))
        assert_allclose(loss.slopes(f, is_target, alpha), (high - low) / (2 * step), rtol=1e-6)


@every_loss
def test_equal_samples_have_no_divergence(loss):
    sizes = np.array([[3, 2], [4, 0], [1, 5]])
    found = loss.divergences(np.ones(15), sizes, 0.1)
    assert_allclose(found[[0, 2]], 0.0, atol=1e-15)
    assert np.isnan(found[1])


def test_ceilings():
    assert KL.ceiling(0.1) == pytest.approx(np.log(10))
    assert PEARSON.ceiling(0.1) == pytest.approx(4.5)
    assert np.isinf([KL.ceiling(0.0), PEARSON.ceiling(0.0)]).all()
    assert JENSEN_SHANNON.ceiling(0.0) == JENSEN_SHANNON.ceiling(0.1) == pytest.approx(np.log(2))


@every_loss
def test_extreme_ratios_have_finite_terms(loss):
    f = np.array([0.0, 10.0, 0.0, 10.0])
    assert np.isfinite(loss.terms(f, np.array([False, False, True, True]), 0.1)).all()


def test_unknown_names():
    with pytest.raises(InputError, match=r"'jensen' is not one of .* did you mean"):
        get_loss("jensen")
    with pytest.raises(InputError, match="loss=3"):
        get_loss(3)
