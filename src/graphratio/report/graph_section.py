"""Was the graph worth it: held-out losses, and which nodes contributed to each estimate."""

from __future__ import annotations

from typing import Any

import numpy as np

from graphratio._utils.errors import (
    Argument,
    InputError,
    Spelling,
    Words,
    enumeration,
    listing,
    spelled,
)
from graphratio._utils.typing import FloatArray, IntArray, Label
from graphratio.data.samples import NodeSamples
from graphratio.estimators.notes import GRAPH_UNUSED, data_notes
from graphratio.evaluation.comparison import GraphComparison
from graphratio.evaluation.graph_comparison import compare_graphs
from graphratio.evaluation.verdict import ALONE, LEARNED, SHARED, UNNAMED, in_words
from graphratio.report.learning_curve import learning_curve
from graphratio.report.page_file import short
from graphratio.report.words import difference, fixed, sentence

# Beyond this many nodes the comparison takes longer than a report should.
MOST_COMPARED = 2_000
# The same for nodes times the cube of the number of components, the cost of single-node fits.
MOST_WORK = 1.5e9
# A graph is learned for at most this many nodes.
MOST_LEARNED = 500
# Smaller samples cannot be split into folds.
FEWEST = 10
# The worth of the graph is measured on about this many observations.
WORTH_OBSERVATIONS = 24_000
MOST_NAMED = 12
# What compares graphs: a function in Python, a command on the command line.
_COMPARING = Argument("compare_graphs")
MOST_CONTRIBUTORS = 4
# The fits of a comparison with no graph, in words.
_FITS = {
    ALONE: "without the graph",
    SHARED: "one ratio for all nodes",
    UNNAMED: "with the graph",
    LEARNED: "with a graph learned from the data",
}


def check_comparison(found: object, nodes: tuple[Label, ...]) -> GraphComparison:
    """Return a comparison that fits the page of a model with these nodes, in this order."""
    if not isinstance(found, GraphComparison):
        problem = f"comparison is of type {type(found).__name__}, not a GraphComparison"
    elif apart := sorted(set(nodes) ^ set(found.nodes), key=str):
        problem = (
            f"the comparison and the model have different nodes, for instance {listing(apart)}"
        )
    elif found.nodes != nodes:
        pairs = zip(found.nodes, nodes, strict=True)
        theirs, ours = next(pair for pair in pairs if pair[0] != pair[1])
        problem = (
            "the comparison has the nodes in another order than the model, for instance "
            f"{theirs!r} in place of {ours!r}"
        )
    elif named := [name for name in found.losses if name not in _FITS]:
        problem = f"the comparison is of graphs with names: {listing(named)}"
    else:
        return found
    raise InputError(
        problem, "Pass compare_graphs(samples, model.graph_, model), or a function that returns it"
    )


def graph_help(
    model: Any,
    names: list[str],
    found: GraphComparison | None,
    spelling: Spelling = str,
    noun: tuple[str, str] = ("node", "nodes"),
) -> dict[str, Any] | None:
    """Describe the contribution of neighbours; None for models that do not couple nodes.

    `found` compares the model's graph, by the name `UNNAMED`, with no graph. Without it the section
    only says how much the fit borrowed. `rows` are the name of every fit, its held-out loss, and
    the difference to the fit without the graph. `helped` and `hurt` name nodes. `nodes` is for the
    panels: losses and half widths of every fit, and the effect of neighbours. `curve` draws the
    learning curves.
    """
    edges = model.graph_.n_edges > 0
    if not model._couples or (found is None and not edges):
        return None
    notes = [sentence(spelled(note, spelling)) for note in graph_notes(model)]
    section: dict[str, Any] = {
        "heading": "Was the graph worth it?" if edges else "Would a graph help?",
        "verdict": _borrowed(model, spelling, noun),
        "notes": notes,
        "rows": [],
        "curve": "",
        "worth": None,
        "nodes": None,
    }
    if found is None:
        return section
    worth = found.stated_worth.get(UNNAMED)
    rows = []
    # The verdict says why there are no losses.
    for name in found.fits if found.answerable else ():
        gap = "\N{EN DASH}" if name == ALONE else difference(*found.against_alone(name), 3)
        rows.append((_FITS[name], fixed(found.losses[name].mean, 3), gap))
    # A model that left the graph out was neither helped nor hurt by it.
    used = model.graph_penalty_ > 0 or not edges
    effects = found.neighbors if used else ["not assessed"] * len(names)
    helped, hurt = (
        [name for name, own in zip(names, effects, strict=True) if own == effect]
        for effect in ("helped", "hurt")
    )
    by_node = {_FITS[name]: found.node_losses(name) for name in _FITS if name in found.losses}
    return section | {
        "verdict": in_words(found, offer="compare_graphs in Python gives it.", where=False),
        "rows": rows,
        "curve": learning_curve(worth) if worth is not None else "",
        "worth": worth if used else None,
        "helped": enumeration(helped, MOST_NAMED),
        "hurt": enumeration(hurt, MOST_NAMED),
        "nodes": {
            "fits": list(by_node),
            "loss": [_readable(loss) for loss, _ in by_node.values()],
            "half": [_readable(half) for _, half in by_node.values()],
            "neighbours": effects,
        },
    }


