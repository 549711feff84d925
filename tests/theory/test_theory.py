"""The bounds against dense computations, runs of the algorithm, and the steps of the proofs."""

import dataclasses
import math

import numpy as np
import pytest
from scipy import linalg

from graphratio import Graph, theory
from graphratio.datasets import make_scenario
from graphratio.exceptions import InputError
from graphratio.theory import (
    cbcgd_cycle_bound,
    convergence_bound,
    estimate_capacity,
    graph_factor,
)


def path(n_nodes):
    return Graph.from_edges([(i, i + 1) for i in range(n_nodes - 1)])


def random_moments(n_nodes, m, seed=0):
    features = np.random.default_rng(seed).standard_normal((n_nodes, 3 * m, m))
    return features.swapaxes(1, 2) @ features / (3 * m)


def random_gram(m, seed=1):
    return random_moments(1, m, seed)[0] + 0.1 * np.eye(m)


def dense_hessian(second, graph, lambda_, kernel):
    coupling = lambda_ * np.kron(graph.laplacian.toarray(), kernel)
    return linalg.block_diag(*(second / len(second))) + coupling


def cycles_of_cbcgd(second, first, graph, lambda_, gamma, kernel, tolerance, at_most):
    """Cycles of the paper's update, written as printed, until the objective is accurate."""
    n_nodes, m = first.shape
    weights = graph.adjacency.toarray()
    degrees = weights.sum(axis=1)
    ridge = lambda_ * gamma * np.kron(np.eye(n_nodes), kernel)
    hessian = dense_hessian(second, graph, lambda_, kernel) + ridge
    linear = first.ravel() / n_nodes

    def objective(theta):
        return 0.5 * theta.ravel() @ hessian @ theta.ravel() - linear @ theta.ravel()

    minimum = objective(np.linalg.solve(hessian, linear))
    rates = [
        np.linalg.eigvalsh(a / n_nodes + lambda_ * d * kernel)[-1]
        for a, d in zip(second, degrees, strict=True)
    ]
    theta = np.zeros((n_nodes, m))
    for cycle in range(at_most + 1):
        if objective(theta) - minimum < tolerance:
            return cycle, -minimum
        for v in range(n_nodes):
            local = second[v] @ theta[v] / n_nodes - first[v] / n_nodes
            near = lambda_ * kernel @ (degrees[v] * theta[v] - weights[v] @ theta)
            step = rates[v] * theta[v] - local - near
            theta[v] = np.linalg.solve(lambda_ * gamma * kernel + rates[v] * np.eye(m), step)
    raise AssertionError("not accurate within the bound")


