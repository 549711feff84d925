"""Spatial data: weights of libpysal, frames of geopandas, and results on a map."""

import json

import numpy as np
import pytest

import graphratio as gr
from graphratio.exceptions import InputError

gpd = pytest.importorskip("geopandas")
libpysal = pytest.importorskip("libpysal")
shapely = pytest.importorskip("shapely")

LABELS = [f"{row}{column}" for row in "abc" for column in "xyz"]


@pytest.fixture
def squares():
    """A three by three chessboard."""
    boxes = [shapely.box(i, j, i + 1, j + 1) for i in range(3) for j in range(3)]
    return gpd.GeoDataFrame({"name": LABELS, "people": range(9)}, geometry=boxes)


@pytest.fixture
def model():
    rng = np.random.default_rng(0)
    target = rng.normal(size=(9, 30))
    target[:3] += 2
    samples = gr.NodeSamples.from_arrays(list(rng.normal(size=(9, 30))), list(target), nodes=LABELS)
    return gr.Pool(bandwidth=1.0, ridge=0.1).fit(samples, gr.Graph.empty(LABELS))


class TestFromGeodataframe:
    def test_contiguity_joins_squares_that_touch(self, squares):
        graph = gr.Graph.from_geodataframe(squares, node="name")
        assert graph.nodes == tuple(LABELS)
        assert graph.n_edges == 20
        assert graph.n_neighbors[4] == 8
        assert graph.coordinates[4].tolist() == [1.5, 1.5]

    def test_distance_joins_the_four_neighbours(self, squares):
        graph = gr.Graph.from_geodataframe(squares, "distance", node="name", distance=1.0)
        assert graph.n_edges == 12
        assert graph.n_neighbors[4] == 4

    def test_nearest_on_the_globe_are_as_from_coordinates(self):
        places = {"Lisbon": (38.7, -9.1), "Madrid": (40.4, -3.7), "Paris": (48.9, 2.4)}
        points = [shapely.Point(lon, lat) for lat, lon in places.values()]
        frame = gpd.GeoDataFrame(geometry=points, index=list(places), crs="EPSG:4326")
        graph = gr.Graph.from_geodataframe(frame.to_crs("EPSG:3857"), "knn", k=1)
        expected = gr.Graph.from_coordinates(places, k=1, metric="haversine")
        assert graph.same_as(expected)
        assert graph.metric == "haversine"
        np.testing.assert_allclose(graph.coordinates, expected.coordinates, atol=1e-6)

    def test_index_gives_the_labels_and_islands_stay(self, squares):
        far = shapely.box(50, 50, 51, 51)
        frame = gpd.GeoDataFrame(geometry=[*squares.geometry, far], index=[*LABELS, "far"])
        graph = gr.Graph.from_geodataframe(frame)
        assert graph.isolated == ("far",)
        assert graph.n_edges == 20

    @pytest.mark.parametrize(
        ("change", "options", "message"),
        [
            (lambda f: f, {"kind": "queen"}, "kind"),
            (lambda f: f, {"kind": "distance"}, "distance="),
            (lambda f: f, {"node": "nam"}, "Did you mean 'name'"),
            (lambda f: f.iloc[:0], {}, "no rows"),
            (lambda f: f.assign(name="a"), {"node": "name"}, "'a'"),
            (lambda f: f.set_geometry(f.centroid), {}, "needs polygons.*Point"),
            (lambda f: f.set_crs(4326), {"kind": "distance", "distance": 1}, "estimate_utm_crs"),
            (lambda f: f.drop(columns="geometry"), {}, "not a GeoDataFrame"),
            (lambda f: f.assign(geometry=[None, *f.geometry[1:]]), {}, "without a geometry: 0"),
        ],
    )
    def test_refusals(self, squares, change, options, message):
        with pytest.raises(InputError, match=message):
            gr.Graph.from_geodataframe(change(squares), **options)


class TestLibpysal:
    def test_graphs_and_weights(self, squares):
        queen = libpysal.weights.Queen.from_dataframe(squares, ids="name", use_index=False)
        expected = gr.Graph.from_geodataframe(squares, node="name")
        assert gr.Graph.from_libpysal(queen).same_as(expected)
        modern = libpysal.graph.Graph.build_contiguity(squares.set_index("name"), rook=False)
        assert gr.Graph.from_libpysal(modern).same_as(expected)

    def test_directed_weights_take_the_larger(self, squares):
        nearest = libpysal.graph.Graph.build_knn(squares.centroid, k=2)
        graph = gr.Graph.from_libpysal(nearest)
        matrix = nearest.sparse.toarray()
        np.testing.assert_array_equal(graph.adjacency.toarray(), np.maximum(matrix, matrix.T))
        with pytest.raises(InputError, match="directed"):
            gr.Graph.from_libpysal(nearest, symmetrize=False)

    def test_back_and_forth(self):
        graph = gr.Graph.from_edges([("a", "b", 2.0), ("b", "c", 0.5)], nodes=["c", "a", "b", "d"])
        assert gr.Graph.from_libpysal(graph.to_libpysal()).same_as(graph)
        assert gr.Graph.from_networkx(graph.to_networkx()).same_as(graph)

    def test_positions_in_networkx(self):
        graph = gr.Graph.from_coordinates([[38.7, -9.1], [40.4, -3.7]], k=1, metric="haversine")
        assert graph.to_networkx().nodes[0]["pos"] == (-9.1, 38.7)

    def test_anything_else_is_refused(self):
        with pytest.raises(InputError, match="list has no spatial weights"):
            gr.Graph.from_libpysal([1, 2])


class TestToGeodataframe:
    def test_joins_areas_by_label(self, squares, model):
        mixed = squares.sample(frac=1, random_state=0)
        found = model.to_geodataframe(mixed, node="name")
        assert found["node"].tolist() == LABELS
        assert found.geometry.tolist() == squares.geometry.tolist()
        np.testing.assert_array_equal(found["divergence"], model.divergence_)

    def test_points_of_the_graph(self, squares):
        graph = gr.Graph.from_geodataframe(squares.set_crs(4326), "knn", k=2, node="name")
        rng = np.random.default_rng(0)
        samples = gr.NodeSamples.from_arrays(*rng.normal(size=(2, 9, 20, 1)), nodes=LABELS)
        test = gr.two_sample_test(samples, graph, n_permutations=199, random_state=0)
        found = test.to_geodataframe()
        assert found.crs == "EPSG:4326"
        assert (found.geometry.iloc[4].x, found.geometry.iloc[4].y) == (1.5, 1.5)
        written = json.loads(found.to_json())
        assert written["features"][0]["properties"]["node"] == "ax"

    def test_refusals(self, squares, model):
        with pytest.raises(InputError, match="no coordinates"):
            model.to_geodataframe()
        with pytest.raises(InputError, match="9 nodes have no place: 'ax'"):
            model.to_geodataframe(squares)
