"""The dictionary: the points whose kernels span the estimates.

The default is the paper's two-stage filter. In the node stage every node keeps its
observations that are not redundant among its own (coherence at most `node_coherence`). In the
graph stage the graph keeps those that are not redundant among all nodes (`graph_coherence`). The
levels of categorical columns take part in the first stage as if they were nodes. A greedy pass
accepts a point if its largest kernel value with the points accepted before is at most the
threshold. Equivalently, every accepted point removes the later points that it covers. The node
stage works in this way for all nodes at once, with one accepted point per node and round. With
"centres" the means of groups of observations (`unobserved`) take the place of the node stage.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.spatial import cKDTree

from graphratio._utils.arrays import node_ranges
from graphratio._utils.errors import Argument, InputError, listing
from graphratio._utils.jobs import in_parallel, n_threads
from graphratio._utils.parameters import check_choice, check_integer, check_real
from graphratio._utils.typing import BoolArray, FloatArray, IntArray
from graphratio.data.samples import NodeSamples
from graphratio.data.scaling import Scaling
from graphratio.data.validation import as_points
from graphratio.features.kernels import Kernel
from graphratio.features.numbered import DEFAULT_ATOMS, fixed_number, most_distinct
from graphratio.features.unobserved import (
    DEFAULT_GROUP,
    SMALLEST_GROUP,
    check_inside,
    group_centres,
    no_centre,
    quasi_random,
)

STRATEGIES = ("coherence", "uniform", "kmeans", "all", "centres", "quasi-random")

# Coherences of the node stage that are tried in turn without a given one. The paper's, the first,
# keeps two or three observations of a node, which is too few for the shape of a ratio if there are
# few nodes. So many atoms are enough, or one for so many observations: more of them overfit.
NODE_COHERENCES = (0.1, 0.3, 0.5, 0.7, 0.9, 0.99)
ENOUGH_ATOMS = 30
OBSERVATIONS_OF_AN_ATOM = 40

# Largest number of centres without max_atoms: unlike the node stage, groups remove no redundancy.
MOST_CENTRES = 500

# A feature with at most this many values, each taken several times on average, is discrete.
DISCRETE_VALUES = 20
_REPEATS = 5

# The Gram matrix of the atoms must fit into memory: 6,000 atoms take 288 MB.
LARGEST_DICTIONARY = 6_000


_BLOCK = 512

# Most candidates compared with the atoms at once, when nearly all are redundant.
_LONGEST_BLOCK = 2**17

# A search tree is fast in few dimensions only.
_TREE_FEATURES = 6

# A candidate closer to the threshold than this is compared with all atoms.
_CLOSE = 1e-9
# A similarity at the threshold does not cover, whichever way it was rounded: relative to it.
_TIE = 1e-12

# Observations per task of the node stage.
_FILTER_ROWS = 2**17


def _check_used(name: str, dictionary: Any, needed: str) -> None:
    if not (isinstance(dictionary, str) and dictionary == needed):
        shown = repr(dictionary) if isinstance(dictionary, str) else "points"
        raise InputError(
            f"{name} does nothing with dictionary={shown}",
            f'Pass dictionary="{needed}", or leave out {name}',
        )


@dataclass(frozen=True, eq=False)
class DictionaryRecipe:
    """How the atoms are chosen: by a strategy, or an array of shape (n_atoms, n_features).

    "coherence" is the paper's two-stage filter, "uniform" draws observations, "kmeans" takes
    cluster centres, "all" every distinct observation. "centres" is the graph stage on means of at
    least `group_size` observations of a node, and "quasi-random" fills `bounds`, shape
    (n_features, 2), whatever the data are. If there are more than `max_atoms`, a pivoted Cholesky
    factorisation of their Gram matrix keeps those that the others represent worst. Without a
    `node_coherence` the filter tries `NODE_COHERENCES` until there are `enough` atoms.
    """

    strategy: Any = "coherence"
    node_coherence: float | None = 0.1
    graph_coherence: float = 0.99
    max_atoms: int | None = None
    group_size: int = DEFAULT_GROUP
    bounds: Any = None

    @classmethod
    def of(cls, estimator: Any) -> DictionaryRecipe:
        """Read the parameters of an estimator and check them."""
        for name in ("node_coherence", "graph_coherence"):
            if name == "graph_coherence" or estimator.node_coherence is not None:
                check_real(getattr(estimator, name), name, low=0, high=1, include_high=True)
        if estimator.max_atoms is not None:
            check_integer(estimator.max_atoms, "max_atoms", low=1)
        if isinstance(estimator.dictionary, str):
            check_choice(estimator.dictionary, "dictionary", STRATEGIES)
        check_integer(estimator.group_size, "group_size", low=SMALLEST_GROUP)
        # A caller who sets one of these expects a dictionary without observations.
        if estimator.bounds is not None:
            _check_used("bounds", estimator.dictionary, "quasi-random")
        if estimator.group_size != DEFAULT_GROUP:
            _check_used("group_size", estimator.dictionary, "centres")
        return cls(
            estimator.dictionary,
            estimator.node_coherence,
            estimator.graph_coherence,
            estimator.max_atoms,
            estimator.group_size,
            estimator.bounds,
        )

    @property
    def most(self) -> int | None:
        """Largest number of atoms, None for any."""
        return MOST_CENTRES if self.is_grouped and self.max_atoms is None else self.max_atoms

    @property
    def is_grouped(self) -> bool:
        """Whether atoms are centres of groups."""
        return isinstance(self.strategy, str) and self.strategy == "centres"

    def given(self, n_features: int) -> FloatArray | None:
        """Return the atoms if the strategy is an array, and None otherwise."""
        if isinstance(self.strategy, str):
            return None
        atoms = np.array(as_points(self.strategy, n_features, "dictionary"))
        if not len(atoms):
            raise InputError("the dictionary has no points", "Pass at least one")
        return atoms

    def build(
        self,
        samples: NodeSamples,
        kernel: Kernel,
        sigma: FloatArray,
        random_state: np.random.Generator | None = None,
    ) -> FloatArray:
        """Choose the atoms, (n_atoms, n_features); `sigma` (n_nodes,) are the nodes' bandwidths."""
        middle = float(np.median(sigma))
        atoms = self.given(samples.n_features)
        if atoms is None and self.strategy == "coherence":
            atoms = self._coherent(samples, kernel, sigma, middle)
        elif atoms is None and self.strategy == "all":
            _, first = np.unique(samples.values, axis=0, return_index=True)
            atoms = samples.values[np.sort(first)]
        elif atoms is None and self.is_grouped:
            centres = group_centres(samples, self.group_size).values
            atoms = centres[graph_filter(centres, kernel, middle, self.graph_coherence)]
            if not len(atoms):
                raise no_centre(self.group_size)
        elif atoms is None and self.strategy == "quasi-random":
            if samples.encoding is not None:
                raise InputError(
                    "quasi-random points have no categories, but the data have: "
                    + listing(list(samples.encoding.levels)),
                    'Use dictionary="centres"',
                )
            atoms = self.filled(samples.feature_names, samples.scaling, random_state)
            check_inside(samples, self.bounds)
        elif atoms is None:
            strategy = check_choice(self.strategy, "dictionary", STRATEGIES)
            rng = random_state if random_state is not None else np.random.default_rng()
            atoms = fixed_number(strategy, samples, self.max_atoms or DEFAULT_ATOMS, rng)
        return limited(atoms, kernel, middle, self.most)

    def filled(
        self,
        names: tuple[str, ...],
        scaling: Scaling | None,
        random_state: np.random.Generator | None,
    ) -> FloatArray:
        """Quasi-random points inside the bounds; only names and units of the features count."""
        rng = random_state if random_state is not None else np.random.default_rng()
        return quasi_random(self.bounds, names, scaling, self.max_atoms or DEFAULT_ATOMS, rng)

    def until_enough(
        self, filtered: Callable[[float], FloatArray], n_observations: int
    ) -> FloatArray:
        """Atoms that the filter keeps at the given coherence, or at the first that is enough.

        `filtered` takes the coherence of the node stage.
        """
        if self.node_coherence is not None:
            return filtered(self.node_coherence)
        wanted = min(ENOUGH_ATOMS, n_observations / OBSERVATIONS_OF_AN_ATOM)
        for coherence in NODE_COHERENCES:
            atoms = filtered(coherence)
            if len(atoms) >= wanted:
                break
        return atoms

    def _coherent(
        self, samples: NodeSamples, kernel: Kernel, sigma: FloatArray, middle: float
    ) -> FloatArray:
        levels = _by_level(samples)

        def filtered(coherence: float) -> FloatArray:
            candidates = samples.values[node_filter(samples, kernel, sigma, coherence)]
            if levels is not None:
                same = np.full(levels.n_nodes, middle)
                first = node_filter(levels, kernel, same, coherence)
                candidates = np.vstack([candidates, levels.values[first]])
            kept = graph_filter(candidates, kernel, middle, self.graph_coherence)
            return np.asarray(candidates[kept])

        return self.until_enough(filtered, samples.n_observations)


