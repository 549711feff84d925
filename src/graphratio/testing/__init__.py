"""Which nodes changed by more than chance: two-sample tests at every node."""

from graphratio.testing.procedure import two_sample_test
from graphratio.testing.result import Region, TwoSampleResult

__all__ = ["Region", "TwoSampleResult", "two_sample_test"]
