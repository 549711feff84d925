"""Points for a dictionary that are not observations: centres of groups, quasi-random points.

The atoms of the paper's dictionary are observations, and a dictionary is shared by all nodes, kept
in files and sent to every worker. Here an atom is the mean of a group of observations of one node,
or a point that does not depend on the data at all.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from graphratio._utils.arrays import column_sums, node_ranges
from graphratio._utils.errors import InputError
from graphratio._utils.jobs import in_parallel
from graphratio._utils.parameters import check_integer
from graphratio._utils.typing import FloatArray, IntArray
from graphratio.data.samples import NodeSamples
from graphratio.data.scaling import Scaling, in_common_units
from graphratio.data.validation import as_numeric

# A centre is the mean of at least this many observations, whatever a caller asks for.
SMALLEST_GROUP = 5
DEFAULT_GROUP = 10

# Observations per task of the grouping.
_ROWS = 2**17


def group_centres(samples: NodeSamples, group_size: int) -> NodeSamples:
    """Means of groups of observations, as the samples of the same nodes.

    The observations of a node, both samples together, are cut in two at the median of the feature
    that varies most, and so on while both halves keep `group_size` observations. So a group has
    from `group_size` to twice that number less one. Nodes with fewer observations have no centre.
    Groups do not cross nodes, so they do not depend on how nodes are spread over partitions.
    """
    check_integer(group_size, "group_size", low=SMALLEST_GROUP)
    ranges = node_ranges(samples.sizes, _ROWS)
    found: list[tuple[FloatArray, IntArray]] = [(np.empty(0), np.empty(0, np.intp))] * len(ranges)

    def work(i: int) -> None:
        first, last = samples.offsets[2 * ranges[i].start], samples.offsets[2 * ranges[i].stop]
        rows = slice(int(first), int(last))
        found[i] = _centres(samples.values[rows], samples.node_index[rows], group_size)

    in_parallel(work, len(ranges))
    counts = np.bincount(
        np.concatenate([node for _, node in found]), minlength=samples.n_nodes
    ).astype(np.intp)
    return NodeSamples(
        nodes=samples.nodes,
        values=np.concatenate([centres for centres, _ in found]),
        n_reference=counts,
        n_target=np.zeros_like(counts),
        feature_names=samples.feature_names,
        encoding=samples.encoding,
    )


def _centres(values: FloatArray, node: IntArray, group_size: int) -> tuple[FloatArray, IntArray]:
    """Centres of the groups of some nodes, and their nodes; rows of a node are consecutive."""
    _, which, counts = np.unique(node, return_inverse=True, return_counts=True)
    kept = counts[which] >= group_size
    values, node = values[kept], node[kept]
    first = np.flatnonzero(np.diff(node, prepend=-1))
    while True:
        sizes = np.diff(first, append=len(values))
        group = np.repeat(np.arange(first.size), sizes)
        centres = column_sums(group, values, first.size) / sizes[:, np.newaxis]
        large = sizes >= 2 * group_size
        if not large.any():
            return centres, node[first]
        widest = column_sums(group, np.square(values - centres[group]), first.size).argmax(axis=1)
        key = values[np.arange(len(values)), widest[group]]
        # Groups that are done keep their order, and with it their sum to the last bit.
        order = np.lexsort((np.where(large[group], key, 0.0), group))
        values, node = values[order], node[order]
        first = np.sort(np.concatenate([first, (first + sizes // 2)[large]]))


def no_centre(group_size: int) -> InputError:
    """The error when no node has enough observations for a centre."""
    return InputError(
        f"no node has {group_size} observations, so there is no centre for the dictionary",
        f'Choose a smaller group_size, at least {SMALLEST_GROUP}, or dictionary="quasi-random"',
    )


def check_inside(samples: NodeSamples, bounds: Any) -> None:
    """Refuse bounds, in the units of `quasi_random`, that no observation lies in.

    Far from all atoms every kernel is zero, and the fit would report no change.
    """
    low, high = np.reshape(as_numeric(bounds, "bounds"), (samples.n_features, 2)).T
    low, high = in_common_units(samples.scaling, np.stack([low, high]))
    inside = (samples.values >= low) & (samples.values <= high)
    if len(inside) and not inside.all(axis=1).any():
        shares = zip(samples.feature_names, inside.mean(axis=0), strict=True)
        raise InputError(
            "no observation lies inside the bounds; share inside those of each feature: "
            + ", ".join(f"{name!r} {share:.0%}" for name, share in shares),
            "Pass bounds in the units of the features, wide enough for the data; for features that "
            "were standardised at each node, in standard deviations",
        )


def quasi_random(
    bounds: Any,
    names: tuple[str, ...],
    scaling: Scaling | None,
    n_points: int,
    random_state: np.random.Generator,
) -> FloatArray:
    """Points of a scrambled Halton sequence inside bounds, shape (n_points, n_features).

    `bounds`, shape (n_features, 2), are in the units before the scaling, or after it in features
    that nodes have scales of their own in; the points are after it.
    """
    if bounds is None:
        raise InputError(
            'dictionary="quasi-random" needs bounds, which it does not take from the data',
            "Pass bounds=[(low, high), ...], one pair per feature: "
            + ", ".join(repr(name) for name in names),
        )
    box = as_numeric(bounds, "bounds")
    if box.shape == (2,) and len(names) == 1:
        box = box[np.newaxis]
    if box.shape != (len(names), 2):
        raise InputError(
            f"bounds have the shape {box.shape}, but the data have {len(names)} features",
            "Pass one pair (low, high) per feature",
        )
    for name, (low, high) in zip(names, box, strict=True):
        if not (np.isfinite([low, high]).all() and low < high):
            raise InputError(
                f"the bounds of {name!r} are {low:g} and {high:g}",
                "Pass two numbers, the smaller one first",
            )
    low, high = in_common_units(scaling, box.T)
    # Imported here: scipy.stats takes longer to import than everything else together.
    from scipy.stats import qmc

    unit = qmc.Halton(len(names), scramble=True, seed=random_state).random(n_points)
    return np.asarray(low + (high - low) * unit)
