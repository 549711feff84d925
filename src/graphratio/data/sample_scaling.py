"""Standardise the features of samples, for all nodes together or at every node by itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Literal, cast

import numpy as np

from graphratio._utils.arrays import read_only
from graphratio._utils.errors import InputError, listing
from graphratio._utils.parameters import check_choice, check_flag
from graphratio.data.scaling import Scaling, logged_features

if TYPE_CHECKING:
    from graphratio.data.samples import NodeSamples

# What mean and spread are taken over.
BY = ("all", "node")


class SampleScaling:
    """The transforms of `NodeSamples`."""

    scaling: Scaling | None

    def standardized(
        self,
        *,
        by: Literal["all", "node"] = "all",
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
        by : {"all", "node"}, default "all"
            With "all" one mean and one spread serve all nodes, so that neighbours are compared by
            their values: 20 degrees are 20 degrees everywhere. With "node" every node has its own,
            so that neighbours are compared by changes relative to what is usual at each: the choice
            for sensors of different level or spread. The ratio at a node is the same quantity
            either way; what neighbours share is not.
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
        >>> samples.standardized(by="node").values.ravel().round(2)
        array([-1.22,  1.22,  0.  , -1.22,  0.  ,  1.22])
        >>> skewed = gr.NodeSamples.from_arrays([1.0, 10.0], [100.0], feature_names=["pm25"])
        >>> skewed.standardized(log="pm25").values.ravel().round(2)
        array([-1.22,  0.  ,  1.22])
        """
        samples = cast("NodeSamples", self)
        names = (log,) if isinstance(log, str) else tuple(log)
        check_choice(by, "by", BY)
        if not names and not check_flag(standardize, "standardize"):
            return samples
        if samples.scaling is None:
            logged = logged_features(
                names,
                samples.feature_names,
                samples.values,
                lambda rows: [samples.nodes[v] for v in samples.node_index[rows]],
            )
        else:
            if names:
                raise InputError(
                    "the samples are already standardised, so no logarithm can be taken any more",
                    "Pass log= in the first call of standardized()",
                )
            if (by == "node") == (samples.scaling.nodes is not None):
                return samples
            logged, samples = samples.scaling.log_mask, samples.original()
        if not check_flag(standardize, "standardize"):
            return samples.scaled(Scaling.neutral(logged))
        if by == "node":
            _check_complete(samples)
        scaling = Scaling.of(
            samples.values,
            logged,
            node=samples.node_index if by == "node" else None,
            nodes=samples.nodes if by == "node" else None,
            untouched=None if samples.encoding is None else samples.encoding.is_indicator,
        )
        return samples.scaled(scaling)

    def scaled(self, scaling: Scaling | None) -> NodeSamples:
        """Return the samples under a given scaling, which they may carry already."""
        samples = cast("NodeSamples", self)
        if scaling is None and samples.scaling is None:
            return samples
        if scaling is not None:
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
        >>> samples.standardized(by="node").original().values.ravel()
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
            'Leave these nodes out, or standardise by numbers of all nodes: by="all"',
        )
