"""POOL: the paper's variant without a graph."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from graphratio._utils.typing import RandomState
from graphratio.data.graph import Graph
from graphratio.estimators.base import all_or_nothing
from graphratio.estimators.dictionary_based import NystromEstimator
from graphratio.selection.grids import NODE_PENALTIES, positive_candidates


class Pool(NystromEstimator):
    """Likelihood-ratios of all nodes with a common dictionary, each node on its own.

    GRULSIF without the graph: nodes share the dictionary and the hyperparameters, and the
    ratio = target / reference of every node comes from its own samples. The graph penalty is
    fixed to 1, so `node_penalty` alone is the ridge. Every node has a closed form.

    Parameters
    ----------
    alpha : float in [0, 1), default 0.1
        How much of the target is mixed into the reference; ratios are bounded by 1 / alpha.
    kernel : {"gaussian", "laplacian"}
    bandwidth, node_penalty : float, sequence of float, or None
        A number is fixed, a sequence gives the candidates of a cross-validation, None stands for
        the candidates of the paper.
    dictionary, node_coherence, graph_coherence, max_atoms, prior_ratio, cv :
        As in `GRULSIF`. Beyond 2,000 nodes the cross-validation uses 2,000 of them at random.
    tol : float, default 1e-6
        Largest relative residual of the linear systems.
    random_state : int, numpy Generator, RandomState or None
    progress : bool, default False

    Attributes
    ----------
    coef_, divergence_, dictionary_, bandwidth_, node_penalty_, cv_results_, solution_, nodes_ :
        As in `GRULSIF`; `graph_penalty_` is 1.

    Examples
    --------
    >>> import numpy as np
    >>> import graphratio as gr
    >>> rng = np.random.default_rng(0)
    >>> samples = gr.NodeSamples.from_arrays(rng.normal(size=(3, 80, 1)),
    ...                                      rng.normal(size=(3, 80, 1)) + [[[0]], [[0]], [[1]]])
    >>> model = gr.Pool(bandwidth=1.0, node_penalty=1e-3).fit(samples)
    >>> int(model.divergence_.argmax())
    2
    """

    def __init__(
        self,
        alpha: float = 0.1,
        *,
        kernel: str = "gaussian",
        bandwidth: float | Sequence[float] | None = None,
        node_penalty: float | Sequence[float] | None = None,
        dictionary: Any = "coherence",
        node_coherence: float = 0.1,
        graph_coherence: float = 0.99,
        max_atoms: int | None = None,
        prior_ratio: float = 0.0,
        cv: int = 5,
        tol: float = 1e-6,
        random_state: RandomState = None,
        progress: bool = False,
    ) -> None:
        self.alpha = alpha
        self.kernel = kernel
        self.bandwidth = bandwidth
        self.node_penalty = node_penalty
        self.dictionary = dictionary
        self.node_coherence = node_coherence
        self.graph_coherence = graph_coherence
        self.max_atoms = max_atoms
        self.prior_ratio = prior_ratio
        self.cv = cv
        self.tol = tol
        self.random_state = random_state
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
        return self._fit_on(
            aligned,
            Graph.empty(self.nodes_),
            (1.0,),
            positive_candidates(self.node_penalty, "node_penalty", np.array(NODE_PENALTIES)),
            "auto",
            max_iter=1,
        )
