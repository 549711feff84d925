"""The scenarios against closed forms, scipy, Monte Carlo, and the paper's description."""

import math

import numpy as np
import pytest
from scipy import integrate, stats
from scipy.sparse import csgraph

from graphratio.datasets import Scenario, make_scenario
from graphratio.datasets.laws import (
    GaussianMixture,
    UniformInterval,
    kl_divergence,
    relative_ratio,
)
from graphratio.datasets.random_graphs import (
    block_model,
    clustered,
    preferential_attachment,
    random_ego_network,
    with_ego_network,
)
from graphratio.exceptions import InputError

NAMES = ("Ia", "Ib", "IIa", "IIb")


@pytest.fixture(scope="module", params=NAMES)
def scenario(request) -> Scenario:
    return make_scenario(request.param, n_nodes=40, n=200, random_state=4)


def first_of_each_group(scenario):
    return {group: int(np.argmax(scenario.groups == group)) for group in set(scenario.groups)}


def correlated(rho, d=2):
    covariance = np.eye(d)
    covariance[0, 1] = covariance[1, 0] = rho
    return covariance


def cross_pdf(x):
    means = [(0, 0), (0, 5), (0, -5), (5, 0), (-5, 0)]
    return np.mean([stats.multivariate_normal(m, 5 * np.eye(2)).pdf(x) for m in means], axis=0)


# Densities of the paper's table, written out a second time with scipy.
NORMAL = stats.multivariate_normal
TABLE = {
    ("Ia", "C1"): (NORMAL(0, 1).pdf, lambda x: (np.abs(x[:, 0]) < 3**0.5) / (2 * 3**0.5)),
    ("Ia", "C2"): (NORMAL(0, 1).pdf, NORMAL(0, 1).pdf),
    ("Ia", "C3"): (NORMAL(0, 1).pdf, NORMAL(0, 1).pdf),
    ("Ia", "C4"): (NORMAL(0, 1).pdf, NORMAL(1, 1).pdf),
    ("Ib", "C1"): (NORMAL(cov=correlated(-0.8)).pdf, NORMAL(cov=correlated(-0.8)).pdf),
    ("Ib", "C2"): (NORMAL(cov=correlated(-0.8)).pdf, NORMAL(cov=correlated(-0.8)).pdf),
    ("Ib", "C3"): (NORMAL(cov=correlated(0.8)).pdf, NORMAL(cov=correlated(0)).pdf),
    ("Ib", "C4"): (NORMAL(cov=correlated(0)).pdf, NORMAL([1, 1], correlated(0)).pdf),
    ("IIa", "C(u)"): (NORMAL(cov=correlated(0.8, 3)).pdf, NORMAL(cov=correlated(0, 3)).pdf),
    ("IIa", "complement"): (NORMAL(cov=correlated(0.8, 3)).pdf,) * 2,
    ("IIb", "C(u)"): (NORMAL(cov=10 * np.eye(2)).pdf, cross_pdf),
    ("IIb", "complement"): (NORMAL(cov=10 * np.eye(2)).pdf,) * 2,
}


