"""Errors and warnings of the library; each says what is wrong and what to do."""

from __future__ import annotations

import os
import re
import sys
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from sklearn.exceptions import ConvergenceWarning as _SklearnConvergenceWarning


@dataclass(frozen=True)
class Argument:
    """An argument in a message; Python and the command line spell it differently."""

    name: str
    value: object = None

    def __str__(self) -> str:
        if self.value is None:
            return self.name
        quote = '"' if isinstance(self.value, str) else ""
        return f"{self.name}={quote}{self.value}{quote}"


# A message, which may contain arguments, and the spelling of arguments in an interface.
Words = str | tuple[str | Argument, ...]
Spelling = Callable[[Argument], str]


def spelled(words: Words, spelling: Spelling = str) -> str:
    """Write out a message."""
    if isinstance(words, str):
        return words
    return "".join(part if isinstance(part, str) else spelling(part) for part in words)


class GraphRatioError(Exception):
    """Base class of every error that the library raises on purpose.

    Parameters
    ----------
    problem : str or tuple of str and Argument
        What is wrong, naming the offending thing.
    remedy : str or tuple of str and Argument, optional
        What to do about it.

    Examples
    --------
    >>> print(GraphRatioError("the graph has no nodes", "Pass at least one node"))
    the graph has no nodes. Pass at least one node.
    """

    def __init__(self, problem: Words, remedy: Words | None = None) -> None:
        self.words = (problem, remedy)
        self.problem, self.remedy = self.spelled(str)
        told = [part for part in (self.problem, self.remedy) if part]
        super().__init__(" ".join(s if s.endswith(("?", "!")) else f"{s}." for s in told))

    def spelled(self, spelling: Spelling) -> tuple[str, str | None]:
        """Problem and remedy, with arguments as an interface spells them."""
        problem, remedy = self.words
        told = in_number(spelled(problem, spelling).rstrip("."))
        return told, spelled(remedy, spelling).rstrip(".") if remedy else None

    def __reduce__(self) -> tuple[type[GraphRatioError], tuple[Any, ...]]:
        return type(self), self.words


class InputError(GraphRatioError, ValueError):
    """Data or parameters given by the user cannot be used as they are."""


class FileFormatError(GraphRatioError, ValueError):
    """A file is not a saved model of this library, or it is damaged."""


class MissingDependencyError(GraphRatioError, ImportError):
    """A requested feature needs an optional package."""


class EngineError(GraphRatioError, RuntimeError):
    """Work on partitions failed.

    Attributes
    ----------
    checkpoint : ndarray of shape (n_nodes, n_candidates, m), or None
        The last copy of the coefficients of the solve that was under way.
    """

    def __init__(self, problem: Words, remedy: Words | None = None, checkpoint: Any = None) -> None:
        super().__init__(problem, remedy)
        self.checkpoint = checkpoint

    def __reduce__(self) -> tuple[type[EngineError], tuple[Any, ...]]:
        return type(self), (*self.words, self.checkpoint)


class GraphRatioWarning(UserWarning):
    """Base class of the library's warnings."""

    def __init__(self, message: Words = "", *rest: object) -> None:
        self.words = message
        super().__init__(self.spelled(str), *rest)

    def spelled(self, spelling: Spelling) -> str:
        """The message, with arguments as an interface spells them."""
        return in_number(spelled(self.words, spelling))


class ConvergenceWarning(GraphRatioWarning, _SklearnConvergenceWarning):
    """A solver stopped before it reached the tolerance."""


class DataWarning(GraphRatioWarning):
    """The data are usable, but a property of them may affect the results."""


class OverlapWarning(DataWarning):
    """Reference and target overlap so little that few observations carry most of the weight."""


# Tracebacks and pickles name the place that users import from.
for _kind in (
    ConvergenceWarning, DataWarning, EngineError, FileFormatError, GraphRatioError,
    GraphRatioWarning, InputError, MissingDependencyError, OverlapWarning,
):  # fmt: skip
    _kind.__module__ = "graphratio.exceptions"

_PACKAGE = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "")


def warn_caller(message: Words, category: type[GraphRatioWarning]) -> None:
    """Warn at the line that called the library, however many of its own functions lie between."""
    frame, level = sys._getframe(1), 2
    while frame.f_code.co_filename.startswith(_PACKAGE) and frame.f_back is not None:
        frame, level = frame.f_back, level + 1
    warnings.warn(category(message), stacklevel=level)


_NOUNS = (
    "blocks", "columns", "days", "edges", "events", "features", "graphs", "kinds", "labels",
    "links", "nodes", "observations", "places", "points", "profiles", "ratios", "regions", "rows",
    "samples", "sensors", "steps", "times", "values", "weights",
)  # fmt: skip
_VERBS = {"are": "is", "have": "has", "were": "was", "borrow": "borrows", "lack": "lacks"}
_ONE = re.compile(rf"(?<![\d.,])\b1 ({'|'.join(_NOUNS)})\b(?: ({'|'.join(_VERBS)})\b)?")


def in_number(text: str) -> str:
    """Count one thing in the singular.

    Examples
    --------
    >>> in_number("1 nodes have no neighbours, 21 nodes have some")
    '1 node has no neighbours, 21 nodes have some'
    """

    def singular(found: re.Match[str]) -> str:
        noun, verb = found.groups()
        return f"1 {noun[:-1]}" + (f" {_VERBS[verb]}" if verb else "")

    return _ONE.sub(singular, text)


def _short(text: str, limit: int = 80) -> str:
    """A text without its middle, if it is very long."""
    half = limit // 2
    return text if len(text) <= limit else f"{text[:half]}...{text[-half:]}"


def listing(items: Iterable[object], limit: int = 5) -> str:
    """Write out the first few items and count the rest; a very long item loses its middle."""
    return first_few([_short(repr(item)) for item in items], limit)


def first_few(texts: Sequence[str], limit: int = 5) -> str:
    """Join the first few texts and count the rest."""
    more = f" and {len(texts) - limit} more" if len(texts) > limit else ""
    return f"{', '.join(texts[:limit])}{more}"


def enumeration(names: Sequence[str], limit: int = 8) -> str:
    """Names in a sentence; the rest is counted."""
    if len(names) > limit:
        return f"{', '.join(names[:limit])} and {len(names) - limit:,} more"
    if len(names) > 1:
        return f"{', '.join(names[:-1])} and {names[-1]}"
    return "".join(names)