def limited(
    atoms: FloatArray, kernel: Kernel, bandwidth: float, max_atoms: int | None
) -> FloatArray:
    """Keep the `max_atoms` most distinct atoms; refuse more than fit into memory."""
    if max_atoms is not None and len(atoms) > max_atoms:
        atoms = atoms[most_distinct(atoms, kernel, bandwidth, max_atoms)]
    if len(atoms) > LARGEST_DICTIONARY:
        raise InputError(
            f"the dictionary has {len(atoms)} atoms, more than {LARGEST_DICTIONARY}",
            ("Set ", Argument("max_atoms"), ", or choose another dictionary"),
        )
    return atoms


def node_filter(
    samples: NodeSamples, kernel: Kernel, sigma: FloatArray, coherence: float
) -> IntArray:
    """Rows of `samples.values` that the node stage keeps, in order; a node's reference first."""
    ranges = node_ranges(samples.sizes, _FILTER_ROWS)
    kept: list[IntArray] = [np.empty(0, dtype=np.intp)] * len(ranges)

    def work(i: int) -> None:
        rows = np.arange(samples.offsets[2 * ranges[i].start], samples.offsets[2 * ranges[i].stop])
        kept[i] = _node_pass(samples, kernel, sigma, coherence, rows)

    in_parallel(work, len(ranges))
    return np.concatenate(kept)


