"""Bounds and intervals for estimates, and comparisons of graphs on held-out data."""

from graphratio.evaluation.bounds import DivergenceBounds, divergence_bounds
from graphratio.evaluation.comparison import GraphComparison
from graphratio.evaluation.graph_comparison import compare_graphs
from graphratio.evaluation.ratio_interval import ExpectedRatioInterval, expected_ratio_interval
from graphratio.evaluation.smooth_changes import MeanChanges, mean_changes
from graphratio.evaluation.where import Agreement
from graphratio.evaluation.worth_result import Worth

__all__ = [
    "Agreement",
    "DivergenceBounds",
    "ExpectedRatioInterval",
    "GraphComparison",
    "MeanChanges",
    "Worth",
    "compare_graphs",
    "divergence_bounds",
    "expected_ratio_interval",
    "mean_changes",
]
