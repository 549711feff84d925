"""The top of the report: what was compared and what was found, in plain language."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from graphratio._utils.errors import Argument, Spelling, enumeration, spelled
from graphratio._utils.typing import FloatArray, IntArray
from graphratio.data.samples import NodeSamples
from graphratio.plotting.columns import in_columns
from graphratio.report.divergence_scale import CLEAR_IN_WORDS, DivergenceScale
from graphratio.report.headline import PageWords, by_factor, in_spreads, page_headline
from graphratio.report.node_table import Subject
from graphratio.report.spread_changes import NOTABLE
from graphratio.report.verdicts import NodeVerdicts
from graphratio.report.words import count, fixed, number

if TYPE_CHECKING:
    from graphratio.testing import TwoSampleResult

# How many of the most changed nodes are named.
N_NAMED = 5

# With fewer observations in a typical sample the headline warns of chance.
HEADLINE_OBSERVATIONS = 60

_SHRUNK = (
    "Read with care: most divergences are far below 0, but a true divergence is never negative. "
    "The penalties are too strong for these data, and even the order of the nodes can mislead. "
    "More observations help, or ",
    Argument("prior_ratio", 1),
    ".",
)


def summarise(
    subject: Subject,
    scale: DivergenceScale,
    words: PageWords,
    verdicts: NodeVerdicts,
    test: TwoSampleResult | None,
    spelling: Spelling,
) -> dict[str, Any]:
    """Summary of a page: its first sentence, counts, and the most changed nodes."""
    model, samples = subject.model, subject.samples
    divergence = model.divergence_
    meaning = (
        "The divergence measures how much the two samples of a node differ, in units that all "
        f"{words.noun[1]} share. A shift by {CLEAR_IN_WORDS} gives {number(scale.clear, 3)}. At 0 "
        "or less it shows no difference."
    )
    unseen = int((verdicts.changed & (divergence <= 0)).sum())
    if unseen and verdicts.by == "test":
        meaning += f" At {words.nodes(unseen)} the test found a change that it does not show."
    if verdicts.by == "size":
        meaning += (
            f" We call a change clear from {number(scale.clear, 3)} on. This is an "
            "estimate, not a test: with few observations a node can seem to change, or not to "
            "change, by chance."
        )
    found = page_headline(subject, verdicts, words)
    return {
        "compared": _compared(samples, words),
        "found": spelled(_SHRUNK, spelling) if scale.shrunk else found,
        "tiles": [] if scale.shrunk else verdicts.tiles(test),
        "doubt": _doubt(samples, verdicts) if verdicts.by == "size" else "",
        "meaning": meaning,
        "findings": [
            {
                "position": int(i),
                "name": subject.names[i],
                "divergence": fixed(divergence[i], 3),
                "what": what_changed(subject, np.array([i]), words),
            }
            for i in model.ranking_
            if verdicts.changed[i]
        ][:N_NAMED],
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
    smaller = np.minimum(samples.n_reference, samples.n_target)[samples.complete]
    typical_size = float(np.median(smaller)) if smaller.size else 0.0
    if not verdicts.changed.any() or typical_size >= HEADLINE_OBSERVATIONS:
        return ""
    return (
        f"With only about {typical_size:.0f} observations in a sample, some of this can be chance: "
        "a test tells which."
    )


def what_changed(subject: Subject, nodes: IntArray, words: PageWords) -> str:
    """The most notable change of a mean or spread at a node, or at several on average."""
    samples = subject.samples
    mean, spread = (np.nanmean(part[nodes], axis=0) for part in (subject.mean, subject.spread))
    typical = np.sqrt((spread**2).mean(axis=0))
    largest = np.abs(mean).max(axis=0)
    in_mean, in_spread = (
        in_spreads(np.abs(part[1] - part[0]), typical, largest) for part in (mean, spread)
    )
    own = subject.own_scales & (len(nodes) > 1)
    if own.any():
        # Means over nodes of different levels say nothing.
        relative = _in_own_scales(subject, nodes)
        in_mean, in_spread = np.where(own, np.abs(relative), [in_mean, in_spread])
    kind, values, sizes = max(
        ("mean", mean, in_mean), ("spread", spread, in_spread), key=lambda item: item[2].max()
    )
    j = int(np.argmax(sizes))
    if sizes[j] < NOTABLE:
        return "a change of shape more than of mean or spread"
    if own[j]:
        row = ("mean", "spread").index(kind)
        way = "up" if relative[row, j] > 0 else "down"
        size = f"by {number(sizes[j], 2)} standard deviations of the {words.noun[0]} on average"
        if kind == "spread":
            size = _factor(subject, nodes, j)
        return f"{kind} of {samples.feature_names[j]} {way} {size}"
    if samples.encoding is not None and samples.encoding.is_indicator[j]:
        kind, values = "share", mean
    digits = 3 if abs(values[1, j] - values[0, j]) > 0.01 * abs(values[0, j]) else 5
    before, after = (number(value, digits) for value in values[:, j])
    unit = words.units.get(samples.feature_names[j], "") if kind != "share" else ""
    text = (
        f"{kind} of {samples.feature_names[j]} from {before} to {after}{' ' if unit else ''}{unit}"
    )
    if kind == "spread" or not subject.smoothed:
        return text
    whose = "its" if len(nodes) == 1 else "their"
    change = words.change(float(subject.change[nodes, j].mean()), samples.feature_names[j])
    return f"{text} in {whose} own observations, {change} with the help of neighbours"


def _in_own_scales(subject: Subject, nodes: IntArray) -> FloatArray:
    """Changes of mean and spread in the scale of each node, on average, (2, n_features)."""
    changes = (part[:, 1] - part[:, 0] for part in (subject.mean, subject.spread))
    return np.array([np.nanmean(subject.comparable(one)[nodes], axis=0) for one in changes])


def _factor(subject: Subject, nodes: IntArray, feature: int) -> str:
    """By how much the spread of a feature typically changed."""
    spread = np.maximum(subject.spread[nodes, :, feature], np.finfo(float).tiny)
    return by_factor(abs(float(np.median(np.log(spread[:, 1] / spread[:, 0])))))
