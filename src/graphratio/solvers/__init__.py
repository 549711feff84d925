"""Solvers: from an objective to a `Solution`."""

from graphratio.solvers.solution import Solution

__all__ = ["Solution"]
