"""GRULSIF against the same estimate put together from scikit-learn and SciPy.

What somebody writes who knows both libraries and the paper: `rbf_kernel` for the kernels, a
Cholesky factor for the whitening, `KFold` for the folds, moments of all nodes by one `einsum`, and
`scipy.sparse.linalg.cg` with a block-Jacobi preconditioner for every candidate, each started from
the solution of the one before. Dictionary and grid are handed over for free, and the tolerances
are the library's: 1e-3 in the selection, 1e-6 in the end.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy.linalg import solve_triangular
from scipy.sparse.linalg import LinearOperator, cg
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import KFold

import graphratio as gr
from graphratio.datasets import Scenario, make_scenario
from measure import Piece, compare

ALPHA = 0.1
N_FOLDS = 5
RIDGE = 1e-10
CASES = (("Ia", 100), ("IIb", 52))


class ByHand:
    """The estimate of one scenario: `fit`, then `predict(x, node)`.

    Parameters
    ----------
    atoms : ndarray of shape (n_atoms, n_features)
    bandwidths : sequence of candidates
    pairs : sequence of (graph penalty, ridge)
    """

    def __init__(self, atoms, bandwidths, pairs):
        self.atoms = atoms
        self.bandwidths = bandwidths
        self.pairs = pairs

    def fit(self, reference, target, laplacian):
        """Select by cross-validation on arrays (n_nodes, n, n_features), and fit."""
        losses = {}
        folds = [
            list(KFold(N_FOLDS, shuffle=True, random_state=0).split(reference[0])),
            list(KFold(N_FOLDS, shuffle=True, random_state=1).split(target[0])),
        ]
        for bandwidth in self.bandwidths:
            features = self._features(bandwidth)
            sides = features(reference), features(target)
            for fold in range(N_FOLDS):
                (train, test), (train2, test2) = folds[0][fold], folds[1][fold]
                second, first = moments(sides[0][:, train], sides[1][:, train2])
                held_out = moments(sides[0][:, test], sides[1][:, test2])
                theta = None
                for lam, rho in self.pairs:
                    theta = solve(second, first, laplacian, lam, rho, 1e-3, theta)
                    loss = 0.5 * np.einsum("vi,vij,vj->v", theta, held_out[0], theta)
                    loss -= np.einsum("vi,vi->v", theta, held_out[1])
                    key = (bandwidth, lam, rho)
                    losses[key] = losses.get(key, 0.0) + loss.mean()
        self.chosen = min(losses, key=losses.get)
        bandwidth, lam, rho = self.chosen
        self.features = self._features(bandwidth)
        second, first = moments(self.features(reference), self.features(target))
        self.theta = solve(second, first, laplacian, lam, rho, 1e-6, None)
        return self

    def predict(self, x, node):
        """Ratio at points of one node, given by its position."""
        return self.features(x) @ self.theta[node]

    def _features(self, bandwidth):
        gamma = 1 / (2 * bandwidth**2)
        gram = rbf_kernel(self.atoms, gamma=gamma)
        factor = np.linalg.cholesky(gram + RIDGE * len(gram) * np.eye(len(gram)))

        def features(x):
            kernels = rbf_kernel(x.reshape(-1, x.shape[-1]), self.atoms, gamma=gamma)
            whitened = solve_triangular(factor, kernels.T, lower=True).T
            return whitened.reshape(*x.shape[:-1], -1)

        return features


def moments(reference, target):
    """Mixed second moments (n_nodes, m, m) and first moments (n_nodes, m)."""
    second = (1 - ALPHA) * reference.transpose(0, 2, 1) @ reference / reference.shape[1]
    second += ALPHA * target.transpose(0, 2, 1) @ target / target.shape[1]
    return second, target.mean(axis=1)


def solve(second, first, laplacian, lam, rho, tolerance, start):
    """Coefficients of all nodes, shape (n_nodes, m), by preconditioned conjugate gradients."""
    n_nodes, m = first.shape
    size = n_nodes * m

    def apply(vector):
        theta = vector.reshape(n_nodes, m)
        data = (second @ theta[:, :, np.newaxis])[:, :, 0]
        return (data + lam * (laplacian @ theta) + rho * theta).ravel()

    diagonal = lam * laplacian.diagonal() + rho
    blocks = second + diagonal[:, np.newaxis, np.newaxis] * np.eye(m)
    inverses = np.linalg.inv(blocks)

    def precondition(vector):
        return (inverses @ vector.reshape(n_nodes, m, 1)).ravel()

    theta, failed = cg(
        LinearOperator((size, size), apply),
        first.ravel(),
        x0=None if start is None else start.ravel(),
        rtol=tolerance,
        maxiter=5000,
        M=LinearOperator((size, size), precondition),
    )
    if failed:
        raise RuntimeError(f"conjugate gradients: {failed}")
    return theta.reshape(n_nodes, m)


def stacked(scenario: Scenario) -> tuple[np.ndarray, np.ndarray]:
    """Both samples as arrays (n_nodes, n, n_features)."""
    samples = scenario.samples
    return (
        np.stack([samples.reference(node) for node in samples.nodes]),
        np.stack([samples.target(node) for node in samples.nodes]),
    )


def piece(rounds: int = 3) -> Piece:
    found = Piece(
        "The same estimate by hand",
        "Full selection (5 bandwidths, 20 pairs of penalties, 5 folds) and final "
        "fit, n = 50, same dictionary, grid and tolerances.",
    )
    for name, n_nodes in CASES:
        scenario = make_scenario(name, n_nodes=n_nodes, n=50, random_state=1)
        reference, target = stacked(scenario)
        laplacian = scenario.graph.laplacian
        model = gr.GRULSIF(ALPHA, random_state=0).fit(scenario.samples, scenario.graph)
        table = model.cv_results_
        widths = np.unique(table["bandwidth"])
        once = table["bandwidth"] == widths[0]
        pairs = list(zip(table["graph_penalty"][once], table["ridge"][once], strict=True))
        hand = ByHand(model.dictionary_, widths, pairs)

        def ours(scenario=scenario, atoms=model.dictionary_):
            # The eigenvectors of the graph are part of the work.
            scenario.graph.__dict__.pop("spectrum", None)
            gr.GRULSIF(ALPHA, dictionary=atoms, random_state=0).fit(
                scenario.samples, scenario.graph
            )

        timed = compare(
            f"GRULSIF with selection, {name}, {n_nodes} nodes",
            "scikit-learn and SciPy by hand",
            ours,
            lambda: hand.fit(reference, target, laplacian),  # noqa: B023 - run right away
            rounds,
            "mean squared error",
        )
        position = {node: i for i, node in enumerate(scenario.samples.nodes)}
        found.comparisons.append(
            replace(
                timed,
                our_accuracy=error(scenario, model.predict),
                their_accuracy=error(
                    scenario, lambda x, node, hand=hand, at=position: hand.predict(x, at[node])
                ),
            )
        )
    return found


def error(scenario: Scenario, predict) -> float:
    """Mean squared error of the ratio, cut to its range."""
    errors = scenario.mean_squared_error(
        lambda x, node: np.clip(predict(x, node), 0, 1 / ALPHA),
        ALPHA,
        n_points=2000,
        random_state=1,
    )
    return float(errors.mean())