class TestCycleBound:
    @pytest.mark.parametrize("plain", [False, True])
    @pytest.mark.parametrize("graph", [path(4), Graph.empty(4)], ids=["path", "edgeless"])
    def test_algorithm_is_accurate_within_it(self, graph, plain):
        second = random_moments(4, 3)
        first = np.random.default_rng(2).standard_normal((4, 3))
        kernel = random_gram(3) if plain else np.eye(3)
        lambda_, gamma, tolerance = 0.1, 1.0, 1e-8

        def bound(gap):
            gram = kernel if plain else None
            return cbcgd_cycle_bound(second, graph, lambda_, gamma, gap, tolerance, gram).cycles

        needed, gap = cycles_of_cbcgd(
            second, first, graph, lambda_, gamma, kernel, tolerance, at_most=bound(1.0)
        )
        assert 0 < needed <= bound(gap)

    @pytest.mark.parametrize("plain", [False, True])
    @pytest.mark.parametrize("dense", [False, True])
    def test_constants_match_dense_ones(self, monkeypatch, plain, dense):
        if not dense:
            monkeypatch.setattr(theory, "LARGEST_DENSE", 10)
        graph = make_scenario("IIa", n_nodes=20, n=1, random_state=0).graph
        second, lambda_, gamma = random_moments(20, 4), 0.3, 0.01
        kernel = random_gram(4) if plain else np.eye(4)
        found = cbcgd_cycle_bound(
            second, graph, lambda_, gamma, 2.0, 1e-3, kernel if plain else None
        )

        hessian = dense_hessian(second, graph, lambda_, kernel)
        blocks = hessian.reshape(20, 4, 20, 4)
        node_curvature = [np.linalg.eigvalsh(blocks[v, :, v, :])[-1] for v in range(20)]
        smallest = np.linalg.eigvalsh(kernel)[0]
        mu = lambda_ * gamma * smallest
        curvature = np.linalg.eigvalsh(hessian)[-1]
        assert found.curvature == pytest.approx(curvature, rel=1e-9)
        np.testing.assert_allclose(found.node_curvature, node_curvature, rtol=1e-9)
        assert found.node_curvature.min() == pytest.approx(min(node_curvature), rel=1e-9)
        assert found.gram_eigenvalue == pytest.approx(smallest, rel=1e-9)
        assert found.strong_convexity == pytest.approx(mu, rel=1e-9)
        assert found.log_gap == pytest.approx(math.log(2000.0))

        numerator = mu * (min(node_curvature) + mu) + 16 * curvature**2 * math.log(240) ** 2
        expected = numerator / (mu * (min(node_curvature) + mu)) * math.log(2000.0)
        assert found.cycles == pytest.approx(expected, rel=1e-9, abs=1)
        assert isinstance(found.cycles, int)

    def test_one_node_by_hand(self):
        # C = C_min = 1, mu = 1 and 3 N m = 6.
        found = cbcgd_cycle_bound([np.eye(2)], Graph.empty(1), 0.5, 2.0, math.e, 1.0)
        assert found.cycles == math.ceil(1 + 8 * math.log(6) ** 2)

    def test_identity_gram_is_the_nystrom_form(self):
        arguments = (random_moments(5, 3), path(5), 0.2, 0.1, 1.0, 1e-6)
        plain = cbcgd_cycle_bound(*arguments, gram=np.eye(3))
        assert plain.cycles == cbcgd_cycle_bound(*arguments).cycles

    @pytest.mark.parametrize("gap", [0.0, 1e-7, 1e-6])
    def test_nothing_to_do(self, gap):
        assert cbcgd_cycle_bound(random_moments(3, 2), path(3), 1.0, 1.0, gap, 1e-6).cycles == 0

    def test_refuses_what_is_no_second_moment(self):
        def bound(second, gram=None):
            return cbcgd_cycle_bound(second, path(3), 1.0, 1.0, 1.0, 0.1, gram)

        good = random_moments(3, 2)
        skewed, negative, missing = good.copy(), good.copy(), good.copy()
        skewed[1, 0, 1] += 1.0
        negative[2] -= 10 * np.eye(2)
        missing[0, 0, 0] = np.nan
        with pytest.raises(InputError, match="not symmetric at positions 1"):
            bound(skewed)
        with pytest.raises(InputError, match=r"negative eigenvalues, down to -.* at positions 2"):
            bound(negative)
        with pytest.raises(InputError, match="NaN"):
            bound(missing)
        with pytest.raises(InputError, match=r"shape \(2, 2\)"):
            bound(np.eye(2))
        with pytest.raises(InputError, match="4 nodes, but the graph has 3"):
            bound(random_moments(4, 2))
        with pytest.raises(InputError, match=r"gram has shape \(3, 3\)"):
            bound(good, gram=np.eye(3))
        with pytest.raises(InputError, match="Nystrom"):
            bound(good, gram=np.ones((2, 2)))

    @pytest.mark.parametrize("position", [2, 3, 5])
    def test_refuses_numbers_that_are_not_positive(self, position):
        arguments = [random_moments(3, 2), path(3), 1.0, 1.0, 1.0, 0.1]
        arguments[position] = 0.0
        with pytest.raises(InputError, match=r"=0\.0 is not a number"):
            cbcgd_cycle_bound(*arguments)


SETTING = {
    "decay": 2.0,
    "capacity": 1.5,
    "smoothness": 4.0,
    "bound": 3.0,
    "alpha": 0.25,
    "graph_factor": 0.8,
    "constant": 1.5,
    "delta": 0.1,
}


