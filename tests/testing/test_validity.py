"""Nothing that surrounds the permuted labels of a node may depend on them."""

from itertools import combinations, product

import numpy as np
import pytest

import graphratio as gr
from graphratio.data.samples import NodeSamples
from graphratio.moments.node_moments import Moments
from graphratio.moments.objective import GraphObjective
from graphratio.moments.second_moments import DenseSecond
from graphratio.solvers.direct import system_matrix
from graphratio.testing.groups import group_parts, node_groups, selected_penalties
from graphratio.testing.node_null import _ConditionalFits, conductances
from graphratio.testing.permutations import PermutationPlan, Units
from graphratio.testing.pooled import PooledFeatures, PooledSamples, read_settings

# Left out by `make quick`.
pytestmark = pytest.mark.slow

GRID = gr.Graph.from_edges(
    [(i, i + 1) for i in range(12) if i % 4 < 3] + [(i, i + 4) for i in range(8)]
)


def two_samples(seed=0, n_nodes=12):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(9, 20, size=(n_nodes, 2))
    reference = [rng.normal(v / 3, size=(n, 2)) for v, (n, _) in enumerate(sizes)]
    target = [rng.normal(v / 2, size=(m, 2)) for v, (_, m) in enumerate(sizes)]
    return reference, target


def relabelled(reference, target, nodes, seed):
    """The same observations at some nodes, split between the samples in another way."""
    rng = np.random.default_rng(seed)
    reference, target = list(reference), list(target)
    for v in nodes:
        both = rng.permutation(np.vstack([reference[v], target[v]]))
        reference[v], target[v] = both[: len(reference[v])], both[len(reference[v]) :]
    return reference, target


def learned(data, nodes):
    """All that the test of the given nodes uses besides their own labels."""
    samples = NodeSamples.from_arrays(*data)
    rng = np.random.default_rng(5)
    pooled = PooledSamples.of(samples, rng)
    settings = read_settings(None, pooled, GRID)
    dictionary = settings.atoms(pooled, rng)
    groups = node_groups(GRID, rng)
    chosen = selected_penalties(samples, GRID, groups, settings, dictionary, rng)
    features = PooledFeatures.of(pooled, settings.kernel, dictionary, chosen[0][0])
    plan = PermutationPlan(pooled, GRID, Units.of(pooled, rng, samples.blocks), 1, rng)
    fits = _ConditionalFits.of(nodes, features, plan, groups, np.array(chosen)[:, 1:])
    own = chosen[groups[nodes[0]]]
    return groups, [dictionary, np.array(own), fits.inverse, fits.pull, fits.witness, features.psi]


def test_what_is_learned_for_a_node_ignores_its_labels():
    data = two_samples()
    everyone = np.arange(12)
    groups, before = learned(data, everyone)
    for part in group_parts(groups, everyone):
        _, after = learned(relabelled(*data, part, seed=1), everyone)
        np.testing.assert_array_equal(before[0], after[0])
        for x, y in zip(before[2:5], after[2:5], strict=True):
            np.testing.assert_array_equal(x[part], y[part])
        # The check can fail: labels of other nodes do matter.
        others = np.setdiff1d(everyone, part)
        assert not np.array_equal(before[4][others], after[4][others])


def test_penalties_of_a_node_ignore_the_labels_of_its_whole_group():
    data = two_samples()
    groups, _ = learned(data, np.array([3]))
    members = np.flatnonzero(groups == groups[3])
    _, before = learned(data, members)
    _, after = learned(relabelled(*data, members, seed=1), members)
    np.testing.assert_array_equal(before[1], after[1])
    np.testing.assert_array_equal(before[2], after[2])


def test_p_value_is_right_over_all_splits_of_a_node():
    """Every split of a small pooled sample, taken as the data, next to changed neighbours.

    Under the null hypothesis all of them are equally likely, so at most a share t of the
    p-values may be at most t, and for fine t hardly less: the test uses the level.
    """
    rng = np.random.default_rng(3)
    pool = rng.normal(size=8)
    graph = gr.Graph.from_edges([(0, v) for v in range(1, 4)])
    reference = [pool[:4], *rng.normal(size=(3, 20))]
    target = [pool[4:], *(rng.normal(size=(3, 20)) + 2)]
    model = gr.GRULSIF(bandwidth=1.0, graph_penalty=0.2, ridge=0.002)
    p_values = []
    for seed, chosen in product(range(4), combinations(range(8), 4)):
        inside = np.isin(np.arange(8), chosen)
        reference[0], target[0] = pool[~inside], pool[inside]
        found = gr.two_sample_test(
            (reference, target), graph, model, correction=None, n_permutations=99, random_state=seed
        )
        p_values.append(found.p_value[0])
    for level in (0.05, 0.1, 0.2, 0.5):
        rate = np.mean(np.array(p_values) <= level)
        spread = np.sqrt(level * (1 - level) / len(p_values))
        assert level - 1 / 70 - 4 * spread <= rate <= level + 4 * spread


