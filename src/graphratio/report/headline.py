"""The first sentence of the report: what changed, in which direction, where, and by how much."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from graphratio._utils.errors import InputError, enumeration, listing
from graphratio._utils.typing import BoolArray, FloatArray, IntArray
from graphratio.data.samples import NodeSamples
from graphratio.report.node_table import NO_SPREAD, Subject
from graphratio.report.page_file import short
from graphratio.report.spread_changes import NOTABLE, clear_spreads
from graphratio.report.verdicts import CHANGED, NodeVerdicts
from graphratio.report.words import decimals_of, number

# The sentence names at most this many nodes.
_NAMED = 3

# A change of a mean is mentioned from so many standard errors of the node's own observations on.
# Changes that neighbours agree on are surer than these errors say.
SURE_ALONE, SURE_TOGETHER = 2.0, 1.0
# Neighbours make the main direction plausible, but not the other one, which takes more.
_SURE_AGAINST = 3.0

# The colours of the map reach at least so many standard errors, so that noise looks pale.
_PALE = 3.0

# A direction leads the sentence if it is clear at this share of the changed nodes.
_SHARE_OF_DIRECTION = 1 / 4

# Changes of a mean count up to so many standard deviations.
_STRONGEST = 3.0


@dataclass(frozen=True)
class PageWords:
    """Words of a page: names of the samples, of one node and of several, units of features."""

    sides: tuple[str, str]
    noun: tuple[str, str] = ("node", "nodes")
    units: Mapping[str, str] = field(default_factory=dict)

    def nodes(self, count: int) -> str:
        """A number of nodes, such as "3 airports"."""
        return f"{count:,} {self.noun[count != 1]}"

    def judged(self, verdicts: NodeVerdicts) -> str:
        """The judged nodes, such as "60 judged nodes" or "the only judged node"."""
        known, total = int(verdicts.judged.sum()), len(verdicts.state)
        which = "" if known == total else "judged "
        if known == 1:
            return f"the {'only ' if which else ''}{which}{self.noun[0]}"
        return f"{known:,} {which}{self.noun[1]}"

    def change(self, value: float, feature: str, decimals: int | None = None) -> str:
        """A signed change with its unit, by default with two digits."""
        sign = "+" if value > 0 else "\u2212" if value < 0 else "\u00b1"
        unit = self.units.get(feature, "")
        size = number(abs(value), 2) if decimals is None else f"{abs(value):,.{decimals}f}"
        return f"{sign}{size}{' ' if unit else ''}{unit}"


def page_words(
    sides: tuple[str, str],
    noun: tuple[str, str],
    units: Mapping[str, str] | None,
    samples: NodeSamples,
) -> PageWords:
    """Check the words that a caller chose for a page."""
    if not (isinstance(noun, tuple | list) and len(noun) == 2 and all(map(str, noun))):
        raise InputError(
            f"noun must be two words, for one node and for several, not {noun!r}",
            'Pass for instance noun=("airport", "airports")',
        )
    given = dict(units or {})
    unknown = sorted(set(given) - set(samples.feature_names))
    if unknown:
        raise InputError(
            f"a unit was given for {listing(unknown)}, which is not a feature",
            f"The features are {listing(samples.feature_names)}",
        )
    return PageWords(sides, (str(noun[0]), str(noun[1])), given)


def page_headline(subject: Subject, verdicts: NodeVerdicts, words: PageWords) -> str:
    """The sentence that a reader remembers."""
    judged, n_changed = int(verdicts.judged.sum()), verdicts.count(CHANGED)
    if not judged:
        return "These data cannot say whether anything changed."
    if not n_changed:
        what = "clear" if verdicts.by == "size" else "significant"
        where = f"{'any of ' if judged > 1 else ''}{words.judged(verdicts)}"
        return f"No {what} change was found at {where}."
    text = _direction(subject, verdicts, words)
    if verdicts.by == "exploration":
        return f"Something changed significantly. It looks as if {text}."
    return f"{_capital(text)}."


def _direction(subject: Subject, verdicts: NodeVerdicts, words: PageWords) -> str:
    """Which feature rose or fell, at how many of the judged nodes, where most, by how much."""
    changed, judged = np.flatnonzero(verdicts.changed), int(verdicts.judged.sum())
    these = words.judged(verdicts)
    between = f"from {words.sides[0]} to {words.sides[1]}"

    def where(count: int) -> str:
        if count == judged:
            return f"all {these}" if judged > 1 else these
        return f"{count:,} of {these}"

    effect = _effects(subject)[changed]
    moved = np.count_nonzero(effect, axis=0).max()
    more_spread = np.count_nonzero(_spread_ratios(subject, changed), axis=0).max()
    # A mean that moved at a few nodes is not what happened to the network.
    if more_spread > moved or moved < _SHARE_OF_DIRECTION * len(changed):
        return _without_direction(subject, changed, where, between, words)
    feature = int(np.argmax(np.minimum(np.abs(effect), _STRONGEST).sum(axis=0)))
    own, name = effect[:, feature], _feature_name(subject, feature)
    sign = 1 if (own > 0).sum() >= (own < 0).sum() else -1
    main = changed[sign * own > 0]
    against = changed[sign * _effects(subject, _SURE_AGAINST)[changed, feature] < 0]
    rest = np.setdiff1d(changed, np.concatenate([main, against]))
    more = [f"{against.size:,} went the other way"] if against.size else []
    more += _others(subject, _effects(subject, SURE_ALONE)[rest])
    text = f"{name} {_VERBS[sign]} at {where(main.size)} {between}"
    also = f"; {enumeration(more)}" if more else ""
    return f"{text}{_most(subject, main, feature, words)}{also}"


_VERBS = {1: "rose", -1: "fell"}


def _others(subject: Subject, effect: FloatArray) -> list[str]:
    """What happened at the other changed nodes, from sure effects (n_others, n_features)."""
    if not len(effect):
        return []
    signs = np.sign(effect)
    counts = np.stack([(signs > 0).sum(axis=0), (signs < 0).sum(axis=0)])
    way, feature = np.unravel_index(np.argmax(counts), counts.shape)
    count = int(counts[way, feature])
    if count > 1 and 2 * count >= len(effect):
        verb = _VERBS[1 if way == 0 else -1]
        told = [f"{_feature_name(subject, int(feature))} {verb} at {count:,} others"]
        left = len(effect) - count
        return [*told, f"{left:,} changed in other ways"] if left else told
    how = "in shape or spread" if subject.samples.n_features == 1 else "in other ways"
    return [f"{len(effect):,} changed {how}"]


def _without_direction(
    subject: Subject,
    changed: IntArray,
    where: Callable[[int], str],
    between: str,
    words: PageWords,
) -> str:
    """Means did not change clearly: say which spread did, or else only that nodes changed."""
    place = {int(i): k for k, i in enumerate(subject.model.ranking_)}
    ranked = sorted(changed.tolist(), key=lambda i: place.get(i, len(place)))
    ratio = _spread_ratios(subject, changed)
    feature = int(np.argmax(np.abs(ratio).sum(axis=0)))
    name, own = _feature_name(subject, feature), ratio[:, feature]
    sign = 1 if (own > 0).sum() >= (own < 0).sum() else -1
    main = set(changed[sign * own > 0].tolist())
    if 2 * len(main) < len(changed):
        # Several features, none of which stands out.
        what = name if subject.samples.n_features == 1 else "the features"
        most = enumeration([subject.names[i] for i in ranked[:_NAMED]])
        text = f"the distribution of {what} changed in shape or spread at {where(len(changed))}"
        return f"{text} {between}{f', most at {most}' if len(subject.names) > 1 else ''}"
    verb = "grew" if sign > 0 else "shrank"
    spread = np.median(subject.spread[sorted(main), :, feature], axis=0)
    unit = words.units.get(subject.samples.feature_names[feature], "")
    sizes = f"from {number(spread[0], 2)} to {number(spread[1], 2)}{' ' if unit else ''}{unit}"
    if subject.own_scales[feature]:
        # A typical spread of nodes that are not alike says nothing.
        sizes = by_factor(float(np.median(np.abs(own[sign * own > 0]))))
    text = f"the spread of {name} {verb} at {where(len(main))} {between}"
    named = [subject.names[i] for i in ranked if i in main][:_NAMED]
    if len(subject.names) > 1:
        sizes = (
            f"typically {sizes}, most at {enumeration(named)}"
            if len(main) > 1
            else (f"{sizes} at {named[0]}")
        )
    left = len(changed) - len(main)
    return f"{text}, {sizes}{f'; {left:,} changed in other ways' if left else ''}"


def _constants(subject: Subject) -> tuple[FloatArray, FloatArray, BoolArray]:
    """Spread and size of the values, and whether they are constant, (n_nodes, n_features) each."""
    spread = subject.within
    size = np.abs(subject.mean).max(axis=1)
    return spread, size, spread <= NO_SPREAD * size


def _changes(subject: Subject) -> FloatArray:
    """Changes of means, (n_nodes, n_features). Neighbours say nothing about a constant."""
    return np.where(_constants(subject)[2], subject.own_change, subject.change)


def _errors(subject: Subject) -> FloatArray:
    """Standard errors of the changes of a node's own means, (n_nodes, n_features)."""
    sizes = np.maximum(subject.samples.sizes, 1)[:, :, np.newaxis]
    return np.asarray(np.sqrt((subject.spread**2 / sizes).sum(axis=1)))


