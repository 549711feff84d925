"""The node test on an engine: every partition permutes its own nodes, beside their observations.

The steps are those of one process (`ways_to_test`), with the same random numbers. The driver has
the graph: it draws groups of nodes, adds up moments for the features that all nodes share, and
computes conductances. The neighbours' predictions come from solves on the partitions. Then each
look at the permutations is one call: the driver says which nodes share which splits, and the
partitions return counts.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import clone

from graphratio._utils.errors import DataWarning, InputError, warn_caller
from graphratio._utils.jobs import at_most
from graphratio._utils.progress import ProgressBar
from graphratio._utils.typing import BoolArray, FloatArray, IntArray
from graphratio.data.alignment import (
    align,
    as_graph,
    as_samples,
    check_borrowing,
    check_graph,
    warn_of_scales,
)
from graphratio.data.blocks import Blocks
from graphratio.data.graph import Graph
from graphratio.data.node_correlation import Correlation, correlation_from, cross_correlation
from graphratio.data.samples import NodeSamples
from graphratio.distributed.conjugate import solve_conjugate
from graphratio.distributed.fold_keys import OwnKeys, own_keys
from graphratio.distributed.session import Session, open_session
from graphratio.estimators.partitioned import check_engine, chosen_atoms
from graphratio.evaluation.partitioned_bounds import OwnFit
from graphratio.features.kernels import fill_unknown, get_kernel
from graphratio.moments.node_moments import has_both
from graphratio.testing.multiplicity import Resolution, enough_permutations
from graphratio.testing.node_null import NodeTests, rank_nodes
from graphratio.testing.partitioned_counts import PartitionedCount
from graphratio.testing.partitioned_penalties import penalties_on_engine, reduced_map
from graphratio.testing.partitioned_rows import NodeTestRows, SecondHalf
from graphratio.testing.pooled import ratio_settings, whitened
from graphratio.testing.predictions import Penalties, group_conductances, group_parts, node_groups
from graphratio.testing.result import TwoSampleResult
from graphratio.testing.statistics import NAMES
from graphratio.testing.ways_to_test import HALF_NAMES, TwoSampleOutcome, answers_at, over_nodes
from graphratio.testing.wording import correlation_note

# A smaller residual than in one process, so that predictions hardly depend on the partitions.
_TOLERANCE = 1e-8
_ITERATIONS = 500


@dataclass(frozen=True, eq=False)
class EngineQuestion:
    """The test to run; the estimator has an engine and a seed."""

    estimator: Any
    correction: str | None
    level: float
    n_permutations: int | None
    rng: np.random.Generator
    progress: bool

    def resolution(self, n_tests: int) -> Resolution:
        """How many permutations to use."""
        return enough_permutations(self.n_permutations, n_tests, self.level, self.correction)

    def bar(self, steps: int) -> ProgressBar:
        """A progress bar, if one was asked for."""
        return ProgressBar(steps, "nodes", enabled=self.progress)


def node_test_on_engine(
    question: EngineQuestion, samples: Any, graph: Graph | None
) -> TwoSampleResult:
    """Test every node where its observations are."""
    settings = check_engine(question.estimator, samples, graph)
    given = None
    if samples is not None:
        read = as_samples(samples)
        graph = as_graph(graph, read)
        given = align(read, graph).exchangeable()
        warn_of_scales(given)
    # Partitions already work side by side.
    with at_most(1), open_session(settings, given, check_graph(graph)) as session:
        check_borrowing(has_both(session.sizes), session.graph)
        return _EngineTest(question, session, given).result()


class _EngineTest:
    """One test; `samples` are None if the engine has a loader."""

    def __init__(
        self, question: EngineQuestion, session: Session, samples: NodeSamples | None
    ) -> None:
        self.question, self.session, self.samples = question, session, samples
        self.fleet, self.graph, self.rng = session.fleet, session.graph, question.rng

    def result(self) -> TwoSampleResult:
        """Run the test that suits the estimator."""
        halves = not self.question.estimator._is_quadratic
        done = self._by_halves() if halves else self._each_node()
        elsewhere = Blocks.elsewhere(self.session.sizes)
        found = done.result(
            self.question.level,
            nodes=self.graph.nodes,
            graph=self.graph,
            null="node",
            correction=self.question.correction,
            blocks=elsewhere if self.samples is None else self.samples.blocks,
            joint=False,
            halves=halves,
            cross_fitted=False,
            timed=self.timed,
            samples=self.samples,
            correlation=self.correlation,
            backend=self.session.backend,
        )
        if self.samples is not None:
            return found
        effects, shifts = zip(
            *self.fleet.ask("test.effects", threshold=found.threshold), strict=True
        )
        return replace(found, measured=(self.fleet.whole(effects), self.fleet.whole(shifts)))

    def _attach(self, sizes: IntArray, half: list[OwnKeys] | None) -> None:
        """Let the partitions order their observations, of which `sizes` (n_nodes, 2) are tested."""
        counts = sizes.sum(axis=1)
        pooled = own_keys(self.fleet.nodes, counts, self.rng)
        units = own_keys(self.fleet.nodes, counts, self.rng)
        self.fleet.setup(
            "attach",
            [
                {"pooled": pooled[p], "units": units[p], "half": None if half is None else half[p]}
                for p in range(len(self.fleet.nodes))
            ],
            name="test",
            make=NodeTestRows,
        )
        self.timed, self.correlation = self._dependence()

    def _dependence(self) -> tuple[bool, Correlation | None]:
        """Whether observations have times, and the correlation between nodes.

        If the samples are here, all pairs of nodes are compared; otherwise pairs within partitions.
        """
        if self.samples is not None:
            pairs = np.random.default_rng(0)
            found = cross_correlation(self.samples, self.graph, pairs)
            return self.samples.time is not None, found
        times, sums = zip(*self.fleet.ask("test.describe"), strict=True)
        return any(times), correlation_from(sums, by_stamp=any(times))

    def _each_node(self) -> TwoSampleOutcome:
        """Permute one node at a time, with the neighbours' predictions."""
        complete = has_both(self.session.sizes)
        nodes = np.flatnonzero(complete)
        resolution = self.question.resolution(nodes.size)
        self._attach(self.session.sizes, None)
        if self.correlation is not None and self.correlation.is_high:
            raise _correlated(self.correlation)
        tests, penalties = NodeTests.blank(len(complete), len(NAMES)), []
        if nodes.size:
            with self.question.bar(nodes.size) as bar:
                penalties = self._permute(tests, nodes, resolution, bar)
        return self._outcome(tests, NAMES, self.session.sizes, resolution, penalties)

    def _permute(
        self, tests: NodeTests, nodes: IntArray, resolution: Resolution, bar: ProgressBar
    ) -> Penalties:
        """Test nodes, those of one bandwidth together; returns the penalties of all groups."""
        fleet, estimator = self.fleet, self.question.estimator
        kernel = get_kernel(estimator.kernel)
        fleet.setup("test.pool")
        sigma = fill_unknown(fleet.whole(fleet.ask("medians", kernel=kernel)))
        settings = ratio_settings(estimator, kernel, sigma, self.graph)
        dictionary = chosen_atoms(settings.dictionary, self.session, kernel, sigma, self.rng)
        groups = node_groups(self.graph, self.rng)
        penalties = penalties_on_engine(
            self.session, estimator.engine, self.samples, groups, settings, dictionary, self.rng
        )
        # Forgets the calls of the selection, which a rebuilt partition does not need.
        fleet.setup("test.pool")
        table = np.array(penalties)
        count = PartitionedCount(fleet, self.session.sizes, self.rng, resolution.extrapolates)
        for bandwidth in np.unique(table[groups[nodes], 0]):
            some = nodes[table[groups[nodes], 0] == bandwidth]
            features = whitened(kernel, dictionary, float(bandwidth))
            features = reduced_map(self.session, "test.pooled_moment", features, np.float64)
            data = fleet.whole(fleet.setup("test.set_features", features=features))
            held = group_conductances(data, self.graph, groups, table[:, 1:], some)
            witness = self._predictions(some, groups, table[:, 1:], held.shape)
            fleet.setup(
                "test.predict",
                [
                    {"witness": own, "conductance": firm}
                    for own, firm in zip(fleet.parts(witness), fleet.parts(held), strict=True)
                ],
            )
            rank_nodes(tests, some, count, resolution.n_permutations, resolution, bar)
        return penalties

    def _predictions(
        self, nodes: IntArray, groups: IntArray, penalties: FloatArray, shape: tuple[int, ...]
    ) -> FloatArray:
        """The prediction of the other nodes for every node, as in `predicted_ratios`."""
        witness = np.zeros(shape)
        if not self.graph.n_edges:
            return witness
        fleet = self.fleet
        for part in group_parts(groups, nodes):
            lam, rho = penalties[groups[part[0]]]
            system = self.session.system(np.array([lam]), np.array([rho]))
            own = [np.flatnonzero(np.isin(members, part)) for members in fleet.nodes]
            hidden = [{"nodes": rows} for rows in own]
            fleet.setup("test.hide", hidden)

            def solve(system: Any = system, hidden: Any = hidden) -> list[FloatArray]:
                # The solution stays on the partitions, so a lost partition loses its rows.
                solve_conjugate(fleet, system, _TOLERANCE, _ITERATIONS, every=None)
                return fleet.engine.gather("test.predicted", hidden)

            for members, rows, found in zip(fleet.nodes, own, fleet.attempt(solve), strict=True):
                witness[members[rows]] = found
        return witness

    def _by_halves(self) -> TwoSampleOutcome:
        """Learn the ratio on one half, and permute the labels of the other."""
        sizes = self.session.sizes
        learned, tested = sizes // 2, sizes - sizes // 2
        half = own_keys(self.fleet.nodes, sizes.sum(axis=1), self.rng)
        nodes = np.flatnonzero(has_both(tested))
        resolution = self.question.resolution(nodes.size)
        self._attach(tested, half)
        if self.correlation is not None and self.correlation.is_high:
            warn_caller(correlation_note(self.correlation)[0], DataWarning)
        tests = NodeTests.blank(len(sizes), 1)
        if nodes.size:
            self._take_ratios(has_both(learned), half)
            count = PartitionedCount(self.fleet, tested, self.rng, resolution.extrapolates)
            with self.question.bar(nodes.size) as bar:
                rank_nodes(tests, nodes, count, resolution.n_permutations, resolution, bar)
        return self._outcome(tests, HALF_NAMES, tested, resolution, [])

    def _take_ratios(self, complete: BoolArray, half: list[OwnKeys]) -> None:
        """Fit on the first half; nodes that are not connected to a complete one have ratio 1."""
        fleet, graph, estimator = self.fleet, self.graph, self.question.estimator
        known = (np.bincount(graph.components, weights=complete) > 0)[graph.components]
        labels = [graph.nodes[v] for v in np.flatnonzero(known)]
        places, keys = [], []
        for own, drawn in zip(fleet.nodes, half, strict=True):
            here = known[own]
            if here.any():
                places.append([graph.nodes[v] for v in own[here]])
                part = replace(drawn, starts=drawn.starts[here], counts=drawn.counts[here])
                keys.append(SecondHalf(part))
        fits: list[OwnFit | None] = [None for _ in fleet.nodes]
        if keys:
            again: Any = clone(estimator)
            again.set_params(engine=estimator.engine.without(places, keys, 1), progress=False)
            again._is_copy = True
            given = None if self.samples is None else self.samples.subset(labels)
            again.fit(given, graph.subset(labels))
            theta = np.zeros((len(known), again.coef_.shape[1]))
            theta[known] = again.coef_
            fits = [(again.features_, again.prior_ratio_, theta[own]) for own in fleet.nodes]
        fleet.setup(
            "test.take_ratios",
            [{"fit": fit, "known": known[own]} for fit, own in zip(fits, fleet.nodes, strict=True)],
        )

    def _outcome(
        self,
        tests: NodeTests,
        names: tuple[str, ...],
        sizes: IntArray,
        resolution: Resolution,
        penalties: Penalties,
    ) -> TwoSampleOutcome:
        complete = has_both(sizes)
        adjusted, overall = over_nodes(tests.p_value, None, complete, resolution.correction)
        found = answers_at(sizes, complete, resolution)
        return TwoSampleOutcome(tests, names, complete, adjusted, overall, found, penalties)


def _correlated(correlation: Correlation) -> InputError:
    how = "times" if correlation.by_stamp else "positions in the samples"
    return InputError(
        f"nodes are correlated ({correlation.value:.2f} at the same {how}), and the test that "
        "allows for it needs all of them in one place",
        "Test in one process, without an engine; if the order of rows has no meaning, shuffle the "
        "rows of each sample",
    )
