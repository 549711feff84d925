"""The fit shared by GRULSIF and POOL: dictionary, features, selection, moments, solve."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, Self

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from graphratio import _frames
from graphratio._threads import suitable_threads
from graphratio.dictionary import STRATEGIES, build_dictionary
from graphratio.divergences import pearson_divergences
from graphratio.estimators._borrowed import Borrowing, Directions
from graphratio.estimators.base import NodeRatioEstimator
from graphratio.exceptions import InputError
from graphratio.features import NystromMap
from graphratio.graph import Graph
from graphratio.kernels import bandwidth_grid, get_kernel, median_bandwidths
from graphratio.model_selection import Candidates, select
from graphratio.moments import Moments, node_moments
from graphratio.objectives import GraphObjective
from graphratio.samples import NodeSamples
from graphratio.solvers import SOLVERS, Solution, solve
from graphratio.typing import FloatArray, IntArray, Label, RandomState
from graphratio.validation import as_generator, check_choice, check_integer, check_real

# Points are worked on in blocks of this many rows, to bound memory and stay in the cache.
_BLOCK = 2048


class NystromEstimator(NodeRatioEstimator):
    """Base of the estimators that share one dictionary among all nodes."""

    alpha: float
    kernel: str
    bandwidth: float | Sequence[float] | None
    node_penalty: float | Sequence[float] | None
    dictionary: Any
    node_coherence: float
    graph_coherence: float
    max_atoms: int | None
    prior_ratio: float
    cv: int
    tol: float
    random_state: RandomState
    progress: bool

    dictionary_: FloatArray
    coef_: FloatArray
    features_: NystromMap
    bandwidth_: float
    graph_penalty_: float
    node_penalty_: float
    solution_: Solution
    cv_results_: dict[str, FloatArray] | None
    direction_weights_: FloatArray
    direction_moments_: FloatArray

    _fitted_names = (
        *NodeRatioEstimator._fitted_names,
        "dictionary_",
        "coef_",
        "features_",
        "bandwidth_",
        "graph_penalty_",
        "node_penalty_",
        "solution_",
        "cv_results_",
        "prior_ratio_",
        "direction_weights_",
        "direction_moments_",
    )

    @property
    def n_atoms_(self) -> int:
        """Number of points in the dictionary."""
        return len(self.dictionary_)

    @property
    def n_components_(self) -> int:
        """Number of features after whitening, at most `n_atoms_`."""
        return self.features_.n_components

    def _fit_on(
        self,
        samples: NodeSamples,
        graph: Graph,
        graph_penalties: tuple[float, ...] | FloatArray,
        node_penalties: FloatArray,
        solver: str,
        max_iter: int,
    ) -> Self:
        """Fit on aligned samples; more than one candidate of anything starts a selection."""
        check_choice(solver, "solver", SOLVERS)
        check_integer(max_iter, "max_iter", low=1)
        rng = as_generator(self.random_state)
        widths = self._build_dictionary(samples, rng)
        candidates = Candidates(widths, np.asarray(graph_penalties), node_penalties)
        with suitable_threads(samples.n_observations, self.n_atoms_):
            self._select(samples, graph, candidates, rng)
            return self._solve_at(samples, graph, solver, max_iter)

    def _build_dictionary(self, samples: NodeSamples, rng: np.random.Generator) -> FloatArray:
        """Check the parameters, choose the atoms, and return the candidate bandwidths."""
        kernel = get_kernel(self.kernel)
        self._check_parameters()
        self.prior_ratio_ = float(self.prior_ratio)
        sigma = median_bandwidths(samples, kernel)
        self.dictionary_ = build_dictionary(
            self.dictionary,
            samples,
            kernel,
            sigma,
            node_coherence=self.node_coherence,
            graph_coherence=self.graph_coherence,
            max_atoms=self.max_atoms,
            random_state=rng,
        )
        return positive_candidates(self.bandwidth, "bandwidth", bandwidth_grid(sigma))

    def _select(
        self,
        samples: NodeSamples,
        graph: Graph,
        candidates: Candidates,
        rng: np.random.Generator,
    ) -> None:
        """Settle the hyperparameters, by cross-validation where there is a choice."""
        self.cv_results_ = None
        if len(candidates) == 1:
            self.bandwidth_ = float(candidates.bandwidth[0])
            self.graph_penalty_ = float(candidates.graph_penalty[0])
            self.node_penalty_ = float(candidates.node_penalty[0])
            return
        chosen = select(
            samples,
            graph,
            get_kernel(self.kernel),
            self.dictionary_,
            candidates,
            alpha=self.alpha_,
            prior_ratio=self.prior_ratio_,
            n_folds=check_integer(self.cv, "cv", low=2),
            random_state=rng,
            progress=self.progress,
        )
        self.bandwidth_ = chosen.bandwidth
        self.graph_penalty_ = chosen.graph_penalty
        self.node_penalty_ = chosen.node_penalty
        self.cv_results_ = chosen.results
        self.notes_ += chosen.notes

    def _solve_at(self, samples: NodeSamples, graph: Graph, solver: str, max_iter: int) -> Self:
        """Fit at the settled hyperparameters."""
        psi, moments = self._moments(samples)
        objective = GraphObjective.of(
            moments, graph.laplacian, self.graph_penalty_, self.node_penalty_
        )
        self.solution_ = solve(objective, graph, solver, float(self.tol), max_iter)
        return self._keep(samples, psi, moments)

    def _moments(self, samples: NodeSamples) -> tuple[FloatArray, Moments]:
        """Features at the chosen bandwidth, and the moments of all nodes."""
        kernel = get_kernel(self.kernel)
        self.features_ = NystromMap.build(kernel, self.dictionary_, self.bandwidth_)
        psi = self.features_(samples.values)
        return psi, node_moments(psi, self.sizes_, self.alpha_, self.prior_ratio_)

    def _keep(self, samples: NodeSamples, psi: FloatArray, moments: Moments) -> Self:
        """Take the coefficients from the solution, and the divergences they give."""
        self.coef_ = self.solution_.theta
        self._keep_directions(psi, moments)
        self.divergence_name_ = "Pearson"
        ratios = self._combine(psi, samples.node_index)
        self.divergence_ = pearson_divergences(ratios, self.sizes_, self.alpha_)
        return self

    def _keep_directions(self, psi: FloatArray, moments: Moments) -> None:
        """Keep what says how far the data of a node reach."""
        kept = Directions.of(moments, psi.mean(axis=0))
        self.direction_weights_, self.direction_moments_ = kept.weights, kept.moments
        self.__dict__.pop("_reach", None)

    def _check_parameters(self) -> None:
        check_real(self.tol, "tol", low=0)
        check_real(
            self.prior_ratio, "prior_ratio", low=0, high=1e6, include_low=True, include_high=True
        )
        for name in ("node_coherence", "graph_coherence"):
            check_real(getattr(self, name), name, low=0, high=1, include_high=True)
        if self.max_atoms is not None:
            check_integer(self.max_atoms, "max_atoms", low=1)
        if isinstance(self.dictionary, str):
            check_choice(self.dictionary, "dictionary", STRATEGIES)

    def _ratios_everywhere(self, points: FloatArray) -> FloatArray:
        return self.prior_ratio_ + self.features_(points) @ self.coef_.T

    def _ratios_at_nodes(self, points: FloatArray, node: IntArray) -> FloatArray:
        kernel, pivots = self.features_.kernel, self.features_.pivots
        ratios = np.empty(len(points))
        for begin in range(0, len(points), _BLOCK):
            rows = slice(begin, begin + _BLOCK)
            present, which = np.unique(node[rows], return_inverse=True)
            # The whitening goes into the coefficients: one product per node, not per point.
            weights = self.coef_[present] @ self.features_.transform.T
            values = kernel(points[rows], pivots, self.features_.bandwidth)
            if len(present) == 1:
                ratios[rows] = values @ weights[0]
            else:
                np.einsum("ip,ip->i", values, weights[which], out=ratios[rows])
        return ratios + self.prior_ratio_

    def _combine(self, psi: FloatArray, node: IntArray) -> FloatArray:
        """Ratio of the node of each row from its features, shape (n_rows,)."""
        ratios = np.empty(len(psi))
        for begin in range(0, len(psi), _BLOCK):
            rows = slice(begin, begin + _BLOCK)
            np.einsum("im,im->i", psi[rows], self.coef_[node[rows]], out=ratios[rows])
        return ratios + self.prior_ratio_

    @property
    def _coupling(self) -> Graph:
        """The graph that couples the nodes in the fit."""
        return self.graph_

    @property
    def _penalties(self) -> tuple[float, float]:
        """Graph and node penalty in the units of GRULSIF."""
        return self.graph_penalty_, self.node_penalty_

    @property
    def _borrowing(self) -> Borrowing:
        return Borrowing(
            Directions(self.direction_weights_, self.direction_moments_),
            self._coupling,
            *self._penalties,
            self.sizes_,
        )

    @cached_property
    def _reach(self) -> tuple[FloatArray, sparse.csr_array]:
        return self._borrowing.all_nodes()

    def effective_sizes(self) -> FloatArray:
        """Observations that the estimate of every node rests on, its own and borrowed ones.

        An observation at another node counts as much as it moves the estimate here, relative to
        one of this node's own. So the size lies between the node's own sample and all samples
        of its component, is the node's own without edges, and grows with `graph_penalty`. A
        node that lacks one of its samples contributes nothing. Computed on first use; on more
        than 800 nodes by random projections, to within about a tenth.

        Returns
        -------
        sizes : ndarray of shape (n_nodes, 2)
            Of the reference and the target sample.

        Examples
        --------
        >>> import numpy as np
        >>> import graphratio as gr
        >>> rng = np.random.default_rng(0)
        >>> samples = (list(rng.normal(size=(3, 40))), list(rng.normal(size=(3, 30))))
        >>> graph = gr.Graph.from_edges([(0, 1)], nodes=[0, 1, 2])
        >>> model = gr.GRULSIF(bandwidth=1.0, graph_penalty=1.0, node_penalty=0.1)
        >>> model.fit(samples, graph).effective_sizes().round()
        array([[74., 56.],
               [75., 56.],
               [40., 30.]])
        """
        check_is_fitted(self, "coef_")
        return self._reach[0].copy()

    def borrowed(self, node: Label) -> Any:
        """From which nodes the estimate at one node borrows, the largest share first.

        Parameters
        ----------
        node : label

        Returns
        -------
        table : data frame
            A row for every node that contributes, the node itself among them: `worth`, how much
            one of its observations counts here; `n_reference` and `n_target`, how many it adds
            to the effective sizes; `share` of all observations, effective ones, it stands for.

        Examples
        --------
        >>> import numpy as np
        >>> import graphratio as gr
        >>> rng = np.random.default_rng(0)
        >>> samples = (list(rng.normal(size=(3, 40))), list(rng.normal(size=(3, 40))))
        >>> graph = gr.Graph.from_edges([(0, 1)], nodes=[0, 1, 2])
        >>> model = gr.GRULSIF(bandwidth=1.0, graph_penalty=1.0, node_penalty=0.1)
        >>> model.fit(samples, graph).borrowed(0)[["node", "worth", "share"]].round(2)
           node  worth  share
        0     0   1.00   0.54
        1     1   0.85   0.46
        """
        check_is_fitted(self, "coef_")
        reach = self._borrowing
        worth = reach.at_node(self.graph_.position(node))
        added = worth[:, np.newaxis] * reach.sizes
        total = added.sum(axis=1)
        # Less than a hundredth of an observation is nothing but the tolerance of the solver.
        rows = np.flatnonzero(total >= 0.01)
        rows = rows[np.argsort(-total[rows], kind="stable")]
        columns = {
            "node": [self.nodes_[i] for i in rows],
            "worth": worth[rows],
            "n_reference": added[rows, 0],
            "n_target": added[rows, 1],
            "share": total[rows] / max(float(total.sum()), 1e-300),
        }
        return _frames.make_frame(columns, self.backend_)

    def _table(self) -> dict[str, Any]:
        sizes = self._reach[0]
        # Own observations that enter the estimate.
        own = np.where((self.sizes_ > 0).all(axis=1), self.sizes_.sum(axis=1), 0)
        return super()._table() | {
            "effective_n_reference": sizes[:, 0],
            "effective_n_target": sizes[:, 1],
            "borrowed_share": 1.0 - own / sizes.sum(axis=1),
        }

    def _summary(self) -> str:
        chosen = "selected" if self.cv_results_ is not None else "given"
        return (
            f"{super()._summary()}\n"
            f"  {chosen}: bandwidth {self.bandwidth_:.4g}, "
            f"graph_penalty {self.graph_penalty_:.3g}, node_penalty {self.node_penalty_:.3g}; "
            f"{self.n_atoms_} atoms, {self.n_components_} features\n"
            f"  solver: {self.solution_.method}, residual {self.solution_.residual:.1g}"
        )


def positive_candidates(value: Any, name: str, default: FloatArray) -> FloatArray:
    """Candidates of a hyperparameter: the default for None, one for a number, or those given.

    Examples
    --------
    >>> positive_candidates([2.0, 1.0], "bandwidth", np.ones(1))
    array([1., 2.])
    """
    if value is None:
        return np.asarray(default, dtype=np.float64)
    if np.ndim(value) == 0:
        return np.array([check_real(value, name, low=0)])
    if np.ndim(value) != 1 or not len(value):
        raise InputError(
            f"{name}={value!r} is neither a number nor a sequence of numbers",
            "Pass None to select it, a number to fix it, or a sequence of candidates",
        )
    return np.array(sorted({check_real(item, name, low=0) for item in value}))
