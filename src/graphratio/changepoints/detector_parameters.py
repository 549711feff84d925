"""Checks of the parameters of the detector."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from graphratio._utils.errors import Argument, InputError
from graphratio._utils.parameters import check_choice, check_integer, check_real
from graphratio.changepoints.intervals import MARGIN, SHORTEST_INTERVAL
from graphratio.estimators.contract import check_estimator

if TYPE_CHECKING:
    from graphratio.changepoints.detector import GraphChangePointDetector


def checked_scales(detector: GraphChangePointDetector) -> tuple[int, int | None]:
    """Check everything, and return the shortest and longest interval."""
    window = detector.window
    pair = window if isinstance(window, tuple | list) else (SHORTEST_INTERVAL // 2, window)
    if len(pair) != 2:
        raise InputError((Argument("window", window), " is not a pair"), "Pass (10, 100)")
    low = check_integer(pair[0], "window", low=MARGIN)
    high = None if pair[1] is None else check_integer(pair[1], "window", low=MARGIN)
    if high is not None and not isinstance(window, tuple | list):
        low = min(low, high)
    if high is not None and high < low:
        raise InputError(
            (Argument("window", window), " has a longest scale below the shortest"),
            "Pass the shorter one first",
        )
    check_real(detector.level, "level", low=0, high=1)
    check_integer(detector.max_directions, "max_directions", low=1)
    check_integer(detector.memory, "memory", low=4 * low)
    season = detector.season
    if not (season is None or isinstance(season, int | np.integer) or season == "auto"):
        raise InputError(
            (Argument("season", season), " is not a period"),
            "Pass 'auto', the period as a whole number of steps, or None",
        )
    if detector.trend is not None:
        check_choice(detector.trend, "trend", ("auto",))
    least = math.ceil(1 / detector.level) - 1
    if check_integer(detector.n_surrogates, "n_surrogates", low=1) < least:
        given = Argument("n_surrogates", detector.n_surrogates)
        raise InputError(
            (given, f" is too small for the level {detector.level}"), f"Use at least {least}"
        )
    if detector.block is not None:
        check_integer(detector.block, "block", low=1)
    if detector.estimator is not None:
        check_estimator(detector.estimator)
    return 2 * low, None if high is None else 2 * high
