"""Which losses rank graphs, what is said of them, and the degrees of freedom of a mean."""

import numpy as np
import pytest

import graphratio as gr
from graphratio.evaluation.comparison import GraphComparison, Losses
from graphratio.evaluation.node_means import NodeMeans
from graphratio.evaluation.verdict import ALONE, SHARED
from graphratio.evaluation.worth_result import Worth

SAMPLES = gr.NodeSamples.from_arrays(*[np.zeros((30, 4, 1))] * 2)


def losses(level):
    """Nearly the same loss everywhere."""
    terms = level / 2 + 1e-3 * np.random.default_rng(0).normal(size=240)
    return Losses.of(terms, SAMPLES)


def compared(seen, unseen):
    by_seen = {name: losses(level) for name, level in seen.items()}
    by_unseen = {name: losses(level) for name, level in unseen.items()}
    return GraphComparison(SAMPLES.nodes, by_seen, by_unseen, 0.05, ("a", "b"), None)


def test_graphs_are_ranked_by_held_out_nodes_and_help_by_held_out_observations():
    rivals = {ALONE: 0.0, SHARED: 0.0}
    found = compared({"a": -1.0, "b": -0.5, **rivals}, {"a": -0.2, "b": -0.4})
    assert found.ranking == ["b", "a"]
    assert found.best == "b"
    assert found.effect == "helped"
    assert compared({"a": -1.0, "b": -0.5, **rivals}, {}).ranking == ["a", "b"]


def lone(seen, unseen):
    """One graph; its losses minus those without a graph, on observations and on nodes."""
    curve = np.array([0.0, -1.0])
    worth = Worth(4.0, 2.5, 6.0, 8, np.array([2.0, 7.0]), curve, curve, 0.05, np.full((3, 30), 2.0))
    return GraphComparison(
        SAMPLES.nodes,
        {"a": losses(seen), ALONE: losses(0.0), SHARED: losses(0.0)},
        {"a": losses(unseen), ALONE: losses(0.0)},
        0.05,
        ("a",),
        None,
        worth={"a": worth},
    )


@pytest.mark.parametrize(
    ("seen", "unseen", "best", "effect"),
    [
        (-1.0, -1.0, "a", "helped"),
        (-1.0, 0.0, "a", "helped"),
        # Right, but not needed with so many observations.
        (0.0, -1.0, "a", "unclear"),
        (0.0, 0.0, None, "unclear"),
        # What contradicts itself is no verdict.
        (1.0, -1.0, None, "hurt"),
        (-1.0, 1.0, None, "helped"),
        (1.0, 1.0, None, "hurt"),
    ],
)
def test_one_rule_for_best_effect_verdict_and_worth(seen, unseen, best, effect):
    found = lone(seen, unseen)
    assert (found.best, found.effect) == (best, effect)
    stated = best is not None
    assert ("the graph is worth" in found.verdict) == stated
    assert (found.stated_worth != {}) == stated
    table, nodes = found.summary().set_index("fit"), found.to_frame()
    assert np.isfinite(table.loc["a", ["worth", "worth_low", "worth_high"]]).all() == stated
    assert nodes["worth"].notna().all() == stated
    assert ("made no clear difference" in found.verdict) == (effect == "unclear")
    assert ("better than no graph does" in found.verdict) == (effect != "helped" and unseen < 0)
    assert ("so no graph is named the best" in found.verdict) == (seen * unseen < 0)


def test_one_level_for_everything_that_is_said():
    rivals = {ALONE: 0.0, SHARED: 0.0}
    found = compared({"a": -1.0, "b": -0.5, **rivals}, {"a": -0.2, "b": -0.4})
    assert found.level_of_each == 0.05 / 2
    apart = found.between("a", ALONE)
    assert found.against_alone("a") == (apart.mean, apart.half_width(0.025))


def test_degrees_of_freedom_of_heavy_terms():
    """One large term: half the relative variance of a variance is 1/(n - 1) + excess/(2 n)."""
    terms = np.zeros(40)
    terms[[0, 30]] = 5.0, -3.0
    means = NodeMeans.of(terms, np.array([[25, 15]]))
    parts, doubts = [], []
    for part in (terms[:25], terms[25:]):
        n, centred = len(part), part - part.mean()
        excess = (centred**4).mean() / (centred**2).mean() ** 2 - 3
        parts.append(part.var(ddof=1) / n)
        doubts.append(1 / (n - 1) + excess / (2 * n))
    expected = sum(parts) ** 2 / sum(p**2 * d for p, d in zip(parts, doubts, strict=True))
    assert means.freedom[0] == pytest.approx(expected)
