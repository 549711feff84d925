"""The data: two samples at every node, checked once and kept as one stacked array."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from graphratio._utils.arrays import NotAnArray, read_only
from graphratio._utils.errors import listing
from graphratio._utils.html import samples_html
from graphratio._utils.threads import computed_once
from graphratio._utils.typing import BoolArray, FloatArray, IntArray, Label
from graphratio.data import sample_input as read
from graphratio.data.block_cutting import blocks_of, joint_blocks
from graphratio.data.blocks import Blocks
from graphratio.data.checks import DataChecks, check_samples
from graphratio.data.durations import check_block
from graphratio.data.encoding import Encoding
from graphratio.data.frames import Backend
from graphratio.data.sample_readers import SampleReaders
from graphratio.data.sample_scaling import SampleScaling
from graphratio.data.scaling import Scaling
from graphratio.data.validation import as_labels, find_label


@dataclass(frozen=True, eq=False, repr=False)
class NodeSamples(SampleReaders, SampleScaling, NotAnArray):
    """A reference and a target sample at every node.

    Build one with `from_arrays` or `from_frame`. Sizes may differ between nodes and between
    the two samples, and a node may lack one of them or both.

    Attributes
    ----------
    nodes : tuple of labels, length n_nodes
    values : ndarray of shape (n_observations, n_features)
        All observations, node after node, the reference sample of a node before its target
        sample; read-only.
    n_reference, n_target : ndarray of shape (n_nodes,)
        Sizes of the two samples.
    feature_names : tuple of str, length n_features
    labelled : bool
        False where the labels are just 0 .. n_nodes - 1 because none were given.
    scaling : Scaling or None
        The transform that `standardized` applied to the features.
    encoding : Encoding or None
        How categorical columns became features.
    backend : {"pandas", "polars"}
        Library of returned tables.
    time : ndarray of shape (n_observations,), or None
        When each observation was made: float64, or datetime64[us] by the local clock; read-only.
    block : "auto", None, int or str
        The argument `block` as given; `blocks` has the resulting blocks.

    Examples
    --------
    >>> import numpy as np
    >>> import graphratio as gr
    >>> samples = gr.NodeSamples.from_arrays(
    ...     reference={"a": np.zeros((5, 2)), "b": np.zeros((4, 2))},
    ...     target={"a": np.ones((3, 2)), "b": np.ones((6, 2))},
    ... )
    >>> samples
    NodeSamples(n_nodes=2, n_features=2, n_reference=4..5, n_target=3..6)
    >>> samples.target("b").shape
    (6, 2)
    """

    nodes: tuple[Label, ...]
    values: FloatArray
    n_reference: IntArray
    n_target: IntArray
    feature_names: tuple[str, ...]
    labelled: bool = True
    scaling: Scaling | None = None
    backend: Backend = "pandas"
    encoding: Encoding | None = None
    time: np.ndarray | None = None
    block: Any = "auto"
    # A subset keeps the blocks of the samples that it was taken from.
    inherited: Blocks | None = None

    @property
    def n_nodes(self) -> int:
        """Number of nodes."""
        return len(self.nodes)

    @property
    def n_features(self) -> int:
        """Number of features of an observation."""
        return int(self.values.shape[1])

    @property
    def n_observations(self) -> int:
        """Number of observations of all nodes and both samples."""
        return int(self.values.shape[0])

    @computed_once
    def sizes(self) -> IntArray:
        """Observations of every sample, shape (n_nodes, 2), reference first."""
        return read_only(np.column_stack([self.n_reference, self.n_target]))

    @computed_once
    def offsets(self) -> IntArray:
        """First row of each sample in `values`, shape (2 n_nodes + 1,), reference first."""
        return read_only(np.concatenate([[0], np.cumsum(self.sizes)]))

    @computed_once
    def node_index(self) -> IntArray:
        """Position of the node of every row of `values`, shape (n_observations,)."""
        return read_only(np.repeat(np.arange(self.n_nodes), self.n_reference + self.n_target))

    @computed_once
    def is_target(self) -> BoolArray:
        """True for rows of `values` that belong to a target sample, shape (n_observations,)."""
        return read_only(np.repeat(np.tile([False, True], self.n_nodes), self.sizes.ravel()))

    @computed_once
    def segments(self) -> IntArray:
        """Sample of every row: 2 v for the reference of node v, 2 v + 1 for its target."""
        return read_only(np.repeat(np.arange(2 * self.n_nodes), self.sizes.ravel()))

    @property
    def complete(self) -> BoolArray:
        """True at nodes that have observations in both samples, shape (n_nodes,)."""
        return np.asarray((self.n_reference > 0) & (self.n_target > 0))

    @computed_once
    def _positions(self) -> dict[Label, int]:
        return {label: position for position, label in enumerate(self.nodes)}

    def reference(self, node: Label) -> FloatArray:
        """Reference sample of a node, shape (n_reference, n_features)."""
        return self._sample(2 * find_label(self._positions, node))

    def target(self, node: Label) -> FloatArray:
        """Target sample of a node, shape (n_target, n_features)."""
        return self._sample(2 * find_label(self._positions, node) + 1)

    def _sample(self, segment: int) -> FloatArray:
        return self.values[self.offsets[segment] : self.offsets[segment + 1]]

    @classmethod
    def _from_pieces(
        cls,
        pieces: read.Pieces,
        names: tuple[str, ...],
        block: Any,
        *,
        labelled: bool,
        backend: Backend,
        encoding: Encoding | None = None,
    ) -> NodeSamples:
        order, counts = pieces.order, pieces.sizes
        time = None if pieces.time is None else read_only(pieces.time[order])
        return cls(
            pieces.labels,
            read_only(np.ascontiguousarray(pieces.values[order])),
            read_only(counts[:, 0].copy()),
            read_only(counts[:, 1].copy()),
            names,
            labelled,
            backend=backend,
            encoding=encoding,
            time=time,
            block=check_block(block, time),
        )

    @computed_once
    def blocks(self) -> Blocks:
        """Which observations belong together, and why.

        Examples
        --------
        >>> import numpy as np
        >>> import graphratio as gr
        >>> hours = np.arange("2020-03-01", "2020-03-09", dtype="datetime64[h]")
        >>> noise = np.random.default_rng(0).normal(size=202)
        >>> smooth = np.convolve(noise, np.ones(11) / 11, mode="valid")
        >>> samples = gr.NodeSamples.from_arrays(
        ...     smooth[:96], smooth[96:], time=(hours[:96], hours[96:]))
        >>> print(samples.blocks.describe())
        Observations are autocorrelated: 0.92 at lag 1, 0.84 of their squares, typically over 5
        observations; blocks of 2 days are kept together
        """
        if self.inherited is not None:
            return self.inherited
        return blocks_of(self, self.time, self.block)

    def aligned(self, nodes: Sequence[Label]) -> NodeSamples:
        """Return the same samples with the nodes in the given order.

        Unlabelled samples take the labels by position. An error lists the labels that do not
        match.

        Examples
        --------
        >>> import graphratio as gr
        >>> samples = gr.NodeSamples.from_arrays({"a": [1.0], "b": [2.0]}, {"a": [3.0], "b": [4.0]})
        >>> samples.aligned(["b", "a"]).reference("b")
        array([[2.]])
        """
        if nodes == self.nodes:
            return self
        labels = as_labels(nodes)
        if not self.labelled:
            read.check_order(self.n_nodes, labels)
            scaling = self.scaling
            if scaling is not None and scaling.nodes is not None:
                scaling = replace(scaling, nodes=labels)
            return replace(self, nodes=labels, labelled=True, scaling=scaling)
        read.check_same_labels(self.nodes, labels)
        return self.subset(labels)

    def subset(
        self, nodes: Sequence[Label] | None = None, *, observations: BoolArray | None = None
    ) -> NodeSamples:
        """Return the samples of some nodes, or some of the observations of every node.

        Parameters
        ----------
        nodes : sequence of labels, optional
            Nodes to keep, in the order wanted. Default all.
        observations : ndarray of bool, shape (n_observations,), optional
            Rows of `values` to keep. A node may lose all of its rows. Default all.

        Examples
        --------
        >>> import graphratio as gr
        >>> samples = gr.NodeSamples.from_arrays([[1.0, 2.0], [3.0]], [[4.0], [5.0]])
        >>> samples.subset([1]).values.ravel()
        array([3., 5.])
        >>> samples.subset(observations=samples.values[:, 0] > 1).sizes
        array([[1, 1],
               [1, 1]])
        """
        labels, kept = self.nodes, np.arange(self.n_nodes)
        if nodes is not None:
            labels = as_labels(nodes)
            kept = np.array([find_label(self._positions, label) for label in labels], dtype=np.intp)
        place = np.full(self.n_nodes, -1)
        place[kept] = np.arange(len(kept))
        row_place, sizes = place[self.node_index], self.sizes
        if observations is not None:
            row_place = np.where(observations, row_place, -1)
            counts = np.bincount(self.segments[observations], minlength=2 * self.n_nodes)
            sizes = counts.reshape(-1, 2)
        rows = np.argsort(row_place, kind="stable")[np.count_nonzero(row_place < 0) :]
        part = replace(
            self,
            nodes=labels,
            values=read_only(self.values[rows]),
            n_reference=read_only(sizes[kept, 0]),
            n_target=read_only(sizes[kept, 1]),
            labelled=self.labelled or nodes is not None,
            scaling=None if self.scaling is None else self.scaling.for_nodes(labels),
            time=None if self.time is None else read_only(self.time[rows]),
        )
        if not self.has_blocks:
            return part
        # The kept rows of a block still form one block.
        return replace(part, inherited=self.blocks.of_rows(rows, part.segments, kept))

    def check(self) -> DataChecks:
        """Look for common problems of data, without changing anything.

        The checks look for duplicates, spikes at one value, outliers, uneven scales, few
        observations, stuck sensors, samples that overlap in time or cover different seasons, and
        rows that look autocorrelated although no times were given. Each finding names the nodes
        and the option that would help.

        Examples
        --------
        >>> import numpy as np
        >>> import graphratio as gr
        >>> reference, target = np.random.default_rng(0).normal(size=(2, 3, 50))
        >>> gr.NodeSamples.from_arrays(list(reference), list(target)).check()
        no findings
        """
        return check_samples(self)

    def jointly_blocked(self) -> NodeSamples:
        """Return the samples with blocks of time that span all nodes."""
        if self.time is None or self.blocks.shared:
            return self
        return replace(self, inherited=joint_blocks(self, self.time, self.blocks))

    def exchangeable(self) -> NodeSamples:
        """Return the samples with blocks that are long enough for a permutation."""
        if not self.has_blocks or self.blocks.exchange == 1:
            return self
        blocks = self.blocks.merged(self.blocks.exchange, self.segments, self.n_nodes)
        return replace(self, inherited=blocks)

    @property
    def has_blocks(self) -> bool:
        """Whether observations may belong together: there are times, or blocks were given."""
        return self.block is not None and (self.time is not None or self.block != "auto")

    def __len__(self) -> int:
        return self.n_nodes

    def __repr__(self) -> str:
        parts = [
            f"n_nodes={self.n_nodes}",
            f"n_features={self.n_features}",
            f"n_reference={_span(self.n_reference)}",
            f"n_target={_span(self.n_target)}",
        ]
        if lacking := [self.nodes[i] for i in np.flatnonzero(~self.complete)]:
            parts.append(f"without one of the samples: {listing(lacking)}")
        if self.encoding is not None:
            parts.append(f"categorical: {listing(self.encoding.levels)}")
        if self.scaling is not None:
            parts.append(self.scaling.words)
        return f"NodeSamples({', '.join(parts)})"

    def _repr_html_(self) -> str:
        """Table for notebooks."""
        return samples_html(self)


def _span(sizes: IntArray) -> str:
    low, high = int(sizes.min()), int(sizes.max())
    return f"{low}" if low == high else f"{low}..{high}"