class TestConvergenceBound:
    def test_by_hand(self):
        # bound + 1 / alpha = 7.
        found = convergence_bound(1000, 20, **SETTING)
        assert found.variance_factor == 49 + 16
        assert found.loss_bound == 24.5 + 7
        rho = 8 * 65 * 3**0.5 * (7**4 * 4**2 * 0.8) ** (1 / 3)
        rho *= 1000 ** (-2 / 3) * 20 ** (-1 / 3) * 1.5 ** (2 / 3)
        assert found.fixed_point == pytest.approx(rho, rel=1e-12)
        tail = math.log(10) / (1000 * 20)
        expected = 2 * 1.5 * 400 * 31.5 * rho + 16 * 65**2 * 1.5 * tail + 24 * 65 * 31.5 * tail
        assert found.excess_divergence == pytest.approx(expected, rel=1e-12)
        assert found.squared_error == pytest.approx(2 * expected, rel=1e-12)

    @pytest.mark.parametrize("decay", [1.1, 1.5, 2.0, 4.0, 10.0])
    @pytest.mark.parametrize("capacity", [0.3, 1.0, 30.0])
    @pytest.mark.parametrize("n", [100, 100_000])
    def test_fixed_point_is_above_the_one_of_the_proof(self, n, decay, capacity):
        # The lemma bounds the complexity by sqrt(a1 rho) + a2 for any number h of directions;
        # with exact tail sums of the largest eigenvalues allowed, the smallest solution over
        # integers h cannot exceed the bound. Capacity without its square fails this.
        setting = SETTING | {"decay": decay, "capacity": capacity}
        found = convergence_bound(n, 5, **setting)
        assert found.n_directions >= 1, "choose a setting that the proof covers"
        h = np.arange(1, 400)
        index = np.arange(1, 200_001)
        tail = np.cumsum((capacity**2 * index**-decay)[::-1])[::-1][h]
        b0, reach = found.variance_factor, 7.0
        a1 = 2 * b0 * reach**2 * h / n
        a2 = 2 * b0 * reach * np.sqrt(2 * 4.0**2 * 0.8 * tail / (5 * n))
        solution = (a1 + 2 * a2 + np.sqrt(a1**2 + 4 * a1 * a2)) / 2
        np.testing.assert_allclose(np.sqrt(a1 * solution) + a2, solution)
        assert solution.min() <= found.fixed_point

    @pytest.mark.parametrize("decay", [1.5, 3.0])
    def test_rates(self, decay):
        def fixed_point(n, n_nodes):
            return convergence_bound(n, n_nodes, **SETTING | {"decay": decay}).fixed_point

        assert fixed_point(100, 8) / fixed_point(200, 8) == pytest.approx(
            2 ** (decay / (1 + decay))
        )
        assert fixed_point(100, 8) / fixed_point(100, 16) == pytest.approx(2 ** (1 / (1 + decay)))

    @pytest.mark.parametrize(
        ("name", "value"),
        [
            ("decay", 1.0),
            ("alpha", 0.0),
            ("alpha", 1.0),
            ("delta", 0.0),
            ("delta", 1.0),
            ("constant", 1.0),
            ("capacity", 0.0),
            ("smoothness", -1.0),
            ("bound", math.nan),
            ("graph_factor", 0.0),
        ],
    )
    def test_refuses_what_the_theorem_excludes(self, name, value):
        with pytest.raises(InputError, match=f"{name}="):
            convergence_bound(100, 5, **SETTING | {name: value})

    def test_refuses_sizes(self):
        with pytest.raises(InputError, match="n=0"):
            convergence_bound(0, 5, **SETTING)
        with pytest.raises(InputError, match=r"n_nodes=2\.5"):
            convergence_bound(10, 2.5, **SETTING)

    def test_results_are_frozen(self):
        with pytest.raises(dataclasses.FrozenInstanceError):
            convergence_bound(100, 5, **SETTING).fixed_point = 0.0


class TestGraphFactor:
    @pytest.mark.parametrize("name", ["Ia", "IIa"])
    @pytest.mark.parametrize("dense", [False, True])
    @pytest.mark.parametrize("gamma", [1e-5, 1.0])
    def test_matches_the_inverse(self, monkeypatch, name, dense, gamma):
        if not dense:
            monkeypatch.setattr(theory, "LARGEST_DENSE", 10)
            monkeypatch.setattr(theory, "COLUMN_BLOCK", 7)
        graph = make_scenario(name, n_nodes=40, n=1, random_state=0).graph
        inverse = np.linalg.inv(graph.laplacian.toarray() + gamma * np.eye(40))
        assert graph_factor(graph, gamma) == pytest.approx(inverse.diagonal().max(), rel=1e-6)

    def test_complete_graph(self):
        # Eigenvalues: gamma once, gamma + n_nodes otherwise.
        graph = Graph.from_adjacency(np.ones((10, 10)) - np.eye(10))
        assert graph_factor(graph, 0.5) == pytest.approx(0.1 / 0.5 + 0.9 / 10.5)

    def test_disconnected_graph_is_as_bad_as_its_worst_node(self):
        graph = Graph.from_edges([(0, 1), (1, 2)], nodes=range(4))
        assert graph_factor(graph, 0.01) == pytest.approx(100.0)

    def test_refuses_no_penalty(self):
        with pytest.raises(InputError, match="gamma=0"):
            graph_factor(path(3), 0.0)


def power_law(decay, capacity, m, seed=0):
    basis = np.linalg.qr(np.random.default_rng(seed).standard_normal((m, m)))[0]
    return (basis * (capacity**2 * np.arange(1.0, m + 1) ** -decay)) @ basis.T


