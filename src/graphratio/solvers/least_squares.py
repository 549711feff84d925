"""Least-squares importance fitting of single nodes: closed form and leave-one-out.

Symbols
-------
x, y        features of a reference and of a target row (C,)
n, n'       sizes of the two samples of a node
H           (1 - alpha)/n sum x x' + alpha/n' sum y y'
h           1/n' sum y
gam         ridge: theta minimises 1/2 theta' H theta - h' theta + gam/2 ||theta||^2

Leave-one-out. Pair i consists of reference row i mod n and target row i mod n', for
i = 0 .. max(n, n') - 1: the smaller sample repeats until every row of the larger one was left
out once. Both rows of a pair are left out together, and the means over the remaining rows divide
by n - 1 and n' - 1. The centres stay. With a = (1 - alpha)/(n - 1) and b = alpha/(n' - 1):

    B          = a sum x x' + b sum y y' + gam I             the same for all pairs
    A_i        = B - a x_i x_i' - b y_i y_i'
    h_i        = (sum y - y_i) / (n' - 1)
    theta_i    = A_i^{-1} h_i

The loss of the pair needs only f = theta_i' x_i and theta_i' y_i. With Z = [x_i, y_i],
D = diag(a, b) and G = Z' B^{-1} Z the Woodbury identity gives them as the solution of

    (I - G D) f = Z' B^{-1} h_i,

a 2 x 2 system. To set negative coefficients to zero we need theta_i = B^{-1} (h_i + Z D f) itself.
In the eigenvectors of B everything is a sum weighted by 1/(eigenvalue + gam), so one
decomposition serves all gam.

Folds. Where observations depend on each other, whole folds are left out instead, and every fold
and gam is solved by itself.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from graphratio._utils.typing import FloatArray, IntArray


def _second_moments(phi_ref: FloatArray, phi_tgt: FloatArray, weights: FloatArray) -> FloatArray:
    """weights_0 sum x x' + weights_1 sum y y', shape (k, C, C); weights have shape (k, 2)."""
    total = phi_ref.transpose(0, 2, 1) @ phi_ref
    total *= weights[:, 0, np.newaxis, np.newaxis]
    if weights[:, 1].any():
        total += weights[:, 1, np.newaxis, np.newaxis] * (phi_tgt.transpose(0, 2, 1) @ phi_tgt)
    return np.asarray(total)


def least_squares(
    phi_ref: FloatArray, phi_tgt: FloatArray, sizes: IntArray, alpha: float, ridge: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Closed form theta = (H + gam I)^{-1} h, shape (k, C), and its relative residuals (k,).

    The features have shapes (k, R, C) and (k, T, C), with zeros in padding; `sizes` (k, 2), `ridge`
    (k,).
    """
    system = _second_moments(phi_ref, phi_tgt, np.array([1 - alpha, alpha]) / sizes)
    each = np.arange(system.shape[1])
    system[:, each, each] += ridge[:, np.newaxis]
    mean = phi_tgt.sum(axis=1) / sizes[:, 1:]
    theta = np.linalg.solve(system, mean[:, :, np.newaxis])
    error = (system @ theta)[:, :, 0] - mean
    residual = np.linalg.norm(error, axis=1) / np.linalg.norm(mean, axis=1)
    return theta[:, :, 0], np.asarray(residual)


def left_out_losses(
    phi_ref: FloatArray,
    phi_tgt: FloatArray,
    sizes: IntArray,
    alpha: float,
    ridges: FloatArray,
    *,
    nonnegative: bool = False,
) -> FloatArray:
    """Loss (1 - alpha)/2 f(x)^2 + alpha/2 f(y)^2 - f(y) of left-out pairs, (k, n_pairs, n_ridges).

    Zero after the last pair of a node, and NaN at nodes with a single row in a sample. If
    `nonnegative`, negative coefficients of theta_i are set to zero first.
    """
    longest = sizes.max(axis=1)
    step = np.arange(int(longest.max()))
    pairs = _Pairs(phi_ref, phi_tgt, sizes, alpha, step)
    fx, fy = pairs.ratios(ridges)
    if nonnegative:
        for position, ridge in enumerate(ridges):
            fx[:, :, position], fy[:, :, position] = pairs.clipped_ratios(
                float(ridge), fx[:, :, position], fy[:, :, position]
            )
    losses = (1 - alpha) / 2 * fx**2 + alpha / 2 * fy**2 - fy
    counted = np.asarray(step < longest[:, np.newaxis])[:, :, np.newaxis]
    losses = np.where(counted, losses, 0.0)
    losses[sizes.min(axis=1) <= 1] = np.nan
    return np.asarray(losses)


