"""Every node by itself, averaged with the mean field: for small graphs with weak coupling.

Each of the two is right where the other is weak. Setting it up takes no more than an
eigenproblem per node, which on small graphs pays sooner than the levels of `block_multigrid`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from graphratio._utils.typing import FloatArray
from graphratio.moments.objective import GraphObjective
from graphratio.solvers.bases import Basis
from graphratio.solvers.preconditioners.block_multigrid import NodeInverses
from graphratio.solvers.stacks import Linear, Selection


@dataclass(frozen=True, eq=False)
class HalfSum:
    """Half the sum of the mean field and the inverses of A_v + N lam (d_v + gam) I.

    Attributes
    ----------
    mean_field : Linear
    nodes : NodeInverses
    basis : Basis
        Coordinates of what it is applied to.
    """

    mean_field: Linear
    nodes: NodeInverses
    basis: Basis

    @classmethod
    def of(cls, objective: GraphObjective, basis: Basis, mean_field: Linear) -> HalfSum:
        """Set up for an objective in Nystrom form."""
        degrees = objective.laplacian.diagonal()[:, np.newaxis]
        ridge = objective.shape[0] * objective.lam * (degrees + objective.gam)
        blocks = objective.moments.second.dense(compact=True)
        return cls(mean_field, NodeInverses.of(blocks, ridge, 1.0), basis)

    def apply(self, x: FloatArray) -> FloatArray:
        """Average of both."""
        own = self.nodes.apply(self.basis.to_nodes(x).astype(np.float32, copy=False))
        both = self.mean_field.apply(x) + self.basis.from_nodes(own.astype(x.dtype, copy=False))
        return np.asarray(x.dtype.type(0.5) * both)

    def restrict(self, candidates: Selection) -> HalfSum:
        """Keep some of the candidates."""
        return replace(
            self,
            mean_field=self.mean_field.restrict(candidates),
            nodes=self.nodes.restrict(candidates),
        )