class TestCapacity:
    @pytest.mark.parametrize("decay", [0.5, 1.5, 3.0])
    @pytest.mark.parametrize("capacity", [0.2, 5.0])
    def test_recovers_a_power_law(self, decay, capacity):
        found = estimate_capacity(power_law(decay, capacity, m=30))
        assert found.decay == pytest.approx(decay, abs=1e-6)
        assert found.capacity == pytest.approx(capacity, rel=1e-6)
        assert found.n_eigenvalues.tolist() == [30]

    def test_nodes_together_take_the_worst_of_each(self):
        second = np.stack([power_law(1.5, 1.0, 20), power_law(3.0, 4.0, 20), np.zeros((20, 20))])
        found = estimate_capacity(second)
        np.testing.assert_allclose(found.node_decay, [1.5, 3.0, np.nan], rtol=1e-6)
        np.testing.assert_allclose(found.node_capacity, [1.0, 4.0, np.nan], rtol=1e-6)
        assert (found.decay, found.capacity) == (found.node_decay[0], found.node_capacity[1])

    def test_condition_holds_and_is_attained_for_a_gaussian_kernel(self):
        rng = np.random.default_rng(0)
        x, atoms = rng.standard_normal((500, 1)), np.linspace(-3, 3, 25)[:, None]
        gram = np.exp(-0.5 * (atoms - atoms.T) ** 2 / 0.3**2)
        values, vectors = np.linalg.eigh(gram)
        features = np.exp(-0.5 * (x - atoms.T) ** 2 / 0.3**2) @ vectors / np.sqrt(values)
        second = features.T @ features / len(x)
        found = estimate_capacity(second, floor=1e-6)
        eigenvalues = np.linalg.eigvalsh(second)[::-1]
        kept = eigenvalues[eigenvalues > 1e-6 * eigenvalues[0]]
        assert found.n_eigenvalues.tolist() == [len(kept)]
        limit = found.capacity**2 * np.arange(1, len(kept) + 1) ** -found.decay
        assert np.all(kept <= limit * (1 + 1e-9))
        assert np.max(kept / limit) == pytest.approx(1.0)
        assert found.decay > 1.0

    def test_wider_kernels_decay_faster(self):
        x = np.random.default_rng(0).standard_normal(200)

        def decay(bandwidth):
            kernel = np.exp(-0.5 * (x[:, None] - x[None, :]) ** 2 / bandwidth**2) / len(x)
            return estimate_capacity(kernel, floor=1e-6).decay

        assert decay(0.1) < decay(0.5) < decay(2.0)

    def test_noise_below_the_floor_is_left_out(self):
        second = np.diag(np.r_[np.arange(1.0, 11.0) ** -2, np.full(40, 1e-12)])
        found = estimate_capacity(second)
        assert found.n_eigenvalues.tolist() == [10]
        assert found.decay == pytest.approx(2.0, abs=1e-6)
        assert estimate_capacity(second, floor=1e-13).decay > 5.0

    @pytest.mark.parametrize(
        ("decay", "words"),
        [
            (0.5, "needs a decay above 1"),
            (1.5, "promises a gain"),
            (3.0, "promises some gain"),
            (6.0, "promises little"),
        ],
    )
    def test_advice(self, decay, words):
        assert words in estimate_capacity(power_law(decay, 1.0, 10)).advice

    def test_feeds_the_convergence_bound(self):
        found = estimate_capacity(power_law(2.5, 2.0, 20))
        setting = SETTING | {"decay": found.decay, "capacity": found.capacity}
        expected = convergence_bound(50, 5, **SETTING | {"decay": 2.5, "capacity": 2.0})
        assert convergence_bound(50, 5, **setting).squared_error == pytest.approx(
            expected.squared_error, rel=1e-5
        )

    @pytest.mark.parametrize(
        ("second", "message"),
        [
            (np.ones(3), r"shape \(3,\)"),
            (np.ones((2, 3)), r"shape \(1, 2, 3\)"),
            (np.zeros((0, 2, 2)), r"shape \(0, 2, 2\)"),
            ([[1.0, 2.0], [0.0, 1.0]], "not symmetric"),
            (-np.eye(2), "negative eigenvalues"),
            (np.diag([1.0, 0.0]), "two significant eigenvalues"),
        ],
    )
    def test_refuses(self, second, message):
        with pytest.raises(InputError, match=message):
            estimate_capacity(second)

    def test_accepts_rounding_and_leaves_the_input_alone(self):
        second = power_law(2.0, 1.0, 12).astype(np.float32)
        second[0, 1] += 1e-8
        before = second.copy()
        assert estimate_capacity(second, floor=1e-5).decay == pytest.approx(2.0, abs=1e-3)
        np.testing.assert_array_equal(second, before)