class TestRatio:
    @pytest.mark.parametrize("alpha", [0.0, 0.1, 0.9])
    def test_matches_the_table_of_the_paper(self, scenario, alpha):
        x = np.random.default_rng(0).uniform(-3, 3, size=(200, scenario.samples.n_features))
        for group, node in first_of_each_group(scenario).items():
            p, q = TABLE[scenario.name, group]
            p_x = p(x[:, 0]) if x.shape[1] == 1 else p(x)
            q_x = q(x) if x.shape[1] > 1 or group == "C1" else q(x[:, 0])
            expected = q_x / ((1 - alpha) * p_x + alpha * q_x)
            np.testing.assert_allclose(scenario.true_ratio(x, node, alpha), expected, rtol=1e-9)

    def test_tails_where_both_densities_underflow(self):
        scenario = make_scenario("Ia", n_nodes=8, random_state=0)
        # N(1, 1) against N(0, 1): the ratio of densities is exp(x - 1/2).
        np.testing.assert_allclose(scenario.true_ratio([-1e3, 60.0], 7, 0.0), [0.0, math.exp(59.5)])
        np.testing.assert_array_equal(scenario.true_ratio([-1e8, 1e8], 7, 0.1), [0.0, 10.0])
        np.testing.assert_array_equal(scenario.true_ratio([-1e8, 1e8], 0, 0.1), [0.0, 0.0])
        np.testing.assert_allclose(scenario.true_ratio([-1e8, 1e8], 3, 0.1), [1.0, 1.0])

    def test_where_densities_vanish(self):
        log_p = np.array([0.0, -np.inf, -np.inf])
        log_q = np.array([-np.inf, 0.0, -np.inf])
        np.testing.assert_array_equal(relative_ratio(log_p, log_q, 0.25), [0.0, 4.0, 0.0])
        np.testing.assert_array_equal(relative_ratio(log_p, log_q, 0.0), [0.0, np.inf, 0.0])

    def test_mean_under_the_mixture_is_one(self, scenario):
        for node in first_of_each_group(scenario).values():
            ratio = scenario.true_ratio(
                scenario.sample_mixture(node, 20_000, 0.1, random_state=5), node, 0.1
            )
            error = ratio.std() / math.sqrt(len(ratio))
            assert abs(ratio.mean() - 1.0) < 4.5 * error + 1e-12

    @pytest.mark.parametrize("x", [[[0.0, 1.0, 2.0]], [[np.nan, 0.0]], [0.0, 1.0]])
    def test_refuses_other_points(self, x):
        with pytest.raises(InputError, match=r"\(n_points, 2\)"):
            make_scenario("Ib", n_nodes=8, n=2, random_state=0).true_ratio(x, 0, 0.1)

    def test_refuses_unknown_node_and_alpha(self, scenario):
        x = np.zeros((1, scenario.samples.n_features))
        with pytest.raises(InputError, match="no node 99"):
            scenario.true_ratio(x, 99, 0.1)
        with pytest.raises(InputError, match="alpha=1"):
            scenario.true_ratio(x, 0, 1.0)


def divergence_of(name, group, alpha):
    scenario = make_scenario(name, n_nodes=40, n=1, random_state=4)
    return scenario.true_divergence(alpha)[first_of_each_group(scenario)[group]]


def integral_of_q_ratio(p, q, alpha, low, high):
    value, _ = integrate.quad(
        lambda x: q(x) ** 2 / ((1 - alpha) * p(x) + alpha * q(x)),
        low,
        high,
        epsabs=1e-12,
        limit=200,
    )
    return 0.5 * (value - 1.0)