def test_a_split_and_the_order_of_observations_do_not_matter():
    data = two_samples()
    turned = tuple([x[::-1] for x in side] for side in data)
    first, second = (
        gr.two_sample_test(given, GRID, n_permutations=299, random_state=2)
        for given in (data, turned)
    )
    np.testing.assert_allclose(first.statistic, second.statistic, rtol=1e-8)


def test_conductances_on_a_star_equal_the_elimination():
    """The centre of a star, with diagonal second moments: eliminating the leaves is exact."""
    star = gr.Graph.from_edges([(0, v, 0.5 + v) for v in range(1, 5)])
    rng = np.random.default_rng(0)
    data = rng.uniform(0.1, 1, size=(5, 3))
    second = data[:, :, np.newaxis] * np.eye(3)
    lam, rho = 0.1, 0.03
    moments = Moments(DenseSecond(second), np.zeros((5, 3)), np.ones(5, dtype=bool))
    matrix = system_matrix(GraphObjective.of(moments, star.laplacian, lam, rho))
    block = np.linalg.inv(np.linalg.inv(matrix)[:3, :3]) - second[0]
    # One sweep: every leaf is held by its own data and ridge.
    once = swept_conductances(second, star, lam, rho, 1)
    np.testing.assert_allclose(np.diag(block), once[0], rtol=1e-10)
    # Further sweeps count the way back over the same edge: firmer, never softer.
    assert (conductances(second, star, lam, rho)[0] >= once[0]).all()


def swept_conductances(second, graph, lam, rho, sweeps):
    from graphratio.testing import node_null

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(node_null, "_SWEEPS", sweeps)
        return node_null.conductances(second, graph, lam, rho)


def test_early_looks_agree_with_all_permutations(monkeypatch):
    """Few permutations settle unremarkable nodes; the others have the p-value of all."""
    from graphratio.testing import node_null

    data = two_samples()
    options = {"correction": None, "n_permutations": 1999, "random_state": 0}
    whole = gr.two_sample_test(data, GRID, **options)
    monkeypatch.setattr(node_null, "FIRST_LOOK", 99)
    monkeypatch.setattr(node_null, "ENOUGH_EXTREME", 20)
    staged = gr.two_sample_test(data, GRID, **options)
    settled = staged.p_value > 0.2
    assert settled.any()
    # Rounded up to multiples of 1/2000, in steps of 1/100.
    np.testing.assert_allclose(staged.p_value[settled] * 100 % 1, 0, atol=1e-9)
    np.testing.assert_allclose(staged.p_value[settled], whole.p_value[settled], atol=0.2)
    small = whole.p_value <= 0.02 / 2
    assert small.any()
    np.testing.assert_array_equal(staged.p_value[small], whole.p_value[small])


def test_early_looks_keep_the_p_value_valid(monkeypatch):
    """Uniform over ranks whether or not looks are taken: small p-values are no more frequent."""
    from graphratio.testing import node_null

    monkeypatch.setattr(node_null, "FIRST_LOOK", 19)
    monkeypatch.setattr(node_null, "ENOUGH_EXTREME", 4)
    rng = np.random.default_rng(0)
    p_values = []
    for _ in range(3000):
        outcome = node_null.NodeTests.blank(1, 199)
        statistics = rng.normal(size=(4, 200))
        most = 1.0
        for look in node_null._looks(199):
            p = outcome.record(0, statistics[:, : look + 1], 199, most, alone=False)
            most = 4 / (look + 1)
            if p > most:
                break
        p_values.append(outcome.combined[0] / 200)
    for level in (0.01, 0.05, 0.1, 0.2, 0.3, 0.5):
        rate = np.mean(np.array(p_values) <= level)
        assert abs(rate - level) <= 4 * np.sqrt(level * (1 - level) / 3000)
