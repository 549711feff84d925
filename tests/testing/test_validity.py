"""Nothing that surrounds the permuted labels of a node may depend on them."""

from dataclasses import dataclass
from itertools import combinations, product

import numpy as np
import pytest

import graphratio as gr
from graphratio.data.samples import NodeSamples
from graphratio.testing import node_null
from graphratio.testing.node_null import node_evidence
from graphratio.testing.permutations import PermutationPlan, Units
from graphratio.testing.pooled import PooledFeatures, PooledSamples, read_settings
from graphratio.testing.predictions import Predictions, group_parts, node_groups, selected_penalties

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


@dataclass
class Learned:
    """All that the tests of nodes use besides their own labels."""

    groups: np.ndarray
    dictionary: np.ndarray
    penalties: np.ndarray
    witness: np.ndarray
    conductance: np.ndarray
    strength: np.ndarray
    columns: list
    moments: list


def learned(data, nodes):
    samples = NodeSamples.from_arrays(*data)
    rng = np.random.default_rng(5)
    pooled = PooledSamples.of(samples, rng)
    settings = read_settings(None, pooled, GRID)
    dictionary = settings.atoms(pooled, rng)
    groups = node_groups(GRID, rng)
    chosen = selected_penalties(samples, GRID, groups, settings, dictionary, rng)
    features = PooledFeatures.of(pooled, settings.kernel, dictionary, chosen[0][0])
    plan = PermutationPlan(pooled, GRID, Units.of(pooled, rng, samples.blocks), 1, rng)
    table = np.array(chosen)[:, 1:]
    found = Predictions.of(nodes, features, plan, groups, table, features.first(pooled))
    make = node_evidence(plan, found)
    means = [make(np.array([node])) for node in range(12)]
    return Learned(
        groups,
        dictionary,
        np.array(chosen),
        found.witness,
        found.conductance,
        found.strength(np.arange(12), plan),
        # Units are numbered by the labels' sample: what matters is the set of columns.
        [np.sort(one.sums[0], axis=0) for one in means],
        [np.stack([one.law.mean, one.law.spread, one.law.skewness]) for one in means],
    )


def test_what_is_learned_for_a_node_ignores_its_labels():
    data = two_samples()
    everyone = np.arange(12)
    before = learned(data, everyone)
    for part in group_parts(before.groups, everyone):
        after = learned(relabelled(*data, part, seed=1), everyone)
        np.testing.assert_array_equal(before.dictionary, after.dictionary)
        for name in ("witness", "conductance", "strength"):
            x, y = getattr(before, name), getattr(after, name)
            np.testing.assert_array_equal(x[part], y[part])
        for v in part:
            np.testing.assert_allclose(before.columns[v], after.columns[v], atol=1e-6)
            np.testing.assert_allclose(before.moments[v], after.moments[v], rtol=1e-5, atol=1e-12)
        # The check can fail: labels of other nodes do matter.
        others = np.setdiff1d(everyone, part)
        assert not np.array_equal(before.witness[others], after.witness[others])
        assert not np.array_equal(before.strength[others], after.strength[others])


def test_penalties_of_a_node_ignore_the_labels_of_its_whole_group():
    data = two_samples()
    before = learned(data, np.arange(12))
    for group in range(3):
        members = np.flatnonzero(before.groups == group)
        after = learned(relabelled(*data, members, seed=1), np.arange(12))
        np.testing.assert_array_equal(before.penalties[group], after.penalties[group])
        np.testing.assert_array_equal(before.conductance[members], after.conductance[members])


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
    for seed, chosen in product(range(2), combinations(range(8), 4)):
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
    np.testing.assert_allclose(first.evidence, second.evidence, atol=1e-4)


def test_early_looks_agree_with_all_permutations(monkeypatch):
    """Few permutations settle unremarkable nodes; the others have the p-value of all."""
    data = two_samples()
    options = {"correction": None, "n_permutations": 1999, "random_state": 0}
    whole = gr.two_sample_test(data, GRID, **options)
    monkeypatch.setattr(node_null, "FIRST_LOOK", 99)
    monkeypatch.setattr(node_null, "ENOUGH_EXTREME", 20)
    staged = gr.two_sample_test(data, GRID, **options)
    settled = staged.p_value > 0.2
    assert settled.any()
    np.testing.assert_allclose(staged.p_value[settled] * 100 % 1, 0, atol=1e-9)
    np.testing.assert_allclose(staged.p_value[settled], whole.p_value[settled], atol=0.2)
    small = whole.p_value <= 0.01
    assert small.any()
    # Other permutations, so that counts differ by chance: four standard errors of each.
    np.testing.assert_allclose(staged.p_value[small], whole.p_value[small], atol=0.012)
    np.testing.assert_allclose(staged.p_value[small] * 2000 % 1, 0, atol=1e-9)