class TestDivergence:
    def test_within_the_error_of_monte_carlo(self, scenario):
        alpha = 0.1
        divergence = scenario.true_divergence(alpha)
        for node in first_of_each_group(scenario).values():
            points = scenario.sample_mixture(node, 50_000, alpha, random_state=6)
            values = 0.5 * (scenario.true_ratio(points, node, alpha) - 1.0) ** 2
            error = values.std() / math.sqrt(len(values))
            assert abs(values.mean() - divergence[node]) < 4.5 * error + 1e-12

    def test_zero_exactly_where_nothing_changes(self, scenario):
        np.testing.assert_array_equal(scenario.true_divergence(0.1) > 0.0, scenario.changed)

    @pytest.mark.parametrize("alpha", [1e-3, 0.1, 0.5, 0.99])
    def test_in_one_dimension_against_adaptive_quadrature(self, alpha):
        p = stats.norm(0, 1).pdf
        half = math.sqrt(3.0)
        uniform = integral_of_q_ratio(p, lambda x: 0.5 / half, alpha, -half, half)
        assert divergence_of("Ia", "C1", alpha) == pytest.approx(uniform, abs=1e-9)
        shift = integral_of_q_ratio(p, stats.norm(1, 1).pdf, alpha, -12, 14)
        assert divergence_of("Ia", "C4", alpha) == pytest.approx(shift, abs=1e-9)
        # A shift by (1, 1) is one by sqrt(2) along the diagonal.
        diagonal = integral_of_q_ratio(p, stats.norm(2**0.5, 1).pdf, alpha, -12, 14)
        assert divergence_of("Ib", "C4", alpha) == pytest.approx(diagonal, abs=1e-9)

    @pytest.mark.parametrize("alpha", [1e-3, 0.1, 0.5])
    def test_lost_correlation_in_rotated_coordinates(self, alpha):
        # Along the diagonals p is N(0, 1.8) x N(0, 0.2); the trapezoidal rule is then exact
        # to rounding for such a smooth, fast-decaying integrand.
        grid, step = np.linspace(-10, 10, 801, retstep=True)
        p = np.outer(stats.norm(0, 1.8**0.5).pdf(grid), stats.norm(0, 0.2**0.5).pdf(grid))
        q = np.outer(stats.norm.pdf(grid), stats.norm.pdf(grid))
        expected = 0.5 * (step**2 * np.sum(q**2 / ((1 - alpha) * p + alpha * q)) - 1.0)
        assert divergence_of("Ib", "C3", alpha) == pytest.approx(expected, rel=1e-9)
        assert divergence_of("IIa", "C(u)", alpha) == pytest.approx(expected, rel=1e-9)

    def test_plain_ratio_has_closed_forms(self):
        assert divergence_of("Ia", "C4", 0.0) == pytest.approx((math.e - 1) / 2, abs=1e-9)
        assert divergence_of("Ib", "C4", 0.0) == pytest.approx((math.e**2 - 1) / 2, abs=1e-9)
        # Products of the mixture's parts over p are Gaussian: integrate them one by one.
        means = np.array([(0, 0), (0, 5), (0, -5), (5, 0), (-5, 0)])
        sums = means[:, None, :] + means[None, :, :]
        squares = (means**2).sum(axis=1)
        exponent = (sums**2).sum(axis=2) / 15.0 - (squares[:, None] + squares[None, :]) / 10.0
        expected = 0.5 * ((4.0 / 3.0) * np.exp(exponent).mean() - 1.0)
        assert divergence_of("IIb", "C(u)", 0.0) == pytest.approx(expected, abs=1e-9)

    def test_infinite_for_the_plain_ratio_of_a_lost_correlation(self):
        assert divergence_of("Ib", "C3", 0.0) == math.inf
        assert divergence_of("IIa", "C(u)", 0.0) == math.inf


class TestError:
    def test_exact_ratio_has_none(self, scenario):
        error = scenario.mean_squared_error(
            lambda x, node: scenario.true_ratio(x, node, 0.1), 0.1, n_points=100, random_state=0
        )
        np.testing.assert_array_equal(error, np.zeros(40))

    def test_constant_one_errs_by_twice_the_divergence(self, scenario):
        alpha, n_points = 0.5, 4_000
        error = scenario.mean_squared_error(
            lambda x, node: np.ones(len(x)), alpha, n_points=n_points, random_state=0
        )
        # (ratio - 1)^2 is at most 1 at alpha = 1/2, and so is its variance.
        allowance = 4.5 / math.sqrt(n_points)
        np.testing.assert_allclose(error, 2 * scenario.true_divergence(alpha), atol=allowance)
        changed = error[scenario.changed]
        assert len(set(changed)) == len(changed), "nodes must get points of their own"

    def test_is_a_function_of_the_seed(self, scenario):
        def error(seed):
            return scenario.mean_squared_error(
                lambda x, node: np.ones(len(x)), 0.1, n_points=10, random_state=seed
            )

        np.testing.assert_array_equal(error(3), error(3))
        assert (error(3) != error(4))[scenario.changed].all()

    def test_refuses_a_prediction_of_another_shape(self, scenario):
        with pytest.raises(InputError, match=r"shape \(5, 1\)"):
            scenario.mean_squared_error(lambda x, node: np.ones((5, 1)), 0.1, n_points=5)


