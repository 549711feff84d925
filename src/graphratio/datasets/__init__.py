"""Data with a known answer: the synthetic scenarios of the paper."""

from graphratio.datasets.scenarios import Scenario, make_scenario

__all__ = ["Scenario", "make_scenario"]
