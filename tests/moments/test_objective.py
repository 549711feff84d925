import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import approx_fprime
from scipy.stats import wasserstein_distance
from tests.problems import GRAPHS, graph, objective

import graphratio as gr
from graphratio.data.samples import NodeSamples
from graphratio.features.kernels import get_kernel
from graphratio.features.nystrom import NystromMap
from graphratio.moments.losses import KL, PEARSON
from graphratio.moments.node_moments import MomentSums
from graphratio.moments.objective import (
    NEAR_CEILING,
    GraphObjective,
    effect_sizes,
    moment_losses,
    ranked,
)
from graphratio.solvers.direct import solve_direct


@pytest.mark.parametrize("name", GRAPHS)
def test_gradient_by_finite_differences(name):
    problem = objective(name, 4.2, 1.26)
    theta = np.random.default_rng(2).normal(size=(6, 4))
    numeric = approx_fprime(theta.ravel(), lambda t: problem.value(t.reshape(6, 4))[0] / 6, 1e-6)
    assert_allclose(problem.gradient(theta).ravel() / 6, numeric, atol=2e-5)


def test_value_is_n_times_the_papers_sum_over_edges():
    problem = objective("weighted", 4.2, 1.26)
    theta = np.random.default_rng(3).normal(size=(6, 4))
    data = moment_losses(problem.moments, theta[:, None])[:, 0].mean()
    lambda_, gamma = 4.2 / 6, 1.26 / 4.2
    weights = GRAPHS["weighted"]
    differences = ((theta[:, None] - theta) ** 2).sum(axis=2)
    expected = data + lambda_ / 4 * (weights * differences).sum()
    expected += lambda_ * gamma / 2 * (theta**2).sum()
    assert problem.value(theta)[0] == pytest.approx(6 * expected, rel=1e-12)


def test_residual_of_the_solution_is_zero_and_grows_with_the_error():
    problem = objective("path", 4.2, 1.26)
    theta = solve_direct(problem, 1e-9).theta
    assert problem.residual(theta)[0] < 1e-13
    assert problem.residual(1.1 * theta)[0] == pytest.approx(0.1, rel=1e-9)


@pytest.mark.parametrize("strategy", ["few atoms", "all observations"])
@pytest.mark.parametrize("kernel_name", ["gaussian", "laplacian"])
def test_plain_dictionary_form_equals_nystrom_form(strategy, kernel_name):
    """Both forms give the same functions for a dictionary of full rank."""
    rng = np.random.default_rng(4)
    samples = NodeSamples.from_arrays(
        list(rng.normal(size=(6, 5, 2))), list(rng.normal(0.5, 1, size=(6, 4, 2)))
    )
    kernel, bandwidth, alpha = get_kernel(kernel_name), 0.5, 0.1
    atoms = samples.values if strategy == "all observations" else samples.values[::5]
    sizes = np.column_stack([samples.n_reference, samples.n_target])
    features = NystromMap.build(kernel, atoms, bandwidth)
    assert features.n_components == len(atoms)
    laplacian = graph("path").laplacian

    gram = kernel(atoms, atoms, bandwidth)
    plain_moments = MomentSums.of(kernel(samples.values, atoms, bandwidth), sizes).mixed(alpha)
    plain = solve_direct(GraphObjective.of(plain_moments, laplacian, 0.3, 0.03, gram), 1e-8).theta
    whitened = MomentSums.of(features(samples.values), sizes).mixed(alpha)
    nystrom = solve_direct(GraphObjective.of(whitened, laplacian, 0.3, 0.03), 1e-8).theta

    x = rng.normal(size=(50, 2))
    assert_allclose(features(x) @ nystrom.T, kernel(x, atoms, bandwidth) @ plain.T, atol=1e-9)


def test_the_kl_divergence_is_the_mean_logarithm_over_the_target():
    found = KL.divergences(np.array([0.5, np.e, 1.0]), np.array([[1, 2]]), 0.0)
    np.testing.assert_allclose(found, [0.5])
    assert np.isnan(KL.divergences(np.array([0.5]), np.array([[1, 0]]), 0.0)).all()


def samples_of(reference, target):
    return gr.NodeSamples.from_arrays(reference, target)


def test_near_the_wasserstein_distance_in_standard_deviations():
    rng = np.random.default_rng(0)
    reference = [rng.normal(size=400), rng.gamma(2.0, size=300)]
    target = [rng.normal(1.0, 2.0, size=500), rng.gamma(4.0, size=200)]
    found = effect_sizes(samples_of(reference, target))
    for one, p, q in zip(found, reference, target, strict=True):
        spread = np.sqrt((p.var() + q.var()) / 2)
        assert one == pytest.approx(wasserstein_distance(p, q) / spread, rel=0.08)


def test_largest_over_features_and_undefined_without_a_sample():
    rng = np.random.default_rng(1)
    x = rng.normal(size=(50, 2))
    found = effect_sizes(samples_of([x, x], [x + [0.0, 2.0] * np.array(1.0), np.empty((0, 2))]))
    assert found[0] == pytest.approx(2.0 / x[:, 1].std())
    assert np.isnan(found[1])


def test_units_do_not_matter_and_constants_are_finite():
    rng = np.random.default_rng(2)
    p, q = rng.normal(size=40), rng.normal(1.0, size=60)
    one = effect_sizes(samples_of([p], [q]))
    assert effect_sizes(samples_of([1e6 * p + 5], [1e6 * q + 5])) == pytest.approx(one)
    constants = effect_sizes(samples_of([[1.0] * 5, [2.0] * 5], [[1.0] * 5, [3.0] * 5]))
    assert constants[0] == 0.0
    assert np.isfinite(constants[1])
    assert constants[1] > 100


def test_nodes_near_the_ceiling_are_ordered_by_effect_size():
    rng = np.random.default_rng(3)
    shifts = np.array([40.0, 0.0, 10.0, 20.0, 1.0])
    reference = rng.normal(size=(5, 200))
    target = rng.normal(size=(5, 200)) + shifts[:, np.newaxis]
    model = gr.GRULSIF(prior_ratio=1.0, random_state=0).fit((list(reference), list(target)))
    assert model.divergence_ceiling_ == 4.5
    near = model.divergence_ > NEAR_CEILING * 4.5
    assert near.tolist() == [True, False, True, True, False]
    assert model.ranking_.tolist() == [0, 3, 2, 4, 1]
    assert model.to_frame()["near_ceiling"].tolist() == near.tolist()
    (note,) = [note for note in model.notes_ if "ordered by effect size" in note]
    assert "4.5" in note
    assert "0, 2, 3" in note


def test_no_ceiling_without_alpha():
    rng = np.random.default_rng(4)
    model = gr.ULSIF(random_state=0).fit((rng.normal(size=50), rng.normal(9.0, size=50)))
    assert model.divergence_ceiling_ == np.inf
    assert not model.to_frame()["near_ceiling"].any()


def test_nodes_near_the_ceiling_are_ranked_by_effect_size():
    divergence, effect = np.array([4.4, 0.1, np.nan, 4.3]), np.array([5.0, 0.2, np.nan, 9.0])
    assert ranked(divergence, effect, PEARSON.ceiling(0.1)).tolist() == [3, 0, 1]
    assert (PEARSON.ceiling(0.1), PEARSON.ceiling(0.0)) == (4.5, np.inf)
