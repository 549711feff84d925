"""The top of the report: what was compared and what was found, in plain language."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from graphratio.data.samples import NodeSamples
from graphratio.plotting.columns import in_columns
from graphratio.report.divergence_scale import CLEAR_IN_WORDS, DivergenceScale
from graphratio.report.headline import (
    NOTABLE,
    NodeVerdicts,
    PageWords,
    page_headline,
    page_tiles,
)
from graphratio.report.node_table import Subject
from graphratio.report.words import count, enumeration, number

if TYPE_CHECKING:
    from graphratio.testing import TwoSampleResult

# How many of the most changed nodes are named.
N_NAMED = 5

# With fewer observations in a typical sample the headline warns of chance.
HEADLINE_OBSERVATIONS = 60

_SHRUNK = (
    "Read with care: most divergences are far below 0, but a true divergence is never negative. "
    "The penalties are too strong for these data, and even the order of the nodes can mislead. "
    "More observations or prior_ratio=1 help."
)


def summarise(
    subject: Subject,
    scale: DivergenceScale,
    words: PageWords,
    test: TwoSampleResult | None,
    more_tiles: list[dict[str, str]],
) -> dict[str, Any]:
    """Summary of a page: its first sentence, counts, and the most changed nodes."""
    model, samples = subject.model, subject.samples
    divergence = model.divergence_
    verdicts = NodeVerdicts.of(model, scale, test)
    meaning = (
        "The divergence measures how much the two samples of a node differ; 0 means no "
        f"difference. We call a change clear from {number(scale.clear, 3)}, the effect of a shift "
        f"by {CLEAR_IN_WORDS}."
    )
    return {
        "compared": _compared(samples, words),
        "found": _SHRUNK if scale.shrunk else page_headline(subject, verdicts, words),
        "tiles": [] if scale.shrunk else page_tiles(verdicts, scale, test) + more_tiles,
        "doubt": "" if verdicts.by_test else _doubt(samples, verdicts),
        "scale": meaning,
        "meaning": f"{meaning} It is an estimate and not a test: with few observations a node can "
        "appear changed, or unchanged, by chance.",
        "findings": [
            {
                "position": int(i),
                "name": subject.names[i],
                "divergence": f"{divergence[i]:.3f}",
                "what": what_changed(subject, i),
            }
            for i in model.ranking_[:N_NAMED]
            if divergence[i] > 0
        ],
    }


def _compared(samples: NodeSamples, words: PageWords) -> str:
    measured = in_columns(samples).feature_names
    features = enumeration(list(measured))
    sizes = (int(samples.n_reference.sum()), int(samples.n_target.sum()))
    each = f"At each of {words.nodes(samples.n_nodes)}"
    if samples.n_nodes == 1:
        each = f"At the only {words.noun[0]}"
    sides = words.sides
    return (
        f"{each}, the observations of \u201c{sides[1]}\u201d ({sizes[1]:,} in all) were compared "
        f"with those of \u201c{sides[0]}\u201d ({sizes[0]:,}) in "
        f"{count(len(measured), 'feature')}: {features}."
    )


def _doubt(samples: NodeSamples, verdicts: NodeVerdicts) -> str:
    """What limits a headline that rests on no test."""
    typical_size = float(np.median(np.minimum(samples.n_reference, samples.n_target)))
    if not verdicts.changed.any() or typical_size >= HEADLINE_OBSERVATIONS:
        return ""
    return (
        f"With only about {typical_size:.0f} observations in a sample, some of this can be chance: "
        "a test tells which."
    )


def what_changed(subject: Subject, nodes: Any) -> str:
    """The most notable change of a mean or spread at a node, or at several on average."""
    samples = subject.samples
    several = (-1, 2, samples.n_features)
    mean = np.nanmean(subject.mean[nodes].reshape(several), axis=0)
    spread = np.nanmean(subject.spread[nodes].reshape(several), axis=0)
    typical = np.sqrt((spread**2).mean(axis=0))
    usable = np.where(typical > 0, typical, np.inf)
    in_mean = np.abs(mean[1] - mean[0]) / usable
    in_spread = np.abs(spread[1] - spread[0]) / usable
    kind, values, sizes = max(
        ("mean", mean, in_mean), ("spread", spread, in_spread), key=lambda item: item[2].max()
    )
    j = int(np.argmax(sizes))
    if sizes[j] < NOTABLE:
        return "a change of shape more than of mean or spread"
    if samples.encoding is not None and samples.encoding.is_indicator[j]:
        kind, values = "share", mean
    digits = 3 if abs(values[1, j] - values[0, j]) > 0.01 * abs(values[0, j]) else 5
    return (
        f"{kind} of {samples.feature_names[j]} from {number(values[0, j], digits)} "
        f"to {number(values[1, j], digits)}"
    )
