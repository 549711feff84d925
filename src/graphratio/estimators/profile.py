"""ProfileGRULSIF: a few kinds of change, shared by all nodes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from graphratio._utils.errors import InputError, Words
from graphratio._utils.parameters import as_generator, check_flag, check_integer
from graphratio._utils.progress import ProgressBar
from graphratio._utils.threads import suitable_threads
from graphratio._utils.typing import FloatArray, RandomState
from graphratio.data.graph import Graph
from graphratio.data.samples import NodeSamples
from graphratio.data.validation import as_points
from graphratio.estimators.base import all_or_nothing
from graphratio.estimators.dictionary_based import NystromEstimator
from graphratio.estimators.learned_graph import LearnedGraphMixin
from graphratio.estimators.notes import data_notes
from graphratio.moments.node_moments import Moments, node_moments
from graphratio.moments.objective import GraphObjective
from graphratio.selection.fold_fits import Coupling
from graphratio.selection.full_rank import FullRank, as_penalties
from graphratio.selection.grids import positive_candidates
from graphratio.selection.held_out_data import MOST_PROFILES, HeldOutData
from graphratio.selection.kinds import named
from graphratio.selection.profile_search import USUAL_POINTS, ProfileSelection, ProfileSettings
from graphratio.selection.search import Axis, decades, listed, moderate
from graphratio.solvers import Solution, solve
from graphratio.solvers.alternating import (
    RESIDUAL,
    ProfileProblem,
    Profiles,
    coordinate_residual,
    first_profiles,
    objective_value,
    rounds,
)
from graphratio.solvers.learned_edges import Edges, with_weights
from graphratio.solvers.rotation import principal, readable


class ProfileGRULSIF(LearnedGraphMixin, NystromEstimator):
    """Likelihood-ratios of all nodes, made up of a few profiles that all nodes share.

    Most networks show only a few kinds of change. So the model of the relative
    ratio = target / reference of node v is::

        f_v = 1 + sum_k c_vk g_k

    with few profiles g_k common to all nodes, and coordinates c_v that are similar at
    neighbours. Profiles and coordinates minimise together::

        sum_v loss_v(f_v) + graph_penalty * sum_uv W_uv phi(|f_u - f_v|)
                          + node_penalty / 2 * sum_v ||f_v - 1||^2

    with the loss of `GRULSIF`, weights divided by the mean degree, |.| the root mean square over
    the data, ||.|| the norm of the kernel space, and phi(t) = t^2 / 2, or, with
    `adaptive=True`, a concave function of t^2 that lets edges between different behaviours
    break. Every step of the fit (coordinates, edge weights, profiles) lowers this objective.

    Parameters
    ----------
    alpha : float in [0, 1), default 0.1
        How much of the target is mixed into the reference; ratios are bounded by 1 / alpha.
    n_profiles : int, sequence of int, or None
        None chooses up to 12 on held-out data, or 0. With 0 nodes share no profiles: every node
        has its own ratio as in `GRULSIF`, the edges stay as given, and graph and node penalties
        are searched independently.
    graph_penalty : float, sequence of float, or None
        Weight of all neighbours of a node together, relative to its own data; 0 switches the
        graph off. It equals lambda * N * mean degree of `GRULSIF`, with differences measured
        over the data.
    node_penalty : float, sequence of float, or None
        The ridge, lambda * gamma * N of `GRULSIF`.
    adaptive : bool, default False
        Learn the weights of the edges.
    n_rounds : int or None
        How often profiles and edge weights are refitted; None chooses.
    kernel, bandwidth, dictionary, node_coherence, graph_coherence, max_atoms, cv, tol, max_iter :
        As in `GRULSIF`. Parameters that are None are searched without bounds on the grid.
    prior_ratio : float, default 1
        Ratios are shrunk towards this constant.
    random_state : int, numpy Generator, RandomState or None
    progress : bool, default False

    Attributes
    ----------
    profiles_ : ndarray of shape (n_components_, n_profiles_)
        Coefficients of the profiles; `profile_values` evaluates them. Their mean square over
        the data is 1 and they are uncorrelated, so that half the squared length of a node's
        coordinates is about its divergence.
    coordinates_ : ndarray of shape (n_nodes, n_profiles_)
        Rotated so that nodes use few profiles each; most used profile first.
    kinds_ : ndarray of str, shape (n_nodes,)
        Kind of change of every node: "unchanged", "kind 1", "kind 2", ... by size, and "other"
        for nodes that clearly changed, but like none of the kinds.
    n_profiles_, n_rounds_ : int
    shared_ : bool
        Whether nodes share the profiles; otherwise every node has its own ratio, and the
        profiles only describe them.
    graph_learned_ : Graph
        With the learned weights; the given graph if not adaptive.
    coef_, divergence_, dictionary_, bandwidth_, graph_penalty_, node_penalty_, cv_results_ :
        As in `GRULSIF`; `cv_results_` also has the columns n_profiles and n_rounds. With 0
        profiles every node has its own ratio.
    solution_, nodes_, notes_, n_atoms_, n_components_, n_features_in_, graph_ :
        As in `GRULSIF`; the history of the solution holds the objective after every round.

    Examples
    --------
    >>> import graphratio as gr
    >>> scenario = gr.datasets.make_scenario("Ia", n_nodes=60, random_state=1)
    >>> model = gr.ProfileGRULSIF(adaptive=True, random_state=0)
    >>> model = model.fit(scenario.samples, scenario.graph)
    >>> model.n_profiles_  # a cluster changes its shape, another its mean
    2
    >>> sorted(set(model.kinds_.tolist()))
    ['kind 1', 'kind 2', 'unchanged']
    """

    profiles_: FloatArray
    coordinates_: FloatArray
    kinds_: np.ndarray
    n_profiles_: int
    shared_: bool

    _fitted_names = (
        *NystromEstimator._fitted_names,
        "profiles_",
        "coordinates_",
        "kinds_",
        "n_profiles_",
        "shared_",
        "n_rounds_",
        "graph_learned_",
    )

    def __init__(
        self,
        alpha: float = 0.1,
        *,
        n_profiles: int | Sequence[int] | None = None,
        kernel: str = "gaussian",
        bandwidth: float | Sequence[float] | None = None,
        graph_penalty: float | Sequence[float] | None = None,
        node_penalty: float | Sequence[float] | None = None,
        adaptive: bool = False,
        n_rounds: int | None = None,
        dictionary: Any = "coherence",
        node_coherence: float = 0.1,
        graph_coherence: float = 0.99,
        max_atoms: int | None = None,
        prior_ratio: float = 1.0,
        cv: int = 5,
        tol: float = 1e-6,
        max_iter: int = 1000,
        random_state: RandomState = None,
        progress: bool = False,
    ) -> None:
        self.alpha = alpha
        self.n_profiles = n_profiles
        self.kernel = kernel
        self.bandwidth = bandwidth
        self.graph_penalty = graph_penalty
        self.node_penalty = node_penalty
        self.adaptive = adaptive
        self.n_rounds = n_rounds
        self.dictionary = dictionary
        self.node_coherence = node_coherence
        self.graph_coherence = graph_coherence
        self.max_atoms = max_atoms
        self.prior_ratio = prior_ratio
        self.cv = cv
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state
        self.progress = progress

    @all_or_nothing
    def fit(self, samples: Any, graph: Graph | None = None) -> Self:
        """Estimate the profiles and where they occur.

        Parameters
        ----------
        samples : NodeSamples, or a tuple (reference, target)
        graph : Graph
            Aligned with the samples by label. None means no edges.
        """
        aligned = self._prepare(samples, graph, borrow=True)
        if self.n_rounds is not None:
            check_integer(self.n_rounds, "n_rounds", low=0)
        check_integer(self.max_iter, "max_iter", low=1)
        check_flag(self.adaptive, "adaptive")
        rng = as_generator(self.random_state)
        widths = self._build_dictionary(aligned, rng)
        axes = self._axes(widths)
        with suitable_threads(aligned.n_observations, self.n_atoms_):
            coupling = Coupling(self._graph_used)
            data = HeldOutData(self._split(aligned, self.graph_, rng), Edges.of(self.graph_))
            with ProgressBar(USUAL_POINTS, "model selection", enabled=self.progress) as bar:
                selection = ProfileSelection(
                    data, axes, self.n_rounds, adaptive=bool(self.adaptive), bar=bar
                )
                settings, full_rank = self._choose(selection, axes, coupling)
                bar.advance(bar.total - bar.done)
            psi, moments = self._fit_at(aligned, settings, full_rank)
            n_kinds, gains = selection.kinds(settings, full_rank, coupling)
            self.kinds_ = named(self.coordinates_, n_kinds, gains)
            return self._keep(aligned, psi, moments)

    def profile_values(self, x: Any) -> FloatArray:
        """Values of the profiles at given points, shape (n_points, n_profiles_).

        Examples
        --------
        >>> import graphratio as gr
        >>> model = gr.ProfileGRULSIF(n_profiles=1, random_state=0)
        >>> model = model.fit(([[0.0, 1.0, 2.0] * 5], [[1.0, 2.0, 3.0] * 5]))
        >>> model.profile_values([0.0, 3.0]).shape
        (2, 1)
        """
        check_is_fitted(self, "nodes_")
        points = as_points(self._in_fitted_order(x), self.n_features_in_)
        if self.scaling_ is not None:
            points = self.scaling_.apply(points)
        return np.asarray(self.features_(points) @ self.profiles_)

    @property
    def _graph_off(self) -> bool:
        return np.isscalar(self.graph_penalty) and self.graph_penalty == 0

    @property
    def _full_rank(self) -> bool:
        return np.isscalar(self.n_profiles) and self.n_profiles == 0

    @property
    def _graph_used(self) -> Graph:
        return Graph.empty(self.graph_.nodes) if self._graph_off else self.graph_

    def _axes(self, widths: FloatArray) -> list[Axis]:
        """Axes of the search: profiles, graph penalty, node penalty, bandwidth."""
        most = max(1, min(MOST_PROFILES, self.graph_.n_nodes, self.n_atoms_))
        if self.n_profiles is None or self._full_rank:
            # One more profile must gain a standard error, since readers must interpret it too.
            ranks = Axis(np.arange(1.0, most + 1), min(1, most - 1), reluctance=(0.0, 1.0))
        else:
            listing = np.atleast_1d(np.asarray(self.n_profiles, dtype=object))
            if not listing.size:
                raise InputError(
                    f"n_profiles={self.n_profiles!r} has no candidates",
                    "Pass None to select it, a number to fix it, or a sequence of candidates",
                )
            counts = {min(check_integer(k, "n_profiles", low=1), most) for k in listing}
            ranks = listed(np.array(sorted(counts), dtype=np.float64))
        if self.graph_penalty is not None and not self._graph_off:
            given = positive_candidates(self.graph_penalty, "graph_penalty", np.zeros(0))
            strength = listed(moderate(given, "graph_penalty"))
        if not self._graph_used.n_edges:
            strength = listed(np.zeros(1))
        elif self.graph_penalty is None:
            # An adaptive penalty has two regimes: strong with many edges cut, and weak.
            scanned = (1.0, 100.0, 1000.0) if self.adaptive else ()
            # Held-out losses hardly separate strengths with quite different errors, and too weak
            # is worse: an error that the sample of one kind causes is the same in every fold.
            strength = decades(-3, 4, start=10.0, zero=True, scanned=scanned, reluctance=(1.0, 0.0))
        if self.node_penalty is None:
            ridge = decades(-8, 2, start=1e-4)
        else:
            given = positive_candidates(self.node_penalty, "node_penalty", np.zeros(0))
            ridge = listed(moderate(given, "node_penalty"))
        # Held-out losses are flat in the bandwidth, so another one must be clearly better.
        return [ranks, strength, ridge, listed(widths, reluctance=(1.0, 1.0))]

    def _choose(
        self, selection: ProfileSelection, axes: list[Axis], coupling: Coupling
    ) -> tuple[ProfileSettings, FullRank | None]:
        self.cv_results_ = None
        if self._full_rank:
            choice = selection.choose_full_rank(coupling)
            self.cv_results_ = choice.results
            return choice.settings, choice.full_rank
        single = all(len(axis.values) == 1 for axis in axes)
        if single and self.n_rounds is not None:
            return selection.only(), None
        choice = selection.choose(
            coupling,
            or_full_rank=self.n_profiles is None,
            # Nodes without observations need the graph.
            without_graph=bool((self.sizes_ > 0).all()),
        )
        self.cv_results_ = choice.results
        return choice.settings, choice.full_rank

    def _fit_at(
        self, samples: NodeSamples, settings: ProfileSettings, full_rank: FullRank | None
    ) -> tuple[FloatArray, Moments]:
        """Fit on all observations; returns their features and the moments of all nodes."""
        self.bandwidth_ = settings.bandwidth
        self.graph_penalty_ = settings.graph_penalty
        self.node_penalty_ = settings.node_penalty
        self.n_rounds_ = settings.n_rounds
        self.graph_learned_ = self.graph_
        psi, moments = self._moments(samples)
        edges = Edges.of(self.graph_)
        problem = ProfileProblem.of(moments, edges)
        if full_rank is not None:
            self._fit_full_rank(moments, full_rank)
            self.profiles_, self.coordinates_ = principal(self.solution_.theta, problem.metric)
        else:
            path = rounds(
                problem,
                first_profiles(problem, settings.n_profiles, smooth=settings.graph_penalty > 0),
                settings.graph_penalty,
                settings.node_penalty,
                settings.n_rounds,
                adaptive=bool(self.adaptive),
            )
            self.profiles_, self.coordinates_ = readable(path[-1].profiles, path[-1].coordinates)
            self.solution_ = self._solution(problem, path, settings)
            unused = self.graph_penalty is None and not settings.graph_penalty
            if self.adaptive and edges.weights.size and not unused:
                weights = path[-1].weights * self.graph_.mean_degree
                self.graph_learned_ = with_weights(self.graph_, edges, weights)
        self.n_profiles_ = int(self.profiles_.shape[1])
        self.shared_ = full_rank is None
        return psi, moments

    @property
    def _coupling(self) -> Graph:
        return self.graph_learned_ if self.graph_penalty_ > 0 else Graph.empty(self.nodes_)

    @property
    def _penalties(self) -> tuple[float, float]:
        graph = self.graph_ if self.graph_penalty_ > 0 else Graph.empty(self.nodes_)
        strength, ridge = np.array([self.graph_penalty_]), np.array([self.node_penalty_])
        lam, gam = as_penalties(graph, strength, ridge)
        return float(lam[0]), float(gam[0])

    def _keep_directions(self, psi: FloatArray, moments: Moments) -> None:
        """If nodes share profiles, data of other nodes reach a node through its coordinates."""
        if self.shared_:
            psi = psi @ self.profiles_
            moments = node_moments(psi, self.sizes_, self.alpha_, self.prior_ratio_)
        super()._keep_directions(psi, moments)

    def _solution(
        self, problem: ProfileProblem, path: list[Profiles], settings: ProfileSettings
    ) -> Solution:
        penalties = settings.graph_penalty, settings.node_penalty
        residual = coordinate_residual(problem, path[-1], *penalties)
        return Solution(
            theta=self.coordinates_ @ self.profiles_.T,
            converged=residual <= max(float(self.tol), RESIDUAL[problem.dtype]),
            n_iter=settings.n_rounds,
            residual=residual,
            history=[objective_value(problem, fit, *penalties) for fit in path],
            method="alternating least squares",
        )

    def _fit_full_rank(self, moments: Moments, full_rank: FullRank) -> None:
        self.graph_penalty_, self.node_penalty_ = full_rank.strength, full_rank.ridge
        self.n_rounds_ = 0
        graph = self._graph_used
        objective = GraphObjective.of(moments, graph.laplacian, *full_rank.penalties(graph))
        self.solution_ = solve(objective, graph, "auto", float(self.tol), self.max_iter)

    def _notes(self) -> list[Words]:
        notes = data_notes(self.sizes_, self.graph_)
        unused = self.graph_penalty is None and not self.graph_penalty_
        if self.shared_ and unused and self.graph_.n_edges:
            notes.append("the graph was not used: it does not improve the held-out loss")
        if not self.shared_ and self.n_profiles is None:
            notes.append(
                "no small number of profiles describes the changes: every node has its own ratio"
            )
        return notes

    def _table(self) -> dict[str, Any]:
        return {**super()._table(), "kind": [str(kind) for kind in self.kinds_]}

    def _summary(self) -> str:
        counts = {kind: int((self.kinds_ == kind).sum()) for kind in sorted(set(self.kinds_))}
        listed_kinds = ", ".join(f"{kind}: {number}" for kind, number in counts.items())
        shared = f"{self.n_profiles_} profile{'s' if self.n_profiles_ > 1 else ''}"
        return f"{super()._summary()}\n  {shared}; nodes by kind: {listed_kinds}"
