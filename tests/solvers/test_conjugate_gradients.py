"""The loop: what it counts, when it drops candidates, and in which order preconditioners come."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from graphratio.solvers.bases import Diagonal
from graphratio.solvers.conjugate_gradients import (
    WEAK_COUPLING,
    Progress,
    StackIterates,
    iterate,
    stages,
)


class Matrix:
    """The same dense system for all candidates, which counts its products by candidate."""

    def __init__(self, matrix, counts=None, candidates=None, n_candidates=1):
        self.matrix = matrix
        self.counts = np.zeros(n_candidates, int) if counts is None else counts
        self.candidates = np.arange(n_candidates) if candidates is None else candidates

    def apply(self, x):
        self.counts[self.candidates] += 1
        return np.einsum("uv,vcm->ucm", self.matrix, x)

    def restrict(self, candidates):
        return Matrix(self.matrix, self.counts, self.candidates[candidates])


def system(n=30):
    root = np.random.default_rng(0).normal(size=(n, n))
    return root @ root.T + n * np.eye(n)


def easy_and_hard(matrix, n_easy, n_hard):
    """Right-hand sides that take one iteration, and ones that take many."""
    vectors = np.linalg.eigh(matrix)[1]
    hard = np.random.default_rng(1).normal(size=(len(matrix), n_hard))
    return np.column_stack([vectors[:, :n_easy], hard])[:, :, np.newaxis]


@pytest.mark.parametrize("keep_share", [0.0, 0.8])
def test_converged_candidates_are_dropped_when_it_pays(keep_share):
    matrix = system()
    rhs = easy_and_hard(matrix, 3, 4)
    products = Matrix(matrix, n_candidates=7)
    inverse = Diagonal(np.ones((1, 1, 1)))
    iterates = StackIterates(products, inverse, rhs, np.zeros_like(rhs), keep_share)
    progress = Progress.start(7)
    iterate(iterates, progress, 1e-10, 100)
    assert_array_equal(progress.n_iter[:3], 1)
    assert (progress.n_iter[3:] > 5).all()
    # One product for the first residual and one for each iteration.
    expected = [2] * 3 if keep_share else [1 + progress.n_iter.max()] * 3
    assert_array_equal(products.counts[:3], expected)
    assert len(progress.history) == progress.n_iter.max()
    assert_array_equal(progress.history[-1], progress.residual)
    assert (progress.residual <= 1e-10).all()
    assert_allclose(iterates.solution()[:, :, 0], np.linalg.solve(matrix, rhs[:, :, 0]), atol=1e-9)


def test_every_iteration_takes_one_product_and_one_preconditioner():
    matrix = system()
    rhs = easy_and_hard(matrix, 0, 2)
    products, inverse = Matrix(matrix, n_candidates=2), Matrix(np.eye(30), n_candidates=2)
    progress = Progress.start(2)
    iterate(StackIterates(products, inverse, rhs, np.zeros_like(rhs)), progress, 1e-12, 5)
    assert_array_equal(progress.n_iter, 5)
    assert_array_equal(products.counts, 6)
    assert_array_equal(inverse.counts, 5)


def test_what_has_converged_at_the_start_is_left_alone():
    matrix = system()
    rhs = easy_and_hard(matrix, 0, 7)
    start = np.linalg.solve(matrix, rhs[:, :, 0])[:, :, np.newaxis]
    start[:, 1:] = 0.0
    products = Matrix(matrix, n_candidates=7)
    iterates = StackIterates(products, Diagonal(np.ones((1, 1, 1))), rhs, start.copy())
    progress = Progress.start(7)
    iterate(iterates, progress, 1e-8, 100)
    assert progress.n_iter[0] == 0
    assert products.counts[0] == 1
    assert_array_equal(iterates.solution()[:, 0], start[:, 0])


class TestStages:
    def names(self, progress, iterations, **settings):
        """Run through the stages, each of which makes some iterations."""
        found = []
        for name, most in stages(progress, 1e-6, 100, "blocks", **settings):
            found.append((name, most))
            progress.n_iter += min(most, iterations)
        return found

    def test_the_mean_field_comes_first_and_gives_way(self):
        progress = Progress.start(2)
        found = self.names(progress, 40, first="mean", coupling=1.0, patience=30)
        assert found == [("mean", 30), ("blocks", 70), ("blocks", 30)]
        assert progress.preconditioner == "blocks"

    def test_weak_coupling_goes_without(self):
        settings = dict(first="mean", coupling=0.9 * WEAK_COUPLING, patience=30)
        assert self.names(Progress.start(2), 10, **settings) == [
            ("blocks", 100),
            ("blocks", 90),
            ("blocks", 80),
        ]

    def test_convergence_ends_them(self):
        progress = Progress.start(2)
        for _ in stages(progress, 1e-6, 100, "blocks", first="mean", coupling=1, patience=9):
            progress.residual[:] = 1e-7
        assert progress.preconditioner == "mean"
