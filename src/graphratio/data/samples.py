"""The data: two samples at every node, checked once and kept as one stacked array."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from graphratio._utils.arrays import NotAnArray, read_only
from graphratio._utils.errors import InputError, listing
from graphratio._utils.typing import BoolArray, FloatArray, IntArray, Label
from graphratio.data import sample_input as read
from graphratio.data.encoding import Encoding
from graphratio.data.frames import Backend, backend_of
from graphratio.data.scaling import Scaling, log_mask
from graphratio.data.validation import as_labels, find_label


@dataclass(frozen=True, eq=False, repr=False)
class NodeSamples(NotAnArray):
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

    @classmethod
    def from_arrays(
        cls,
        reference: Any,
        target: Any,
        nodes: Iterable[Label] | None = None,
        *,
        feature_names: Sequence[str] | None = None,
        missing: str = "error",
    ) -> NodeSamples:
        """Build samples from arrays.

        Parameters
        ----------
        reference, target : list, dict or 3-D array over nodes; or one array for one node
            Each entry has shape (n_observations, n_features), or is 1-D for one feature.
            Dicts are keyed by the label of the node; a label in only one of the two dicts
            is a node without the other sample.
        nodes : iterable of labels, optional
            Labels of the entries of lists, or the order of the keys of dicts. Default
            0 .. n_nodes - 1, or the keys in order of appearance.
        feature_names : sequence of str, optional
            Default the columns of data frames, or x0, x1, ...
        missing : {"error", "drop"}
            What to do with observations that contain NaN.

        Examples
        --------
        >>> import graphratio as gr
        >>> gr.NodeSamples.from_arrays([[1.0, 2.0], [3.0]], [[4.0], [5.0, 6.0]], nodes="ab")
        Traceback (most recent call last):
        ...
        graphratio.exceptions.InputError: nodes is the single string 'ab'. Pass a list of labels.
        >>> gr.NodeSamples.from_arrays([[1.0, 2.0], [3.0]], [[4.0], [5.0, 6.0]])
        NodeSamples(n_nodes=2, n_features=1, n_reference=1..2, n_target=1..2)
        """
        labels = as_labels(nodes) if nodes is not None else None
        pieces = read.pair_up(reference, target, labels)
        names = read.names_for(feature_names, pieces)
        checked = read.without_missing(pieces, names, missing)
        backend = read.backend_in(reference, target)
        return cls._from_pieces(checked, names, labelled=pieces.labelled, backend=backend)

    @classmethod
    def from_frame(
        cls,
        frame: Any,
        node: str,
        sample: str,
        reference: Any,
        target: Any,
        features: Sequence[str] | str | None = None,
        *,
        categorical: Sequence[str] | str | Mapping[str, Sequence[Any]] = (),
        nodes: Iterable[Label] | None = None,
        missing: str = "error",
    ) -> NodeSamples:
        """Build samples from a long table with one row per observation.

        Parameters
        ----------
        frame : pandas or polars data frame
        node : str
            Column with the label of the node.
        sample : str
            Column that says to which sample a row belongs.
        reference, target : object
            The values of that column for the two samples; rows with other values are left out.
        features : str or sequence of str, optional
            Default: all other numeric columns.
        categorical : str, sequence of str, or dict of str to levels, optional
            Further features that hold categories. Each becomes one indicator per level, which
            `standardized` does not change. Columns of a categorical type are recognised. Levels
            are compared as text; default the levels in the table.
        nodes : iterable of labels, optional
            All nodes, in order; default those of the two samples in order of appearance.
            Rows of nodes that are not listed are an error.
        missing : {"error", "drop"}
            What to do with rows that contain missing values.

        Examples
        --------
        >>> import pandas as pd
        >>> import graphratio as gr
        >>> table = pd.DataFrame({
        ...     "station": ["n", "n", "s", "s"], "period": ["before", "after"] * 2,
        ...     "pm25": [11.0, 9.0, 14.0, 15.0],
        ... })
        >>> gr.NodeSamples.from_frame(table, node="station", sample="period",
        ...                           reference="before", target="after", features=["pm25"])
        NodeSamples(n_nodes=2, n_features=1, n_reference=1, n_target=1)
        >>> table["sky"] = ["clear", "rain", "rain", "clear"]
        >>> gr.NodeSamples.from_frame(table, "station", "period", "before", "after",
        ...                           categorical="sky").feature_names
        ('pm25', 'sky=clear', 'sky=rain')
        """
        order = as_labels(nodes) if nodes is not None else None
        pieces, names, encoding = read.from_long_table(
            frame, node, sample, reference, target, features, order, categorical
        )
        checked = read.without_missing(pieces, names, missing)
        if encoding is not None:
            checked = replace(checked, values=encoding.expand(checked.values))
            names = encoding.feature_names
        built = cls._from_pieces(checked, names, labelled=True, backend=backend_of(frame))
        return replace(built, encoding=encoding)

    @classmethod
    def _from_pieces(
        cls,
        pieces: read.Pieces,
        names: tuple[str, ...],
        *,
        labelled: bool,
        backend: Backend = "pandas",
    ) -> NodeSamples:
        values, counts = pieces.stacked()
        reference, target = read_only(counts[0::2].copy()), read_only(counts[1::2].copy())
        return cls(
            pieces.labels, read_only(values), reference, target, names, labelled, backend=backend
        )

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

    @cached_property
    def sizes(self) -> IntArray:
        """Observations of every sample, shape (n_nodes, 2), reference first."""
        return read_only(np.column_stack([self.n_reference, self.n_target]))

    @cached_property
    def offsets(self) -> IntArray:
        """First row of each sample in `values`, shape (2 n_nodes + 1,), reference first."""
        return read_only(np.concatenate([[0], np.cumsum(self.sizes)]))

    @cached_property
    def node_index(self) -> IntArray:
        """Position of the node of every row of `values`, shape (n_observations,)."""
        return read_only(np.repeat(np.arange(self.n_nodes), self.n_reference + self.n_target))

    @cached_property
    def is_target(self) -> BoolArray:
        """True for rows of `values` that belong to a target sample, shape (n_observations,)."""
        return read_only(np.repeat(np.tile([False, True], self.n_nodes), self.sizes.ravel()))

    @cached_property
    def segments(self) -> IntArray:
        """Sample of every row: 2 v for the reference of node v, 2 v + 1 for its target."""
        return read_only(np.repeat(np.arange(2 * self.n_nodes), self.sizes.ravel()))

    @property
    def complete(self) -> BoolArray:
        """True at nodes that have observations in both samples, shape (n_nodes,)."""
        return np.asarray((self.n_reference > 0) & (self.n_target > 0))

    @cached_property
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
            return replace(self, nodes=labels, labelled=True)
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
        labels = self.nodes if nodes is None else as_labels(nodes)
        kept = np.array([find_label(self._positions, label) for label in labels], dtype=np.intp)
        place = np.full(self.n_nodes, -1)
        place[kept] = np.arange(len(kept))
        row_place, sizes = place[self.node_index], self.sizes
        if observations is not None:
            row_place = np.where(observations, row_place, -1)
            counts = np.bincount(self.segments[observations], minlength=2 * self.n_nodes)
            sizes = counts.reshape(-1, 2)
        rows = np.argsort(row_place, kind="stable")[np.count_nonzero(row_place < 0) :]
        return replace(
            self,
            nodes=labels,
            values=read_only(self.values[rows]),
            n_reference=read_only(sizes[kept, 0]),
            n_target=read_only(sizes[kept, 1]),
            labelled=self.labelled or nodes is not None,
        )

    def standardized(
        self, *, log: Sequence[str] | str = (), standardize: bool = True
    ) -> NodeSamples:
        """Return the samples with every feature shifted to mean 0 and scaled to spread 1.

        Mean and standard deviation come from both samples of all nodes together, so that they
        do not see which observation is reference and which target. The transform is remembered:
        a model fitted on the result applies it to new points. A constant feature is shifted
        only, and indicators of categories are left alone.

        Parameters
        ----------
        log : str or sequence of str
            Features whose natural logarithm is taken first; their values must be positive.
        standardize : bool, default True
            With False only the logarithms are taken.

        Examples
        --------
        >>> import graphratio as gr
        >>> samples = gr.NodeSamples.from_arrays([0.0, 2.0], [4.0, 6.0])
        >>> samples.standardized().values.ravel().round(2)
        array([-1.34, -0.45,  0.45,  1.34])
        >>> skewed = gr.NodeSamples.from_arrays([1.0, 10.0], [100.0], feature_names=["pm25"])
        >>> skewed.standardized(log="pm25").values.ravel().round(2)
        array([-1.22,  0.  ,  1.22])
        """
        names = (log,) if isinstance(log, str) else tuple(log)
        if not names and (self.scaling is not None or not standardize):
            return self
        if self.scaling is not None:
            raise InputError(
                "the samples are standardised already, so it is too late for a logarithm",
                "Pass log= where they are standardised",
            )
        logged = log_mask(
            names,
            self.feature_names,
            self.values,
            lambda rows: [self.nodes[v] for v in self.node_index[rows]],
        )
        untouched = None if self.encoding is None else self.encoding.is_indicator
        scaling = Scaling.of(self.values, logged, standardize=standardize, untouched=untouched)
        return self.scaled(scaling)

    def scaled(self, scaling: Scaling | None) -> NodeSamples:
        """Return the samples under a given scaling.

        Samples that carry the same scaling already come back as they are; ones that carry
        another are an error.
        """
        if scaling is None and self.scaling is None:
            return self
        if scaling is not None and scaling.same_as(self.scaling):
            return self
        if self.scaling is not None or scaling is None:
            raise InputError(
                "the samples were standardised in another way than the model's",
                "Pass the samples as they were before standardized(); the model rescales them",
            )
        return replace(self, values=read_only(scaling.apply(self.values)), scaling=scaling)

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
            parts.append("standardised")
        return f"NodeSamples({', '.join(parts)})"


def _span(sizes: IntArray) -> str:
    low, high = int(sizes.min()), int(sizes.max())
    return f"{low}" if low == high else f"{low}..{high}"
