"""Importance weights of the reference observations, and whether they can be trusted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from graphratio._utils.arrays import read_only
from graphratio._utils.errors import OverlapWarning, listing, warn_caller
from graphratio._utils.html import rows_table, titled
from graphratio._utils.threads import computed_once
from graphratio._utils.typing import BoolArray, FloatArray, IntArray, Label
from graphratio.data import frames
from graphratio.data.samples import NodeSamples
from graphratio.data.validation import find_label

# A target observation is uncovered where the target has this many times the density of the
# reference: one reference observation would have to stand for ten.
UNCOVERED_RATIO = 10.0
# Weights are doubtful above this share of uncovered target observations, and below this effective
# share or size of the reference.
UNCOVERED_SHARE = 0.5
EFFECTIVE_SHARE = 0.1
EFFECTIVE_SIZE = 5


@dataclass(frozen=True, eq=False, repr=False)
class ImportanceWeights(Mapping[Label, FloatArray]):
    """Weights of the reference observations of every node, with mean one at each node.

    A mapping from the label of a node to its weights, which scikit-learn takes as
    ``sample_weight``. As an array it holds the weights of all nodes, one after the other, for one
    model on the reference observations of all nodes.

    Attributes
    ----------
    nodes, n_reference : tuple of labels, and ndarray of shape (n_nodes,)
    sample_weight : ndarray of shape (n_rows,)
        Weights of all nodes, in the order of `nodes`; read-only.
    is_clipped : ndarray of bool, shape (n_rows,)
        Where the estimated ratio was outside the range of the true ratio.
    uncovered_share : ndarray of shape (n_nodes,)
        Share of the target observations where the estimated target density is at least ten
        times that of the reference. NaN without target observations.
    relative : bool
        True for weights by the relative ratio, False for the plain one.
    backend : {"pandas", "polars"}

    Examples
    --------
    >>> import numpy as np
    >>> import graphratio as gr
    >>> from sklearn.linear_model import LinearRegression
    >>> rng = np.random.default_rng(0)
    >>> reference, target = rng.normal(size=(2, 40, 1)), rng.normal(0.5, 1, size=(2, 40, 1))
    >>> model = gr.GRULSIF(bandwidth=1.0, graph_penalty=0.2, ridge=0.02)
    >>> graph = gr.Graph.from_edges([("a", "b")])
    >>> weights = model.fit((reference, target), graph).importance_weights((reference, target))
    >>> weights
    ImportanceWeights(n_nodes=2, n_rows=80, effective share 0.88..0.96, clipped 0%)
    >>> weights["a"].shape, round(float(weights["a"].mean()), 6)
    ((40,), 1.0)
    >>> one = LinearRegression().fit(reference[0], reference[0] ** 2, sample_weight=weights["a"])
    >>> x, y = reference.reshape(-1, 1), reference.reshape(-1) ** 2
    >>> pooled = LinearRegression().fit(x, y, sample_weight=weights)
    """

    nodes: tuple[Label, ...]
    n_reference: IntArray
    sample_weight: FloatArray
    is_clipped: BoolArray
    uncovered_share: FloatArray
    relative: bool
    backend: frames.Backend = "pandas"

    @computed_once
    def weights(self) -> dict[Label, FloatArray]:
        """Weights by node."""
        pieces = np.split(self.sample_weight, np.cumsum(self.n_reference)[:-1])
        return dict(zip(self.nodes, pieces, strict=True))

    def __getitem__(self, node: Label) -> FloatArray:
        return self.weights[self.nodes[find_label(self._positions, node)]]

    def __contains__(self, node: object) -> bool:
        return node in self._positions

    def __iter__(self) -> Iterator[Label]:
        return iter(self.nodes)

    def __len__(self) -> int:
        return len(self.nodes)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.array(self.sample_weight, dtype=dtype, copy=True)

    @computed_once
    def effective_sample_size(self) -> FloatArray:
        """Number of equally weighted observations with the same information, shape (n_nodes,).

        (sum w)^2 / sum w^2; 0 where all weights are zero, NaN without reference observations.
        """
        total = _sums_by_node(self.sample_weight, self.n_reference)
        squares = _sums_by_node(self.sample_weight**2, self.n_reference)
        sizes = np.divide(total**2, squares, out=np.zeros(len(self)), where=squares > 0)
        return read_only(np.where(self.n_reference > 0, sizes, np.nan))

    @computed_once
    def clipped_share(self) -> FloatArray:
        """Share of reference observations whose ratio was clipped, shape (n_nodes,)."""
        clipped = _sums_by_node(self.is_clipped.astype(np.float64), self.n_reference)
        return read_only(_share(clipped, self.n_reference))

    @computed_once
    def is_doubtful(self) -> BoolArray:
        """True at nodes with an overlap warning, shape (n_nodes,).

        These have fewer than 5 effective observations (half of them if there are fewer than
        ten), an effective share below a tenth, or more than half of the target uncovered.
        """
        few = self.effective_sample_size < least_effective(self.n_reference)
        with np.errstate(invalid="ignore"):
            return read_only(few | (self.uncovered_share > UNCOVERED_SHARE))

    def to_frame(self) -> Any:
        """One row per node: sizes and diagnostics. Polars if the samples came from polars."""
        columns: dict[str, Any] = {
            "node": list(self.nodes),
            "n_reference": self.n_reference,
            "effective_sample_size": self.effective_sample_size,
            "clipped_share": self.clipped_share,
            "uncovered_share": self.uncovered_share,
            "is_doubtful": self.is_doubtful,
        }
        return frames.make_frame(columns, self.backend)

    @computed_once
    def _positions(self) -> dict[Label, int]:
        return {label: position for position, label in enumerate(self.nodes)}

    @computed_once
    def _effective_share(self) -> FloatArray:
        return _share(self.effective_sample_size, self.n_reference)

    def __repr__(self) -> str:
        known = self._effective_share[self.n_reference > 0]
        share = f"{known.min():.2f}..{known.max():.2f}" if known.size else "unknown"
        clipped = f"{self.is_clipped.mean():.0%}" if self.is_clipped.size else "0%"
        doubtful = self._worst()
        return (
            f"ImportanceWeights(n_nodes={len(self)}, n_rows={self.sample_weight.size}, "
            f"effective share {share}, clipped {clipped}"
            + (f", doubtful at {listing(doubtful)})" if doubtful else ")")
        )

    def _repr_html_(self) -> str:
        order = np.argsort(self._effective_share, kind="stable")[:5]
        rows = (
            (
                str(self.nodes[i]),
                f"{self.n_reference[i]:,}",
                f"{self.effective_sample_size[i]:.1f}",
                f"{self.clipped_share[i]:.0%}",
                f"{self.uncovered_share[i]:.0%}",
            )
            for i in order
        )
        head = ("smallest effective size", "reference", "effective", "clipped", "uncovered target")
        doubtful = f", doubtful at {int(self.is_doubtful.sum()):,}"
        return titled(f"weights at {len(self):,} nodes{doubtful}", rows_table(head, rows))

    def _worst(self) -> list[Label]:
        """Doubtful nodes, the smallest effective share first."""
        doubtful = np.flatnonzero(self.is_doubtful)
        order = np.argsort(self._effective_share[doubtful], kind="stable")
        return [self.nodes[i] for i in doubtful[order]]

    def warn(self) -> None:
        """Warn about nodes where reference and target hardly overlap."""
        worst = self._worst()
        if worst:
            warn_caller(
                "a model with these weights relies on very few reference observations, or the "
                f"target lies where the reference has none, at {len(worst)} nodes, worst first: "
                f"{listing(worst)}. Use relative=True or a larger alpha for flatter weights, or "
                "collect reference observations at these nodes",
                OverlapWarning,
            )


def least_effective(n_reference: Any) -> Any:
    """Effective sample size below which weights are doubtful, for one node or an array."""
    few = np.minimum(EFFECTIVE_SIZE, np.asarray(n_reference) / 2)
    return np.maximum(EFFECTIVE_SHARE * np.asarray(n_reference), few)


def effective_size(weights: FloatArray) -> float:
    """(sum w)^2 / sum w^2, 0 where all weights are zero."""
    squares = float(np.square(weights).sum())
    return float(weights.sum() ** 2 / squares) if squares else 0.0


def weights_from_ratios(
    ratios: FloatArray, samples: NodeSamples, alpha: float, relative: bool
) -> ImportanceWeights:
    """Weights with mean one at every node, from its unclipped relative ratios r.

    The plain ratio (1 - alpha) r / (1 - alpha r) is clipped to the size of the sample, since no
    weight can be larger if the mean is one.
    """
    sizes = samples.n_reference
    raw = ratios[~samples.is_target]
    if relative or not alpha:
        upper = np.full(len(raw), 1 / alpha if alpha else np.inf)
        values = np.clip(raw, 0.0, upper)
    else:
        # At `upper` the plain ratio equals the size of the sample. `upper` is below 1 / alpha, so
        # nothing is divided by zero.
        limit = np.repeat(sizes, sizes).astype(np.float64)
        upper = limit / (1 - alpha + alpha * limit)
        values = np.clip(raw, 0.0, upper)
        values = (1 - alpha) * values / (1 - alpha * values)
    means = np.repeat(_sums_by_node(values, sizes) / np.maximum(sizes, 1), sizes)
    beyond = ratios[samples.is_target] >= UNCOVERED_RATIO / (1 - alpha + alpha * UNCOVERED_RATIO)
    uncovered = _sums_by_node(beyond.astype(np.float64), samples.n_target)
    return ImportanceWeights(
        nodes=samples.nodes,
        n_reference=sizes,
        sample_weight=read_only(np.divide(values, means, out=values, where=means > 0)),
        is_clipped=read_only((raw < 0) | (raw > upper)),
        uncovered_share=read_only(_share(uncovered, samples.n_target)),
        relative=relative,
        backend=samples.backend,
    )


def _share(values: FloatArray, sizes: IntArray) -> FloatArray:
    """Values per observation; NaN without observations."""
    shares: FloatArray = np.full(len(sizes), np.nan)
    np.divide(values, sizes, out=shares, where=sizes > 0)
    return shares


def _sums_by_node(values: FloatArray, sizes: IntArray) -> FloatArray:
    node = np.repeat(np.arange(len(sizes)), sizes)
    return np.bincount(node, weights=values, minlength=len(sizes)).astype(np.float64)
