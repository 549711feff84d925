"""Lazy import of optional packages, with an error that says how to install them."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from graphratio._utils.errors import MissingDependencyError


def missing(
    package: str, extra: str, purpose: str, kind: str = "package"
) -> MissingDependencyError:
    """The error about a package that an extra of graphratio installs."""
    # From a clone, since graphratio is not on a package index.
    return MissingDependencyError(
        f"{purpose} needs the {kind} {package!r}, which is not installed",
        f'In the folder of the clone of graphratio, run: pip install ".[{extra}]"',
    )


def import_optional(module: str, extra: str, purpose: str) -> Any:
    """Import `module`, or say which extra of graphratio installs it."""
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        package = module.partition(".")[0]
        if error.name is None or error.name.partition(".")[0] != package:
            raise
        raise missing(package, extra, purpose) from error