def _effects(subject: Subject, alone: float | None = None) -> FloatArray:
    """Changes of means in standard deviations, (n_nodes, n_features); 0 where too small to tell.

    If `alone` is given, the node's own observations must show them with so many standard errors.
    """
    spread, size, constant = _constants(subject)
    change = _changes(subject)
    effect = in_spreads(change, spread, size)
    # With several features another one may be what changed.
    together = subject.smoothed and subject.samples.n_features == 1
    needed = alone or (SURE_TOGETHER if together else SURE_ALONE)
    seen = np.abs(change) if alone is None else np.sign(change) * subject.own_change
    shown = seen >= needed * _errors(subject)
    told = (np.abs(effect) >= NOTABLE) & (constant | shown)
    # A single observation has no spread to compare with.
    several = subject.samples.sizes.min(axis=1) >= 2
    return np.where(told & several[:, np.newaxis], effect, 0.0)


def _spread_ratios(subject: Subject, changed: IntArray) -> FloatArray:
    """Logarithms of target over reference spread at some nodes; 0 where not clear.

    Shape (n_changed, n_features).
    """
    chosen = np.zeros(len(subject.names), dtype=bool)
    chosen[changed] = True
    clear = clear_spreads(subject, chosen)
    ratio = np.zeros((len(changed), subject.samples.n_features))
    for row, v in enumerate(changed.tolist()):
        before, after = subject.spread[v][:, clear[v]]
        with np.errstate(divide="ignore"):
            # A spread that was zero counts as much as any large one.
            ratio[row, clear[v]] = np.clip(np.log(after / before), -_STRONGEST, _STRONGEST)
    return ratio


