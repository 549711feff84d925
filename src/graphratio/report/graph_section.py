"""Did the graph help: the section on held-out losses, and who contributed to each estimate."""

from __future__ import annotations

from typing import Any

import numpy as np

from graphratio._utils.typing import FloatArray
from graphratio.data.samples import NodeSamples
from graphratio.evaluation.comparison import GraphComparison
from graphratio.evaluation.graph_comparison import compare_graphs
from graphratio.evaluation.verdict import ALONE, LEARNED, SHARED, UNNAMED, in_words
from graphratio.report.learning_curve import learning_curve
from graphratio.report.page_file import short
from graphratio.report.words import enumeration

# Beyond this many nodes the comparison takes longer than a report should.
MOST_COMPARED = 2_000
# The same for nodes times the cube of the number of components, the cost of single-node fits.
MOST_WORK = 1.5e9
# A graph is learned for at most this many nodes.
MOST_LEARNED = 500
# Smaller samples cannot be split into folds.
FEWEST = 10
MOST_NAMED = 12
MOST_CONTRIBUTORS = 4


def graph_help(
    model: Any, samples: NodeSamples, names: list[str], found: GraphComparison | None = None
) -> dict[str, Any] | None:
    """Compare the model with itself without the graph, at its bandwidth and dictionary.

    `found` is a comparison of the model's graph by this name, `UNNAMED`, if there is one already.

    The samples are in the model's order and in original units. None if there is nothing to
    compare: another estimator, few nodes or observations, or a graph too large for a report.

    `rows` are the name of every fit, its held-out loss, and the difference to the fit without the
    graph. `helped` and `hurt` name nodes. `nodes` is for the panels: losses and half widths of
    every fit, and the effect of neighbours. `curve` is a drawing of the learning curves.
    """
    typical = float(np.median(np.minimum(samples.n_reference, samples.n_target)))
    edges = model.graph_.n_edges > 0
    most = MOST_COMPARED if edges else MOST_LEARNED
    if not model._couples or not 5 <= samples.n_nodes <= most or typical < FEWEST:
        return None
    if samples.n_nodes * float(model.n_components_) ** 3 > MOST_WORK:
        return None
    if found is None:
        found = compared_with_none(model, samples)
    worth = found.stated_worth.get(UNNAMED)
    words = {
        ALONE: "without the graph",
        SHARED: "one ratio for all nodes",
        UNNAMED: "with the graph",
        LEARNED: "with a graph learned from the data",
    }
    rows = []
    for name in sorted(found.losses, key=lambda item: found.losses[item].mean):
        apart, half = found.against_alone(name)
        gap = "\N{EN DASH}" if name == ALONE else f"{apart:+.3f} ± {half:.3f}"
        rows.append((words[name], f"{found.losses[name].mean:.3f}", gap))
    # A model that left the graph out was neither helped nor hurt by it.
    used = model.graph_penalty_ > 0 or not edges
    parts = (found.helped(), found.hurt()) if used else ([], [])
    called = dict(zip(model.nodes_, names, strict=True))
    helped, hurt = (enumeration([called[v] for v in part], MOST_NAMED) for part in parts)
    by_node = {words[name]: found.node_losses(name) for name in words if name in found.losses}
    return {
        "heading": "Did the graph help?" if edges else "Would a graph help?",
        "verdict": in_words(found, offer="compare_graphs in Python gives it.", where=False),
        "rows": rows,
        "curve": learning_curve(worth) if worth is not None else "",
        "worth": worth,
        "helped": helped,
        "hurt": hurt,
        "nodes": {
            "fits": list(by_node),
            "loss": [_readable(loss) for loss, _ in by_node.values()],
            "half": [_readable(half) for _, half in by_node.values()],
            "neighbours": found.neighbors,
        },
    }


def compared_with_none(model: Any, samples: NodeSamples) -> GraphComparison:
    """Compare the graph of a model with no graph, at its bandwidth and dictionary."""
    again = model._again(fixed=False)
    again.set_params(bandwidth=model.bandwidth_, dictionary=model.dictionary_)
    return compare_graphs(
        model._align(samples), model.graph_, again, n_repeats=1, units="given", random_state=0
    )


def _readable(values: FloatArray) -> list[float | None]:
    """Rounded for a page; None where there is no value."""
    return [round(float(value), 4) if np.isfinite(value) else None for value in values]


def contributions(model: Any) -> dict[str, Any] | None:
    """Share of each node in its own estimate, and its largest contributors; None if uncoupled."""
    if not model._couples or not model._coupling.n_edges:
        return None
    sizes, worth = model._reach
    complete = (model.sizes_ > 0).all(axis=1)
    own = np.where(complete, model.sizes_.sum(axis=1), 0)
    total = sizes.sum(axis=1)
    given = worth.multiply(own[np.newaxis]).tocsr()
    largest = []
    for v in range(len(own)):
        part = slice(given.indptr[v], given.indptr[v + 1])
        share = given.data[part] / total[v]
        order = np.argsort(-share, kind="stable")[:MOST_CONTRIBUTORS]
        others = given.indices[part][order]
        largest.append(
            [[int(u), round(float(s), 3)] for u, s in zip(others, share[order], strict=True)]
        )
    return {
        "total": short(total, 3),
        "own": [round(float(value), 3) for value in own / total],
        "largest": largest,
    }


def worth_tile(section: dict[str, Any] | None) -> list[dict[str, str]]:
    """The worth of the graph beside the headline, if it could be measured."""
    worth = None if section is None else section["worth"]
    if worth is None or not np.isfinite(worth.estimate):
        return []
    note = f"{worth.fewer:.0f} observations with it say as much as {worth.n:.0f} alone"
    if worth.low <= 1:
        note = "no clear gain from neighbours"
    value = f"at least {worth.low:.1f}" if worth.open_above else f"{worth.estimate:.1f}"
    top = "or more" if np.isinf(worth.high) else f"to {worth.high:.1f}"
    return [
        {
            "value": value,
            "label": "worth of the graph",
            "note": note if worth.open_above else f"{note} (95 % interval {worth.low:.1f} {top})",
        }
    ]
