"""Confidence intervals for the expected ratio estimate of a node at given points.

To first order the estimate of a quadratic fit differs from its expectation by a mean of
independent terms, one for each observation of every node it borrows from. Their variance is that
of the estimate (the sandwich form). Any other estimator is fitted again without each of ten
groups of observations (the jackknife). Both leave out the bias from shrinkage: the interval
covers the expectation of the estimate, not the true ratio.

Symbols
-------
S           system matrix of the fit
psi(x)      features of the point x
w           solution of S w = e_v psi(x): how the estimate reacts to the moments of every node
s_i         score of observation i: psi (1 - alpha f) / n' for a target, (alpha - 1) f psi / n
            for a reference observation
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats
from sklearn.base import clone

from graphratio._utils.errors import InputError
from graphratio._utils.html import facts_table, rows_table, titled
from graphratio._utils.jobs import across_jobs
from graphratio._utils.parameters import as_generator, check_flag, check_real
from graphratio._utils.typing import FloatArray, Label, RandomState
from graphratio.data import frames
from graphratio.data.graph import Graph
from graphratio.data.samples import NodeSamples
from graphratio.estimators import GraphRatio
from graphratio.estimators.base import NodeRatioEstimator
from graphratio.estimators.contract import check_estimator, data_of_fit, graph_of_fit
from graphratio.estimators.new_points import read_points, scaled_points
from graphratio.evaluation.pieces import Answered, IndependentPieces
from graphratio.evaluation.refits import refit
from graphratio.moments.folds import divide
from graphratio.moments.node_moments import node_moments, segment_indicator
from graphratio.moments.objective import GraphObjective
from graphratio.solvers.bases import basis_of
from graphratio.solvers.path import solve_many

INTERVAL_TOLERANCE = 1e-5
INTERVAL_ITERATIONS = 1000
# Observations processed at once.
TERM_ROWS = 1024
# Draws of the largest deviation over the points.
SIMULATIONS = 4000
# Groups of observations of the jackknife.
GROUPS = 10
# Rows of the table for notebooks.
_SHOWN = 8


@dataclass(frozen=True, eq=False, repr=False)
class ExpectedRatioInterval(Answered):
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
    level : float
        Chance that an interval fails.
    simultaneous : bool
        Whether the level holds for all points at once.
    answerable : bool
        Whether the node has enough independent blocks for a standard error, at least four in each
        sample. If not, the intervals are NaN.
    n_pieces : ndarray of shape (1, 2)
        Independent blocks, or observations, of both samples of the node.

    Examples
    --------
    >>> import graphratio as gr
    >>> scenario = gr.datasets.make_scenario("Ia", n_nodes=8, n=100, random_state=0)
    >>> model = gr.GRULSIF(prior_ratio=1, bandwidth=1.0, graph_penalty=0.08, ridge=0.008)
    >>> band = gr.expected_ratio_interval(
    ...     scenario.samples, scenario.graph, model, x=[0.0, 2.0], node=7)
    >>> bool((band.expected_ratio_low < band.ratio).all()), band.level
    (True, 0.1)
    """

    node: Label
    points: FloatArray
    ratio: FloatArray
    expected_ratio_low: FloatArray
    expected_ratio_high: FloatArray
    standard_error: FloatArray
    level: float
    simultaneous: bool
    feature_names: tuple[str, ...]
    pieces: IndependentPieces
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
    def _confidence(self) -> str:
        scope = "all points at once" if self.simultaneous else "each point by itself"
        return f"{1 - self.level:.0%} confidence for {scope}"

    @property
    def outcome(self) -> str:
        """How wide the intervals are, or why the data cannot say it."""
        if not self.answerable:
            return self.pieces.cannot_say("how uncertain the ratio is")
        wide = float(np.median(self.expected_ratio_high - self.expected_ratio_low)) / 2
        span = f"ratios {self.ratio.min():.3g} to {self.ratio.max():.3g}"
        return f"{len(self.points)} points, {span}, typically ± {wide:.2g}"

    def __repr__(self) -> str:
        return f"ExpectedRatioInterval at node {self.node!r}, {self._confidence}\n  {self.outcome}"

    def _repr_html_(self) -> str:
        """Table for notebooks: some of the points."""
        facts = [
            ("outcome", self.outcome),
            ("covers", "the expectation of the estimated ratio, not the true ratio"),
            ("confidence", self._confidence),
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


@across_jobs
def expected_ratio_interval(
    samples: Any,
    graph: Graph | None = None,
    estimator: Any = None,
    *,
    x: Any,
    node: Label,
    level: float = 0.1,
    simultaneous: bool = False,
    n_jobs: int | None = None,
    random_state: RandomState = None,
) -> ExpectedRatioInterval:
    """Intervals for the expectation of the estimated ratio of a node at points, say along a line.

    The expectation is over repetitions of the data, with fixed hyperparameters and dictionary.
    Shrinkage moves it away from the true ratio: with strong penalties the interval is narrow and
    misses the truth. For a statement about the truth use `divergence_bounds`.

    Parameters
    ----------
    samples : NodeSamples or (reference, target)
        Those that a fitted estimator was fitted on.
    graph : Graph, optional
        A fitted estimator has its own; another one is refused.
    estimator : estimator, optional
        Any estimator of the library; it is fitted first if needed; default `GraphRatio()`. GRULSIF
        (not adaptive) and Pool have exact standard errors. All others are fitted again without
        each of ten groups of observations (jackknife); RULSIF, ULSIF and KLIEP then choose their
        hyperparameters again, which widens the intervals. Samples should have at least about 20
        observations.
    x : array of shape (n_points, n_features), or 1-D for one feature
    node : label
    level : float in (0, 1), default 0.1
        Chance that an interval fails; the confidence is 1 - level.
    simultaneous : bool, default False
        Make the level hold for all points at once.
    n_jobs : int, optional
        Threads, as in scikit-learn: None stands for 1, -1 for all cores. The result is the same.
    random_state : int, numpy Generator, RandomState or None
        For the default estimator, the groups, and the simulation behind `simultaneous`.

    Returns
    -------
    ExpectedRatioInterval

    Examples
    --------
    >>> import graphratio as gr
    >>> scenario = gr.datasets.make_scenario("Ia", n_nodes=8, n=100, random_state=0)
    >>> model = gr.GRULSIF(prior_ratio=1, bandwidth=1.0, graph_penalty=0.08, ridge=0.008)
    >>> band = gr.expected_ratio_interval(
    ...     scenario.samples, scenario.graph, model, x=[0.0, 2.0], node=7)
    >>> band.to_frame().round(1)
        x0  ratio  expected_ratio_low  expected_ratio_high
    0  0.0    0.5                 0.3                  0.7
    1  2.0    4.1                 3.1                  5.2
    """
    level = check_real(level, "level", low=0, high=1)
    check_flag(simultaneous, "simultaneous")
    rng = as_generator(random_state)
    model: Any = check_estimator(estimator, rng, GraphRatio)
    if not hasattr(model, "coef_"):
        model = clone(model).fit(samples, graph)
    else:
        graph_of_fit(model, graph)
    data = data_of_fit(model, samples)
    points = read_points(model, x)
    if not len(points):
        raise InputError("x has no points", "Pass at least one, say a line through the data")
    scaled = scaled_points(model, points, node)
    position = model.graph_.position(node)
    pieces = IndependentPieces.of(data).at(position)
    variance = Sandwich(model, data) if model._is_quadratic else Jackknife(model, data, rng)
    terms = variance.terms(scaled, position)
    error = np.sqrt(np.einsum("ip,ip->p", terms, terms))
    freedom = variance.freedom(terms)
    quantile = stats.t.ppf(1 - level / 2, freedom)
    if simultaneous:
        joint = _largest(terms, error, level, rng)
        # The quantile of Student's law with the same tail as the joint normal quantile.
        quantile = stats.t.isf(stats.norm.sf(joint), freedom)
    ratio = model.predict(points, node=node, clip=False)
    half = quantile * error if pieces.enough.all() else np.full_like(error, np.nan)
    return ExpectedRatioInterval(
        node=node,
        points=points,
        ratio=ratio,
        expected_ratio_low=ratio - half,
        expected_ratio_high=ratio + half,
        standard_error=error,
        level=level,
        simultaneous=simultaneous,
        feature_names=tuple(str(name) for name in model.feature_names_in_),
        pieces=pieces,
        backend=data.backend,
    )


class Jackknife:
    """Variance of the estimates of a fitted model, from fits without some of its data."""

    def __init__(
        self, model: NodeRatioEstimator, data: NodeSamples, rng: np.random.Generator
    ) -> None:
        self.model, self.data = model, data
        division = divide(data.exchangeable(), GROUPS, rng)
        self.groups, self.n_groups = division.folds, division.n_folds

    def terms(self, points: FloatArray, position: int) -> FloatArray:
        """Scaled differences of the fits without a group, shape (n_groups, n_points).

        The sum of their squares is the variance of the estimate at a point.
        """
        at, count = np.full(len(points), position), self.n_groups
        parts = (self.data.subset(observations=self.groups != group) for group in range(count))
        refits = (refit(self.model, part, self.model.graph_, fixed=True) for part in parts)
        fits = np.array([one.at_nodes(points, at) for one in refits])
        return np.asarray(np.sqrt((count - 1) / count) * (fits - fits.mean(axis=0)))

    def freedom(self, terms: FloatArray) -> FloatArray:
        """The number of groups minus one, at every point."""
        return np.full(terms.shape[1], self.n_groups - 1.0)


class Sandwich:
    """Variance of the estimates of a quadratic fit, from its data in its order and scale."""

    def __init__(self, model: Any, data: NodeSamples) -> None:
        self.features = model.features_
        self.psi = model.features_(data.values)
        self.node = data.node_index
        sizes = data.sizes
        self.pieces = IndependentPieces.of(data)
        self.sizes = self.pieces.counts.ravel()
        self.graph = model._coupling
        self.objective = GraphObjective.of(
            node_moments(self.psi, sizes, model.alpha_, model.prior_ratio_),
            self.graph.laplacian,
            model.graph_penalty_,
            model.ridge_,
        )
        # Observations of nodes that lack a sample do not enter.
        share = np.where(data.complete, 1.0, 0.0)[:, np.newaxis] / np.maximum(sizes, 1)
        factor = share.ravel()[data.segments]
        f, alpha = model._combine(self.psi, data.node_index), model.alpha_
        self.slope = factor * np.where(data.is_target, 1 - alpha * f, (alpha - 1) * f)

    def terms(self, points: FloatArray, position: int) -> FloatArray:
        """Centred contributions of independent pieces to the estimate, (n_pieces, n_points).

        The sum of their squares is the variance at a point. `position` is that of the node.
        """
        weights = self._weights(self.features(points), position)
        terms = np.empty((len(self.psi), len(points)))
        for begin in range(0, len(terms), TERM_ROWS):
            rows = slice(begin, begin + TERM_ROWS)
            terms[rows] = np.einsum("im,ipm->ip", self.psi[rows], weights[self.node[rows]])
        terms *= self.slope[:, np.newaxis]
        if self.pieces.of_row is not None:
            of_row = self.pieces.of_row
            terms = np.column_stack([np.bincount(of_row, column) for column in terms.T])
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

        Each sample has its number of observations minus one, and at least one.
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
        columns[position] = at
        basis = basis_of(self.graph) if self.graph.n_edges else None
        return solve_many(self.objective, basis, columns, INTERVAL_TOLERANCE, INTERVAL_ITERATIONS)


def _largest(terms: FloatArray, error: FloatArray, level: float, rng: np.random.Generator) -> float:
    """Quantile of the largest standardised deviation over the points, by simulation."""
    scaled = terms / np.where(error > 0, error, 1.0)
    covariance = scaled.T @ scaled
    values, vectors = np.linalg.eigh(covariance)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    deviations = np.abs(root @ rng.standard_normal((len(error), SIMULATIONS)))
    return float(np.quantile(deviations.max(axis=0), 1 - level))
