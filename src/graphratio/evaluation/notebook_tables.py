"""Comparisons of graphs, bounds and intervals as small tables for notebooks."""

from __future__ import annotations

from html import escape
from typing import Any

import numpy as np

from graphratio._utils.html import facts_table, rows_table

_SHOWN = 8


def _block(title: str, *parts: str) -> str:
    return f'<div style="max-width:60em"><code>{escape(title)}</code>{"".join(parts)}</div>'


def comparison_html(found: Any) -> str:
    """A GraphComparison: the verdict, and the losses of all fits."""
    body = []
    for name in sorted(found.losses, key=lambda item: found.losses[item].mean):
        apart, half = found.against_alone(name)
        body.append((name, f"{found.losses[name].mean:.4f}", f"{apart:+.4f} ± {half:.4f}"))
    facts = [("verdict", found.verdict), ("confidence", f"{found.confidence:.0%}")]
    return _block(
        f"comparison of {len(found.losses)} fits at {len(found.nodes)} nodes",
        facts_table(facts),
        rows_table(("fit", "held-out loss", "minus each node alone"), body),
    )


def bounds_html(bounds: Any) -> str:
    """DivergenceBounds: how many are above 0, and the nodes with the highest bounds."""
    lower = bounds.true_divergence_lower_bound
    scope = "all nodes at once" if bounds.simultaneous else "each node by itself"
    facts = [
        ("outcome", bounds.outcome),
        ("confidence", f"{bounds.confidence:.0%}, {scope}"),
        ("bound", "of the true divergence, from below"),
        ("interval", "of the divergence of the fitted ratio, which is at most the true one"),
    ]
    order = np.argsort(-np.nan_to_num(lower, nan=-np.inf), kind="stable")[:_SHOWN]
    body = [
        (
            str(bounds.nodes[v]),
            f"{lower[v]:.3g}",
            f"{bounds.fitted_divergence[v]:.3g}",
            "{:.3g} to {:.3g}".format(*bounds.fitted_divergence_interval[v]),
        )
        for v in order
    ]
    head = ("nodes with the highest bounds", "lower bound", "fitted divergence", "interval")
    return _block("divergence bounds", facts_table(facts), rows_table(head, body))


def band_html(band: Any) -> str:
    """ExpectedRatioInterval: what it covers, and the points."""
    scope = "all points at once" if band.simultaneous else "each point by itself"
    facts = [
        ("covers", "the expectation of the estimated ratio, not the true ratio"),
        ("confidence", f"{band.confidence:.0%}, {scope}"),
    ]
    count = len(band.points)
    shown = np.unique(np.linspace(0, count - 1, min(count, _SHOWN)).round().astype(int))
    body = [
        (
            ", ".join(f"{value:.3g}" for value in band.points[i]),
            f"{band.ratio[i]:.3g}",
            f"{band.expected_ratio_low[i]:.3g} to {band.expected_ratio_high[i]:.3g}",
        )
        for i in shown
    ]
    head = (", ".join(band.feature_names), "ratio", "interval")
    title = f"expected ratio at node {band.node}, {count} points"
    return _block(title, facts_table(facts), rows_table(head, body))
