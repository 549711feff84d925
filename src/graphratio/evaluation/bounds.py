"""How sure: bounds and intervals for divergences from fits that have not seen the data.

For any function f the divergence PE(f) = E_q f - 1/2 E_{p^alpha} f^2 - 1/2 is at most the true
one, with equality for the true ratio. Evaluated on data that f was not fitted on its estimate is
a mean of independent terms, whatever shrinkage did to f. So a lower confidence bound for PE(f)
is one for the true divergence, and an interval for PE(f) is what it says.

Symbols
-------
estimate    mean of PE over the fits on folds, from held-out observations
error       its standard error: spread of the terms, plus the variance from refitting
skewness    of the estimate
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats

from graphratio._utils.exceptions import listing
from graphratio._utils.parameters import as_generator, check_flag, check_integer, check_real
from graphratio._utils.typing import BoolArray, FloatArray, Label, RandomState
from graphratio.data import frames
from graphratio.data.alignment import align, as_graph
from graphratio.data.graph import Graph
from graphratio.evaluation.node_means import NodeMeans, loss_terms
from graphratio.evaluation.notebook_tables import bounds_html
from graphratio.evaluation.recipe import Recipe, in_scale_of
from graphratio.evaluation.refit_noise import NoiseCollector, RefitNoise
from graphratio.selection.nested import HeldOut

# Share of the correction for skewness that is made at the upper end. The skewness is estimated:
# with all of it intervals at nodes with heavy tails cover less than they say, with none more.
UPPER_SHARE = 0.5

# What degrees of freedom are divided by at the lower end of intervals for all nodes at once, with
# as many left at least.
FAR_OUT = 3


@dataclass(frozen=True, eq=False, repr=False)
class DivergenceBounds:
    """Bounds and intervals for the divergence of every node.

    Attributes
    ----------
    nodes : tuple of labels
    true_divergence_lower_bound : ndarray of shape (n_nodes,)
        One-sided: the *true* Pearson divergence of the node is at least this, with the given
        confidence. It can be negative, which says nothing, since no divergence is. NaN at nodes
        with fewer than two observations in a sample.
    fitted_divergence : ndarray of shape (n_nodes,)
        The divergence that the fitted ratio attains on data it has not seen, averaged over the
        fits on folds. At most the true divergence, up to noise, and below it by as much as the
        fit falls short.
    fitted_divergence_interval : ndarray of shape (n_nodes, 2)
        Two-sided interval for the *divergence of the fitted ratio*, averaged over the fits on
        folds; not for the true divergence, which shrinkage keeps it below.
    confidence : float
    simultaneous : bool
        Whether the confidence is for all nodes at once.

    Examples
    --------
    >>> import graphratio as gr
    >>> scenario = gr.datasets.make_scenario("Ia", n_nodes=8, n=100, random_state=0)
    >>> model = gr.GRULSIF(prior_ratio=1, bandwidth=1.0, graph_penalty=0.01, node_penalty=0.1)
    >>> bounds = gr.divergence_bounds(model, scenario.samples, scenario.graph, random_state=0)
    >>> bool((bounds.true_divergence_lower_bound < bounds.fitted_divergence).all())
    True
    """

    nodes: tuple[Label, ...]
    true_divergence_lower_bound: FloatArray
    fitted_divergence: FloatArray
    fitted_divergence_interval: FloatArray
    confidence: float
    simultaneous: bool
    backend: frames.Backend = "pandas"

    @property
    def changed(self) -> BoolArray:
        """True where the true divergence is above 0 with the given confidence."""
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
            },
            self.backend,
        )

    @property
    def outcome(self) -> str:
        """How many nodes have a true divergence above 0, and which."""
        above = [self.nodes[i] for i in np.flatnonzero(self.changed)]
        judged = int(np.isfinite(self.true_divergence_lower_bound).sum())
        found = f"{len(above)} of {judged} nodes have a true divergence above 0"
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

    def __repr__(self) -> str:
        scope = "all nodes at once" if self.simultaneous else "each node by itself"
        head = f"DivergenceBounds, {self.confidence:.0%} confidence for {scope}"
        return f"{head}\n  {self.outcome}"

    def _repr_html_(self) -> str:
        """What notebooks show."""
        return bounds_html(self)


def divergence_bounds(
    model: Any,
    samples: Any,
    graph: Graph | None = None,
    *,
    confidence: float = 0.9,
    simultaneous: bool = False,
    n_folds: int = 5,
    n_repeats: int = 1,
    random_state: RandomState = None,
    progress: bool = False,
) -> DivergenceBounds:
    """Lower bounds for true divergences, and intervals for those of the fitted ratios.

    The model is fitted again on folds, with its hyperparameters chosen inside the training
    folds where they are not fixed, and evaluated on the observations left out. Observations of
    a node are assumed independent of each other.

    Parameters
    ----------
    model : GRULSIF or Pool
        Fitted or not; its parameters say how to fit, and a fitted one gives its dictionary.
    samples : NodeSamples or (reference, target)
    graph : Graph, optional
        Default: that of the fitted model, or no edges.
    confidence : float in (0, 1), default 0.9
    simultaneous : bool, default False
        Make it hold for all nodes at once (Bonferroni).
    n_folds : int, default 5
        The data are split into so many folds, 3 at the least.
    n_repeats : int, default 1
        And so many times.
    random_state : int, numpy Generator, RandomState or None
    progress : bool

    Returns
    -------
    DivergenceBounds

    Examples
    --------
    >>> import graphratio as gr
    >>> scenario = gr.datasets.make_scenario("Ia", n_nodes=8, n=100, random_state=0)
    >>> model = gr.GRULSIF(prior_ratio=1, bandwidth=1.0, graph_penalty=0.01, node_penalty=0.1)
    >>> bounds = gr.divergence_bounds(model, scenario.samples, scenario.graph, random_state=0)
    >>> bounds.changed[[2, 7]]
    array([False,  True])
    """
    confidence = check_real(confidence, "confidence", low=0, high=1)
    check_flag(simultaneous, "simultaneous")
    rng = as_generator(random_state)
    read = in_scale_of(model, samples)
    graph = as_graph(getattr(model, "graph_", None) if graph is None else graph, read)
    recipe = Recipe.of(model, align(read, graph), rng)
    n_folds = check_integer(n_folds, "n_folds", low=3)
    n_repeats = check_integer(n_repeats, "n_repeats", low=1)
    found, noise = fits_with_noise(recipe, graph, n_folds, n_repeats, rng, progress=progress)
    return bounds_from(recipe, found, noise, confidence, simultaneous=simultaneous)


def fits_with_noise(
    recipe: Recipe,
    graph: Graph,
    n_folds: int,
    n_repeats: int,
    random_state: np.random.Generator,
    *,
    progress: bool = False,
) -> tuple[HeldOut, RefitNoise | None]:
    """Fit on folds; ratios at observations left out, and the variance that refitting adds."""
    contender = recipe.coupled(graph)
    look = NoiseCollector(contender.fit.graph, float(recipe.template.alpha))
    found = recipe.run(
        {"fit": contender}, n_folds, n_repeats, random_state, look=look, progress=progress
    )
    return found["fit"], None if look.total is None else look.total.averaged(n_repeats)


def bounds_from(
    recipe: Recipe,
    found: HeldOut,
    noise: RefitNoise | None,
    confidence: float,
    *,
    simultaneous: bool,
) -> DivergenceBounds:
    """Bounds and intervals from ratios at observations left out."""
    data = recipe.samples
    alpha = float(recipe.template.alpha)
    means = NodeMeans.of(-loss_terms(found.ratios, data.is_target, alpha), data.sizes)
    shown = means.error**2
    estimate = means.mean - 0.5
    error = means.error if noise is None else np.sqrt(shown + noise.variance)
    lighter = 0.0 if noise is None else noise.lighter_tails(shown)
    tests = max(int(np.isfinite(estimate).sum()), 1) if simultaneous else 1
    one_sided = (1 - confidence) / tests
    skewness = np.divide(means.third, error**3, out=np.zeros_like(error), where=error > 0)
    lower = estimate - _lower_quantile(means.freedom, skewness, one_sided) * error
    below = _lower_quantile(means.freedom, skewness, one_sided / 2) - lighter
    above = _upper_quantile(means.freedom, skewness, one_sided / 2) - lighter
    if simultaneous:
        # What shortens an interval was measured for single nodes, not this far out, where the
        # lower tail is heavier than Student's.
        heavier = np.maximum(means.freedom / FAR_OUT, np.minimum(means.freedom, FAR_OUT))
        below = _lower_quantile(heavier, skewness, one_sided / 2)
        above = np.asarray(stats.t.ppf(1 - one_sided / 2, means.freedom))
    low, high = (estimate + side * error for side in (-np.maximum(below, 0), np.maximum(above, 0)))
    # No function has a larger divergence than that of the largest ratio, 1 / alpha.
    most = 0.5 * (1 / alpha - 1) if alpha > 0 else np.inf
    high = np.maximum(np.minimum(high, most), low)
    return DivergenceBounds(
        nodes=data.nodes,
        true_divergence_lower_bound=lower,
        fitted_divergence=estimate,
        fitted_divergence_interval=np.column_stack([low, high]),
        confidence=confidence,
        simultaneous=simultaneous,
        backend=data.backend,
    )


def _lower_quantile(freedom: FloatArray, skewness: FloatArray, tail: float) -> FloatArray:
    """Errors from the estimate down to the lower end, for a mean with skewness.

    Never below the plain quantile: skewness to the other side is not made use of.
    """
    plain = np.asarray(stats.t.ppf(1 - tail, freedom))
    return np.asarray(np.maximum(plain, _hall_inverse(plain, skewness)))


def _upper_quantile(freedom: FloatArray, skewness: FloatArray, tail: float) -> FloatArray:
    """Errors from the estimate up to the upper end.

    A sample that has the few large terms has a low mean and a large spread, so the plain
    quantile reaches too far up. Of what the transform takes off a part is taken.
    """
    plain = np.asarray(stats.t.ppf(1 - tail, freedom))
    less = np.minimum(plain, -_hall_inverse(-plain, skewness))
    return np.asarray(plain - UPPER_SHARE * (plain - less))


def _hall_inverse(quantile: FloatArray, skewness: FloatArray) -> FloatArray:
    """Quantile of a Student statistic of a mean with skewness, after Hall's transform.

    g(t) = t + a t^2 / 3 + a^2 t^3 / 27 + a / 6 is nearly symmetric for skewness a; its inverse
    at a quantile of Student's law is returned. Where few large terms decide, a sample that
    happens to lack them has both too large a mean and too small a spread, and this corrects
    for it.
    """
    # Towards a large negative skewness the transform loses its inverse.
    a = np.clip(skewness, -1.0, -1e-8)
    return np.asarray(3.0 / a * (np.cbrt(1.0 + a * (quantile - a / 6.0)) - 1.0))
