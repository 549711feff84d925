"""Which nodes changed: the node test against what a user would pick instead.

Peers test every node by itself: the energy distance in a few lines of NumPy, with as many
permutations as ours, and hyppo's, with the fewest that Holm's correction allows. All p-values are
corrected by Holm, and the accuracy is the share of the changed nodes that are found at 5 %, over
three draws. The rate of false alarms of all three is at most 5 %.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np
from scipy.spatial.distance import cdist

import graphratio as gr
from graphratio.datasets import Scenario, make_scenario
from graphratio.testing.multiplicity import enough_permutations, fewest_permutations, holm
from measure import Piece, compare

LEVEL = 0.05
N_NODES = 40
SEEDS = (11, 12, 13)
SCENARIOS = ("Ia", "IIb")

Test = Callable[[Scenario], np.ndarray]


def ours(scenario: Scenario) -> np.ndarray:
    """Which nodes are rejected."""
    return gr.two_sample_test(scenario.samples, scenario.graph, random_state=0).rejected


def by_hand(scenario: Scenario) -> np.ndarray:
    """The energy distance of every node, with all permutations of a node as one product."""
    samples, rng = scenario.samples, np.random.default_rng(0)
    count = enough_permutations(None, samples.n_nodes, LEVEL, "fwer").n_permutations
    p_values = []
    for node in samples.nodes:
        x, y = samples.reference(node), samples.target(node)
        pooled = np.vstack([x, y])
        distance = cdist(pooled, pooled).astype(np.float32)
        is_target = np.arange(len(pooled)) >= len(x)
        labels = rng.permuted(np.tile(is_target, (count, 1)), axis=1)
        sides = np.where(np.vstack([is_target, labels]), 1 / len(y), -1 / len(x))
        sides = sides.astype(np.float32)
        energy = -np.einsum("bi,bi->b", sides @ distance, sides)
        p_values.append((1 + np.sum(energy[1:] >= energy[0] - 1e-6)) / (count + 1))
    return holm(np.array(p_values)) <= LEVEL


def hyppo_energy(scenario: Scenario) -> np.ndarray:
    """The energy distance of hyppo, node by node."""
    from hyppo.ksample import Energy

    samples = scenario.samples
    count = fewest_permutations(samples.n_nodes, LEVEL, "fwer")
    with warnings.catch_warnings(action="ignore"):
        found = [
            Energy()
            .test(
                samples.reference(node),
                samples.target(node),
                reps=count,
                workers=1,
                auto=False,
                random_state=0,
            )
            .pvalue
            for node in samples.nodes
        ]
    return holm(np.array(found)) <= LEVEL


def power(test: Test, draws: list[Scenario]) -> float:
    """Share of the changed nodes that are found."""
    return float(np.mean([test(draw)[draw.changed].mean() for draw in draws]))


def piece(rounds: int = 3) -> Piece:
    found = Piece(
        "Node tests against tests of every node by itself",
        f"{N_NODES} nodes, n = 50, Holm at {LEVEL:.0%}. Ours and the one by hand draw as many "
        "permutations; hyppo draws a tenth of them, the fewest that allow a rejection.",
    )
    for name in SCENARIOS:
        draws = [make_scenario(name, n_nodes=N_NODES, n=50, random_state=s) for s in SEEDS]
        own = power(ours, draws)  # also compiles and fills caches
        peers: dict[str, Test] = {"energy distance by hand": by_hand, "hyppo": hyppo_energy}
        for peer, test in peers.items():
            theirs = power(test, draws)
            found.comparisons.append(
                compare(
                    f"node test, {name}",
                    peer,
                    lambda draws=draws: ours(draws[0]),
                    lambda draws=draws, test=test: test(draws[0]),
                    2 if peer == "hyppo" else rounds,
                    accuracy="changed nodes found",
                    accuracies=(own, theirs),
                )
            )
    return found
