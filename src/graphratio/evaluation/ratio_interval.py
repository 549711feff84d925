"""Confidence intervals for the expected ratio estimate of a node at given points.

To first order the estimate differs from its expectation by a mean of independent terms, one for
each observation of every node it borrows from. Their variance is that of the estimate (the
sandwich form). It leaves out the bias from shrinkage: the interval covers the expectation of the
estimate, not the true ratio.

Symbols
-------
S           system matrix of the fit
psi(x)      features of the point x
w           solution of S w = e_v psi(x): how the estimate reacts to the moments of every node
s_i         score of observation i: psi (1 - alpha f) / n' for a target, (alpha - 1) f psi / n
            for a reference observation, divided by the number of nodes
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats

from graphratio._utils.errors import InputError
from graphratio._utils.html import facts_table, rows_table, titled
from graphratio._utils.parameters import as_generator, check_flag, check_real
from graphratio._utils.typing import FloatArray, Label, RandomState
from graphratio.data import frames
from graphratio.data.samples import NodeSamples
from graphratio.data.validation import as_points
from graphratio.estimators import GRULSIF, Pool
from graphratio.moments.node_moments import node_moments, segment_indicator
from graphratio.moments.objective import GraphObjective
from graphratio.solvers import basis_of, solve_many

SOLVE_TOLERANCE = 1e-5
SOLVE_ITERATIONS = 1000
# Observations processed at once.
BLOCK_ROWS = 1024
# Draws of the largest deviation over the points.
SIMULATIONS = 4000
# Rows of the table for notebooks.
_SHOWN = 8


@dataclass(frozen=True, eq=False, repr=False)
class ExpectedRatioInterval:
    """Two-sided intervals for the expectation of an estimated ratio.

    They cover the mean of the estimate over repetitions of the data, at these hyperparameters.
    They do not cover the true ratio where shrinkage keeps the estimate away from it.

    Attributes
    ----------
    node : label
    points : ndarray of shape (n_points, n_features)
        In the units of the samples the model was given.
    ratio : ndarray of shape (n_points,)
        The estimate. Neither it nor the intervals are clipped to [0, 1 / alpha]: shrinkage can
        move the expectation of an estimate out of that range.
    expected_ratio_low, expected_ratio_high : ndarray of shape (n_points,)
    standard_error : ndarray of shape (n_points,)
    confidence : float
    simultaneous : bool
        Whether the confidence is for all points at once.

    Examples
    --------
    >>> import graphratio as gr
    >>> scenario = gr.datasets.make_scenario("Ia", n_nodes=8, n=100, random_state=0)
    >>> model = gr.GRULSIF(prior_ratio=1, bandwidth=1.0, graph_penalty=0.01, node_penalty=0.1)
    >>> model = model.fit(scenario.samples, scenario.graph)
    >>> band = gr.expected_ratio_interval(model, scenario.samples, [0.0, 2.0], node=7)
    >>> bool((band.expected_ratio_low < band.ratio).all()), band.confidence
    (True, 0.9)
    """

    node: Label
    points: FloatArray
    ratio: FloatArray
    expected_ratio_low: FloatArray
    expected_ratio_high: FloatArray
    standard_error: FloatArray
    confidence: float
    simultaneous: bool
    feature_names: tuple[str, ...]
    backend: frames.Backend = "pandas"

    def to_frame(self) -> Any:
        """One row per point."""
        columns: dict[str, Any] = dict(zip(self.feature_names, self.points.T, strict=True))
        columns |= {
            "ratio": self.ratio,
            "expected_ratio_low": self.expected_ratio_low,
            "expected_ratio_high": self.expected_ratio_high,
        }
        return frames.make_frame(columns, self.backend)

    def plot(self, ax: Any = None) -> Any:
        """The ratio along the points with its interval; returns the Axes."""
        from graphratio.plotting import plot_band

        ends = (self.expected_ratio_low, self.expected_ratio_high)
        return plot_band(self.points, self.feature_names, self.ratio, *ends, ax=ax)

    @property
    def _scope(self) -> str:
        return "all points at once" if self.simultaneous else "each point by itself"

    def __repr__(self) -> str:
        wide = float(np.median(self.expected_ratio_high - self.expected_ratio_low)) / 2
        return (
            f"ExpectedRatioInterval at node {self.node!r}, {self.confidence:.0%} confidence for "
            f"{self._scope}\n  {len(self.points)} points, ratios {self.ratio.min():.3g} to "
            f"{self.ratio.max():.3g}, typically ± {wide:.2g}"
        )

    def _repr_html_(self) -> str:
        """Table for notebooks: some of the points."""
        facts = [
            ("covers", "the expectation of the estimated ratio, not the true ratio"),
            ("confidence", f"{self.confidence:.0%}, {self._scope}"),
        ]
        count = len(self.points)
        shown = np.unique(np.linspace(0, count - 1, min(count, _SHOWN)).round().astype(int))
        body = [
            (
                ", ".join(f"{value:.3g}" for value in self.points[i]),
                f"{self.ratio[i]:.3g}",
                f"{self.expected_ratio_low[i]:.3g} to {self.expected_ratio_high[i]:.3g}",
            )
            for i in shown
        ]
        head = (", ".join(self.feature_names), "ratio", "interval")
        title = f"expected ratio at node {self.node}, {count} points"
        return titled(title, facts_table(facts), rows_table(head, body))


def expected_ratio_interval(
    model: Any,
    samples: Any,
    x: Any,
    node: Label,
    *,
    confidence: float = 0.9,
    simultaneous: bool = False,
    random_state: RandomState = None,
) -> ExpectedRatioInterval:
    """Intervals for the expectation of the estimated ratio of a node at points, say along a line.

    The expectation is over repetitions of the data, with fixed hyperparameters and dictionary.
    Shrinkage moves it away from the true ratio: with strong penalties the interval is narrow and
    misses the truth. For a statement about the truth use `divergence_bounds`.

    Parameters
    ----------
    model : fitted GRULSIF or Pool
    samples : NodeSamples or (reference, target)
        The samples that the model was fitted on.
    x : array of shape (n_points, n_features), or 1-D for one feature
    node : label
    confidence : float in (0, 1), default 0.9
    simultaneous : bool, default False
        Make the confidence hold for all points at once.
    random_state : int, numpy Generator, RandomState or None
        For the simulation behind `simultaneous`.

    Returns
    -------
    ExpectedRatioInterval

    Examples
    --------
    >>> import graphratio as gr
    >>> scenario = gr.datasets.make_scenario("Ia", n_nodes=8, n=100, random_state=0)
    >>> model = gr.GRULSIF(prior_ratio=1, bandwidth=1.0, graph_penalty=0.01, node_penalty=0.1)
    >>> model = model.fit(scenario.samples, scenario.graph)
    >>> band = gr.expected_ratio_interval(model, scenario.samples, [0.0, 2.0], node=7)
    >>> band.to_frame().round(1)
        x0  ratio  expected_ratio_low  expected_ratio_high
    0  0.0    0.5                 0.3                  0.7
    1  2.0    4.1                 3.1                  5.2
    """
    if not isinstance(model, GRULSIF | Pool) or not hasattr(model, "coef_"):
        raise InputError(
            f"{type(model).__name__} has no interval for its ratios",
            "Pass a fitted GRULSIF or Pool",
        )
    confidence = check_real(confidence, "confidence", low=0, high=1)
    check_flag(simultaneous, "simultaneous")
    data = model._align(samples)
    _check_same_sizes(model, data)
    points = as_points(model._in_fitted_order(x), model.n_features_in_)
    if not len(points):
        raise InputError("x has no points", "Pass at least one, say a line through the data")
    scaled = points if model.scaling_ is None else model.scaling_.apply(points)
    sandwich = Sandwich(model, data)
    terms = sandwich.terms(model.features_(scaled), model.graph_.position(node))
    error = np.sqrt(np.einsum("ip,ip->p", terms, terms))
    freedom = sandwich.freedom(terms)
    quantile = stats.t.ppf(0.5 + confidence / 2, freedom)
    if simultaneous:
        rng = as_generator(random_state)
        joint = _largest(terms, error, confidence, rng)
        # The quantile of Student's law with the same tail as the joint normal quantile.
        quantile = stats.t.isf(stats.norm.sf(joint), freedom)
    ratio = model.predict(points, node=node, clip=False)
    low, high = ratio - quantile * error, ratio + quantile * error
    return ExpectedRatioInterval(
        node=node,
        points=points,
        ratio=ratio,
        expected_ratio_low=low,
        expected_ratio_high=high,
        standard_error=error,
        confidence=confidence,
        simultaneous=simultaneous,
        feature_names=tuple(str(name) for name in model.feature_names_in_),
        backend=data.backend,
    )


def _check_same_sizes(model: GRULSIF | Pool, data: NodeSamples) -> None:
    sizes = data.sizes
    other = np.flatnonzero((sizes != model.sizes_).any(axis=1))
    if other.size:
        v = int(other[0])
        was, now = (" + ".join(map(str, row)) for row in (model.sizes_[v], sizes[v]))
        raise InputError(
            f"the model was fitted on {was} observations of node {data.nodes[v]!r}, and the "
            f"samples have {now}",
            "Pass the samples that the model was fitted on",
        )


class Sandwich:
    """Variance of the estimates of a fitted model, from its data in its order and scale."""

    def __init__(self, model: GRULSIF | Pool, data: NodeSamples) -> None:
        self.psi = model.features_(data.values)
        self.node = data.node_index
        sizes = data.sizes
        self.sizes = sizes.ravel()
        self.graph = model._coupling
        self.objective = GraphObjective.of(
            node_moments(self.psi, sizes, model.alpha_, model.prior_ratio_),
            self.graph.laplacian,
            model.graph_penalty_,
            model.node_penalty_,
        )
        # Observations of nodes that lack a sample do not enter.
        share = np.where(data.complete, 1.0, 0.0)[:, np.newaxis] / np.maximum(sizes, 1)
        factor = (share / len(sizes)).ravel()[data.segments]
        f, alpha = model._combine(self.psi, data.node_index), model.alpha_
        self.slope = factor * np.where(data.is_target, 1 - alpha * f, (alpha - 1) * f)

    def terms(self, at: FloatArray, position: int) -> FloatArray:
        """Centred contributions of the observations to the estimate, (n_observations, n_points).

        The sum of their squares is the variance of the estimate at a point. `at` holds the
        features of the points, `position` is that of the node.
        """
        weights = self._weights(at, position)
        terms = np.empty((len(self.psi), len(at)))
        for begin in range(0, len(terms), BLOCK_ROWS):
            rows = slice(begin, begin + BLOCK_ROWS)
            terms[rows] = np.einsum("im,ipm->ip", self.psi[rows], weights[self.node[rows]])
        terms *= self.slope[:, np.newaxis]
        count = np.maximum(self.sizes, 1)
        means = (segment_indicator(self.sizes, terms.dtype) @ terms) / count[:, np.newaxis]
        # A single observation has no spread: its term is not centred.
        means[self.sizes == 1] = 0.0
        terms -= np.repeat(means, self.sizes, axis=0)
        # Divide by n - 1 instead of n in the variance of each sample.
        correction = np.repeat(count / np.maximum(count - 1, 1), self.sizes)
        terms *= np.sqrt(correction)[:, np.newaxis]
        return terms

    def freedom(self, terms: FloatArray) -> FloatArray:
        """Degrees of freedom of the variance at every point, after Satterthwaite.

        Each sample has one less than it has observations, and at least one.
        """
        parts = segment_indicator(self.sizes, terms.dtype) @ terms**2
        left = np.maximum(self.sizes - 1, 1)[:, np.newaxis]
        doubt = (parts**2 / left).sum(axis=0)
        total = parts.sum(axis=0) ** 2
        return np.asarray(np.divide(total, doubt, out=np.full_like(total, 1e6), where=doubt > 0))

    def _weights(self, at: FloatArray, position: int) -> FloatArray:
        """Solve for w at all points, shape (n_nodes, n_points, m)."""
        n_nodes, _, m = self.objective.shape
        columns = np.zeros((n_nodes, len(at), m))
        # The solver works on the system times the number of nodes.
        columns[position] = n_nodes * at
        basis = basis_of(self.graph) if self.graph.n_edges else None
        return solve_many(self.objective, basis, columns, SOLVE_TOLERANCE, SOLVE_ITERATIONS)


def _largest(
    terms: FloatArray, error: FloatArray, confidence: float, rng: np.random.Generator
) -> float:
    """Quantile of the largest standardised deviation over the points, by simulation."""
    scaled = terms / np.where(error > 0, error, 1.0)
    covariance = scaled.T @ scaled
    values, vectors = np.linalg.eigh(covariance)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    deviations = np.abs(root @ rng.standard_normal((len(error), SIMULATIONS)))
    return float(np.quantile(deviations.max(axis=0), confidence))
