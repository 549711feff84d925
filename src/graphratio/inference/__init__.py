"""What to conclude from ratios, and what to do with them."""

from graphratio.inference._comparison import GraphComparison
from graphratio.inference.bounds import DivergenceBounds, divergence_bounds
from graphratio.inference.changepoints import ChangeEvent, GraphChangePointDetector
from graphratio.inference.graph_comparison import compare_graphs
from graphratio.inference.ratio_interval import ExpectedRatioInterval, expected_ratio_interval
from graphratio.inference.result import Region, TwoSampleResult
from graphratio.inference.testing import two_sample_test
from graphratio.inference.transfer import NodewiseTransfer

__all__ = [
    "ChangeEvent",
    "DivergenceBounds",
    "ExpectedRatioInterval",
    "GraphChangePointDetector",
    "GraphComparison",
    "NodewiseTransfer",
    "Region",
    "TwoSampleResult",
    "compare_graphs",
    "divergence_bounds",
    "expected_ratio_interval",
    "two_sample_test",
]
