"""POOL: the paper's variant without a graph."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

from graphratio._utils.typing import FloatArray, RandomState
from graphratio.data.graph import Graph
from graphratio.estimators.base import all_or_nothing
from graphratio.estimators.dictionary_based import NystromEstimator
from graphratio.moments.losses import PEARSON
from graphratio.selection.grids import penalty_pairs


class Pool(NystromEstimator):
    """Likelihood-ratios of all nodes with a common dictionary, each node on its own.

    GRULSIF without the graph: nodes share the dictionary and the hyperparameters, and the
    ratio = target / reference of every node comes from its own samples. With the loss of
    `GRULSIF` the f_v minimise::

        sum_v loss_v(f_v) + ridge / 2 * sum_v ||f_v - prior_ratio||^2

    in the norm of the kernel space. With loss="pearson" every node has a closed form.

    Parameters
    ----------
    alpha : float in [0, 1), default 0.1
        How much of the target is mixed into the reference; ratios are bounded by 1 / alpha.
    kernel : {"gaussian", "laplacian"}
    bandwidth, ridge : float, sequence of float, or None
        A number is fixed, a sequence gives the candidates of a cross-validation, None stands for
        the candidates of the paper.
    dictionary, node_coherence, graph_coherence, max_atoms, group_size, bounds, prior_ratio, cv :
        As in `GRULSIF`. Beyond 2,000 nodes the cross-validation uses 2,000 of them at random.
    tol : float, default 1e-6
        Largest relative residual of the linear systems.
    n_jobs : int, optional
        Threads, as in scikit-learn: None stands for 1, -1 for all cores. The estimate is the same.
    random_state : int, numpy Generator, RandomState or None
    loss : {"pearson", "kl", "jensen-shannon"}
        As in `GRULSIF`.
    progress : bool, default False

    Attributes
    ----------
    coef_, divergence_, divergence_held_out_, dictionary_, bandwidth_, ridge_, cv_results_,
    solution_, nodes_ :
        As in `GRULSIF`; `graph_penalty_` is 0.

    Examples
    --------
    >>> import numpy as np
    >>> import graphratio as gr
    >>> rng = np.random.default_rng(0)
    >>> samples = gr.NodeSamples.from_arrays(rng.normal(size=(3, 80, 1)),
    ...                                      rng.normal(size=(3, 80, 1)) + [[[0]], [[0]], [[1]]])
    >>> model = gr.Pool(bandwidth=1.0, ridge=3e-3).fit(samples)
    >>> int(model.divergence_.argmax())
    2
    """

    def __init__(
        self,
        alpha: float = 0.1,
        *,
        kernel: str = "gaussian",
        bandwidth: float | Sequence[float] | None = None,
        ridge: float | Sequence[float] | None = None,
        dictionary: Any = "coherence",
        node_coherence: float | None = 0.1,
        graph_coherence: float = 0.99,
        max_atoms: int | None = None,
        group_size: int = 10,
        bounds: Any = None,
        prior_ratio: float = 0.0,
        cv: int = 5,
        tol: float = 1e-6,
        n_jobs: int | None = None,
        random_state: RandomState = None,
        loss: str = "pearson",
        progress: bool = False,
    ) -> None:
        self.alpha = alpha
        self.kernel = kernel
        self.bandwidth = bandwidth
        self.ridge = ridge
        self.dictionary = dictionary
        self.node_coherence = node_coherence
        self.graph_coherence = graph_coherence
        self.max_atoms = max_atoms
        self.group_size = group_size
        self.bounds = bounds
        self.prior_ratio = prior_ratio
        self.cv = cv
        self.tol = tol
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.loss = loss
        self.progress = progress

    @property
    def _coupling(self) -> Graph:
        return Graph.empty(self.nodes_)

    @all_or_nothing
    def fit(self, samples: Any, graph: Graph | None = None) -> Self:
        """Estimate the ratio of every node from its own samples.

        Parameters
        ----------
        samples : NodeSamples, or a tuple (reference, target)
        graph : Graph, optional
            Sets the order of nodes and serves tables and plots; its edges are not used.
        """
        aligned = self._prepare(samples, graph, borrow=False)
        return self._fit_on(aligned, self._coupling)

    @property
    def _is_quadratic(self) -> bool:
        return self._loss is PEARSON

    def _pairs_for(self, graph: Graph) -> tuple[FloatArray, FloatArray]:
        return penalty_pairs(graph, self.graph_penalty, self.ridge, scale=self._loss.curvature)
