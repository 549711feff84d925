"""The outcome of comparing graphs in sentences, and as a small table for notebooks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from graphratio._utils.errors import listing
from graphratio._utils.html import facts_table, rows_table, titled

if TYPE_CHECKING:
    from graphratio.evaluation.comparison import GraphComparison
    from graphratio.evaluation.node_means import Difference

# Names of the fits besides those of the user's graphs, and of a graph without a name.
ALONE, SHARED, LEARNED = "without a graph", "all nodes as one", "learned from the data"
UNNAMED = "graph"


def in_words(
    found: GraphComparison,
    *,
    offer: str = "Use it: fit(samples, comparison.learned_graph).",
    where: bool = True,
) -> str:
    """Say which graph fits best, whether it helped and, by default, where.

    `offer` says how to get a learned graph that helped. `where` asks for the numbers of nodes at
    which neighbours helped and hurt.
    """
    if not found.ranking:
        return "There is no graph to compare."
    if not found.answerable:
        return found.pieces.cannot_say("whether a graph helps") + "."
    parts = [_which(found), _whether(found)]
    parts += [_beside_all(found, offer), _learned(found)]
    parts += [_worth(found)]
    parts += [_where(found)] if where else []
    parts += [_regions(found), _at_grid_end(found), _units(found), _correlated(found)]
    return " ".join(part for part in parts if part)


def comparison_html(found: GraphComparison) -> str:
    """The verdict and the losses of all fits."""
    body = []
    for name in found.fits if found.answerable else ():
        apart, half = found.against_alone(name)
        body.append((name, f"{found.losses[name].mean:.4f}", f"{apart:+.4f} ± {half:.4f}"))
    facts = [("verdict", found.verdict), ("confidence", f"{1 - found.level:.0%}")]
    return titled(
        f"comparison of {len(found.losses)} fits at {len(found.nodes)} nodes",
        facts_table(facts),
        rows_table(("fit", "held-out loss", "minus without a graph"), body),
    )


def _which(found: GraphComparison) -> str:
    if len(found.graphs) < 2:
        return ""
    first, *rest = found.ranking
    if found.tied:
        text = f"No clear difference between {first!r} and {listing(found.tied)}"
        worse = [name for name in rest if name not in found.tied]
        return text + (f"; {first!r} is clearly better than {listing(worse)}." if worse else ".")
    if found.effect == "hurt":
        return f"{first!r} fits the data better than {listing(rest)}."
    return f"{first!r} fits the data best, clearly better than {listing(rest)}."


def _whether(found: GraphComparison) -> str:
    """Say whether the best-ranked graph is better than none, on observations and on nodes."""
    name = found.ranking[0]
    what = {LEARNED: "A graph learned from the data", UNNAMED: "The graph"}.get(
        name, f"The graph {name!r}"
    )
    if found.effect == "unclear":
        return _unclear(found, name, what)
    alone = found.between(name, ALONE)
    lower = "lower" if found.effect == "helped" else "higher"
    text = (
        f"{what} {found.effect}: held-out losses are {abs(alone.mean):.2g} {lower} on average "
        f"than without a graph ({_p_value(alone)})."
    )
    on_nodes = found.predicts(name)
    if on_nodes == ("worse" if found.effect == "helped" else "better"):
        return (
            f"{text} But it predicts held-out nodes {on_nodes} than no graph does "
            f"({_p_value(found.on_held_out_nodes(name))}), so no graph is named the best."
        )
    if found.effect == "hurt" and found.without_graph is not None:
        text += f" {found.without_graph!r} is the better choice."
    return text


def _unclear(found: GraphComparison, name: str, what: str) -> str:
    """Say whether neighbours predict a held-out node, if they made no clear difference."""
    if found.predicts(name) == "better":
        return (
            f"{what} predicts the change of a held-out node better than no graph does "
            f"({_p_value(found.on_held_out_nodes(name))}). Next to all observations of the node "
            "itself it made no clear difference."
        )
    text = f"{what} made no clear difference."
    if name in found.unseen:
        text += " Over all nodes, neighbours do not clearly predict the change of a node."
    return text


def _p_value(apart: Difference) -> str:
    return f"p = {apart.p_value:.2g}" if apart.p_value >= 1e-4 else "p < 0.0001"


def _worth(found: GraphComparison) -> str:
    """Say how many observations the best-ranked graph replaces."""
    own = found.stated_worth.get(found.ranking[0])
    if own is None:
        return ""
    if found.effect == "unclear" and own.low > 1:
        return f"Next to fewer it does: {own.in_words[:1].lower()}{own.in_words[1:]}"
    return own.in_words


def _regions(found: GraphComparison) -> str:
    """Say where neighbours change alike and where not, unless it is the same everywhere."""
    own = found.agreement.get(found.ranking[0])
    assessed = [] if own is None else [effect for effect in own.effect if effect != "not assessed"]
    alike, other = assessed.count("alike"), assessed.count("not alike")
    if not other and alike in (0, len(assessed)):
        return ""
    text = f"Neighbours change alike in {alike} of {len(assessed)} regions"
    if other:
        return f"{text}; in {other} they are clearly further apart than elsewhere."
    return f"{text}; in the others this is not clear."


def _at_grid_end(found: GraphComparison) -> str:
    if not found.at_grid_end:
        return ""
    graphs = found.at_grid_end
    which = "the graph" if list(graphs) == [UNNAMED] else listing(graphs)
    return (
        f"With {which} most fits chose the strongest coupling of all "
        "candidates; an even stronger one may do better."
    )


def _units(found: GraphComparison) -> str:
    if found.units == "given":
        return ""
    return "Observations were compared in units of each node's own mean and spread."


def _correlated(found: GraphComparison) -> str:
    own = found.correlation
    if own is None:
        return ""
    rows = "times" if own.by_stamp else "positions in the samples"
    text = (
        f"Nodes are correlated ({own.value:.2f} at the same {rows}), so observations were held out "
        "at all nodes at once, and no whole nodes were held out."
    )
    if not own.by_stamp:
        text += " If the order of the rows has no meaning, shuffle the rows of each sample."
    return text


def _beside_all(found: GraphComparison, offer: str) -> str:
    """Compare the graph with one ratio for all nodes, and offer a learned one that helped."""
    name, helped = found.ranking[0], found.effect == "helped"
    text = {
        "better": "",
        "worse": f"One ratio for all nodes does better{' still' if helped else ''}.",
        "unclear": "One ratio for all nodes is neither clearly better nor worse.",
    }[found.judged(name, SHARED)]
    return f"{text} {offer}".strip() if name == LEARNED and helped else text


def _learned(found: GraphComparison) -> str:
    """Compare a learned graph with the best given one."""
    if not found.graphs or LEARNED not in found.losses:
        return ""
    given = found.ranking[0]
    how = {
        "better": "does clearly better than",
        "worse": "does worse than",
        "unclear": "does neither clearly better nor worse than",
    }[found.judged(LEARNED, given)]
    return f"A graph learned from the data (learned_graph) {how} {given!r}."


def _where(found: GraphComparison) -> str:
    hurt = found.hurt()
    count = int(np.isfinite(found.gains[0]).sum())
    text = f"Neighbours clearly helped at {len(found.helped())} of {count} nodes"
    return f"{text} and hurt at {len(hurt)}{': ' + listing(hurt) if hurt else ''}."
