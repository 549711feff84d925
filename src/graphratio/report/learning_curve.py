"""The learning curves behind the worth of a graph, as a small drawing for pages."""

from __future__ import annotations

import numpy as np

from graphratio._utils.typing import FloatArray
from graphratio.evaluation.worth_result import Worth
from graphratio.report.words import fixed, number

WIDTH, HEIGHT = 420, 230
LEFT, RIGHT, TOP, BOTTOM = 52, 14, 14, 44


def learning_curve(worth: Worth) -> str:
    """Draw held-out losses by the number of observations, with and without the graph, as SVG.

    A dashed line leads from each node alone, at all observations, to the curve with the graph.
    """
    logs = np.log(worth.sizes)
    losses = np.concatenate([worth.joined, worth.alone])
    low, high = float(losses.min()), float(losses.max())
    room = max(high - low, 1e-9)

    def across(log: FloatArray) -> FloatArray:
        span = max(float(logs[-1] - logs[0]), 1e-9)
        return np.asarray(LEFT + (log - logs[0]) / span * (WIDTH - LEFT - RIGHT))

    def down(loss: FloatArray) -> FloatArray:
        return np.asarray(TOP + (high - loss) / room * (HEIGHT - TOP - BOTTOM))

    parts = []
    for losses_, colour in ((worth.alone, "--reference"), (worth.joined, "--target")):
        points = " ".join(
            f"{x:.1f},{y:.1f}" for x, y in zip(across(logs), down(losses_), strict=True)
        )
        parts.append(f'<polyline points="{points}" fill="none" stroke="var({colour})" '
                     'stroke-width="2"/>')  # fmt: skip
    goal = float(down(worth.alone[-1]))
    reached = float(np.clip(across(np.log(worth.n / worth.estimate)), LEFT, WIDTH - RIGHT))
    parts.append(
        f'<line x1="{WIDTH - RIGHT}" y1="{goal:.1f}" x2="{reached:.1f}" y2="{goal:.1f}" '
        'stroke="var(--quiet)" stroke-dasharray="4 3"/>'
    )
    for size, x in zip(worth.sizes, across(logs), strict=True):
        parts.append(_text(x, HEIGHT - BOTTOM + 16, f"{size:.0f}", "middle"))
    for loss, y in ((high, TOP), (low, HEIGHT - BOTTOM)):
        parts.append(_text(LEFT - 6, y + 4, number(loss, 3), "end"))
    parts.append(_text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 8, "observations per sample", "middle"))
    label = (
        "Held-out loss by the number of observations. With the graph it falls from "
        f"{fixed(worth.joined[0], 3)} to {fixed(worth.joined[-1], 3)}, each node alone from "
        f"{fixed(worth.alone[0], 3)} to {fixed(worth.alone[-1], 3)}."
    )
    return (
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{label}" '
        f'style="width:100%;max-width:{WIDTH}px;height:auto">{"".join(parts)}</svg>'
    )


def _text(x: float, y: float, words: str, anchor: str) -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="12" '
        f'fill="var(--quiet)">{words}</text>'
    )
