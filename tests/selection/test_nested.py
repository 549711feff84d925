"""Held-out ratios with nested selection."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

import graphratio as gr
from graphratio.features.kernels import get_kernel
from graphratio.moments.folds import assign_folds
from graphratio.moments.node_moments import Moments
from graphratio.moments.objective import moment_losses
from graphratio.moments.second_moments import DenseSecond
from graphratio.selection import cross_validation, nested
from graphratio.selection.cross_validation import Coupling, SharedFit, Split
from graphratio.selection.grids import Candidates

RING = gr.Graph.from_edges([(i, (i + 1) % 6) for i in range(6)])
CANDIDATES = Candidates(np.array([1.0]), np.array([0.1, 1.0]), np.array([0.01, 0.1]))


def make_split(n_folds=5, shift=1.0, size=20):
    rng = np.random.default_rng(0)
    reference, target = rng.normal(size=(2, 6, size, 1))
    samples = gr.NodeSamples.from_arrays(reference, target + shift)
    return Split(
        samples=samples,
        folds=assign_folds(samples, n_folds, rng),
        n_folds=n_folds,
        kernel=get_kernel("gaussian"),
        dictionary=np.linspace(-2, 3, 8)[:, np.newaxis],
        alpha=0.1,
        prior_ratio=1.0,
        dtype=np.float64,
    )


def brute_force(data, n_folds, inner):
    """Mean over the given inner folds j of the loss on j, fitted without j and the held-out k."""
    total = np.zeros((n_folds, 2))
    for k in range(n_folds):
        for j in inner(k):
            theta = Coupling(RING).solve(data.without(j, k), *CANDIDATES.pairs)
            total[k] += moment_losses(data.only(j), theta).mean(axis=0) / len(inner(k))
    return total


def losses_of(split):
    contender = nested.Contender(Coupling(RING), CANDIDATES)
    return nested.nested_losses(split, {"fit": contender}, split.at)["fit"][1.0]


@pytest.mark.parametrize(
    ("many", "inner"),
    [
        (1_000, lambda k: [j for j in range(5) if j != k]),
        # Beyond that many nodes two inner folds: the one before and the one after.
        (5, lambda k: [(k - 1) % 5, (k + 1) % 5]),
    ],
)
def test_nested_losses_equal_brute_force(monkeypatch, many, inner):
    monkeypatch.setattr(nested, "MANY_NODES", many)
    # Solved exactly, so that the order of the solves does not matter.
    monkeypatch.setattr(cross_validation, "SOLVE_TOLERANCE", 1e-10)
    split = make_split()
    _, data = split.at(1.0)
    assert_allclose(losses_of(split), brute_force(data, 5, inner), rtol=1e-6)


def test_an_empty_fold_counts_nowhere():
    split = make_split()
    split = replace(split, folds=np.where(split.folds == 4, 0, split.folds))
    _, data = split.at(1.0)
    used = range(4)
    found = losses_of(split)
    for k in used:
        losses = []
        for j in used:
            if j != k:
                theta = Coupling(RING).solve(data.without(j, k), *CANDIDATES.pairs)
                losses.append(cross_validation.mean_losses(moment_losses(data.only(j), theta)))
        assert_allclose(found[k], np.mean(losses, axis=0), rtol=1e-3)


def test_held_out_ratios_stay_in_the_range_of_ratios():
    split = make_split(shift=6.0)
    weak = Candidates(np.array([0.5]), np.array([1e-6]), np.array([1e-6]))
    found = nested.held_out_ratios([split], {"fit": nested.Contender(Coupling(RING), weak)})
    ratios = found["fit"].ratios
    assert ratios.min() == 0.0
    assert ratios.max() == pytest.approx(1 / split.alpha)


def test_one_ratio_for_all_averages_the_nodes_that_have_both_samples():
    rng = np.random.default_rng(1)
    roots = rng.normal(size=(3, 4, 4))
    second = roots @ roots.transpose(0, 2, 1)
    first = rng.normal(size=(3, 4))
    complete = np.array([True, False, True])
    second[1], first[1] = 0.0, 0.0
    moments = Moments(DenseSecond(second), first, complete)
    found = SharedFit().solve(moments, np.zeros(1), np.array([0.3]))
    mean = second[complete].mean(axis=0) + 0.3 * np.eye(4)
    expected = np.linalg.solve(mean, first[complete].mean(axis=0))
    assert_allclose(found, np.broadcast_to(expected, (3, 1, 4)))
