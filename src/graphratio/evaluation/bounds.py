"""Confidence bounds and intervals for divergences, from fits on folds and held-out data.

For any function f a constant minus its loss, D(f), is at most the true divergence, with equality
for the true ratio (see `moments.losses`). On held-out data its estimate is a mean of independent
terms, however f was shrunk. So a lower confidence bound for D(f) is also one for the true
divergence. An interval for D(f) covers D(f), not the true divergence.

Symbols
-------
estimate    mean of D over the fits on folds, from held-out observations
error       standard error of the estimate: spread of the terms plus variance from refitting
skewness    of the estimate
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy import stats

from graphratio._utils.errors import InputError, listing
from graphratio._utils.html import facts_table, rows_table, titled
from graphratio._utils.jobs import across_jobs
from graphratio._utils.parameters import as_generator, check_flag, check_integer, check_real
from graphratio._utils.progress import ProgressBar
from graphratio._utils.typing import BoolArray, FloatArray, IntArray, Label, RandomState
from graphratio.data import frames
from graphratio.data.alignment import align, as_graph
from graphratio.data.geography import Mappable
from graphratio.data.graph import Graph
from graphratio.data.samples import NodeSamples
from graphratio.estimators import GraphRatio
from graphratio.estimators.base import NodeRatioEstimator
from graphratio.estimators.contract import check_estimator
from graphratio.evaluation.node_means import NodeMeans, loss_terms
from graphratio.evaluation.pieces import Answered, IndependentPieces
from graphratio.evaluation.recipe import SMALLEST_SPLIT, Recipe, in_scale_of, repeated_folds
from graphratio.evaluation.refit_noise import RefitNoise, noise_of_fit
from graphratio.evaluation.refits import fold_ratios, held_out, spread_of_refits
from graphratio.evaluation.skewed_means import lower_quantile, upper_quantile
from graphratio.moments.losses import KL, PEARSON, Loss, get_loss
from graphratio.selection.nested import HeldOut

# At the lower end of intervals for all nodes at once the degrees of freedom are divided by this
# number, and at least this many are kept.
FAR_OUT = 3

# Rows of the table for notebooks.
_SHOWN = 8


@dataclass(frozen=True, eq=False, repr=False)
class DivergenceBounds(Answered, Mappable):
    """Bounds and intervals for the divergence of every node.

    Attributes
    ----------
    nodes : tuple of labels
    true_divergence_lower_bound : ndarray of shape (n_nodes,)
        One-sided: the *true* divergence of the node is at least this, with confidence
        1 - level. A negative bound says nothing, since divergences are not negative. NaN at
        nodes with fewer than two observations in a sample.
    fitted_divergence : ndarray of shape (n_nodes,)
        The divergence of the fitted ratio on held-out data, averaged over the fits on folds. Up
        to noise it is at most the true divergence; the gap is the error of the fit.
    fitted_divergence_interval : ndarray of shape (n_nodes, 2)
        Two-sided interval for the *divergence of the fitted ratio*, averaged over the fits on
        folds. It does not cover the true divergence, which is larger where the fit is shrunk.
    level : float
        Chance that a bound or an interval fails.
    simultaneous : bool
        Whether the level holds for all nodes at once.
    answerable, answerable_nodes : bool, and ndarray of bool of shape (n_nodes,)
        Nodes with enough independent blocks for a standard error, at least four in each sample;
        and whether there is any. Bounds and intervals of the others are NaN.
    n_pieces : ndarray of shape (n_nodes, 2)
        Independent pieces of each sample, blocks or observations, that the answer rests on.
    blocks : Blocks
        Observations that belong together; see `NodeSamples.blocks`.
    divergence_name : str
        "Pearson", or that of the estimator's `loss`.

    Examples
    --------
    >>> import graphratio as gr
    >>> scenario = gr.datasets.make_scenario("Ia", n_nodes=8, n=100, random_state=0)
    >>> model = gr.GRULSIF(prior_ratio=1, bandwidth=1.0, graph_penalty=0.08, ridge=0.008)
    >>> bounds = gr.divergence_bounds(scenario.samples, scenario.graph, model, random_state=0)
    >>> bool((bounds.true_divergence_lower_bound < bounds.fitted_divergence).all())
    True
    """

    nodes: tuple[Label, ...]
    true_divergence_lower_bound: FloatArray
    fitted_divergence: FloatArray
    fitted_divergence_interval: FloatArray
    level: float
    simultaneous: bool
    pieces: IndependentPieces
    backend: frames.Backend = "pandas"
    divergence_name: str = PEARSON.divergence_name

    @property
    def changed(self) -> BoolArray:
        """True where the true divergence is above 0 with confidence 1 - level."""
        return np.asarray(self.true_divergence_lower_bound > 0)

    def to_frame(self) -> Any:
        """One row per node."""
        return frames.make_frame(
            {
                "node": list(self.nodes),
                "true_divergence_lower_bound": self.true_divergence_lower_bound,
                "fitted_divergence": self.fitted_divergence,
                "fitted_divergence_low": self.fitted_divergence_interval[:, 0],
                "fitted_divergence_high": self.fitted_divergence_interval[:, 1],
                "answerable": self.answerable_nodes,
            },
            self.backend,
        )

    @property
    def outcome(self) -> str:
        """How many nodes have a true divergence above 0, and which."""
        if not self.answerable:
            return self.pieces.cannot_say("how large the divergences are")
        above = [self.nodes[i] for i in np.flatnonzero(self.changed)]
        judged = int(np.isfinite(self.true_divergence_lower_bound).sum())
        found = f"{len(above)} of {judged} nodes have a true {self._what} above 0"
        return f"{found}: {listing(above)}" if above else found

    def plot(self, ax: Any = None) -> Any:
        """Bounds of all nodes, sorted, with the fitted divergences; returns the Axes."""
        from graphratio.plotting import plot_bounds

        return plot_bounds(
            self.true_divergence_lower_bound,
            self.fitted_divergence,
            self.fitted_divergence_interval,
            ax=ax,
        )

    @property
    def _what(self) -> str:
        plain = self.divergence_name == PEARSON.divergence_name
        return "divergence" if plain else f"{self.divergence_name} divergence"

    @property
    def _scope(self) -> str:
        return "all nodes at once" if self.simultaneous else "each node by itself"

    def __repr__(self) -> str:
        head = f"DivergenceBounds, {1 - self.level:.0%} confidence for {self._scope}"
        return f"{head}\n  {self.outcome}"

    def _repr_html_(self) -> str:
        """Table for notebooks: the nodes with the highest bounds."""
        lower = self.true_divergence_lower_bound
        facts = [
            ("outcome", self.outcome),
            ("confidence", f"{1 - self.level:.0%}, {self._scope}"),
            ("bound", f"of the true {self.divergence_name} divergence, from below"),
            ("interval", "of the divergence of the fitted ratio, which is at most the true one"),
        ]
        order = np.argsort(-np.nan_to_num(lower, nan=-np.inf), kind="stable")[:_SHOWN]
        body = [
            (
                str(self.nodes[v]),
                f"{lower[v]:.3g}",
                f"{self.fitted_divergence[v]:.3g}",
                "{:.3g} to {:.3g}".format(*self.fitted_divergence_interval[v]),
            )
            for v in order
        ]
        head = ("nodes with the highest bounds", "lower bound", "fitted divergence", "interval")
        return titled("divergence bounds", facts_table(facts), rows_table(head, body))


@dataclass(frozen=True)
class BoundOptions:
    """The parameters of `divergence_bounds` that are about the bounds."""

    level: float
    simultaneous: bool
    n_folds: int
    n_repeats: int
    progress: bool


@across_jobs
def divergence_bounds(
    samples: Any,
    graph: Graph | None = None,
    estimator: Any = None,
    *,
    level: float = 0.1,
    simultaneous: bool = False,
    n_folds: int = 5,
    n_repeats: int = 1,
    n_jobs: int | None = None,
    random_state: RandomState = None,
    progress: bool = False,
) -> DivergenceBounds:
    """Lower bounds for true divergences, and intervals for those of the fitted ratios.

    The estimator is fitted again on folds and evaluated on the held-out observations.
    Hyperparameters that are not fixed are chosen inside the training folds. Folds and standard
    errors respect the blocks of the samples. The bounds assume that the blocks of a node, or the
    observations where there are none, are independent of each other.

    Parameters
    ----------
    samples : NodeSamples or (reference, target)
    graph : Graph, optional
        Default: the graph of a fitted estimator, or no edges.
    estimator : estimator, optional
        Any estimator of the library, fitted or not; default `GraphRatio()`. Its parameters are
        used. A fitted one also gives the scaling, and a `GRULSIF` (not adaptive) or `Pool` with
        loss="pearson" the dictionary. Its `loss`, if it has one, decides which divergence is
        bounded; "kl" needs alpha > 0, because otherwise no mean of held-out ratios is reliable.
        With an engine the fits run on it, and `samples` is None if the engine has a loader.
    level : float in (0, 1), default 0.1
        Chance that a bound fails; the confidence is 1 - level.
    simultaneous : bool, default False
        Make the level hold for all nodes at once (Bonferroni).
    n_folds : int, default 5
        Number of folds, at least 3.
    n_repeats : int, default 1
        How often the data are split.
    n_jobs : int, optional
        Threads, as in scikit-learn: None stands for 1, -1 for all cores. The result is the same.
    random_state : int, numpy Generator, RandomState or None
    progress : bool

    Returns
    -------
    DivergenceBounds

    Examples
    --------
    >>> import graphratio as gr
    >>> scenario = gr.datasets.make_scenario("Ia", n_nodes=8, n=100, random_state=0)
    >>> model = gr.GRULSIF(prior_ratio=1, bandwidth=1.0, graph_penalty=0.08, ridge=0.008)
    >>> bounds = gr.divergence_bounds(scenario.samples, scenario.graph, model, random_state=0)
    >>> bounds.changed[[2, 7]]
    array([False,  True])
    """
    level = check_real(level, "level", low=0, high=1)
    check_flag(simultaneous, "simultaneous")
    rng = as_generator(random_state)
    chosen: Any = check_estimator(estimator, rng, GraphRatio)
    n_folds = check_integer(n_folds, "n_folds", low=SMALLEST_SPLIT)
    n_repeats = check_integer(n_repeats, "n_repeats", low=1)
    if getattr(chosen, "engine", None) is not None:
        # Imported on use: only bounds on an engine need it, and it needs this module.
        from graphratio.evaluation.partitioned_bounds import bounds_on_engine

        options = BoundOptions(level, simultaneous, n_folds, n_repeats, progress)
        return bounds_on_engine(chosen, samples, graph, options, rng)
    alpha = check_real(getattr(chosen, "alpha", 0.0), "alpha", low=0, high=1, include_low=True)
    loss = get_loss(getattr(chosen, "loss", PEARSON.name))
    if loss is KL and alpha == 0:
        raise InputError(
            "a lower bound of the Kullback-Leibler divergence needs alpha > 0: plain ratios have "
            "no upper bound, and a single held-out observation could decide",
            "Pass an estimator with alpha=0.1, or another loss",
        )
    read = in_scale_of(chosen, samples)
    graph = as_graph(getattr(chosen, "graph_", None) if graph is None else graph, read)
    data = align(read, graph)
    folds = repeated_folds(data, n_folds, n_repeats, rng)
    if chosen._is_quadratic:
        recipe = Recipe.of(chosen, data, rng)
        found, noise = fits_with_noise(recipe, graph, folds, progress=progress)
        ratios = found.ratios
    else:
        ratios, noise = _refits_with_noise(
            chosen, data, graph, folds, (loss, alpha), progress=progress
        )
    return bounds_from(data, alpha, ratios, noise, level, simultaneous=simultaneous, loss=loss)


def fits_with_noise(
    recipe: Recipe, graph: Graph, folds: list[IntArray], *, progress: bool = False
) -> tuple[HeldOut, RefitNoise | None]:
    """Fit on folds; return held-out ratios, and the variance that refitting adds."""
    contender = recipe.coupled(graph)
    look = partial(noise_of_fit, graph=contender.fit.graph, alpha=float(recipe.template.alpha))
    found = recipe.run({"fit": contender}, folds, look=look, progress=progress)["fit"]
    return found, sum(found.looks[1:], start=found.looks[0]).averaged(len(folds))


def _refits_with_noise(
    estimator: NodeRatioEstimator,
    data: NodeSamples,
    graph: Graph,
    folds: list[IntArray],
    judged: tuple[Loss, float],
    *,
    progress: bool,
) -> tuple[FloatArray, RefitNoise]:
    """The same for any estimator, which is fitted again for every fold."""
    loss, alpha = judged
    steps = sum(int(one.max()) + 1 for one in folds)
    with ProgressBar(steps, "held-out fits", enabled=progress) as bar:
        tables = [fold_ratios(estimator, data, graph, one, bar=bar) for one in folds]
    return judged_refits(tables, folds, data, alpha, loss)


def judged_refits(
    tables: list[FloatArray],
    folds: list[IntArray],
    data: NodeSamples,
    alpha: float,
    loss: Loss = PEARSON,
) -> tuple[FloatArray, RefitNoise]:
    """Held-out ratios of every repeat, and the variance that refitting adds.

    Each of `tables` has the ratios of all fits of a repeat at all observations.
    """
    limit = 1 / alpha if alpha > 0 else None
    clipped = [np.clip(table, 0.0, limit) for table in tables]
    pairs = list(zip(clipped, folds, strict=True))
    ratios = np.stack([held_out(table, one) for table, one in pairs])
    noise = [spread_of_refits(table, one, data, alpha, loss) for table, one in pairs]
    return ratios, sum(noise[1:], start=noise[0]).averaged(len(folds))


def bounds_from(
    data: NodeSamples,
    alpha: float,
    ratios: FloatArray,
    noise: RefitNoise | None,
    level: float,
    *,
    simultaneous: bool,
    loss: Loss = PEARSON,
    n_tests: int | None = None,
) -> DivergenceBounds:
    """Bounds and intervals from held-out ratios, shape (n_repeats, n_observations).

    `n_tests` nodes count for simultaneous bounds, by default those of the data.
    """
    pieces = IndependentPieces.of(data)
    terms = pieces.terms(-loss_terms(ratios, data.is_target, alpha, loss), data.sizes)
    means = NodeMeans.of(terms, pieces.counts)
    shown = means.error**2
    estimate = means.mean + loss.shift
    error = means.error if noise is None else np.sqrt(shown + noise.variance)
    lighter = 0.0 if noise is None else noise.lighter_tails(shown)
    if n_tests is None:
        n_tests = int(np.isfinite(estimate).sum())
    tests = max(n_tests, 1) if simultaneous else 1
    one_sided = level / tests
    skewness = np.divide(means.third, error**3, out=np.zeros_like(error), where=error > 0)
    lower = estimate - lower_quantile(means.freedom, skewness, one_sided) * error
    below = lower_quantile(means.freedom, skewness, one_sided / 2) - lighter
    above = upper_quantile(means.freedom, skewness, one_sided / 2) - lighter
    if simultaneous:
        # The corrections that shorten an interval were measured for single nodes. This far out
        # the lower tail is heavier than Student's.
        heavier = np.maximum(means.freedom / FAR_OUT, np.minimum(means.freedom, FAR_OUT))
        below = lower_quantile(heavier, skewness, one_sided / 2)
        above = np.asarray(stats.t.ppf(1 - one_sided / 2, means.freedom))
    low, high = (estimate + side * error for side in (-np.maximum(below, 0), np.maximum(above, 0)))
    # No function has a larger divergence than that of the largest ratio, 1 / alpha.
    high = np.maximum(np.minimum(high, loss.ceiling(alpha)), low)
    return DivergenceBounds(
        nodes=data.nodes,
        true_divergence_lower_bound=np.where(pieces.enough, lower, np.nan),
        fitted_divergence=estimate,
        fitted_divergence_interval=np.where(pieces.enough, [low, high], np.nan).T,
        level=level,
        simultaneous=simultaneous,
        pieces=pieces,
        backend=data.backend,
        divergence_name=loss.divergence_name,
    )
