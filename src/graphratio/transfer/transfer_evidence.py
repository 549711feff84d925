"""Why each node is reweighted or not: a table, and one sentence per node."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from graphratio._utils.errors import OverlapWarning, listing, warn_caller
from graphratio._utils.html import rows_table, titled
from graphratio._utils.typing import BoolArray, FloatArray, IntArray, Label
from graphratio.data import frames
from graphratio.data.samples import NodeSamples
from graphratio.data.validation import find_label
from graphratio.estimators.weights import ImportanceWeights, effective_size
from graphratio.evaluation.pieces import Answered, IndependentPieces
from graphratio.transfer.safeguards import LEAST_OVERLAP, NodePowers, Reason, lacks_overlap
from graphratio.transfer.shift import testable_pieces
from graphratio.transfer.trials import WeightTrial
from graphratio.transfer.weight_powers import sharpened

# Rows of the table for notebooks.
_SHOWN = 8


@dataclass(frozen=True, eq=False, repr=False)
class TransferEvidence(Answered):
    """What the data say about reweighting each node.

    Attributes
    ----------
    nodes, sizes : tuple of labels, and ndarray of shape (n_nodes, 2)
        Numbers of reference and target observations.
    p_values : ndarray of shape (n_nodes,)
        P-values of "no shift"; NaN where not tested.
    overlap : ndarray of shape (n_nodes,)
        About 1 if the nearest neighbours of target observations are reference observations as
        often as without a shift, 0 if they never are; no overlap below 0.2. NaN, as the fields
        below, at nodes without evidence of a shift.
    uncovered_share : ndarray of shape (n_nodes,)
        As in `ImportanceWeights`, for every node with a target.
    full_power : float
        Power of the weights before any safeguard, one for all nodes.
    full_effective_size : ndarray of shape (n_nodes,)
        Effective sample size with weights to the full power.
    loss_weighted, loss_unweighted, loss_error : ndarray of shape (n_nodes,)
        Held-out loss with weights to the full power and without weights, each weighted to look
        like the target, and the standard error of the difference.
    power : ndarray of shape (n_nodes,)
        The power that is used; 0 means equal weights.
    effective_size : ndarray of shape (n_nodes,)
        Effective sample size of the weights that are used.
    reason : tuple of str
        "shift" (full power), "no shift", "no reference" (the model of all nodes), "no overlap",
        "all nodes", "few effective", "held-out loss", or "given".
    pieces : IndependentPieces
        See `answerable`, `answerable_nodes` and `n_pieces`. A node that is not answerable was
        not tested for a shift and follows its neighbours.

    Examples
    --------
    >>> import warnings
    >>> import numpy as np
    >>> import graphratio as gr
    >>> from sklearn.linear_model import LinearRegression
    >>> rng = np.random.default_rng(0)
    >>> reference = rng.normal(size=(3, 50, 1))
    >>> target = rng.normal(size=(3, 50, 1)) + np.array([0, 0, 8])[:, None, None]
    >>> model = gr.NodewiseTransfer(LinearRegression(), gr.RULSIF(), random_state=0)
    >>> with warnings.catch_warnings(action="ignore"):
    ...     model = model.fit((reference, target), reference[:, :, 0] ** 2)
    >>> model.evidence_.reason[2], model.evidence_.verdict[2]
    ('no overlap', 'equal weights')
    >>> model.evidence_.describe(2)[:75]
    'Equal weights: the overlap is 0.00 (1 without a shift, 0 for samples that l'
    """

    nodes: tuple[Label, ...]
    sizes: IntArray
    p_values: FloatArray
    overlap: FloatArray
    uncovered_share: FloatArray
    full_power: float
    full_effective_size: FloatArray
    loss_weighted: FloatArray
    loss_unweighted: FloatArray
    loss_error: FloatArray
    power: FloatArray
    effective_size: FloatArray
    reason: tuple[Reason, ...]
    pieces: IndependentPieces
    backend: frames.Backend = "pandas"

    @classmethod
    def of(
        cls,
        samples: NodeSamples,
        p_values: FloatArray,
        weights: ImportanceWeights,
        overlap: FloatArray,
        found: NodePowers,
        trials: Mapping[int, WeightTrial],
    ) -> TransferEvidence:
        """Collect what is known of every node; `weights` are those before powers."""
        full, used, weighted, unweighted, error = np.full((5, samples.n_nodes), np.nan)
        for v in np.flatnonzero(samples.n_reference).tolist():
            own = weights[samples.nodes[v]]
            used[v] = effective_size(sharpened(own, found.power[v]))
            if found.reason[v] != "no shift":
                full[v] = effective_size(sharpened(own, found.full))
        for v, trial in trials.items():
            weighted[v], unweighted[v] = trial.loss(found.full), trial.loss(0.0)
            error[v] = trial.excess(found.full)[1]
        return cls(
            nodes=samples.nodes,
            sizes=samples.sizes,
            p_values=p_values,
            overlap=overlap,
            uncovered_share=weights.uncovered_share,
            full_power=found.full,
            full_effective_size=full,
            loss_weighted=weighted,
            loss_unweighted=unweighted,
            loss_error=error,
            power=found.power,
            effective_size=used,
            reason=tuple(
                own if n else "no reference"
                for own, n in zip(found.reason, samples.n_reference, strict=True)
            ),
            pieces=testable_pieces(samples),
            backend=samples.backend,
        )

    @property
    def verdict(self) -> tuple[str, ...]:
        """Verdict on every node: "reweighted", "flattened" (weaker power) or "equal weights"."""
        return tuple(
            "equal weights"
            if not power
            else "flattened"
            if power < self.full_power
            else "reweighted"
            for power in self.power
        )

    @property
    def lacks_overlap(self) -> BoolArray:
        """Nodes with a shift whose target the reference does not cover, shape (n_nodes,)."""
        return self._shifted & lacks_overlap(self.overlap, self.uncovered_share)

    @property
    def _shifted(self) -> BoolArray:
        return ~np.isin(self.reason, ["no shift", "no reference"])

    def to_frame(self) -> Any:
        """One row per node; polars if the samples came from polars."""
        columns: dict[str, Any] = {
            "node": list(self.nodes),
            "n_reference": self.sizes[:, 0],
            "n_target": self.sizes[:, 1],
            "p_value": self.p_values,
            "answerable": self.answerable_nodes,
            "reweighted": self.power > 0,
            "power": self.power,
            "effective_sample_size": self.effective_size,
            "full_effective_size": self.full_effective_size,
            "overlap": self.overlap,
            "uncovered_share": self.uncovered_share,
            "loss_weighted": self.loss_weighted,
            "loss_unweighted": self.loss_unweighted,
            "loss_error": self.loss_error,
            "verdict": list(self.verdict),
            "reason": list(self.reason),
            "explanation": [self.describe(node) for node in self.nodes],
        }
        return frames.make_frame(columns, self.backend)

    def describe(self, node: Label) -> str:
        """One sentence on a node: what was decided, and why."""
        v = find_label({label: place for place, label in enumerate(self.nodes)}, node)
        return f"{self.verdict[v].capitalize()}: {self._because(v)}."

    @property
    def outcome(self) -> str:
        """How many nodes are reweighted, and why others with a shift are not."""
        if not self.answerable:
            return self.pieces.cannot_say("which nodes shifted")
        text = (
            f"{np.count_nonzero(self.power)} of {np.count_nonzero(self._shifted)} nodes with a "
            "shift are reweighted"
        )
        lacking = [self.nodes[v] for v in np.flatnonzero(self.lacks_overlap)]
        return f"{text}; no overlap at {listing(lacking)}" if lacking else text

    def __repr__(self) -> str:
        return f"TransferEvidence(n_nodes={len(self.nodes)})\n  {self.outcome}"

    def _repr_html_(self) -> str:
        """Table for notebooks: the nodes with the strongest weights."""
        order = np.argsort(-np.nan_to_num(self.power), kind="stable")[:_SHOWN]
        body = [
            (
                str(self.nodes[v]),
                f"{self.power[v]:.2g}",
                f"{self.effective_size[v]:.3g}",
                str(self.reason[v]),
            )
            for v in order
        ]
        head = ("strongest weights", "power", "effective sample size", "reason")
        return titled(self.outcome, rows_table(head, body))

    def warn(self) -> None:
        """Warn about nodes whose reference does not cover their target."""
        lacking = np.flatnonzero(self.lacks_overlap & (self.power == 0))
        if not lacking.size:
            return
        order = np.argsort(np.nan_to_num(self.overlap[lacking], nan=1.0), kind="stable")
        where = f"{lacking.size} node{'s' * (lacking.size > 1)}"
        worst = listing([self.nodes[v] for v in lacking[order]])
        warn_caller(
            "the target lies where the reference has hardly any observations at "
            f"{where}, worst first: {worst}. Their models are not reweighted and extrapolate; "
            "collect reference observations there.",
            OverlapWarning,
        )

    def _because(self, v: int) -> str:
        reason = self.reason[v]
        if reason == "no reference":
            return "the node has no reference observations and uses the model of all nodes"
        if reason == "no shift":
            if self.answerable_nodes[v]:
                return f"no evidence of a shift (p = {self.p_values[v]:.2g})"
            return (
                "these data cannot say whether the node shifted, and its neighbours give no "
                "evidence of a shift"
            )
        effective = (
            f"{self.full_effective_size[v]:.1f} of {self.sizes[v, 0]} observations are effective"
        )
        losses = (
            ""
            if np.isnan(self.loss_weighted[v])
            else f"; the held-out loss is {self.loss_weighted[v]:.3g} with the full weights and "
            f"{self.loss_unweighted[v]:.3g} without, standard error of the difference "
            f"{self.loss_error[v]:.2g}"
        )
        if reason == "no overlap":
            why = f"the ratio leaves {100 * self.uncovered_share[v]:.0f} % of the target uncovered"
            if self.overlap[v] < LEAST_OVERLAP:
                why = (
                    f"the overlap is {self.overlap[v]:.2f} (1 without a shift, 0 for samples that "
                    "lie apart)"
                )
            return f"{why}; with the full weights {effective}"
        why = {
            "all nodes": "over all nodes the full weights do not clearly lower the held-out loss",
            "few effective": f"with the full weights only {effective}",
            "held-out loss": "the full weights raise the held-out loss of this node",
            "given": "the power was given",
            "shift": f"with evidence of a shift (p = {self.p_values[v]:.2g})"
            if np.isfinite(self.p_values[v])
            else "too few observations to test, but the neighbours shifted"
            if not self.answerable_nodes[v]
            else "level=1 reweights every node",
        }[reason]
        power = (
            f", so they are raised to the power {self.power[v]:g} instead of {self.full_power:g}"
        )
        return why + (power if 0 < self.power[v] < self.full_power else "") + losses
