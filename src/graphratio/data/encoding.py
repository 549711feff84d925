"""Categorical columns as indicator features, with the same encoding for new points.

A column with levels a, b, ... becomes one feature per level, 1 where the row has it and 0
elsewhere. Two rows that differ in the column are then at squared distance 2, equal ones at 0,
so the Gaussian kernel on numbers and indicators together is the product

    exp(-||x - y||^2 / (2 sigma^2)) * exp(-[a != b] / sigma^2)

of the Gaussian kernel of the numbers and a kernel of the levels: positive definite, and 1 where
both agree. Two independent draws of a standardised number are at squared distance 2 on average
too, so a category weighs about as much as a standardised number, at any number of levels. The
indicators are never standardised: division by its small spread would move a rare level far away
from all others.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from graphratio._utils.arrays import read_only
from graphratio._utils.errors import InputError, listing
from graphratio._utils.threads import computed_once
from graphratio._utils.typing import BoolArray, FloatArray, IntArray
from graphratio.data.validation import written

# Columns with more levels hold identifiers or numbers, and would hide all other features.
MOST_LEVELS = 100


@dataclass(frozen=True, eq=False)
class Encoding:
    """Which columns are categorical, and how columns become features.

    Values have two forms. In `coded` values a category is one column with the number of its
    level; in features it is a group of indicators.

    Attributes
    ----------
    columns : tuple of str
        All columns in order, numbers and categories.
    levels : dict of str to tuple of str
        The levels of the categorical columns.

    Examples
    --------
    >>> encoding = Encoding(("pm25", "sky"), {"sky": ("clear", "rain")})
    >>> encoding.feature_names
    ('pm25', 'sky=clear', 'sky=rain')
    >>> encoding.expand(np.array([[9.0, 1.0]]))
    array([[9., 0., 1.]])
    """

    columns: tuple[str, ...]
    levels: dict[str, tuple[str, ...]]

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Names of the features; an indicator is called column=level."""
        return tuple(
            f"{name}={level}" if level is not None else name
            for name in self.columns
            for level in self.levels.get(name, (None,))
        )

    @computed_once
    def starts(self) -> IntArray:
        """First feature of each column, and the number of features, shape (n_columns + 1,)."""
        widths = [len(self.levels.get(name, "1")) for name in self.columns]
        return read_only(np.concatenate([[0], np.cumsum(widths)]))

    @computed_once
    def is_indicator(self) -> BoolArray:
        """True at features that are indicators, shape (n_features,)."""
        kinds = [name in self.levels for name in self.columns]
        return read_only(np.repeat(kinds, np.diff(self.starts)))

    def features_of(self, column: int) -> slice:
        """The features of a column."""
        return slice(int(self.starts[column]), int(self.starts[column + 1]))

    def expand(self, coded: FloatArray) -> FloatArray:
        """Features of coded values, shape (n, n_features); NaN where a code is NaN."""
        features = np.empty((len(coded), int(self.starts[-1])))
        for j, name in enumerate(self.columns):
            part, column = self.features_of(j), coded[:, j, np.newaxis]
            if name in self.levels:
                same = (column == np.arange(part.stop - part.start)).astype(float)
                features[:, part] = np.where(np.isnan(column), np.nan, same)
            else:
                features[:, part] = column
        return features

    def collapse(self, features: FloatArray) -> FloatArray:
        """Coded values of features, shape (n, n_columns): undoes `expand`."""
        coded = np.empty((len(features), len(self.columns)))
        for j, name in enumerate(self.columns):
            part = features[:, self.features_of(j)]
            coded[:, j] = part.argmax(axis=1) if name in self.levels else part[:, 0]
        return coded

    def check(self) -> None:
        """Refuse features that have the same name, and categories without any level."""
        names = self.feature_names
        repeated = {name for name in names if names.count(name) > 1}
        if repeated:
            raise InputError(
                f"features would have the same name: {listing(sorted(repeated))}",
                "Rename the column, or list each level once",
            )
        for name, levels in self.levels.items():
            if not levels:
                raise InputError(f"the column {name!r} has no levels", "Leave it out")
            if len(levels) > MOST_LEVELS:
                raise InputError(
                    f"the column {name!r} has {len(levels)} distinct values: {listing(levels, 3)}",
                    f"More than {MOST_LEVELS} are too many for a category: pass a number, merge "
                    "rare levels into one, or leave it out",
                )


def asked_levels(categorical: Any) -> dict[str, tuple[str, ...] | None]:
    """Read the argument `categorical`: columns, or columns with their levels."""
    if isinstance(categorical, str):
        return {categorical: None}
    if isinstance(categorical, Mapping):
        asked: dict[str, tuple[str, ...] | None] = {}
        for name, levels in categorical.items():
            if isinstance(levels, str) or not isinstance(levels, Iterable | None):
                raise InputError(
                    f"the levels of {name!r} are {levels!r}", "Pass a list of them, or None"
                )
            asked[name] = None if levels is None else tuple(written(level) for level in levels)
        return asked
    if not isinstance(categorical, Iterable):
        raise InputError(
            f"categorical={categorical!r} is not a list of columns",
            "Name the columns of categories",
        )
    return dict.fromkeys(categorical)


def fitted_encoding(
    columns: Sequence[str],
    levels: Mapping[str, tuple[str, ...]],
    fixed: Iterable[str],
    coded: FloatArray,
) -> tuple[Encoding | None, FloatArray]:
    """Drop levels that no row has, except of the `fixed` columns, and number the rest anew."""
    if not levels:
        return None, coded
    coded, kept, held = coded.copy(), dict(levels), set(fixed)
    for j, name in enumerate(columns):
        if name in levels and name not in held:
            used = np.unique(coded[~np.isnan(coded[:, j]), j]).astype(int)
            kept[name] = tuple(levels[name][i] for i in used)
            known = ~np.isnan(coded[:, j])
            coded[known, j] = np.searchsorted(used, coded[known, j])
    encoding = Encoding(tuple(columns), kept)
    encoding.check()
    return encoding, coded