def _node_pass(
    samples: NodeSamples, kernel: Kernel, sigma: FloatArray, coherence: float, left: IntArray
) -> IntArray:
    """Run the node stage on the rows of some complete nodes."""
    kept = [left[:0]]
    while left.size:
        node = samples.node_index[left]
        first = np.flatnonzero(np.diff(node, prepend=-1))
        accepted = left[first]
        kept.append(accepted)
        of_node = np.cumsum(np.diff(node, prepend=-1) > 0) - 1
        similarity = kernel.rowwise(
            samples.values[left], samples.values[accepted][of_node], sigma[node]
        )
        fresh = similarity <= coherence
        # Remove accepted points also at coherence 1, where they do not cover themselves.
        fresh[first] = False
        left = left[fresh]
    return np.sort(np.concatenate(kept))


def _by_level(samples: NodeSamples) -> NodeSamples | None:
    """Samples in which every level of a discrete feature is a node; None without such features.

    Observations of two levels cover each other in the node stage, so nodes alone may give no atom
    at a level, and without one the ratio there could not vary on its own.
    """
    rows: list[IntArray] = []
    for feature, column in enumerate(samples.values.T):
        if samples.encoding is not None and samples.encoding.is_indicator[feature]:
            rows.append(np.flatnonzero(column == 1))
            continue
        level = _levels(column)
        if level is not None:
            rows += [np.flatnonzero(level == k) for k in range(int(level.max()) + 1)]
    rows = [own for own in rows if own.size]
    if not rows:
        return None
    sizes = np.array([own.size for own in rows])
    return NodeSamples(
        nodes=tuple(range(len(rows))),
        values=samples.values[np.concatenate(rows)],
        n_reference=sizes,
        n_target=np.zeros_like(sizes),
        feature_names=samples.feature_names,
    )


