"""Standardise the features of samples, for all nodes together or at every node by itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, cast

import numpy as np

from graphratio._utils.arrays import read_only
from graphratio._utils.errors import Argument, InputError, listing
from graphratio._utils.parameters import check_flag
from graphratio._utils.typing import BoolArray
from graphratio.data.sample_input import check_order
from graphratio.data.scaling import Scaling, logged_features
from graphratio.data.validation import nearest_name

if TYPE_CHECKING:
    from graphratio.data.samples import NodeSamples


class SampleScaling:
    """The transforms of `NodeSamples`."""

    scaling: Scaling | None

    def standardized(
        self,
        *,
        by_node: bool | str | Sequence[str] = False,
        log: Sequence[str] | str = (),
        standardize: bool = True,
    ) -> NodeSamples:
        """Return the samples with every feature shifted to mean 0 and scaled to spread 1.

        Mean and standard deviation come from both samples together, so that they do not see which
        observation is reference and which target. The transform is remembered: a model fitted on
        the result applies it to new points. A constant feature is shifted only, and indicators of
        categories are left alone.

        Parameters
        ----------
        by_node : bool, str or sequence of str, default False
            Features that are standardised at each node by itself; True for all. The others, and by
            default all, have one mean and one spread for all nodes, so that neighbours are compared
            by their values: 20 degrees are 20 degrees everywhere. With scales of their own they are
            compared by changes relative to what is usual at each: the choice for sensors of
            different level or spread. The ratio at a node is the same quantity either way; what
            neighbours share is not.
        log : str or sequence of str
            Features whose natural logarithm is taken first; their values must be positive. Samples
            that are standardised already keep their logarithms.
        standardize : bool, default True
            With False only the logarithms are taken.

        Examples
        --------
        >>> import graphratio as gr
        >>> samples = gr.NodeSamples.from_arrays([[0.0, 2.0], [70.0]], [[1.0], [80.0, 90.0]])
        >>> samples.standardized().values.ravel().round(2)
        array([-1.01, -0.96, -0.99,  0.74,  0.99,  1.24])
        >>> samples.standardized(by_node=True).values.ravel().round(2)
        array([-1.22,  1.22,  0.  , -1.22,  0.  ,  1.22])
        >>> skewed = gr.NodeSamples.from_arrays([1.0, 10.0], [100.0], feature_names=["pm25"])
        >>> skewed.standardized(log="pm25").values.ravel().round(2)
        array([-1.22,  0.  ,  1.22])
        """
        samples = cast("NodeSamples", self)
        names = (log,) if isinstance(log, str) else tuple(log)
        own = _own_features(samples, by_node)
        if not check_flag(standardize, "standardize"):
            if own.any():
                raise InputError(
                    "standardize=False leaves the features as they are, so no node has a scale",
                    "Leave out by_node, or pass standardize=True",
                )
            if not names:
                return samples
        if samples.scaling is None:
            logged = logged_features(
                names,
                samples.feature_names,
                samples.values,
                lambda rows: [samples.nodes[v] for v in samples.node_index[rows]],
            )
        elif names:
            raise InputError(
                "the samples are already standardised, so no logarithm can be taken any more",
                "Pass log= in the first call of standardized()",
            )
        elif not standardize or samples.scaling.standardizes(own):
            return samples
        else:
            logged, samples = samples.scaling.log_mask, samples.original()
        if not standardize:
            return samples.scaled(Scaling.neutral(logged))
        if own.any():
            _check_complete(samples)
        return samples.scaled(_scaling_of(samples, logged, own))

    def scaled(self, scaling: Scaling | None) -> NodeSamples:
        """Return the samples under a given scaling, which they may carry already."""
        samples = cast("NodeSamples", self)
        if scaling is None and samples.scaling is None:
            return samples
        if scaling is not None:
            if scaling.nodes not in (None, samples.nodes) and not samples.labelled:
                # Samples without labels are matched by position, as in `aligned`.
                check_order(samples.n_nodes, scaling.nodes or ())
                scaling = replace(scaling, nodes=samples.nodes)
            scaling = scaling.for_nodes(samples.nodes)
            if scaling.same_as(samples.scaling):
                return samples
        if samples.scaling is not None or scaling is None:
            raise InputError(
                "the samples were not standardised in the same way as those of the model",
                "Pass the samples as they were before standardized(); the model rescales them",
            )
        values = scaling.apply(samples.values, samples.node_index)
        return replace(samples, values=read_only(values), scaling=scaling)

    def original(self) -> NodeSamples:
        """Return the samples in the units that they had before `standardized`, up to rounding.

        Examples
        --------
        >>> import graphratio as gr
        >>> samples = gr.NodeSamples.from_arrays([0.0, 2.0], [4.0, 6.0])
        >>> samples.standardized(by_node=True).original().values.ravel()
        array([0., 2., 4., 6.])
        """
        samples = cast("NodeSamples", self)
        if samples.scaling is None:
            return samples
        values = samples.scaling.undo(samples.values, samples.node_index)
        return replace(samples, values=read_only(values), scaling=None)


def _check_complete(samples: NodeSamples) -> None:
    """Refuse nodes whose own level and spread would be those of one sample only."""
    lacking = [samples.nodes[i] for i in np.flatnonzero(~samples.complete)]
    if lacking:
        raise InputError(
            f"nodes without reference or target observations: {listing(lacking)}. Their own level "
            "and spread would not be comparable with those of the others",
            (
                "Leave these nodes out, or standardise by numbers of all nodes, ",
                Argument("samples.standardized()"),
            ),
        )


def _own_features(samples: NodeSamples, by_node: bool | str | Sequence[str]) -> BoolArray:
    """Mask of the numeric features that every node has its own scale for, (n_features,)."""
    numeric = np.ones(samples.n_features, dtype=bool)
    if samples.encoding is not None:
        numeric = np.logical_not(samples.encoding.is_indicator)
    if isinstance(by_node, bool | np.bool_):
        return numeric & bool(by_node)
    if not isinstance(by_node, Sequence | np.ndarray):
        raise InputError(
            f"by_node={by_node!r} is neither True or False nor names of features",
            "Pass by_node=True for all features, or the names of some",
        )
    wanted = [by_node] if isinstance(by_node, str) else list(by_node)
    known = [name for name, kept in zip(samples.feature_names, numeric, strict=True) if kept]
    for name in wanted:
        if name not in known:
            raise InputError(
                f"there is no numeric feature {name!r} to standardise by node",
                nearest_name(name, known),
            )
    return np.isin(samples.feature_names, wanted)


def in_own_units(samples: NodeSamples) -> NodeSamples:
    """As `standardized(by_node=True)`, but nodes may lack a sample: the other one sets their scale.

    For comparisons of losses, in which such nodes do not count.
    """
    own = _own_features(samples, True)
    before, logged = samples.original(), np.zeros(samples.n_features, dtype=bool)
    if samples.scaling is not None:
        logged = samples.scaling.log_mask
    return before.scaled(_scaling_of(before, logged, own))


def _scaling_of(samples: NodeSamples, logged: BoolArray, own: BoolArray) -> Scaling:
    untouched = None if samples.encoding is None else samples.encoding.is_indicator
    scaling = Scaling.of(samples.values, logged, untouched=untouched)
    if not own.any():
        return scaling
    return scaling.by_node(samples.values, samples.node_index, samples.nodes, own)
