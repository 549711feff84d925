"""The first sentence of the report: what changed, in which direction, where, and by how much."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from graphratio._utils.errors import InputError, enumeration, listing
from graphratio._utils.typing import FloatArray, IntArray
from graphratio.data.samples import NodeSamples
from graphratio.report.node_table import Subject
from graphratio.report.page_file import short
from graphratio.report.verdicts import CHANGED, NodeVerdicts
from graphratio.report.words import number

# The sentence names at most this many nodes.
_NAMED = 3

# Smaller changes of the mean or spread, in standard deviations, are not mentioned.
NOTABLE = 0.2

# Nor are changes of a mean below so many standard errors of the node's own observations. Changes
# that neighbours agree on are surer than these errors say.
SURE_ALONE, SURE_TOGETHER = 2.0, 1.0

# Rounding, as a share of the values.
_ROUNDING = 1e-9

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

    def change(self, value: float, feature: str) -> str:
        """A signed change with its unit."""
        sign = "+" if value > 0 else "\u2212" if value < 0 else "\u00b1"
        unit = self.units.get(feature, "")
        return f"{sign}{number(abs(value), 2)}{' ' if unit else ''}{unit}"


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
    n_changed, these = len(changed), words.judged(verdicts)
    effect = _effects(subject)
    feature = int(np.argmax(np.minimum(np.abs(effect[changed]), _STRONGEST).sum(axis=0)))
    name = _feature_name(subject, feature)
    own = effect[changed, feature]
    up, down = changed[own > 0], changed[own < 0]
    rest = n_changed - up.size - down.size
    between = f"from {words.sides[0]} to {words.sides[1]}"
    where = f"{n_changed:,} of {these}" if judged > 1 else these
    if n_changed == judged > 1:
        where = f"all {these}"
    if not up.size and not down.size:
        chosen = set(changed.tolist())
        ranked = [int(i) for i in subject.model.ranking_ if int(i) in chosen]
        most = enumeration([subject.names[i] for i in ranked[:_NAMED]])
        text = f"the distribution of {name} changed in shape or spread at {where} {between}"
        return f"{text}, most at {most}"
    main, verb, other = up, "rose", down
    if down.size > up.size:
        main, verb, other = down, "fell", up
    if main.size < judged:
        where = f"{main.size:,} of {these}"
    more = []
    if other.size:
        more.append(f"{other.size:,} went the other way")
    if rest:
        way = "in shape or spread" if subject.samples.n_features == 1 else "in other ways"
        more.append(f"{rest:,} changed {way}")
    also = f"; {' and '.join(more)}" if more else ""
    return f"{name} {verb} at {where} {between}{_most(subject, main, feature, words)}{also}"


def _effects(subject: Subject) -> FloatArray:
    """Changes of means in standard deviations, (n_nodes, n_features); 0 where too small to tell."""
    spread = np.sqrt((subject.spread**2).mean(axis=1))
    size = np.abs(subject.mean).max(axis=1)
    constant = spread <= _ROUNDING * size
    # Neighbours say nothing about a constant.
    effect = in_spreads(np.where(constant, subject.own_change, subject.change), spread, size)
    sizes = subject.samples.sizes[:, :, np.newaxis]
    error = np.sqrt((subject.spread**2 / np.maximum(sizes, 1)).sum(axis=1))
    sure = (SURE_TOGETHER if subject.smoothed else SURE_ALONE) * error
    told = (np.abs(effect) >= NOTABLE) & (constant | (np.abs(subject.change) >= sure))
    # A single observation has no spread to compare with.
    return np.where(told & (sizes >= 2).all(axis=1), effect, 0.0)


def in_spreads(change: FloatArray, spread: FloatArray, size: FloatArray) -> FloatArray:
    """Changes in units of the spread; infinite where a constant changed.

    Differences that rounding explains in values of this `size` are 0.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(np.abs(change) <= _ROUNDING * size, 0.0, change / spread)


def _most(subject: Subject, nodes: IntArray, feature: int, words: PageWords) -> str:
    """Where it changed most, and by how much: ", most at A and B (+60 to +67 mph)"."""
    if len(subject.names) == 1:
        return f" by {_amounts(subject, nodes, feature, words)}"
    change = np.abs(subject.change[nodes, feature])
    strongest = nodes[np.argsort(-change, kind="stable")][:_NAMED]
    named = enumeration([subject.names[i] for i in strongest])
    return f", most at {named} ({_amounts(subject, strongest, feature, words)})"


def _amounts(subject: Subject, nodes: IntArray, feature: int, words: PageWords) -> str:
    change = np.sort(subject.change[nodes, feature])
    key = subject.samples.feature_names[feature]
    low, high = words.change(change[0], key), words.change(change[-1], key)
    if low == high:
        return low
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
    change = subject.change[:, 0]
    known = np.abs(change[np.isfinite(change)])
    if not known.size or known.max() == 0:
        return None
    unit = words.units.get(samples.feature_names[0], "")
    return {
        "change": short(change),
        "largest": float(np.quantile(known, 0.98)) or float(known.max()),
        "feature": _feature_name(subject, 0),
        "unit": unit,
    }