class TestSamples:
    @pytest.mark.parametrize("side", ["reference", "target"])
    def test_moments_are_those_of_the_laws(self, side):
        n = 400
        expected = {
            ("Ia", "C1"): ([0.0], [0.0], np.eye(1), np.eye(1)),
            ("Ia", "C4"): ([0.0], [1.0], np.eye(1), np.eye(1)),
            ("Ib", "C2"): ([0.0] * 2, [0.0] * 2, correlated(-0.8), correlated(-0.8)),
            ("Ib", "C3"): ([0.0] * 2, [0.0] * 2, correlated(0.8), correlated(0)),
            ("Ib", "C4"): ([0.0] * 2, [1.0] * 2, correlated(0), correlated(0)),
            ("IIa", "C(u)"): ([0.0] * 3, [0.0] * 3, correlated(0.8, 3), correlated(0, 3)),
            # The means of the mixture add a variance of 10 in each direction to its 5.
            ("IIb", "C(u)"): ([0.0] * 2, [0.0] * 2, 10 * np.eye(2), 15 * np.eye(2)),
            ("IIb", "complement"): ([0.0] * 2, [0.0] * 2, 10 * np.eye(2), 10 * np.eye(2)),
        }
        position = int(side == "target")
        for (name, group), moments in expected.items():
            scenario = make_scenario(name, n_nodes=40, n=n, random_state=1)
            members = [int(node) for node in np.flatnonzero(scenario.groups == group)]
            points = np.concatenate([getattr(scenario.samples, side)(node) for node in members])
            mean, covariance = moments[position], moments[2 + position]
            scale = covariance.max()
            allowance = 5 / math.sqrt(len(members) * n)
            np.testing.assert_allclose(points.mean(axis=0), mean, atol=allowance * scale**0.5)
            np.testing.assert_allclose(np.cov(points.T), covariance, atol=allowance * 2 * scale)

    def test_fresh_points_follow_the_same_laws(self):
        scenario = make_scenario("Ia", n_nodes=8, n=5, random_state=0)
        normal = scenario.sample_reference(0, 2_000, random_state=1)[:, 0]
        uniform = scenario.sample_target(0, 2_000, random_state=1)[:, 0]
        mixture = scenario.sample_mixture(7, 4_000, 0.3, random_state=1)[:, 0]
        half = math.sqrt(3.0)

        def mixed(x):
            return 0.7 * stats.norm.cdf(x) + 0.3 * stats.norm.cdf(x, loc=1)

        assert stats.kstest(normal, "norm").pvalue > 1e-3
        assert stats.kstest(uniform, stats.uniform(-half, 2 * half).cdf).pvalue > 1e-3
        assert stats.kstest(mixture, mixed).pvalue > 1e-3
        assert stats.kstest(mixture, "norm").pvalue < 1e-6

    def test_nodes_and_sizes(self, scenario):
        assert scenario.samples.nodes == scenario.graph.nodes == tuple(range(40))
        assert set(scenario.samples.n_reference) == set(scenario.samples.n_target) == {200}
        unequal = make_scenario(scenario.name, n_nodes=8, n=3, n_target=7, random_state=0)
        assert set(unequal.samples.n_reference) == {3}
        assert set(unequal.samples.n_target) == {7}

    def test_is_a_function_of_the_seed(self, scenario):
        again = make_scenario(scenario.name, n_nodes=40, n=200, random_state=4)
        np.testing.assert_array_equal(again.samples.values, scenario.samples.values)
        other = make_scenario(scenario.name, n_nodes=40, n=200, random_state=5)
        assert not np.isin(other.samples.values, scenario.samples.values).any()

    def test_structure_does_not_depend_on_the_sample_size(self, scenario):
        other = make_scenario(scenario.name, n_nodes=40, n=2, random_state=4)
        assert (other.graph.adjacency != scenario.graph.adjacency).nnz == 0
        np.testing.assert_array_equal(other.groups, scenario.groups)
        np.testing.assert_array_equal(other.changed, scenario.changed)

    def test_reference_does_not_depend_on_the_size_of_the_target(self, scenario):
        other = make_scenario(scenario.name, n_nodes=40, n=200, n_target=1, random_state=4)
        for node in scenario.graph.nodes:
            np.testing.assert_array_equal(
                other.samples.reference(node), scenario.samples.reference(node)
            )


