"""Lazy import of optional packages, with an error that says what to install."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from graphratio._utils.errors import MissingDependencyError


def import_optional(module: str, extra: str, purpose: str) -> Any:
    """Import `module`, or say which extra of graphratio brings it."""
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        package = module.partition(".")[0]
        if error.name is None or error.name.partition(".")[0] != package:
            raise
        raise MissingDependencyError(
            f"{purpose} needs the package {package!r}, which is not installed",
            f'Install it with: pip install "graphratio[{extra}]"',
        ) from error
