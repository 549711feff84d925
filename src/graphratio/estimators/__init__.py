"""Estimators of the ratio = target / reference at every node."""

from graphratio.estimators.graph_ratio import GraphRatio
from graphratio.estimators.grulsif import GRULSIF
from graphratio.estimators.kliep import KLIEP
from graphratio.estimators.persistence import load
from graphratio.estimators.pool import Pool
from graphratio.estimators.rulsif import RULSIF, ULSIF

__all__ = ["GRULSIF", "KLIEP", "RULSIF", "ULSIF", "GraphRatio", "Pool", "load"]