def by_factor(log_ratio: float) -> str:
    """By how much a spread changed, from the logarithm of the ratio of both."""
    more = " or more" if log_ratio >= _STRONGEST else ""
    return f"by a factor of {number(float(np.exp(min(log_ratio, _STRONGEST))), 2)}{more}"


def in_spreads(change: FloatArray, spread: FloatArray, size: FloatArray) -> FloatArray:
    """Changes in units of the spread; infinite where a constant changed.

    Differences that rounding explains in values of this `size` are 0.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(np.abs(change) <= NO_SPREAD * size, 0.0, change / spread)


def _most(subject: Subject, nodes: IntArray, feature: int, words: PageWords) -> str:
    """Where it changed most, and by how much: ", most at A and B (+60 to +67 mph)"."""
    if len(subject.names) == 1:
        return f" by {_amounts(subject, nodes, feature, words)}"
    change = np.abs(subject.comparable(_changes(subject))[nodes, feature])
    strongest = nodes[np.argsort(-change, kind="stable")][:_NAMED]
    named = enumeration([subject.names[i] for i in strongest])
    every = _amounts(subject, nodes, feature, words)
    if every == _amounts(subject, nodes[:1], feature, words):
        # One node, or the same amount everywhere: none changed most.
        return f": {named} ({every})" if len(nodes) <= _NAMED else f", by {every}"
    most = "most, for what is usual there," if subject.own_scales[feature] else "most"
    return f", {most} at {named} ({_amounts(subject, strongest, feature, words)})"


def _amounts(subject: Subject, nodes: IntArray, feature: int, words: PageWords) -> str:
    change = np.sort(_changes(subject)[nodes, feature])
    key = subject.samples.feature_names[feature]
    low, high = words.change(change[0], key), words.change(change[-1], key)
    if low == high:
        return low
    decimals = max(decimals_of(number(abs(value), 2)) for value in (change[0], change[-1]))
    low, high = (words.change(value, key, decimals) for value in (change[0], change[-1]))
    return f"{low.removesuffix(words.units.get(key, '')).rstrip()} to {high}"


def _feature_name(subject: Subject, feature: int) -> str:
    name = subject.samples.feature_names[feature].replace("_", " ")
    encoding = subject.samples.encoding
    if encoding is not None and encoding.is_indicator[feature]:
        return f"the share of {name}"
    return name


def _capital(text: str) -> str:
    """Begin with a capital, unless that would misspell the name of a feature: pH, pm25, x."""
    first = text.split()[0]
    ordinary = len(first) > 1 and first.isalpha() and first.islower()
    return text[:1].upper() + text[1:] if ordinary else text


def direction_of(
    subject: Subject, verdicts: NodeVerdicts, words: PageWords
) -> dict[str, Any] | None:
    """Changes of the mean for the colours of the map, if there is one numeric feature.

    None if nodes changed, but no mean did: then colours show how strong the changes are.
    """
    samples = subject.samples
    if samples.n_features != 1 or samples.encoding is not None:
        return None
    if verdicts.changed.any() and not _effects(subject)[verdicts.changed].any():
        return None
    change = subject.comparable(subject.change)[:, 0]
    known = np.abs(change[np.isfinite(change)])
    if not known.size or known.max() == 0:
        return None
    own = bool(subject.own_scales[0])
    unit = "SDs" if own else words.units.get(samples.feature_names[0], "")
    # Outliers share the last colour, but not the nodes that changed.
    largest = float(np.quantile(known, 0.98)) or float(known.max())
    if verdicts.changed.any():
        largest = max(largest, float(np.quantile(np.abs(change[verdicts.changed]), 0.9)))
    errors = subject.comparable(_errors(subject))[:, 0]
    largest = max(largest, _PALE * float(np.median(errors[np.isfinite(errors)])))
    return {
        "change": short(change),
        "largest": largest,
        "clipped": int((known > 1.05 * largest).sum()),
        "feature": _feature_name(subject, 0),
        "unit": unit,
        "unit_in_words": f"standard deviations (SDs) of the {words.noun[0]}" if own else unit,
    }
