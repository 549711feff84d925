"""Example data: scenarios with known ratios, and networks of real measurements."""

from graphratio.datasets.flights import load_flights
from graphratio.datasets.network import NetworkData
from graphratio.datasets.scenarios import Scenario, make_scenario
from graphratio.datasets.sea_temperature import load_sea_temperature

__all__ = ["NetworkData", "Scenario", "load_flights", "load_sea_temperature", "make_scenario"]
