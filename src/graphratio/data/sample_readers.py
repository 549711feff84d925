"""Ways to build samples, from arrays and from tables."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Self

from graphratio._utils.typing import Label
from graphratio.data import sample_input as read
from graphratio.data.frames import backend_of
from graphratio.data.times import times_of_nodes
from graphratio.data.validation import as_labels
from graphratio.data.xarray_input import stacked_table, two_parts


class SampleReaders(ABC):
    """The constructors of `NodeSamples`."""

    @classmethod
    @abstractmethod
    def _from_pieces(cls, pieces: read.Pieces, *args: Any, **options: Any) -> Self:
        """Stack checked observations."""

    @classmethod
    def from_arrays(
        cls,
        reference: Any,
        target: Any,
        nodes: Iterable[Label] | None = None,
        *,
        feature_names: Sequence[str] | None = None,
        missing: str = "error",
        time: Any = None,
        block: Any = "auto",
    ) -> Self:
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
            What to do with observations that contain NaN, or have no time.
        time : tuple (reference, target), optional
            When the observations were made. For each sample a list or dict over nodes of
            sequences as long as the node's sample, or one sequence for all nodes. Numbers, dates
            of NumPy, Python, pandas or polars, or text such as 2020-03-01T14:30. Times with a
            zone are read by the clock of that zone, so that days begin at local midnight.
        block : "auto", None, int or str, default "auto"
            Observations that depend on each other, and so stay together in folds, permutations
            and intervals. "auto" measures how far they depend on earlier ones, if there are
            times. An int is a number of successive observations (in the order of `time`, or as
            given), a str a duration such as "1D", "6h" or "30min". None: all are independent.

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
        if time is not None:
            pieces = replace(pieces, time=times_of_nodes(time, pieces.labels, pieces.sizes))
        checked = read.without_missing(pieces, names, missing)
        backend = read.backend_in(reference, target)
        return cls._from_pieces(checked, names, block, labelled=pieces.labelled, backend=backend)

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
        time: str | None = None,
        block: Any = "auto",
    ) -> Self:
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
        time : str, optional
            Column that says when a row was observed, with times as in `from_arrays`. Times with a
            zone are read by the clock of that zone, so that days begin at local midnight.
        block : "auto", None, int or str, default "auto"
            Observations that stay together, as in `from_arrays`.

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
        roles = read.Roles(node, sample, features, categorical, time)
        pieces, names, encoding = read.from_long_table(frame, roles, (reference, target), order)
        checked = read.without_missing(pieces, names, missing)
        if encoding is not None:
            checked = replace(checked, values=encoding.expand(checked.values))
            names = encoding.feature_names
        return cls._from_pieces(
            checked, names, block, labelled=True, backend=backend_of(frame), encoding=encoding
        )

    @classmethod
    def from_xarray(
        cls,
        data: Any,
        node: str,
        reference: Any,
        target: Any,
        *,
        sample: str | None = None,
        time: str | None = "time",
        feature: str | None = None,
        missing: str = "error",
        block: Any = "auto",
    ) -> Self:
        """Build samples from labelled arrays of xarray.

        Parameters
        ----------
        data : xarray.DataArray or xarray.Dataset
            With a dimension of nodes and others of observations. The variables of a Dataset are
            the features.
        node : str
            Dimension of the nodes; its coordinate has their labels.
        reference, target : slice or object
            What belongs to each sample: with `sample` a value of that coordinate, otherwise a
            slice or label of `time`, such as slice("2019-01", "2019-03").
        sample : str, optional
            Coordinate that says to which sample an observation belongs.
        time : str or None, default "time"
            Coordinate of the times, used if it exists, as in `from_arrays`.
        feature : str, optional
            Dimension of the features of a DataArray.
        missing : {"error", "drop"}
            What to do with observations that contain NaN.
        block : "auto", None, int or str, default "auto"
            Observations that stay together, as in `from_arrays`.

        Examples
        --------
        >>> import numpy as np
        >>> import graphratio as gr
        >>> import xarray as xr
        >>> days = np.arange("2020-01-01", "2020-03-01", dtype="datetime64[D]").astype("M8[ns]")
        >>> flow = xr.DataArray(np.random.default_rng(0).normal(size=(60, 3)),
        ...                     {"time": days, "station": ["n", "s", "w"]}, name="flow")
        >>> gr.NodeSamples.from_xarray(flow, "station", slice(None, "2020-01"),
        ...                            slice("2020-02", None))
        NodeSamples(n_nodes=3, n_features=1, n_reference=31, n_target=29)
        """
        frame, features = stacked_table(data, node, feature)
        named = time if time is not None and time in frame else None
        marked = two_parts(frame, data, sample, named, reference, target)
        return cls.from_frame(
            marked.frame,
            node,
            marked.column,
            *marked.values,
            features,
            nodes=list(dict.fromkeys(frame[node])),
            missing=missing,
            time=named,
            block=block,
        )