def _levels(column: FloatArray) -> IntArray | None:
    """Level of every observation of a feature with few values that repeat; None for others."""
    # Most features are continuous, and then the first rows tell.
    if np.unique(column[: _REPEATS * (DISCRETE_VALUES + 1)]).size > DISCRETE_VALUES:
        return None
    values, level = np.unique(column, return_inverse=True)
    if not 1 < values.size <= min(DISCRETE_VALUES, column.size // _REPEATS):
        return None
    return np.asarray(level)


def graph_filter(
    candidates: FloatArray, kernel: Kernel, bandwidth: float, coherence: float
) -> IntArray:
    """Positions of the candidates that the graph stage keeps, in order.

    A block of candidates is compared with the atoms found so far, and then with each other. A
    search tree finds the nearest atom; all are compared only where rounding could decide.
    """
    coherence = largest_free(coherence)
    kept = np.empty(0, dtype=np.intp)
    begin, size = 0, _BLOCK
    while begin < len(candidates):
        block = np.arange(begin, min(begin + size, len(candidates)))
        begin += size
        if kept.size:
            block = block[_uncovered(candidates, block, kept, kernel, bandwidth, coherence)]
        fresh = _within(candidates, block, kernel, bandwidth, coherence)
        kept = np.concatenate([kept, fresh])
        # Take longer blocks when few candidates are new.
        size = 2 * size if block.size < _BLOCK // 8 else max(_BLOCK, size // 2)
        size = min(size, _LONGEST_BLOCK)
    return kept


def largest_free(coherence: float) -> float:
    """The largest similarity to an atom at which a point may become one itself."""
    return coherence * (1 + _TIE)


def _uncovered(
    candidates: FloatArray,
    block: IntArray,
    kept: IntArray,
    kernel: Kernel,
    bandwidth: float,
    coherence: float,
) -> BoolArray:
    """True for candidates of a block that no atom covers."""
    if candidates.shape[1] > _TREE_FEATURES or block.size < 4 * _BLOCK:
        similarity = kernel(candidates[block], candidates[kept], bandwidth)
        return np.asarray(similarity.max(axis=1) <= coherence)
    order = 1 if kernel.metric == "cityblock" else 2
    _, nearest = cKDTree(candidates[kept]).query(candidates[block], p=order, workers=n_threads())
    largest = kernel.rowwise(
        candidates[block], candidates[kept[nearest]], np.full(block.size, bandwidth)
    )
    free = largest <= coherence
    close = np.flatnonzero(np.abs(largest - coherence) <= _CLOSE)
    if close.size:
        similarity = kernel(candidates[block[close]], candidates[kept], bandwidth)
        free[close] = similarity.max(axis=1) <= coherence
    return np.asarray(free)


def _within(
    candidates: FloatArray, block: IntArray, kernel: Kernel, bandwidth: float, coherence: float
) -> IntArray:
    """Run the greedy pass among the candidates of a block, a part at a time."""
    kept = block[:0]
    for begin in range(0, block.size, _BLOCK):
        part = block[begin : begin + _BLOCK]
        if kept.size:
            similarity = kernel(candidates[part], candidates[kept], bandwidth)
            part = part[similarity.max(axis=1) <= coherence]
        covers = kernel(candidates[part], candidates[part], bandwidth) > coherence
        free = np.ones(part.size, dtype=bool)
        for i in range(part.size):
            if free[i]:
                free[i + 1 :] &= ~covers[i, i + 1 :]
        kept = np.concatenate([kept, part[free]])
    return kept