def graph_notes(model: Any) -> list[Words]:
    """Notes of a model on its graph, which this section shows."""
    if not model._couples or not model.graph_.n_edges:
        return []
    about = [*data_notes(model.sizes_, model.graph_), GRAPH_UNUSED]
    return [note for note in model._notes() if note in about]


def _borrowed(model: Any, spelling: Spelling, noun: tuple[str, str]) -> str:
    """How much a fit borrowed from neighbours, if no comparison says whether that helped."""
    more = spelled(
        ("This page does not measure whether that helped; ", _COMPARING, " does."), spelling
    )
    parts = contributions(model, np.empty(0, dtype=np.intp))
    if parts is None:
        how = f"every {noun[0]} was fitted by itself"
        if getattr(model, "shared_", False):
            how = f"{noun[1]} share only their profiles"
        return f"Cross-validation left the graph out: {how}. {more}"
    share = 1 - float(np.median(parts["own"]))
    return (
        f"At half of the {noun[1]} at least {share:.0%} of the estimate is borrowed from others. "
        f"{more}"
    )


def can_compare(model: Any, samples: NodeSamples) -> bool:
    """Whether a comparison with no graph is possible, and short enough for a report."""
    typical = float(np.median(np.minimum(samples.n_reference, samples.n_target)))
    most = MOST_COMPARED if model.graph_.n_edges else MOST_LEARNED
    if not model._couples or not 5 <= samples.n_nodes <= most or typical < FEWEST:
        return False
    return bool(samples.n_nodes * float(model.n_components_) ** 3 <= MOST_WORK)


def compared_with_none(model: Any, samples: NodeSamples) -> GraphComparison:
    """Compare the graph of a model with no graph, at its bandwidth and dictionary.

    The worth of the graph is measured on connected patches if there are very many observations.
    """
    again = model._again(fixed=False)
    again.set_params(bandwidth=model.bandwidth_, dictionary=model.dictionary_)
    return compare_graphs(
        model._align(samples),
        model.graph_,
        again,
        n_repeats=1,
        units="given",
        worth=WORTH_OBSERVATIONS,
        random_state=0,
    )


def _readable(values: FloatArray) -> list[float | None]:
    """Rounded for a page; None where there is no value."""
    return [round(float(value), 4) if np.isfinite(value) else None for value in values]


def contributions(model: Any, named: IntArray | None = None) -> dict[str, Any] | None:
    """Share of each node in its own estimate, and its largest contributors; None if uncoupled.

    Contributors are listed for the nodes in `named`, positions in the graph, by default all.
    """
    if not model._couples or not model._coupling.n_edges:
        return None
    sizes, worth = model._reach
    complete = (model.sizes_ > 0).all(axis=1)
    own = np.where(complete, model.sizes_.sum(axis=1), 0)
    total = sizes.sum(axis=1)
    given = worth.multiply(own[np.newaxis]).tocsr()
    largest = []
    for v in range(len(own)) if named is None else named.tolist():
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
        note = "how many observations it replaces is not clear"
    value = f"at least {worth.low:.1f}" if worth.open_above else f"{worth.estimate:.1f}"
    top = "or more" if np.isinf(worth.high) else f"to {worth.high:.1f}"
    return [
        {
            "value": value,
            "label": "worth of the graph",
            "note": note if worth.open_above else f"{note} (95% interval {worth.low:.1f} {top})",
        }
    ]
