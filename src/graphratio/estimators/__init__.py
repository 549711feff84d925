"""Estimators of the ratio = target / reference at every node."""

from graphratio.estimators.grulsif import GRULSIF
from graphratio.estimators.persistence import load
from graphratio.estimators.pool import Pool

__all__ = ["GRULSIF", "Pool", "load"]