def fold_losses(
    phi: tuple[FloatArray, FloatArray],
    folds: tuple[IntArray, IntArray],
    held_out: Sequence[Sequence[int]],
    alpha: float,
    ridges: FloatArray,
    *,
    nonnegative: bool = False,
) -> FloatArray:
    """Held-out loss of every node, ridge and set of folds, shape (k, n_ridges, n_sets).

    `phi` are features of the reference and the target rows as in `least_squares`, `folds` their
    folds, shapes (k, R) and (k, T), with -1 in padding. `held_out` lists the folds that are left
    out together. NaN where these or the rest lack a sample.

    Examples
    --------
    >>> phi, folds, ridges = np.ones((1, 2, 1)), np.array([[0, 1]]), np.array([1.0])
    >>> fold_losses((phi, phi), (folds, folds), [[0], [1]], 0.1, ridges).ravel()
    array([-0.375, -0.375])
    """
    losses = np.full((len(phi[0]), ridges.size, len(held_out)), np.nan)
    shrinkage = ridges[:, np.newaxis, np.newaxis] * np.eye(phi[0].shape[2])
    for place, left_out in enumerate(held_out):
        held = [np.isin(part, left_out) for part in folds]
        kept = [(part >= 0) & ~own for part, own in zip(folds, held, strict=True)]
        sizes, left = (np.stack([p.sum(axis=1) for p in parts], axis=1) for parts in (held, kept))
        known = np.minimum(sizes, left).min(axis=1) > 0
        x, y = (
            part[known] * rows[known, :, np.newaxis] for part, rows in zip(phi, kept, strict=True)
        )
        weights = np.array([1 - alpha, alpha]) / left[known]
        system = _second_moments(x, y, weights)[:, np.newaxis] + shrinkage
        mean = (y.sum(axis=1) / left[known, 1:])[:, np.newaxis, :, np.newaxis]
        theta = np.linalg.solve(system, np.broadcast_to(mean, (*system.shape[:3], 1)))[..., 0]
        if nonnegative:
            theta = np.maximum(theta, 0.0)
        f_ref, f_tgt = (theta @ part[known].transpose(0, 2, 1) for part in phi)
        share_ref, share_tgt = (
            rows[known, np.newaxis] / count[known, np.newaxis, np.newaxis]
            for rows, count in zip(held, sizes.T, strict=True)
        )
        of_ref = ((1 - alpha) / 2 * f_ref**2 * share_ref).sum(axis=2)
        losses[known, :, place] = of_ref + ((alpha / 2 * f_tgt**2 - f_tgt) * share_tgt).sum(axis=2)
    return losses


class _Pairs:
    """All pairs of several nodes in the eigenvectors of B; `step` numbers the pairs."""

    def __init__(
        self,
        phi_ref: FloatArray,
        phi_tgt: FloatArray,
        sizes: IntArray,
        alpha: float,
        step: IntArray,
    ) -> None:
        left = np.maximum(sizes - 1, 1)
        weights = np.array([1 - alpha, alpha]) / left
        self.a, self.b = weights[:, :1], weights[:, 1:]  # (k, 1)
        self.remaining = left[:, 1:]
        self.first, self.second = step % sizes[:, :1], step % sizes[:, 1:]
        values, self.vectors = np.linalg.eigh(_second_moments(phi_ref, phi_tgt, weights))
        self.values = np.maximum(values, 0.0)
        self.phi_ref, self.phi_tgt = phi_ref, phi_tgt
        self.x, self.y = phi_ref @ self.vectors, phi_tgt @ self.vectors
        self.sum = self.y.sum(axis=1)

    def ratios(self, ridges: FloatArray) -> tuple[FloatArray, FloatArray]:
        """f(x_i) and f(y_i) of the unconstrained theta_i, shape (k, pairs, n_ridges) each."""
        inverse = 1.0 / (self.values[:, :, np.newaxis] + ridges)
        weighted_sum = self.sum[:, :, np.newaxis] * inverse
        a, b = self.a[:, :, np.newaxis], self.b[:, :, np.newaxis]
        remaining = self.remaining[:, :, np.newaxis]
        # Entries of G; xx and yy are computed once per row.
        xx = _rows(np.square(self.x) @ inverse, self.first)
        yy = _rows(np.square(self.y) @ inverse, self.second)
        xy = (_rows(self.x, self.first) * _rows(self.y, self.second)) @ inverse
        # Z' B^{-1} h_i, with h_i = (sum y - y_i) / (n' - 1).
        gx = (_rows(self.x @ weighted_sum, self.first) - xy) / remaining
        gy = (_rows(self.y @ weighted_sum, self.second) - yy) / remaining
        # Cramer's rule on I - G D = [[1 - a xx, -b xy], [-a xy, 1 - b yy]].
        determinant = (1 - a * xx) * (1 - b * yy) - a * b * xy**2
        fx = ((1 - b * yy) * gx + b * xy * gy) / determinant
        fy = (a * xy * gx + (1 - a * xx) * gy) / determinant
        return fx, fy

    def clipped_ratios(
        self, ridge: float, fx: FloatArray, fy: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Values at x_i and y_i (k, pairs) with negative coefficients of theta_i set to zero."""
        # From A_i theta_i = h_i follows theta_i = B^{-1} (h_i + a f(x_i) x_i + b f(y_i) y_i).
        theta = _rows(self.x, self.first) * (self.a * fx)[:, :, np.newaxis]
        share = (self.b * fy - 1 / self.remaining)[:, :, np.newaxis]
        theta += _rows(self.y, self.second) * share
        theta += (self.sum / self.remaining)[:, np.newaxis, :]
        theta *= 1.0 / (self.values[:, np.newaxis, :] + ridge)
        theta = theta @ self.vectors.transpose(0, 2, 1)
        np.maximum(theta, 0.0, out=theta)
        x, y = _rows(self.phi_ref, self.first), _rows(self.phi_tgt, self.second)
        return np.einsum("kpc,kpc->kp", theta, x), np.einsum("kpc,kpc->kp", theta, y)


def _rows(values: FloatArray, index: IntArray) -> FloatArray:
    """Rows of every node by index, shape (k, pairs, ...); no copy if the index is the identity."""
    if values.shape[1] == index.shape[1] and (index == np.arange(index.shape[1])).all():
        return values
    return np.take_along_axis(values, index[:, :, np.newaxis], axis=1)
