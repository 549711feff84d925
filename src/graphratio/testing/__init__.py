"""Which nodes changed significantly, and which of them changed alike."""

from graphratio.testing.kinds import kinds_of_change
from graphratio.testing.kinds_result import KindsOfChange
from graphratio.testing.procedure import two_sample_test
from graphratio.testing.result import Region, TwoSampleResult
from graphratio.testing.sensitivity import observations_needed

__all__ = [
    "KindsOfChange",
    "Region",
    "TwoSampleResult",
    "kinds_of_change",
    "observations_needed",
    "two_sample_test",
]
