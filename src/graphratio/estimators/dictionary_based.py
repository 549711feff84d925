"""The fit shared by GRULSIF and POOL: dictionary, features, selection, moments, solve."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from graphratio._utils.errors import Words
from graphratio._utils.parameters import as_generator, check_choice, check_integer, check_real
from graphratio._utils.typing import FloatArray, IntArray, RandomState
from graphratio.data.graph import Graph
from graphratio.data.samples import NodeSamples
from graphratio.estimators import persistence
from graphratio.estimators.base import NodeRatioEstimator
from graphratio.estimators.borrowing import BorrowingMixin
from graphratio.estimators.log_ratio_fit import check_loss, fit_log_ratios, linked_ratios
from graphratio.estimators.notes import edge_notes, part_notes
from graphratio.features.dictionary import DictionaryRecipe
from graphratio.features.kernels import (
    KERNELS,
    Kernel,
    bandwidth_grid,
    get_kernel,
    median_bandwidths,
)
from graphratio.features.nystrom import NystromMap
from graphratio.moments.folds import divide
from graphratio.moments.losses import LOSSES, PEARSON, Loss, get_loss
from graphratio.moments.memory import StreamedData, check_cap, parse_memory, plan_fit, predict_input
from graphratio.moments.node_moments import Moments, mixing_weights, node_moments
from graphratio.moments.objective import GraphObjective
from graphratio.moments.second_moments import Leading
from graphratio.selection.cross_validation import Coupling, Selection, Split, precision_for, select
from graphratio.selection.grids import Candidates, candidates_of, selection_size
from graphratio.selection.patches import choose_patches
from graphratio.solvers.path import SOLVERS, solve, solve_streamed
from graphratio.solvers.solution import Solution

# Points are worked on in blocks of this many rows, to bound memory and stay in the cache.
_BLOCK = 2048

# Observations beyond which features are rotated to a nearly diagonal second moment.
_MANY_OBSERVATIONS = 2**16

# Features that copies of a fit share take at most this many bytes.
LARGEST_SHARED = 2**28


class NystromEstimator(BorrowingMixin):
    """Base of the estimators that share one dictionary among all nodes."""

    alpha: float
    kernel: str
    bandwidth: float | Sequence[float] | None
    ridge: float | Sequence[float] | None
    dictionary: Any
    node_coherence: float | None
    graph_coherence: float
    max_atoms: int | None
    group_size: int
    bounds: Any
    prior_ratio: float
    cv: int
    tol: float
    random_state: RandomState
    progress: bool
    # Defaults for estimators that lack these parameters.
    graph_penalty: float | Sequence[float] | None = 0.0
    max_memory: int | str | None = None
    selection_nodes: int | str | None = None
    solver: str = "auto"
    max_iter: int = 1000
    loss: str = PEARSON.name
    engine: Any = None

    dictionary_: FloatArray
    coef_: FloatArray
    # Of log-ratios at every node; None where the model is the ratio itself.
    intercept_: FloatArray | None
    features_: NystromMap
    bandwidth_: float
    solution_: Solution
    cv_results_: dict[str, FloatArray] | None
    divergence_held_out_: FloatArray | None
    n_selected_on_: int

    _fitted_names = (*NodeRatioEstimator._fitted_names, *persistence.NYSTROM)

    # Those of the fit of which this is a copy, at the same bandwidth and dictionary.
    _features_kept: NystromMap | None = None
    # Features of the data that such a copy is being fitted to.
    _psi_kept: FloatArray | None = None

    def _rows_to_share(self, samples: NodeSamples) -> FloatArray | None:
        # A limit of memory leaves nothing for features beside those of the fits.
        most = LARGEST_SHARED if self.max_memory is None else 0
        large = 8 * samples.n_observations * self.n_components_ > most
        return None if large else self.features_(samples.values)

    def _take_rows(self, psi: FloatArray | None) -> None:
        self._psi_kept = psi

    def _again(self, *, fixed: bool) -> Self:
        copy = super()._again(fixed=fixed)
        copy._features_kept = self.features_ if fixed else None
        return copy

    def _notes(self) -> list[Words]:
        part = part_notes(self.n_selected_on_, len(self.nodes_))
        return [*part, *edge_notes(self.cv_results_)]

    @property
    def _loss(self) -> Loss:
        known = LOSSES.get(self.loss) if isinstance(self.loss, str) else None
        return known or get_loss(self.loss)

    @property
    def _couples(self) -> bool:
        given = self.graph_penalty
        return given is None or not np.all(np.asarray(given, dtype=object) == 0)

    @abstractmethod
    def _pairs_for(self, graph: Graph) -> tuple[FloatArray, FloatArray]:
        """Candidates for a graph: pairs of graph penalty and ridge, shape (n_pairs,) each."""

    @property
    def _chosen(self) -> dict[str, Any]:
        return {
            "bandwidth": self.bandwidth_,
            "graph_penalty": self.graph_penalty_,
            "ridge": self.ridge_,
            "dictionary": self.dictionary_,
        }

    @property
    def paper_penalties_(self) -> dict[str, float]:
        """The penalties in the paper's letters, "lambda" and "gamma".

        lambda = graph_penalty / N and gamma = ridge / graph_penalty. Without coupling lambda is 1
        and gamma = ridge / N, as in POOL.
        """
        check_is_fitted(self, "ridge_")
        n_nodes, penalty, ridge = len(self.nodes_), self.graph_penalty_, self.ridge_
        if not penalty:
            return {"lambda": 1.0, "gamma": ridge / n_nodes}
        return {"lambda": penalty / n_nodes, "gamma": ridge / penalty}

    @property
    def n_atoms_(self) -> int:
        """Number of points in the dictionary."""
        return len(self.dictionary_)

    @property
    def n_components_(self) -> int:
        """Number of features after whitening, at most `n_atoms_`."""
        return self.features_.n_components

    def _fit_on(self, samples: NodeSamples, graph: Graph) -> Self:
        """Fit on aligned samples, with a selection if there is more than one candidate."""
        check_choice(self.solver, "solver", SOLVERS)
        check_integer(self.max_iter, "max_iter", low=1)
        rng = as_generator(self.random_state)
        pairs = self._pairs_for(graph)
        candidates = Candidates(self._build_dictionary(samples, rng), *pairs)
        self._select(samples, graph, candidates, rng)
        return self._solve_at(samples, graph)

    def _build_dictionary(self, samples: NodeSamples, rng: np.random.Generator) -> FloatArray:
        """Check the parameters, choose the atoms, and return the candidate bandwidths."""
        self._check_parameters()
        if self._loss is not PEARSON:
            check_loss(self)
        self.intercept_ = None
        self.prior_ratio_ = float(self.prior_ratio) if self._loss is PEARSON else 1.0
        self.n_selected_on_ = len(self.nodes_)
        cap = parse_memory(self.max_memory)
        check_cap(predict_input(self.sizes_, samples.n_features), cap, "reading the samples")
        if self.max_atoms is not None:
            # The size of the problem is known, so check it before any work.
            n_atoms = check_integer(self.max_atoms, "max_atoms", low=1)
            plan_fit(self.sizes_, n_atoms, samples.n_features, self.graph_.n_edges, cap)
        kernel = get_kernel(self.kernel)
        sigma = self._median_bandwidths(samples, kernel)
        usual = bandwidth_grid(sigma)
        self.dictionary_ = DictionaryRecipe.of(self).build(samples, kernel, sigma, rng)
        return candidates_of(self.bandwidth, "bandwidth", usual)

    def _median_bandwidths(self, samples: NodeSamples, kernel: Kernel) -> FloatArray:
        """Median distances at the nodes, unless bandwidth and dictionary are given."""
        given = self.bandwidth is not None and not isinstance(self.dictionary, str)
        known = given and self.max_atoms is None
        return np.ones(1) if known else median_bandwidths(samples, kernel)

    def _select(
        self, samples: NodeSamples, graph: Graph, candidates: Candidates, rng: np.random.Generator
    ) -> None:
        """Set the hyperparameters, by cross-validation if there is a choice."""
        if len(candidates) == 1:
            self._take(Selection(*candidates.middle))
            return
        part, graph, positions = self._selection_part(samples, graph, rng)
        cap = parse_memory(self.max_memory)
        chosen = select(
            self._split(part, graph, rng),
            Coupling(graph),
            candidates,
            n_nodes=len(self.nodes_),
            progress=self.progress,
            max_memory=cap,
        )
        self._take(chosen, positions)

    def _selection_part(
        self, samples: NodeSamples, graph: Graph, rng: np.random.Generator
    ) -> tuple[NodeSamples, Graph, IntArray | None]:
        """The nodes that the selection uses; their positions, or None for all nodes."""
        n_nodes = selection_size(self.selection_nodes, graph.n_nodes)
        if n_nodes == graph.n_nodes:
            return samples, graph, None
        positions = choose_patches(graph, n_nodes, samples.complete, rng)
        self.n_selected_on_ = len(positions)
        labels = [graph.nodes[i] for i in positions]
        return samples.subset(labels), graph.subset(labels), positions

    def _split(self, samples: NodeSamples, graph: Graph, rng: np.random.Generator) -> Split:
        division = divide(samples, check_integer(self.cv, "cv", low=2), rng, single=True)
        if division.in_pieces:
            self.dependence_ += (
                "; there are fewer blocks than folds, so held-out data depend on the training "
                "data, and the selection is unreliable"
            )
        return Split(
            samples=samples,
            folds=division.folds,
            n_folds=division.n_folds,
            n_blocks=division.n_blocks,
            run=division.run,
            kernel=KERNELS[self.kernel],
            dictionary=self.dictionary_,
            alpha=self.alpha_,
            prior_ratio=self.prior_ratio_,
            dtype=precision_for([graph]),
            loss=self._loss,
        )

    def _take(self, chosen: Selection, positions: IntArray | None = None) -> None:
        """Take the result of a selection on all nodes, or on those at some positions."""
        self.bandwidth_ = chosen.bandwidth
        self.graph_penalty_ = chosen.graph_penalty
        self.ridge_ = chosen.ridge
        self.cv_results_ = chosen.results
        self.divergence_held_out_ = self._at_all_nodes(chosen.held_out, positions)

    def _at_all_nodes(
        self, values: FloatArray | None, positions: IntArray | None
    ) -> FloatArray | None:
        """Values of the nodes at some positions, NaN elsewhere."""
        if positions is None or values is None:
            return values
        everywhere = np.full(len(self.nodes_), np.nan)
        everywhere[positions] = values
        return everywhere

    def _solve_at(self, samples: NodeSamples, graph: Graph) -> Self:
        """Fit at the chosen hyperparameters; features are stored or computed block by block."""
        cap = parse_memory(self.max_memory)
        if self._loss is not PEARSON:
            return self._keep(samples, *fit_log_ratios(self, samples, graph, cap))
        self._build_features(samples)
        penalties = (self.graph_penalty_, self.ridge_)
        how = (graph, self.solver, float(self.tol), self.max_iter)
        m = self.n_components_
        plan = plan_fit(self.sizes_, m, samples.n_features, graph.n_edges, cap)
        if plan.streamed:
            data = StreamedData(
                self.features_, samples, self.sizes_, self.alpha_, self.prior_ratio_
            )
            moments = data.moments(plan)
            objective = GraphObjective.of(moments, graph.laplacian, *penalties)
            self.solution_, fitted = solve_streamed(objective, data, *how)
            self.coef_ = self.solution_.theta
            if self._ratios_only:
                return self
            some = samples.values[:: 1 + len(samples.values) // _BLOCK]
            self._keep_directions(self.features_(some), moments)
            ratios = fitted + self.prior_ratio_
            self.divergence_ = PEARSON.divergences(ratios, self.sizes_, self.alpha_)
            return self
        psi, moments = self._summed(samples)
        objective = GraphObjective.of(moments, graph.laplacian, *penalties)
        self.solution_ = solve(objective, *how)
        return self._keep(samples, psi, moments)

    def _build_features(self, samples: NodeSamples, floor: float = 0.0) -> None:
        """Build the features; with many observations drop directions below `floor`."""
        if self._features_kept is not None:
            self.features_ = self._features_kept
            return
        kernel = KERNELS[self.kernel]
        self.features_ = NystromMap.build(kernel, self.dictionary_, self.bandwidth_)
        if samples.n_observations > _MANY_OBSERVATIONS:
            # Saves the solver two products with a rotation in every iteration.
            segment = samples.segments
            weights = mixing_weights(self.sizes_, self.alpha_).ravel()[segment]
            self.features_ = self.features_.aligned(samples.values, weights, floor)

    def _moments(self, samples: NodeSamples, floor: float = 0.0) -> tuple[FloatArray, Moments]:
        """Features of all observations at the chosen bandwidth, and the moments of all nodes."""
        self._build_features(samples, floor)
        return self._summed(samples)

    def _summed(self, samples: NodeSamples) -> tuple[FloatArray, Moments]:
        psi = self._rows(samples)
        return psi, node_moments(psi, self.sizes_, self.alpha_, self.prior_ratio_)

    def _rows(self, samples: NodeSamples) -> FloatArray:
        """Features of all observations."""
        return self.features_(samples.values) if self._psi_kept is None else self._psi_kept

    def _keep(self, samples: NodeSamples, psi: FloatArray, moments: Moments) -> Self:
        """Set the coefficients from the solution, and their divergences."""
        self.coef_ = self.solution_.theta
        if self._ratios_only:
            return self
        self._keep_directions(psi, moments)
        ratios = self._combine(psi, samples.node_index)
        self.divergence_ = self._loss.divergences(ratios, self.sizes_, self.alpha_)
        return self

    def _keep_directions(self, psi: FloatArray, moments: Moments) -> None:
        """Keep how far the data of each node reach; a subset of the rows of `psi` is enough."""
        share = len(moments.complete) / max(int(moments.complete.sum()), 1)
        mean = moments.second.mean(rough=True).astype(np.float64) * share
        leading = Leading.of(mean, psi.mean(axis=0))
        self.direction_weights_ = leading.weights
        # The information of a node about a direction is the second derivative of its loss.
        self.direction_moments_ = self._loss.curvature * leading.moments(moments.second)
        self.__dict__.pop("_reach", None)

    def _check_parameters(self) -> None:
        check_real(self.tol, "tol", low=0)
        check_real(
            self.prior_ratio, "prior_ratio", low=0, high=1e6, include_low=True, include_high=True
        )

    def _ratios_everywhere(self, points: FloatArray) -> FloatArray:
        return self._linked(self.features_(points) @ self.coef_.T, slice(None))

    def _linked(self, fitted: FloatArray, node: IntArray | slice) -> FloatArray:
        """Ratios from the kernel expansions psi' theta of some nodes."""
        if self.intercept_ is None:
            return np.asarray(fitted + self.prior_ratio_)
        return linked_ratios(self._loss, fitted + self.intercept_[node], self.alpha_)

    def _ratios_at_nodes(self, points: FloatArray, node: IntArray) -> FloatArray:
        kernel, pivots = self.features_.kernel, self.features_.pivots
        ratios = np.empty(len(points))
        for begin in range(0, len(points), _BLOCK):
            rows = slice(begin, begin + _BLOCK)
            present, which = np.unique(node[rows], return_inverse=True)
            # Whitening the coefficients takes one product per node, not per point.
            weights = self.coef_[present] @ self.features_.transform.T
            values = kernel(points[rows], pivots, self.features_.bandwidth)
            if len(present) == 1:
                ratios[rows] = values @ weights[0]
            else:
                np.einsum("ip,ip->i", values, weights[which], out=ratios[rows])
        return self._linked(ratios, node)

    def _combine(self, psi: FloatArray, node: IntArray) -> FloatArray:
        """Ratio of the node of each row from its features, shape (n_rows,)."""
        ratios = np.empty(len(psi))
        for begin in range(0, len(psi), _BLOCK):
            rows = slice(begin, begin + _BLOCK)
            np.einsum("im,im->i", psi[rows], self.coef_[node[rows]], out=ratios[rows])
        return self._linked(ratios, node)

    def _table(self) -> dict[str, Any]:
        table = super()._table()
        if self.divergence_held_out_ is None:
            return table
        # Beside the divergence.
        place = list(table).index("divergence") + 1
        items = list(table.items())
        items.insert(place, ("divergence_held_out", self.divergence_held_out_))
        return dict(items)

    def _summary(self) -> str:
        chosen = "selected" if self.cv_results_ is not None else "given"
        return (
            f"{super()._summary()}\n"
            f"  {chosen}: bandwidth {self.bandwidth_:.4g}, "
            f"graph_penalty {self.graph_penalty_:.3g}, ridge {self.ridge_:.3g}; "
            f"{self.n_atoms_} atoms, {self.n_components_} features\n"
            f"  solver: {self.solution_.describe()}, residual {self.solution_.residual:.1g}"
        )
