"""Bounds, intervals and p-values against SciPy's, on terms for which these are exact.

Terms that take two values equally often have no skewness and no excess kurtosis, so that all
corrections vanish and Welch's interval for the difference of two means remains.
"""

from dataclasses import replace

import numpy as np
import pytest
from scipy import optimize, stats

import graphratio as gr
from graphratio.evaluation import node_means
from graphratio.evaluation.bounds import bounds_from
from graphratio.evaluation.comparison import GraphComparison, Losses
from graphratio.evaluation.neighbours import learned_graph
from graphratio.evaluation.node_means import Difference
from graphratio.evaluation.ratio_interval import Sandwich, _largest, expected_ratio_interval
from graphratio.evaluation.refit_noise import RefitNoise, refit_noise
from graphratio.evaluation.skewed_means import lower_quantile, upper_quantile
from graphratio.evaluation.verdict import ALONE
from graphratio.moments.node_moments import MomentSums

ALPHA = 0.1
N_NODES, N_REFERENCE, N_TARGET = 4, 12, 20


def two_valued(n, low, high):
    return np.tile([low, high], n // 2)


@pytest.fixture
def samples():
    zeros = [np.zeros((N_NODES, n, 1)) for n in (N_REFERENCE, N_TARGET)]
    return gr.NodeSamples.from_arrays(*zeros)


@pytest.fixture
def ratios():
    """Held-out ratios of each node and sample, as two lists of arrays."""
    return [
        [two_valued(N_REFERENCE, 0.3 + 0.05 * v, 0.8 + 0.1 * v) for v in range(N_NODES)],
        [two_valued(N_TARGET, 1.0, 1.8 - 0.1 * v) for v in range(N_NODES)],
    ]


def bounds(samples, ratios, level, simultaneous=False, noise=None):
    row = np.concatenate([part for node in zip(*ratios, strict=True) for part in node])
    return bounds_from(samples, ALPHA, row[np.newaxis], noise, level, simultaneous=simultaneous)


def welch(ratios, v, alternative="two-sided"):
    """The divergence E_q[f - alpha/2 f^2 - 1/2] - E_p[(1 - alpha)/2 f^2] by Welch's test."""
    f, g = ratios[0][v], ratios[1][v]
    gain, cost = g - ALPHA / 2 * g**2 - 0.5, (1 - ALPHA) / 2 * f**2
    return stats.ttest_ind(gain, cost, equal_var=False, alternative=alternative)


@pytest.mark.parametrize("level", [0.2, 0.1, 0.01])
def test_the_bound_is_one_sided_and_the_interval_two_sided(samples, ratios, level):
    found = bounds(samples, ratios, level)
    assert found.level == level
    for v in range(N_NODES):
        lower = welch(ratios, v, "greater").confidence_interval(1 - level).low
        assert found.true_divergence_lower_bound[v] == pytest.approx(lower, rel=1e-6)
        interval = welch(ratios, v).confidence_interval(1 - level)
        assert found.fitted_divergence_interval[v] == pytest.approx(tuple(interval), rel=1e-6)


def test_all_nodes_at_once_share_the_chance_of_an_error(samples, ratios):
    """Bonferroni; below with a third of the degrees of freedom, as the page says."""
    found = bounds(samples, ratios, 0.1, simultaneous=True)
    for v in range(N_NODES):
        lower = welch(ratios, v, "greater").confidence_interval(1 - 0.1 / N_NODES).low
        assert found.true_divergence_lower_bound[v] == pytest.approx(lower, rel=1e-6)
        low, high = found.fitted_divergence_interval[v]
        both = welch(ratios, v)
        assert high == pytest.approx(both.confidence_interval(1 - 0.1 / N_NODES).high)
        error = (found.fitted_divergence[v] - lower) / stats.t.ppf(1 - 0.1 / N_NODES, both.df)
        far = stats.t.ppf(1 - 0.1 / N_NODES / 2, both.df / 3)
        assert low == pytest.approx(found.fitted_divergence[v] - far * error, rel=1e-6)


def test_noise_of_refitting_widens_and_lighter_tails_shorten(samples, ratios):
    """The variance adds; ends move in by 0.3 s / d^0.8 errors, here s = 1/2 and d = 2."""
    plain = bounds(samples, ratios, 0.1)
    quantiles = [stats.t.ppf((0.9, 0.95), welch(ratios, v).df) for v in range(N_NODES)]
    one_sided, two_sided = np.transpose(quantiles)
    shown = (plain.fitted_divergence - plain.true_divergence_lower_bound) / one_sided
    variance = 0.5 * shown**2
    noise = RefitNoise(variance, variance**2 / (2 * 5), n_folds=5)
    found = bounds(samples, ratios, 0.1, noise=noise)
    error = np.sqrt(1.5) * shown
    np.testing.assert_allclose(
        plain.fitted_divergence - found.true_divergence_lower_bound, one_sided * error, rtol=1e-6
    )
    half = (two_sided - 0.3 * 0.5 / 2**0.8) * error
    ends = plain.fitted_divergence[:, np.newaxis] + np.outer(half, [-1, 1]).reshape(-1, 2)
    np.testing.assert_allclose(found.fitted_divergence_interval, ends, rtol=1e-6)


def test_noise_of_several_splits_is_that_of_one():
    one = RefitNoise(np.array([2.0]), np.array([0.5]), n_folds=5)
    mean = (one + one + one).averaged(3)
    assert (mean.variance[0], mean.fourth[0], mean.n_folds) == (2.0, 0.5, 5)


@pytest.mark.parametrize("skewness", [-0.1, -0.6])
def test_the_upper_end_takes_half_of_the_correction_for_skewness(skewness):
    """The whole correction is the root of Hall's transform; the other end takes all of it."""

    def transformed(t):
        return t + skewness * t**2 / 3 + skewness**2 * t**3 / 27 + skewness / 6

    freedom, tail = np.full(1, 30.0), 0.05
    plain = stats.t.ppf(1 - tail, 30)
    up = optimize.brentq(lambda t: transformed(-t) + plain, 0, 5)
    down = optimize.brentq(lambda t: transformed(t) - plain, 0, 20)
    at = np.full(1, skewness)
    assert upper_quantile(freedom, at, tail)[0] == pytest.approx((plain + up) / 2)
    assert lower_quantile(freedom, at, tail)[0] == pytest.approx(down)


@pytest.mark.parametrize(("outlier", "uneven"), [(-0.5, True), (0.5, False)])
def test_few_low_terms_lower_the_lower_end(samples, ratios, outlier, uneven):
    """A sample that lacks them overstates its mean. Few high terms are not made use of."""
    terms = np.ones(N_TARGET)
    terms[0] += outlier
    found = bounds(samples, [ratios[0], [terms] * N_NODES], 0.1)
    low, high = found.fitted_divergence_interval.T
    down, up = found.fitted_divergence - low, high - found.fitted_divergence
    assert (down > up * (1 + 1e-6)).all() == uneven


def comparison(samples, first, second, level=0.05):
    """A comparison of one graph with each node alone, from terms of all observations."""
    losses = {ALONE: Losses.of(first, samples), "graph": Losses.of(second, samples)}
    return GraphComparison(samples.nodes, losses, {}, level, ("graph",), None)


def random_terms(samples, seed):
    rng = np.random.default_rng(seed)
    return rng.normal(size=samples.n_observations)


def test_difference_is_the_paired_test_of_student(monkeypatch):
    rng = np.random.default_rng(0)
    first, second = rng.normal(size=(2, 9))
    expected = stats.ttest_rel(first, second)
    found = Difference.of(first, second)
    ratio = expected.statistic / node_means.DISPERSION
    assert found.p_value == pytest.approx(2 * stats.t.sf(abs(ratio), 8))
    assert Difference.of(second, first).p_value == found.p_value
    monkeypatch.setattr(node_means, "DISPERSION", 1.0)
    assert Difference.of(first, second).p_value == pytest.approx(expected.pvalue)


@pytest.mark.parametrize("missing", [False, True])
def test_interval_against_each_node_alone_agrees_with_its_p_value(samples, missing):
    """At the level p the interval just reaches 0: both are two-sided."""
    found = comparison(samples, random_terms(samples, 1), random_terms(samples, 2))
    if missing:
        losses = dict(found.losses)
        for name, part in losses.items():
            mean = np.where(np.arange(N_NODES) == 1, np.nan, part.means.mean)
            losses[name] = replace(part, means=replace(part.means, mean=mean))
        found = replace(found, losses=losses)
    p_value = found.between("graph", ALONE).p_value
    assert 0.01 < p_value < 0.99
    mean, half = replace(found, level=p_value).against_alone("graph")
    assert half == pytest.approx(abs(mean))


def test_losses_and_gains_of_nodes_have_two_sided_intervals(samples, ratios):
    """Both are sums of two means, of the reference and of the target terms."""
    terms = np.concatenate([part for node in zip(*ratios, strict=True) for part in node])
    found = comparison(samples, 2 * terms, terms, level=0.1)
    gain, half_gain = found.gains
    loss, half_loss = found.node_losses("graph")
    for v in range(N_NODES):
        interval = stats.ttest_ind(
            ratios[1][v], -ratios[0][v], equal_var=False
        ).confidence_interval(0.9)
        for middle, half in ((gain[v], half_gain[v]), (loss[v], half_loss[v])):
            assert (middle - half, middle + half) == pytest.approx(tuple(interval))


@pytest.mark.parametrize(
    ("p_value", "tied", "best"), [(0.016, False, "a"), (0.017, True, None), (0.035, True, None)]
)
def test_the_best_of_three_graphs_beats_both_others_and_none(samples, p_value, tied, best):
    """At 5 % / 3 each; a p-value of 0.035 would do for a single graph only."""
    shift = stats.t.isf(p_value / 2, N_NODES - 1) * node_means.DISPERSION / np.sqrt(N_NODES)
    spread = np.array([-1.0, 0.0, 0.0, 1.0]) / np.std([-1.0, 0.0, 0.0, 1.0], ddof=1)
    even = Losses.of(np.zeros(samples.n_observations), samples)
    losses = {
        name: replace(even, means=replace(even.means, mean=mean))
        for name, mean in {"a": np.zeros(4), "b": spread + shift, "c": spread + shift}.items()
    }
    found = GraphComparison(
        samples.nodes, {ALONE: losses["b"], **losses}, {}, 0.05, (*"abc",), None
    )
    assert found.between("a", "b").p_value == pytest.approx(p_value)
    assert found.tied == (["b", "c"] if tied else [])
    assert found.best == best


def test_noise_of_refitting_counts_pairs_of_observations_of_different_folds():
    """Against brute force: squares of s_i' G s_j, one of the pair in the fold, one outside."""
    rng = np.random.default_rng(0)
    m, sizes = 3, np.array([[6, 8], [5, 7]])
    n_nodes, segment = len(sizes), np.repeat(np.arange(4), sizes.ravel())
    psi, ratios = rng.normal(size=(len(segment), m)), rng.uniform(0.2, 3, size=len(segment))
    held = rng.random(len(segment)) < 0.4
    root = rng.normal(size=(n_nodes, m, m))
    blocks, stiffness = root @ root.transpose(0, 2, 1), rng.uniform(0.2, 2, size=(n_nodes, m))
    found = refit_noise(psi, ratios, segment, held, blocks, stiffness, ALPHA)
    target = segment % 2 == 1
    # Derivatives of (1 - alpha)/2 f^2 and of f - alpha/2 f^2.
    slope = np.where(target, 1 - ALPHA * ratios, (1 - ALPHA) * ratios)
    for v in range(n_nodes):
        parts = []
        for inside in (True, False):
            scores = []
            for side in (2 * v, 2 * v + 1):
                rows = (segment == side) & (held == inside)
                own = psi[rows] * slope[rows, np.newaxis]
                n = sizes.ravel()[side] if inside else rows.sum()
                scores.append((own - own.mean(axis=0)) / n)
            parts.append(np.concatenate(scores))
        response = np.linalg.inv(blocks[v] + np.diag(stiffness[v]))
        pairs = parts[0] @ response @ parts[1].T
        assert found.variance[v] == pytest.approx(np.sum(pairs**2), rel=1e-6)


def test_degrees_of_freedom_of_a_ratio_are_those_of_its_samples():
    """One sample alone leaves n - 1, two of equal weight twice as many."""
    sandwich = object.__new__(Sandwich)
    sandwich.sizes = np.array([4, 4])
    terms = np.array([[1.0, 1.0]] * 4 + [[0.0, 1.0]] * 4)
    np.testing.assert_allclose(sandwich.freedom(terms), [3, 6])


@pytest.mark.parametrize("level", [0.2, 0.05])
def test_intervals_of_ratios_are_two_sided(level):
    rng = np.random.default_rng(0)
    data = [rng.normal(size=(2, 400, 1)), rng.normal(size=(2, 400, 1))]
    model = gr.Pool(bandwidth=1.0, ridge=0.2).fit(tuple(data))
    found = expected_ratio_interval(tuple(data), estimator=model, x=[0.0], node=0, level=level)
    half = (found.expected_ratio_high - found.expected_ratio_low)[0] / 2 / found.standard_error[0]
    # Between the normal law and Student's with the degrees of freedom of one sample.
    assert stats.norm.ppf(1 - level / 2) < half <= stats.t.ppf(1 - level / 2, 399)


def test_the_largest_deviation_of_independent_points():
    """All five within q with probability c: each within it with probability c^(1/5)."""
    terms = np.eye(5)
    found = _largest(terms, np.ones(5), 0.1, np.random.default_rng(0))
    assert found == pytest.approx(stats.norm.ppf(0.5 + 0.9 ** (1 / 5) / 2), abs=0.05)


def test_a_learned_graph_joins_the_nearest_ratios():
    """Against brute force: k nearest by the distance of the ratios on the data of all nodes."""
    rng = np.random.default_rng(0)
    n_nodes, m, k = 15, 4, 3
    sizes = rng.integers(6, 12, size=(n_nodes, 2))
    psi = rng.normal(size=(int(sizes.sum()), m))
    moments = MomentSums.of(psi, sizes).mixed(ALPHA)
    blocks = moments.second.dense()
    # A ridge of 0.1 on the scale of the second moments.
    theta = np.linalg.solve(blocks + 0.1 * np.eye(m), moments.first[:, :, np.newaxis])[:, :, 0]
    apart = theta[:, np.newaxis] - theta
    distance = np.einsum("uvi,ij,uvj->uv", apart, blocks.mean(axis=0), apart)
    np.fill_diagonal(distance, np.inf)
    nearest = np.zeros((n_nodes, n_nodes), dtype=bool)
    for v, order in enumerate(np.argsort(distance, axis=1)):
        nearest[v, order[:k]] = True
    found = learned_graph(moments, tuple(range(n_nodes)), k).adjacency.toarray()
    np.testing.assert_array_equal(found, (nearest | nearest.T).astype(float))
