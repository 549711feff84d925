"""GraphRatio: the estimator to use; a few profiles of change, shared by all nodes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from graphratio._utils.errors import Words
from graphratio._utils.parameters import as_generator, check_flag, check_integer
from graphratio._utils.progress import ProgressBar
from graphratio._utils.typing import FloatArray, IntArray, RandomState
from graphratio.data.graph import Graph
from graphratio.data.samples import NodeSamples
from graphratio.estimators import persistence
from graphratio.estimators.base import all_or_nothing
from graphratio.estimators.dictionary_based import NystromEstimator
from graphratio.estimators.learned_graph import LearnedGraphMixin
from graphratio.estimators.log_ratio_fit import check_loss, fit_log_ratios, learn_graph
from graphratio.estimators.new_points import scaled_points
from graphratio.estimators.notes import GRAPH_UNUSED, data_notes, part_notes
from graphratio.moments.losses import PEARSON
from graphratio.moments.node_moments import Moments, node_moments
from graphratio.moments.objective import GraphObjective
from graphratio.selection.cross_validation import Coupling
from graphratio.selection.full_rank import PlainSearch, graph_penalties
from graphratio.selection.grids import Candidates, apart, penalty_pairs
from graphratio.selection.held_out_data import FoldSource, HeldOutData
from graphratio.selection.profile_search import (
    USUAL_POINTS,
    ProfileSelection,
    ProfileSettings,
    profile_axes,
)
from graphratio.solvers.alternating import first_profiles, rounds, solution_of
from graphratio.solvers.learned_edges import Edges, with_weights
from graphratio.solvers.path import solve
from graphratio.solvers.profile_problem import ProfileData, ProfileProblem
from graphratio.solvers.rotation import principal, readable

# Shared profiles do not need the directions below this share of the second moment, and the pooled
# systems that give profiles grow with the square of the number of directions.
PROFILE_FLOOR = 1e-7


class GraphRatio(LearnedGraphMixin, NystromEstimator):
    """Likelihood-ratios of all nodes of a graph: the estimator to start with.

    Most networks show only a few kinds of change. So the model of the relative
    ratio = target / reference of node v is::

        f_v = 1 + sum_k c_vk g_k

    with few profiles g_k common to all nodes, and coordinates c_v that are similar at
    neighbours. Profiles and coordinates minimise together::

        sum_v loss_v(f_v) + graph_penalty / 2 * sum_uv W_uv phi(|f_u - f_v|)
                          + ridge / 2 * sum_v ||f_v - prior_ratio||^2

    with the loss of `GRULSIF`, |.| the root mean square over the data, ||.|| the norm of the
    kernel space, and phi(t) = t^2 / 2, or, with `adaptive=True`, a concave function of t^2 that
    lets edges between different behaviours break. Every step of the fit (coordinates, edge
    weights, profiles) lowers this objective. Held-out data choose everything that is not given:
    the number of profiles, or none, whether to use the graph, and how strongly.

    Parameters
    ----------
    alpha : float in [0, 1), default 0.1
        How much of the target is mixed into the reference; ratios are bounded by 1 / alpha.
    n_profiles : int, sequence of int, or None
        None chooses 0 to 12 on held-out data. With n_profiles=0 every node has its own ratio as
        in `GRULSIF`, the edges stay as given, and differences between neighbours are measured in
        the kernel space.
    graph_penalty : float, sequence of float, or None
        Times the mean degree it is the joint weight of all neighbours of a node, relative to its
        own data. 0 switches the graph off.
    ridge : float, sequence of float, or None
    adaptive : bool, default True
        Learn the weights of the edges.
    n_rounds : int or None
        How often profiles and edge weights are refitted; None chooses.
    node_coherence : float in (0, 1], optional
        Threshold of the filter of atoms within a node. Default the paper's 0.1, or the first of
        0.3, 0.5, 0.7, 0.9, 0.99 that gives 30 atoms, or one for every 40 observations.
    kernel, bandwidth, dictionary, graph_coherence, max_atoms, group_size, bounds, cv, tol,
    max_iter, selection_nodes, n_jobs, random_state, progress :
        As in `GRULSIF`. Grids of parameters that are None grow while the best candidate is at their
        end. Bandwidths of `GRULSIF` within 10% of another are left out, except at both ends.
    prior_ratio : float, default 1
        Ratios are shrunk towards this constant; only with loss="pearson".
    loss : {"pearson", "kl", "jensen-shannon"}
        As in `GRULSIF`. With "kl" and "jensen-shannon" nodes share no profiles: every node has its
        own log-ratio, and edge weights are learned as in `GRULSIF`.
    engine : DaskEngine, optional
        Run on partitions of the graph on Dask workers. Default this process.

    Attributes
    ----------
    profiles_ : ndarray of shape (n_components_, n_profiles_)
        Coefficients of the profiles; `profile_values` evaluates them. Their mean square over
        the data is 1 and they are uncorrelated, so that half the squared length of a node's
        coordinates is about its divergence.
    coordinates_ : ndarray of shape (n_nodes, n_profiles_)
        Rotated so that nodes use few profiles each; most used profile first.
    n_profiles_, n_rounds_ : int
    shared_ : bool
        Whether nodes share the profiles; otherwise these only describe the nodes' own ratios.
    graph_learned_ : Graph
        With the learned weights; the given graph if not adaptive.
    coef_, divergence_, divergence_held_out_, dictionary_, bandwidth_,
    divergence_name_, intercept_, graph_penalty_, ridge_, paper_penalties_ :
        As in `GRULSIF`.
    cv_results_ : dict of str to ndarray, or None if nothing was selected
        As in `GRULSIF`, with n_profiles (or 0) and n_rounds instead of gamma, without candidates
        that the first fold rules out.
    solution_, nodes_, notes_, n_atoms_, n_components_, n_features_in_, graph_ :
        As in `GRULSIF`; the history of the solution holds the objective after every round.

    Examples
    --------
    >>> import graphratio as gr
    >>> scenario = gr.datasets.make_scenario("Ia", n_nodes=60, random_state=1)
    >>> model = gr.GraphRatio(random_state=0).fit(scenario.samples, scenario.graph)
    >>> model.n_profiles_  # a cluster changes its shape, another its mean
    2
    """

    profiles_: FloatArray
    coordinates_: FloatArray
    n_profiles_: int
    shared_: bool

    _fitted_names = (*NystromEstimator._fitted_names, *persistence.LEARNED, *persistence.PROFILES)

    def __init__(
        self,
        alpha: float = 0.1,
        *,
        n_profiles: int | Sequence[int] | None = None,
        kernel: str = "gaussian",
        bandwidth: float | Sequence[float] | None = None,
        graph_penalty: float | Sequence[float] | None = None,
        ridge: float | Sequence[float] | None = None,
        adaptive: bool = True,
        n_rounds: int | None = None,
        dictionary: Any = "coherence",
        node_coherence: float | None = None,
        graph_coherence: float = 0.99,
        max_atoms: int | None = None,
        group_size: int = 10,
        bounds: Any = None,
        prior_ratio: float = 1.0,
        cv: int = 5,
        tol: float = 1e-6,
        max_iter: int = 1000,
        selection_nodes: int | str | None = None,
        n_jobs: int | None = None,
        random_state: RandomState = None,
        loss: str = "pearson",
        progress: bool = False,
        engine: Any = None,
    ) -> None:
        self.alpha = alpha
        self.n_profiles = n_profiles
        self.kernel = kernel
        self.bandwidth = bandwidth
        self.graph_penalty = graph_penalty
        self.ridge = ridge
        self.adaptive = adaptive
        self.n_rounds = n_rounds
        self.dictionary = dictionary
        self.node_coherence = node_coherence
        self.graph_coherence = graph_coherence
        self.max_atoms = max_atoms
        self.group_size = group_size
        self.bounds = bounds
        self.prior_ratio = prior_ratio
        self.cv = cv
        self.tol = tol
        self.max_iter = max_iter
        self.selection_nodes = selection_nodes
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.loss = loss
        self.progress = progress
        self.engine = engine

    @all_or_nothing
    def fit(self, samples: Any, graph: Graph | None = None) -> Self:
        """Estimate the profiles and where they occur.

        Parameters
        ----------
        samples : NodeSamples, or a tuple (reference, target)
            None if the engine has a loader, which then reads the samples of all nodes.
        graph : Graph
            Aligned with the samples by label. None means no edges.
        """
        if self._loss is not PEARSON:
            check_loss(self)
        if self.n_rounds is not None:
            check_integer(self.n_rounds, "n_rounds", low=0)
        check_integer(self.max_iter, "max_iter", low=1)
        check_flag(self.adaptive, "adaptive")
        if self.engine is not None:
            # Imported on use, since only fits on an engine need it.
            from graphratio.estimators.partitioned_profiles import fit_profiles_on_engine

            fit_profiles_on_engine(self, samples, graph)
            return self
        aligned = self._prepare(samples, graph, borrow=self._couples)
        rng = as_generator(self.random_state)
        widths = self._build_dictionary(aligned, rng)
        part, graph, positions = self._selection_part(aligned, self.graph_, rng)
        data = HeldOutData(self._split(part, graph, rng), Edges.of(graph))
        settings = self._choose(data, widths, graph, positions)
        psi, moments = self._fit_at(aligned, settings)
        return self._keep(aligned, psi, moments)

    @property
    def _over_data(self) -> bool:
        return not self._full_rank

    @property
    def _chosen(self) -> dict[str, Any]:
        shape = {"n_profiles": self.n_profiles_ if self.shared_ else 0, "n_rounds": self.n_rounds_}
        return super()._chosen | shape

    def profile_values(self, x: Any, *, standardized: bool = False) -> FloatArray:
        """Values of the profiles at given points, shape (n_points, n_profiles_).

        With `standardized` the points are in the units of the fit, as nodes of own scales need.

        Examples
        --------
        >>> import graphratio as gr
        >>> model = gr.GraphRatio(n_profiles=1, random_state=0)
        >>> model = model.fit(([[0.0, 1.0, 2.0] * 5], [[1.0, 2.0, 3.0] * 5]))
        >>> model.profile_values([0.0, 3.0]).shape
        (2, 1)
        """
        check_flag(standardized, "standardized")
        return self.features_(scaled_points(self, x, standardized=standardized)) @ self.profiles_

    @property
    def _full_rank(self) -> bool:
        none_asked = np.isscalar(self.n_profiles) and self.n_profiles == 0
        return none_asked or self._loss is not PEARSON

    @property
    def _graph_used(self) -> Graph:
        return self.graph_ if self._couples else Graph.empty(self.graph_.nodes)

    def _choose(
        self, data: FoldSource, widths: FloatArray, graph: Graph, positions: IntArray | None
    ) -> ProfileSettings:
        """Choose on the nodes of `graph`, which are all or those at some positions."""
        if self.bandwidth is None:
            widths = apart(widths)
        axes = profile_axes(
            widths,
            self._graph_used,
            self.n_atoms_,
            n_profiles=None if self._full_rank else self.n_profiles,
            graph_penalty=self.graph_penalty,
            ridge=self.ridge,
            adaptive=bool(self.adaptive),
        )
        self.cv_results_ = self.divergence_held_out_ = None
        with ProgressBar(USUAL_POINTS, "model selection", enabled=self.progress) as bar:
            selection = ProfileSelection(
                data=data,
                axes=axes,
                n_rounds=self.n_rounds,
                adaptive=bool(self.adaptive),
                unit=Edges.of(self.graph_).unit,
                bar=bar,
                learned_over=None if self._loss is PEARSON else graph,
            )
            only = selection.only(shared=not self._full_rank)
            if only is not None and self._loss is PEARSON:
                return only
            settings = self._search(selection, graph, positions)
            bar.advance(bar.total - bar.done)
            return settings

    def _search(
        self, selection: ProfileSelection, graph: Graph, positions: IntArray | None
    ) -> ProfileSettings:
        # Nodes without observations need the graph.
        without_graph = bool((self.sizes_ > 0).all())
        plain = PlainSearch(
            data=selection.data,
            coupling=Coupling(graph if self._couples else Graph.empty(graph.nodes)),
            candidates=Candidates(selection.axes[3].values, *self._pairs_for(self._graph_used)),
            unit=self._graph_used.mean_degree or 1.0,
            ridge=self.ridge,
            free=(self.bandwidth is None, self.graph_penalty is None, self.ridge is None),
            without_graph=without_graph,
            between=self._loss is not PEARSON,
        )
        choice = selection.choose(
            plain,
            shared=not self._full_rank,
            or_plain=self.n_profiles is None,
            without_graph=without_graph,
        )
        self.cv_results_ = choice.results
        self.divergence_held_out_ = self._at_all_nodes(choice.held_out, positions)
        return choice.settings

    def _fit_at(
        self, samples: NodeSamples, settings: ProfileSettings
    ) -> tuple[FloatArray, Moments]:
        """Fit on all observations; returns their features and the moments of all nodes."""
        self._take_settings(settings)
        graph = self._graph_used
        if self._loss is not PEARSON:
            if self.n_rounds_:
                graph = self.graph_learned_ = learn_graph(self, samples, self.n_rounds_)
            psi, moments = fit_log_ratios(self, samples, graph, None)
        else:
            psi, moments = self._moments(samples, PROFILE_FLOOR if self.shared_ else 0.0)
        problem = ProfileProblem.of(moments, Edges.of(self.graph_))
        if self._loss is not PEARSON:
            self._describe_by_profiles(self.solution_.theta, problem.metric)
        elif not self.shared_:
            penalties = self.graph_penalty_, self.ridge_
            objective = GraphObjective.of(moments, graph.laplacian, *penalties)
            self.solution_ = solve(objective, graph, "auto", float(self.tol), self.max_iter)
            self._describe_by_profiles(self.solution_.theta, problem.metric)
        else:
            self._share(problem, settings)
        return psi, moments

    def _take_settings(self, settings: ProfileSettings) -> None:
        """Set the chosen or given hyperparameters."""
        self.bandwidth_, self.ridge_ = settings.bandwidth, settings.ridge
        self.n_rounds_ = settings.n_rounds
        self.shared_ = settings.n_profiles > 0
        self.graph_learned_ = self.graph_
        self.graph_penalty_ = settings.strength / Edges.of(self.graph_).unit
        if not self.shared_:
            strength = np.array(settings.strength)
            self.graph_penalty_ = float(graph_penalties(self._graph_used, strength))

    def _describe_by_profiles(self, theta: FloatArray, metric: FloatArray) -> None:
        """Describe the separate ratios of the nodes by profiles."""
        self.profiles_, self.coordinates_ = principal(theta, metric)
        self.n_profiles_ = int(self.profiles_.shape[1])

    def _share(self, problem: ProfileData, settings: ProfileSettings) -> None:
        """Fit shared profiles, in the features of the problem."""
        edges = problem.edges
        path = rounds(
            problem,
            first_profiles(problem, settings.n_profiles, smooth=settings.strength > 0),
            settings.strength,
            settings.ridge,
            settings.n_rounds,
            adaptive=bool(self.adaptive),
        )
        self.profiles_, self.coordinates_ = readable(path[-1].profiles, path[-1].coordinates)
        self.n_profiles_ = int(self.profiles_.shape[1])
        penalties = (settings.strength, settings.ridge)
        self.solution_ = solution_of(problem, path, penalties, float(self.tol))
        unused = self.graph_penalty is None and not settings.strength
        if self.adaptive and edges.weights.size and not unused:
            self.graph_learned_ = with_weights(self.graph_, edges, path[-1].weights)

    def _keep_directions(self, psi: FloatArray, moments: Moments) -> None:
        """If nodes share profiles, data of other nodes reach a node through its coordinates."""
        if self.shared_:
            psi = psi @ self.profiles_
            moments = node_moments(psi, self.sizes_, self.alpha_, self.prior_ratio_)
        super()._keep_directions(psi, moments)

    def _notes(self) -> list[Words]:
        notes = data_notes(self.sizes_, self.graph_)
        notes += part_notes(self.n_selected_on_, len(self.nodes_))
        if self.graph_penalty is None and not self.graph_penalty_ and self.graph_.n_edges:
            notes.append(GRAPH_UNUSED)
        # With few blocks of time no profiles are tried.
        tried = np.any((self.cv_results_ or {}).get("n_profiles", 0))
        if not self.shared_ and self.n_profiles is None and tried:
            notes.append(
                "shared profiles do not clearly improve the held-out loss: every node has its own "
                "ratio"
            )
        return notes

    def _summary(self) -> str:
        if not self.shared_:
            return super()._summary()
        shared = f"{self.n_profiles_} profile{'s' if self.n_profiles_ > 1 else ''} of change"
        return f"{super()._summary()}\n  {shared} shared by all nodes"

    def _pairs_for(self, graph: Graph) -> tuple[FloatArray, FloatArray]:
        return penalty_pairs(graph, self.graph_penalty, self.ridge, scale=self._loss.curvature)
