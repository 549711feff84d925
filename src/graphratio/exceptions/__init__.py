"""Errors and warnings of the library: the public place to import them from."""

from graphratio._utils.errors import (
    ConvergenceWarning,
    DataWarning,
    EngineError,
    FileFormatError,
    GraphRatioError,
    GraphRatioWarning,
    InputError,
    MissingDependencyError,
    OverlapWarning,
)

__all__ = [
    "ConvergenceWarning",
    "DataWarning",
    "EngineError",
    "FileFormatError",
    "GraphRatioError",
    "GraphRatioWarning",
    "InputError",
    "MissingDependencyError",
    "OverlapWarning",
]