class TestStructure:
    @pytest.mark.parametrize(("name", "changed"), [("Ia", {"C1", "C4"}), ("Ib", {"C3", "C4"})])
    def test_clusters(self, name, changed):
        scenario = make_scenario(name, n_nodes=400, n=1, random_state=0)
        groups = scenario.groups
        assert all((groups == cluster).sum() == 100 for cluster in ("C1", "C2", "C3", "C4"))
        assert set(groups[scenario.changed]) == changed
        assert not changed & set(groups[~scenario.changed])
        dense = scenario.graph.adjacency.toarray()
        assert set(np.unique(dense)) == {0.0, 1.0}
        same = groups[:, None] == groups[None, :]
        pairs = np.triu(np.ones_like(same), k=1)
        for joined, probability in [(same, 0.5), (~same, 0.01)]:
            n_pairs = (pairs & joined).sum()
            deviation = math.sqrt(n_pairs * probability * (1 - probability))
            n_edges = dense[pairs & joined].sum()
            assert abs(n_edges - n_pairs * probability) < 4.5 * deviation

    @pytest.mark.parametrize("name", ["IIa", "IIb"])
    def test_changed_nodes_are_an_ego_network(self, name):
        scenario = make_scenario(name, n_nodes=60, n=1, random_state=3)
        assert set(scenario.groups[scenario.changed]) == {"C(u)"}
        assert set(scenario.groups[~scenario.changed]) == {"complement"}
        steps = csgraph.shortest_path(scenario.graph.adjacency, unweighted=True)
        balls = [np.array_equal(row <= 2, scenario.changed) for row in steps]
        assert any(balls)

    @pytest.mark.parametrize("seed", range(5))
    def test_growing_graph(self, seed):
        adjacency = preferential_attachment(300, np.random.default_rng(seed))
        assert set(adjacency.data) == {1.0}, "the two neighbours of a new node are distinct"
        assert adjacency.nnz == 2 * (4 + 2 * 295)
        assert adjacency.diagonal().sum() == 0
        assert csgraph.connected_components(adjacency, directed=False)[0] == 1
        earlier = np.asarray(np.tril(adjacency.toarray()).sum(axis=1))
        np.testing.assert_array_equal(earlier[:5], [0, 1, 1, 1, 1])
        np.testing.assert_array_equal(earlier[5:], 2)

    def test_new_nodes_prefer_high_degrees(self):
        # The sixth node: centre of the star has degree 4 of 8, a leaf 1 of 8. It is drawn
        # first with 1/2, or second after a leaf: 1/2 + 1/2 * 4/7 = 11/14.
        rng = np.random.default_rng(0)
        hits = sum(preferential_attachment(6, rng)[[5], [0]][0] for _ in range(2_000))
        assert abs(hits / 2_000 - 11 / 14) < 4.5 * math.sqrt(11 / 14 * 3 / 14 / 2_000)

    def test_centre_of_the_ego_network_is_drawn_by_degree(self):
        rng = np.random.default_rng(0)
        star = preferential_attachment(5, rng)
        centre_alone = sum(random_ego_network(star, 0, rng)[0] for _ in range(2_000))
        assert abs(centre_alone / 2_000 - 0.5) < 4.5 * math.sqrt(0.25 / 2_000)

    def test_large_graph(self):
        scenario = make_scenario("IIb", n_nodes=20_000, n=1, random_state=0)
        assert scenario.graph.n_edges == 4 + 2 * 19_995


