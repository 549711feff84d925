"""What to conclude from ratios, and what to do with them."""

from graphratio.inference.changepoints import ChangeEvent, GraphChangePointDetector
from graphratio.inference.result import Region, TwoSampleResult
from graphratio.inference.testing import two_sample_test
from graphratio.inference.transfer import NodewiseTransfer

__all__ = [
    "ChangeEvent",
    "GraphChangePointDetector",
    "NodewiseTransfer",
    "Region",
    "TwoSampleResult",
    "two_sample_test",
]
