"""What to conclude from ratios, and what to do with them."""

from graphratio.inference.transfer import NodewiseTransfer

__all__ = ["NodewiseTransfer"]
"""From estimates to decisions: tests at every node."""

from __future__ import annotations

from graphratio.inference.result import Region, TwoSampleResult
from graphratio.inference.testing import two_sample_test

__all__ = ["Region", "TwoSampleResult", "two_sample_test"]