class TestInput:
    def test_unknown_name(self):
        with pytest.raises(InputError, match="name='Ic' is not one of 'Ia'"):
            make_scenario("Ic")

    @pytest.mark.parametrize("name", ["Ia", "Ib"])
    def test_clusters_must_be_equal(self, name):
        with pytest.raises(InputError, match=r"n_nodes=102 .* Use 100 or 104"):
            make_scenario(name, n_nodes=102)

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            ({"n_nodes": 7}, "n_nodes=7"),
            ({"n_nodes": 10.0}, "n_nodes=10.0"),
            ({"n": 0}, "n=0"),
            ({"n_target": 0}, "n_target=0"),
            ({"random_state": "a"}, "random_state='a'"),
        ],
    )
    def test_bad_numbers(self, arguments, message):
        with pytest.raises(InputError, match=message):
            make_scenario("IIa", **arguments)

    def test_bad_sizes_of_fresh_points(self, scenario):
        with pytest.raises(InputError, match="size=-1"):
            scenario.sample_reference(0, -1)
        with pytest.raises(InputError, match=r"size=1\.5"):
            scenario.sample_mixture(0, 1.5, 0.1)
        with pytest.raises(InputError, match="n_points=0"):
            scenario.mean_squared_error(lambda x, node: x, 0.1, n_points=0)


class TestKullbackLeibler:
    def test_gaussian_changes_have_a_closed_form(self):
        scenario = make_scenario("Ib", n_nodes=8, n=1, random_state=0)
        found = dict(zip(scenario.groups, scenario.true_kl_divergence(), strict=True))
        uncorrelated = 0.5 * (2 / (1 - 0.8**2) - 2 + math.log(1 - 0.8**2))
        assert found == pytest.approx({"C1": 0.0, "C2": 0.0, "C3": uncorrelated, "C4": 1.0})

    def test_mixture_agrees_with_the_mean_log_ratio_of_draws(self):
        scenario = make_scenario("IIb", n_nodes=8, n=1, random_state=0)
        node = int(np.flatnonzero(scenario.changed)[0])
        draws = scenario.sample_target(node, 100_000, random_state=0)
        logs = np.log(scenario.true_ratio(draws, node, alpha=0.0))
        error = logs.std() / math.sqrt(len(logs))
        assert scenario.true_kl_divergence()[node] == pytest.approx(logs.mean(), abs=4 * error)


class TestLaws:
    def test_densities(self):
        law = GaussianMixture(means=np.zeros((1, 2)), covariance=np.eye(2))
        np.testing.assert_allclose(law.logpdf(np.zeros((1, 2))), -np.log(2 * np.pi))
        interval = UniformInterval(low=0.0, high=2.0)
        np.testing.assert_allclose(interval.logpdf(np.array([[1.0], [3.0]])), [-np.log(2), -np.inf])

    def test_divergence_of_shifted_normal_laws(self):
        near, far = (GaussianMixture(np.full((1, 1), m), np.eye(1)) for m in (0.0, 2.0))
        assert kl_divergence(near, far) == pytest.approx(2.0)


class TestGroups:
    def test_four_equal_clusters(self):
        groups = clustered(8, np.random.default_rng(0))[1]
        assert groups.tolist() == ["C1", "C1", "C2", "C2", "C3", "C3", "C4", "C4"]

    def test_an_ego_network_and_the_rest(self):
        rng = np.random.default_rng(0)
        assert set(with_ego_network(200, rng, rng)[1].tolist()) == {"C(u)", "complement"}

    def test_certain_and_impossible_edges_of_blocks(self):
        adjacency = block_model(2, 3, inside=1.0, between=0.0, rng=np.random.default_rng(0))
        assert adjacency.nnz == 12
        assert csgraph.connected_components(adjacency)[0] == 2
