"""Watch a panel as it grows: alarms, events that are refined, and the new state after them."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from graphratio._utils.typing import FloatArray
from graphratio.changepoints.assembling import assembled
from graphratio.changepoints.change_search import Change
from graphratio.changepoints.common_scale import Evidence
from graphratio.changepoints.dating import date
from graphratio.changepoints.events import Found
from graphratio.changepoints.online import (
    LONG_REFERENCE,
    SETTLING,
    RecentPast,
    Scales,
    stream_evidence,
)
from graphratio.changepoints.stretch import Lens, Stretch


@dataclass(frozen=True)
class Alarm:
    """A comparison that raised an alarm: the split, its score, and the last step seen."""

    split: int
    score: float
    step: int


@dataclass(frozen=True)
class WatchSettings:
    """What a watch needs besides the panel; `seed` draws the streams of the calibration."""

    lens: Lens
    memory: int
    block: int
    level: float
    n_surrogates: int
    seed: int


class ChangeWatch:
    """Takes in one step after the other.

    `regime` is the first step of the present state, and `reference` the steps whose ranks and
    spreads are used, None while the state is too new. `latest` is the evidence of the last step in
    units of the threshold, NaN if nothing was compared.
    """

    def __init__(self, values: FloatArray, found: list[Found], settings: WatchSettings) -> None:
        self.settings = settings
        self._values = [values]
        self.settled = list(found)
        self.regime = found[-1].last if found else 0
        self.fitted = len(values)
        self.alarm: Alarm | None = None
        self.evidence: Evidence | None = None
        self.latest = float("nan")
        self.past: RecentPast | None = None
        self.reference: tuple[int, int] | None = None
        self.n_seen = len(values)
        self._ready()

    @property
    def values(self) -> FloatArray:
        """All values, shape (n_seen, n_nodes, n_measured)."""
        if len(self._values) > 1:
            self._values = [np.concatenate(self._values)]
        return self._values[0]

    def push(self, values: FloatArray) -> Found | None:
        """Take in one step, (1, n_nodes, n_measured); return a change when an alarm is raised."""
        self._values.append(values)
        self.n_seen += 1
        self.latest = float("nan")
        if self.past is not None:
            self.past.push(values)
        if self.alarm is not None:
            if self.n_seen >= self.alarm.split + SETTLING:
                self._settle()
            return None
        self._ready()
        if self.past is None:
            return None
        self.alarm = self._alarm()
        return self.open()

    def _settle(self) -> None:
        """Date the event of the alarm for the last time, and watch the state after it."""
        found = self.open()
        if found is not None:
            self.settled.append(found)
            self.regime, self.alarm, self.past = found.last, None, None
            self._ready()

    def open(self) -> Found | None:
        """The change of an alarm that is not settled yet, as known so far."""
        if self.alarm is None:
            return None
        begin = max(self.regime, self.n_seen - self.settings.memory)
        stretch = Stretch(self.values, begin, self.n_seen, self.settings.lens)
        evidence = self.calibrated()
        dated = date(stretch, self.alarm.split, self.settings.block)
        change = Change(
            dated,
            self.alarm.score,
            evidence.p_value(self.alarm.score),
            float(evidence.relative(self.alarm.score)),
            (begin, self.n_seen),
        )
        level, block = self.settings.level, self.settings.block
        return assembled([change], lambda a, b: stretch, block, level, self.alarm.step)[0]

    def calibrated(self) -> Evidence:
        """Thresholds from the longest state of the panel that was fitted, made when needed."""
        if self.evidence is None:
            ends = [0, *(one.last for one in self.settled if one.last < self.fitted), self.fitted]
            begin, end = max(pairwise(ends), key=lambda pair: pair[1] - pair[0])
            begin = max(begin, end - self.settings.memory)
            self.evidence = stream_evidence(
                Stretch(self.values, begin, end, self.settings.lens),
                self._scales(),
                self.settings.block,
                self.settings.n_surrogates,
                self.settings.level,
                np.random.default_rng(self.settings.seed),
            )
        return self.evidence

    def _scales(self) -> Scales:
        return Scales.of(self.settings.lens.shortest, self.settings.memory)

    def _alarm(self) -> Alarm | None:
        if self.past is None:
            return None
        splits, statistics = self.past.statistics()
        if not statistics.size:
            return None
        evidence = self.calibrated()
        scores = evidence.scores(statistics).max(axis=0)
        place = int(np.argmax(scores))
        score = float(scores[place])
        self.latest = float(evidence.relative(score))
        if score <= evidence.threshold:
            return None
        split = self.past.origin + int(splits.split[place])
        return Alarm(split, score, self.n_seen - 1)

    def _ready(self) -> None:
        """Begin to watch a state that is long enough; renew a short reference as it grows."""
        n = self.n_seen - self.regime
        if n < SETTLING:
            return
        if self.past is not None and self.reference is not None:
            length = self.reference[1] - self.reference[0]
            if length >= LONG_REFERENCE or n < 2 * length:
                return
        begin = max(self.regime, self.n_seen - self.settings.memory)
        self.refer(begin, self.n_seen)

    def refer(self, begin: int, end: int) -> None:
        """Take ranks and spreads from some steps, and the sums since the first of them again."""
        self.reference = (begin, end)
        stretch = Stretch(self.values, begin, end, self.settings.lens)
        self.past = RecentPast(stretch, self.settings.lens.features, self._scales())
        self.past.push(self.values[begin : self.n_seen])
