"""Methods of fitted models that say how much of an estimate is borrowed, and from whom."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from graphratio._utils.typing import FloatArray, Label
from graphratio.data import frames
from graphratio.data.graph import Graph
from graphratio.estimators.base import NodeRatioEstimator
from graphratio.estimators.borrowing import Borrowing
from graphratio.moments.directions import Directions
from graphratio.moments.node_moments import Moments


class BorrowingMixin(NodeRatioEstimator):
    """What models keep of their data to tell how far these reach over the graph."""

    graph_penalty_: float
    node_penalty_: float
    direction_weights_: FloatArray
    direction_moments_: FloatArray

    def _keep_directions(self, psi: FloatArray, moments: Moments) -> None:
        """Keep what says how far the data of a node reach; a part of the features will do."""
        kept = Directions.of(moments, psi.mean(axis=0))
        self.direction_weights_, self.direction_moments_ = kept.weights, kept.moments
        self.__dict__.pop("_reach", None)

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
        return frames.make_frame(columns, self.backend_)

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
            f"  solver: {self.solution_.describe()}, residual {self.solution_.residual:.1g}"
        )
