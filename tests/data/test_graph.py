"""Every way to build a graph, what is refused, and what the container then guarantees."""

import dataclasses
import datetime as dt
import decimal

import networkx as nx
import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given as drawn
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import sparse

from graphratio import Graph
from graphratio.exceptions import DataWarning, InputError

PAIR = np.array([[0.0, 2.0], [2.0, 0.0]])
SPARSE = [
    getattr(sparse, f"{layout}_{kind}")
    for layout in ("coo", "csr", "csc", "bsr", "lil", "dok", "dia")
    for kind in ("array", "matrix")
]


def weights_of(graph):
    return graph.adjacency.toarray()


class TestAdjacency:
    @pytest.mark.parametrize(
        "matrix",
        [
            PAIR,
            PAIR.tolist(),
            PAIR.astype(int),
            PAIR.astype(np.float32),
            PAIR.astype(object),
            np.asfortranarray(PAIR),
            pd.DataFrame(PAIR),
            pl.DataFrame(PAIR),
        ],
        ids=["float", "list", "int", "float32", "object", "fortran", "pandas", "polars"],
    )
    def test_dense_forms_agree(self, matrix):
        graph = Graph.from_adjacency(matrix)
        np.testing.assert_array_equal(weights_of(graph), PAIR)
        assert graph.adjacency.dtype == np.float64
        assert graph.nodes == (0, 1)
        assert not graph.labelled

    @pytest.mark.filterwarnings("ignore:the matrix subclass:PendingDeprecationWarning")
    def test_numpy_matrix(self):
        np.testing.assert_array_equal(weights_of(Graph.from_adjacency(np.matrix(PAIR))), PAIR)

    @pytest.mark.parametrize("layout", SPARSE, ids=lambda layout: layout.__name__)
    @pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64, bool])
    def test_every_sparse_layout(self, layout, dtype):
        graph = Graph.from_adjacency(layout(PAIR.astype(dtype)))
        np.testing.assert_array_equal(weights_of(graph), PAIR.astype(dtype))
        assert isinstance(graph.adjacency, sparse.csr_array)
        assert graph.adjacency.has_canonical_format

    def test_repeated_entries_of_coo_add_up_as_in_scipy(self):
        matrix = sparse.coo_array(([1.0, 1.0, 2.0], ([0, 0, 1], [1, 1, 0])), shape=(2, 2))
        np.testing.assert_array_equal(weights_of(Graph.from_adjacency(matrix)), PAIR)

    def test_stored_zeros_are_no_edges(self):
        matrix = sparse.coo_array(([0.0, 0.0, 0.0], ([0, 1, 1], [1, 0, 1])), shape=(2, 2))
        graph = Graph.from_adjacency(matrix)
        assert graph.adjacency.nnz == 0
        assert graph.isolated == (0, 1)

    def test_asymmetry_of_rounding_is_averaged_away(self):
        matrix = PAIR.copy()
        matrix[0, 1] *= 1 + 1e-12
        found = weights_of(Graph.from_adjacency(matrix))
        assert found[0, 1] == found[1, 0] == pytest.approx(2.0)

    def test_asymmetry_beyond_rounding_is_directed(self):
        matrix = PAIR.copy()
        matrix[0, 1] *= 1 + 1e-8
        with pytest.raises(InputError, match=r"'a' - 'b'.*symmetrize=True"):
            Graph.from_adjacency(matrix, nodes=["a", "b"])

    @pytest.mark.parametrize("weight", [1e-30, 1e-20, 1e20, 1e30])
    def test_extreme_weights_survive(self, weight):
        graph = Graph.from_adjacency([[0, weight], [weight, 0]])
        assert weights_of(graph)[0, 1] == weight
        assert graph.degrees.tolist() == [weight, weight]

    @pytest.mark.parametrize("weight", [5e-324, 1e-200, 0.9e-30, 1.1e30, 1e100, 1e308])
    def test_weights_that_leave_single_precision_are_named(self, weight):
        message = r"2 edge weights are not between 1e-30 and 1e\+30: 'u' - 'v', 'v' - 'u'.*unit"
        with pytest.raises(InputError, match=message):
            Graph.from_adjacency([[0, weight], [weight, 0]], nodes=["u", "v"])
        with pytest.raises(InputError, match=r"1 edge weight is not between .*'u' - 'v'"):
            Graph.from_edges([("u", "v", weight)])

    def test_symmetrize_takes_the_larger_weight(self):
        graph = Graph.from_adjacency([[0, 3, 0], [1, 0, 0], [0, 2, 0]], symmetrize=True)
        np.testing.assert_array_equal(weights_of(graph), [[0, 3, 0], [3, 0, 2], [0, 2, 0]])

    @pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
    def test_a_diagonal_of_ones_is_said_and_left_out(self, kind):
        similar = kind(np.array([[1.0, 0.5, 0.0], [0.5, 1.0, 0.2], [0.0, 0.2, 1.0]]))
        with pytest.warns(DataWarning, match="diagonal of the adjacency is 1 at every node"):
            graph = Graph.from_adjacency(similar)
        assert graph.n_edges == 2
        assert graph.degrees.tolist() == [0.5, 0.7, 0.2]

    def test_pandas_index_gives_the_labels(self):
        frame = pd.DataFrame(PAIR, index=["b", "a"], columns=["b", "a"])
        graph = Graph.from_adjacency(frame)
        assert graph.nodes == ("b", "a")
        assert graph.labelled
        assert Graph.from_adjacency(frame, nodes=[1, 2]).nodes == (1, 2)

    @pytest.mark.parametrize(
        ("matrix", "message"),
        [
            ([[0, -1], [-1, 0]], r"2 edge weights are negative: 'u' - 'v', 'v' - 'u'"),
            ([[0, np.nan], [np.nan, 0]], r"NaN or infinite: 'u' - 'v'"),
            ([[0, np.inf], [np.inf, 0]], r"NaN or infinite: 'u' - 'v'"),
            ([[0, None], [None, 0]], r"NaN or infinite: 'u' - 'v'"),
            ([[1, 0], [0, 0]], r"1 edge weight is on self-loops: 'u' - 'u'.*diagonal"),
            ([[0, 1], [0, 0]], r"directed\): 'u' - 'v'.*symmetrize=True"),
            ([[0, 1e101], [1e101, 0]], r"not between 1e-30 and 1e\+30: 'u' - 'v'"),
            (np.ma.masked_array(PAIR, [[0, 1], [0, 0]]), r"NaN or infinite: 'u' - 'v'"),
            (np.ones((2, 3)), r"shape \(2, 3\), which is not square.*from_edges"),
            (np.ones((3, 3)) - np.eye(3), r"2 node labels for an adjacency of shape \(3, 3\)"),
            (np.zeros(4), r"1-D.*square matrix"),
            (np.zeros((1, 1, 1)), r"3-D.*square matrix"),
            (None, r"0-D.*square matrix"),
            ("ab", r"not numbers"),
            ([["x", 1], [1, 0]], r"not numbers"),
            ([[0, 1], [1]], r"not a rectangular array"),
            (PAIR * 1j, r"complex"),
            (sparse.csr_array(PAIR * 1j), r"complex.*real weights"),
            (sparse.coo_array(np.ones(2)), r"not square|1-D.*square matrix"),
            (pd.DataFrame(PAIR, index=["u", "v"], columns=["v", "u"]), r"different labels"),
            (np.zeros((0, 0)), r"no nodes"),
        ],
    )
    def test_refusals_name_the_entries_and_the_remedy(self, matrix, message):
        with pytest.raises(InputError, match=message):
            Graph.from_adjacency(matrix, nodes=["u", "v"])

    def test_long_lists_of_entries_are_cut(self):
        with pytest.raises(InputError, match=r"12 edge weights are negative: .* and 7 more"):
            Graph.from_adjacency(np.eye(4) - np.ones((4, 4)))


class TestLabels:
    @pytest.mark.parametrize(
        ("given", "plain"),
        [
            (np.array([3, 1]), (3, 1)),
            (np.array(["b", "a"]), ("b", "a")),
            (np.array([0.5, 1.5]), (0.5, 1.5)),
            (pd.Series(["b", "a"], dtype="string[pyarrow]"), ("b", "a")),
            (pd.Categorical(["b", "a"]), ("b", "a")),
            (pl.Series(["b", "a"]), ("b", "a")),
            ([("a", 1), ("a", 2)], (("a", 1), ("a", 2))),
            (
                np.array(["2020-01-01", "2020-01-02"], dtype="M8[ns]"),
                (dt.datetime(2020, 1, 1), dt.datetime(2020, 1, 2)),
            ),
            (
                pd.to_datetime(["2020-01-01", "2020-01-02"]),
                (dt.datetime(2020, 1, 1), dt.datetime(2020, 1, 2)),
            ),
            (np.array([1, 2], dtype="m8[s]"), (dt.timedelta(seconds=1), dt.timedelta(seconds=2))),
        ],
        ids=lambda value: type(value).__name__,
    )
    def test_become_python_objects(self, given, plain):
        graph = Graph.from_adjacency(PAIR, nodes=given)
        assert graph.nodes == plain
        assert [type(node) for node in graph.nodes] == [type(node) for node in plain]

    def test_finer_than_python_times_stay_distinct(self):
        times = np.array([1, 2], dtype="M8[ns]")
        assert Graph.from_adjacency(PAIR, nodes=times).nodes == tuple(times)

    @pytest.mark.parametrize(
        "label",
        [
            None,
            float("nan"),
            np.float64("nan"),
            pd.NA,
            pd.NaT,
            np.datetime64("NaT"),
            decimal.Decimal("nan"),
            ("a", np.nan),
        ],
    )
    def test_missing_ones_are_refused(self, label):
        with pytest.raises(InputError, match="node label is missing"):
            Graph.from_adjacency(PAIR, nodes=["a", label])

    @pytest.mark.parametrize("label", [["a"], {"a"}, ("a", ["b"]), np.zeros(2)])
    def test_unhashable_ones_are_refused(self, label):
        with pytest.raises(InputError, match="not hashable"):
            Graph.from_adjacency(PAIR, nodes=["a", label])

    @pytest.mark.parametrize("nodes", [[1, 1.0], [np.int64(1), 1], ["a", "a"]])
    def test_repeated_ones_are_refused(self, nodes):
        with pytest.raises(InputError, match="repeated"):
            Graph.from_adjacency(PAIR, nodes=nodes)

    @pytest.mark.parametrize("nodes", ["ab", 5, 2.5])
    def test_a_collection_is_needed(self, nodes):
        with pytest.raises(InputError, match="Pass a list of labels"):
            Graph.from_adjacency(PAIR, nodes=nodes)

    @pytest.mark.parametrize("label", [np.int64(1), 1.0, np.float32(1)])
    def test_numpy_scalars_find_python_labels(self, label):
        assert Graph.empty(3).position(label) == 1

    def test_unknown_ones_suggest_the_nearest(self):
        with pytest.raises(InputError, match=r"no node 'nort'. Did you mean 'north'"):
            Graph.empty(["south", "north"]).position("nort")


EDGES = [("c", "a", 2.0), ("a", "b", 0.5)]
FRAME = {"from": ["c", "a"], "to": ["a", "b"], "weight": [2.0, 0.5]}


class TestEdges:
    @pytest.mark.parametrize(
        "edges",
        [
            EDGES,
            (edge for edge in EDGES),
            {edge: None for edge in EDGES}.keys(),
            np.array(EDGES, dtype=object),
            pd.DataFrame(FRAME),
            pl.DataFrame(FRAME),
            pl.LazyFrame(FRAME),
            pd.DataFrame(FRAME).astype({"from": "category", "to": "string[pyarrow]"}),
        ],
        ids=["list", "generator", "keys", "object", "pandas", "polars", "lazy", "category"],
    )
    def test_forms_agree_and_keep_the_order_of_appearance(self, edges):
        graph = Graph.from_edges(edges)
        assert graph.nodes == ("c", "a", "b")
        np.testing.assert_array_equal(weights_of(graph), [[0, 2, 0], [2, 0, 0.5], [0, 0.5, 0]])

    @pytest.mark.parametrize("dtype", [np.int64, np.int32, np.uint8, np.float64])
    @pytest.mark.parametrize("nodes", [None, [1, 2, 7, 9]])
    def test_arrays_of_numbers_equal_lists(self, dtype, nodes):
        array = np.array([[9, 2, 3], [2, 7, 1], [1, 9, 4]], dtype=dtype)
        for columns in (2, 3):
            fast = Graph.from_edges(array[:, :columns], nodes=nodes)
            slow = Graph.from_edges(array[:, :columns].astype(int).tolist(), nodes=nodes)
            assert fast.nodes == slow.nodes
            assert all(type(node) is int for node in fast.nodes)
            np.testing.assert_array_equal(weights_of(fast), weights_of(slow))

    def test_ends_that_are_not_whole_numbers_stay_floats(self):
        assert Graph.from_edges(np.array([[0.5, 1.5]])).nodes == (0.5, 1.5)

    def test_pandas_columns_named_by_numbers(self):
        assert Graph.from_edges(pd.DataFrame([[5, 4], [4, 6]])).nodes == (5, 4, 6)

    @pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame])
    def test_named_columns(self, make):
        frame = make({"km": [1.0, 2.0], "b": ["x", "y"], "a": ["w", "x"]})
        graph = Graph.from_edges(frame, source="a", target="b", weight="km")
        assert graph.nodes == ("w", "x", "y")
        assert graph.degrees.tolist() == [1.0, 3.0, 2.0]
        # What is not named is found among the columns that are left.
        assert Graph.from_edges(frame, source="a", weight="km").nodes == ("w", "x", "y")

    def test_unknown_columns_suggest_the_nearest(self):
        with pytest.raises(InputError, match=r"no column 'form' \(given as source\).*'from'"):
            Graph.from_edges(pd.DataFrame(FRAME), source="form")

    def test_nodes_fix_order_and_add_isolated_ones(self):
        graph = Graph.from_edges([("a", "b")], nodes=["z", "b", "a"])
        assert graph.nodes == ("z", "b", "a")
        assert graph.isolated == ("z",)

    @pytest.mark.parametrize(
        "edges",
        [[], np.empty((0, 2), int), pd.DataFrame({"a": [], "b": []}), pl.DataFrame(FRAME)[:0]],
    )
    def test_no_edges(self, edges):
        graph = Graph.from_edges(edges, nodes=["a", "b"])
        assert graph.n_edges == 0
        with pytest.raises(InputError, match="no nodes"):
            Graph.from_edges(edges)

    def test_symmetrize_takes_the_larger_of_both_directions(self):
        edges = [("a", "b", 1.0), ("b", "a", 3.0)]
        assert Graph.from_edges(edges, symmetrize=True).degrees.tolist() == [3.0, 3.0]

    @pytest.mark.parametrize("weight", [1.0, 1e-30])
    def test_both_directions_are_one_edge(self, weight):
        graph = Graph.from_edges([("a", "b", weight), ("b", "a", weight), ("b", "c", 1.0)])
        assert graph.n_edges == 2
        assert graph.degrees.tolist() == [weight, 1.0 + weight, 1.0]

    def test_two_weights_of_an_edge_are_said(self):
        edges = [("a", "b", 1.0), ("b", "a", 3.0), ("b", "c", 1.0)]
        with pytest.warns(DataWarning, match="1 edge has two different weights.*'b' - 'a'.*larger"):
            graph = Graph.from_edges(edges)
        assert graph.degrees.tolist() == [3.0, 4.0, 1.0]

    @pytest.mark.parametrize(
        ("edges", "message"),
        [
            ([("a", "b"), ("a", "b")], r"1 edge is given more than once: \('a', 'b'\).*Merge"),
            (np.array([[0, 1], [2, 3], [0, 1], [2, 3]]), r"2 edges are given more than once"),
            ([("a", "a")], r"self-loops: 'a' - 'a'"),
            ([("a", "b", -1.0)], r"negative: 'a' - 'b'"),
            ([("a", "b", np.nan)], r"NaN or infinite: 'a' - 'b'"),
            (np.array([[0, 1, np.inf]]), r"NaN or infinite: 0 - 1"),
            (np.array([[0, np.nan]]), r"label is missing"),
            ([("a", None)], r"label is missing"),
            ([("a", "b", "heavy")], r"not numbers"),
            ([("a", "b", [1.0])], r"one weight for each edge"),
            ([("a", "b", 1.0), ("b", "c")], r"lengths found: \[2, 3\]"),
            ([("a",)], r"pairs or triples, but one is \('a',\)"),
            (np.zeros((2, 4), int), r"shape \(2, 4\).*two columns"),
            (["ab", "bc"], r"'ab' is not an edge"),
            ([1, 2], r"1 is not an edge"),
            (np.array([1, 2]), r"is not an edge"),
            (None, r"NoneType cannot be read"),
            ({"a": "b"}, r"dict cannot be read"),
            (pd.DataFrame({"a": ["x", None], "b": ["y", "z"]}), r"rows 1 lack an end"),
            (pl.DataFrame({"a": [1.0, np.nan], "b": [2.0, 3.0]}), r"rows 1 lack an end"),
            (pd.DataFrame({"a": ["x"], "weight": [1]}), r"needs two columns for the ends"),
            (pl.DataFrame({**FRAME, "weight": ["x", "y"]}), r"weight 'weight' is not numeric"),
            (pl.DataFrame({**FRAME, "weight": [1.0, None]}), r"NaN or infinite: 'a' - 'b'"),
            (pd.DataFrame([[1, 2]], columns=["a", "a"]), r"column names are repeated: 'a'"),
            (pl.DataFrame({"a": [[1]], "b": [[2]]}), r"'a' \(given as source\).*not hashable"),
        ],
    )
    def test_refusals(self, edges, message):
        with pytest.raises(InputError, match=message):
            Graph.from_edges(edges)

    def test_unknown_ends_are_listed(self):
        with pytest.raises(InputError, match=r"lacks 2 nodes of the edges: 'c', 'd'"):
            Graph.from_edges([("a", "c"), ("d", "a")], nodes=["a", "b"])

    @pytest.mark.parametrize("name", ["source", "target", "weight"])
    def test_column_names_need_a_frame(self, name):
        with pytest.raises(InputError, match="not a data frame"):
            Graph.from_edges([("a", "b")], **{name: "x"})

    def test_one_column_cannot_be_both_ends(self):
        with pytest.raises(InputError, match="both the column 'to'"):
            Graph.from_edges(pd.DataFrame(FRAME), source="to", target="to")


class TestNetworkx:
    def test_order_weights_and_isolated_nodes(self):
        given = nx.Graph()
        given.add_nodes_from(["z", "a", "b"])
        given.add_edge("b", "a", weight=2)
        graph = Graph.from_networkx(given)
        assert graph.nodes == ("z", "a", "b")
        assert graph.degrees.tolist() == [0, 2, 2]
        assert Graph.from_networkx(given, weight=None).degrees.tolist() == [0, 1, 1]

    def test_edges_without_the_attribute_weigh_one(self):
        given = nx.Graph([(0, 1, {"km": 3}), (1, 2)])
        assert Graph.from_networkx(given, weight="km").degrees.tolist() == [3, 4, 1]

    def test_an_attribute_that_no_edge_has_is_a_slip(self):
        with pytest.raises(InputError, match=r"no edge has the attribute 'kn'.*'km'"):
            Graph.from_networkx(nx.Graph([(0, 1, {"km": 3})]), weight="kn")

    def test_directed(self):
        given = nx.DiGraph([(0, 1, {"weight": 1}), (1, 0, {"weight": 4}), (1, 2)])
        with pytest.raises(InputError, match=r"directed.*symmetrize=True"):
            Graph.from_networkx(given)
        assert Graph.from_networkx(given, symmetrize=True).degrees.tolist() == [4, 5, 1]

    @pytest.mark.parametrize(
        ("given", "message"),
        [
            (nx.MultiGraph([(0, 1), (1, 0)]), r"1 edge is given more than once: \(0, 1\)"),
            (nx.Graph([(0, 0)]), r"self-loops: 0 - 0"),
            (nx.Graph([(0, 1, {"weight": "far"})]), r"not numbers"),
            (nx.Graph([(0, 1, {"weight": [1]})]), r"one weight for each edge"),
            (nx.Graph([(0, 1, {"weight": None})]), r"NaN or infinite: 0 - 1"),
            (nx.Graph([(0, 1, {"weight": -1})]), r"negative: 0 - 1"),
            (nx.Graph(), r"no nodes"),
            (PAIR, r"ndarray is not a networkx graph"),
        ],
    )
    def test_refusals(self, given, message):
        with pytest.raises(InputError, match=message):
            Graph.from_networkx(given)

    def test_multigraph_without_parallel_edges(self):
        assert Graph.from_networkx(nx.MultiGraph([(0, 1), (1, 2)])).n_edges == 2

    def test_weight_is_a_name(self):
        with pytest.raises(InputError, match="weight=True is not the name"):
            Graph.from_networkx(nx.path_graph(2), weight=True)


def brute_force_neighbours(distances, k):
    chosen = np.zeros(distances.shape)
    for i, row in enumerate(distances):
        chosen[i, [j for j in np.argsort(row, kind="stable") if j != i][:k]] = 1
    return np.maximum(chosen, chosen.T)


class TestCoordinates:
    @pytest.mark.parametrize("k", [1, 4])
    @pytest.mark.parametrize("scale", [1.0, 1e90, 1e-200])
    def test_against_all_distances(self, k, scale):
        points = np.random.default_rng(0).normal(size=(40, 3))
        distances = np.linalg.norm(points[:, None] - points, axis=2)
        graph = Graph.from_coordinates(points * scale, k=k)
        np.testing.assert_array_equal(weights_of(graph), brute_force_neighbours(distances, k))

    def test_haversine_against_the_formula(self):
        rng = np.random.default_rng(1)
        points = np.column_stack([rng.uniform(-90, 90, 60), rng.uniform(-180, 180, 60)])
        lat, lon = np.radians(points).T
        half = (
            np.sin((lat[:, None] - lat) / 2) ** 2
            + np.cos(lat[:, None]) * np.cos(lat) * np.sin((lon[:, None] - lon) / 2) ** 2
        )
        graph = Graph.from_coordinates(points, k=3, metric="haversine")
        expected = brute_force_neighbours(np.arcsin(np.sqrt(half)), 3)
        np.testing.assert_array_equal(weights_of(graph), expected)
        assert graph.metric == "haversine"

    def test_haversine_crosses_the_date_line(self):
        towns = {"Suva": (-18.1, 178.4), "Apia": (-13.8, -171.8), "Perth": (-32.0, 115.9)}
        graph = Graph.from_coordinates(towns, k=1, metric="haversine")
        assert weights_of(graph)[0, 1] == 1
        assert weights_of(Graph.from_coordinates(towns, k=1))[0, 1] == 0

    @pytest.mark.parametrize("n", [4, 50])
    def test_coincident_points_get_k_other_neighbours(self, n):
        graph = Graph.from_coordinates(np.zeros((n, 2)), k=2)
        assert graph.n_neighbors.min() >= 2
        assert graph.adjacency.diagonal().max() == 0

    def test_dict_and_frame_carry_labels(self):
        points = {"c": (0.0, 0.0), "a": (1.0, 0.0), "b": (5.0, 0.0)}
        frame = pd.DataFrame.from_dict(points, orient="index")
        for form in (points, frame):
            graph = Graph.from_coordinates(form, k=1)
            assert graph.nodes == ("c", "a", "b")
            np.testing.assert_array_equal(graph.coordinates, list(points.values()))
        assert Graph.from_coordinates(points, nodes=["b", "c"], k=1).coordinates[0, 0] == 5.0

    def test_keys_of_numpy_and_python_are_the_same(self):
        points = {np.int64(0): (0.0,), np.int64(1): (1.0,)}
        assert Graph.from_coordinates(points, nodes=[1, 0], k=1).nodes == (1, 0)

    @pytest.mark.parametrize(
        ("points", "options", "message"),
        [
            (np.zeros((3, 2)), {}, r"k=5 neighbours.*3 nodes. Choose k of at most 2"),
            (np.zeros((1, 2)), {"k": 1}, r"Graph.empty for a single node"),
            (np.zeros((3, 2)), {"k": 0}, r"k=0 is not a whole number"),
            (np.zeros((3, 2)), {"k": 1.5}, r"k=1.5 is not a whole number"),
            (np.zeros((3, 2)), {"k": True}, r"k=True is not a whole number"),
            (np.zeros((3, 2)), {"metric": "haversin"}, r"did you mean 'haversine'\?$"),
            (np.zeros(3), {}, r"shape \(3,\)"),
            (np.zeros((3, 0)), {}, r"shape \(3, 0\)"),
            ([[0.0, np.nan], [1.0, 1.0]], {"nodes": ["a", "b"]}, r"missing or infinite at: 'a'"),
            (np.zeros((3, 2)), {"nodes": ["a"]}, r"1 node labels for 3 points"),
            ([[91.0, 0.0], [0.0, 0.0]], {"metric": "haversine"}, r"at: 0. Latitude comes first"),
            (np.zeros((3, 3)), {"metric": "haversine"}, r"two columns"),
            ({"a": (0, 0), "b": (0,)}, {}, r"not a rectangular array"),
            ({"a": (0, 0)}, {"nodes": ["a", "b"]}, r"1 node has no coordinates: 'b'"),
            ({"a": (0, 0)}, {"nodes": [["a"]]}, r"not hashable"),
            ([["x", "y"]], {}, r"not numbers"),
            ([[1e101, 0.0], [0.0, 0.0]], {}, r"as large as 1e\+101"),
        ],
    )
    def test_refusals(self, points, options, message):
        with pytest.raises(InputError, match=message):
            Graph.from_coordinates(points, **options)


class TestEmpty:
    @pytest.mark.parametrize("nodes", [3, np.int64(3), [0, 1, 2], range(3)])
    def test_from_a_number_or_labels(self, nodes):
        graph = Graph.empty(nodes)
        assert graph.nodes == (0, 1, 2)
        assert graph.n_edges == 0
        assert graph.isolated == (0, 1, 2)

    @pytest.mark.parametrize("nodes", [0, -1, True, [], "ab", None, 2.0])
    def test_refusals(self, nodes):
        with pytest.raises(InputError):
            Graph.empty(nodes)


TWO_PARTS = [("a", "b", 2.0), ("b", "c", 1.0), ("d", "e", 4.0)]


class TestWhatTheGraphKnows:
    @pytest.fixture
    def graph(self):
        return Graph.from_edges(TWO_PARTS, nodes=list("eadcbz"))

    def test_degrees_neighbours_and_edges(self, graph):
        assert graph.degrees.tolist() == [4, 2, 4, 1, 3, 0]
        assert graph.n_neighbors.tolist() == [1, 1, 1, 1, 2, 0]
        assert graph.n_edges == 3
        assert graph.mean_degree == pytest.approx(14 / 6)

    def test_components_and_isolated_nodes_are_reported(self, graph):
        e, a, d, c, b, z = graph.components
        assert e == d
        assert a == b == c
        assert len({e, a, z}) == graph.n_components == 3
        assert graph.isolated == ("z",)
        assert "n_components=3" in repr(graph)
        assert "isolated: 'z'" in repr(graph)

    def test_laplacian_and_spectrum(self, graph):
        laplacian = graph.laplacian.toarray()
        expected = np.diag(graph.degrees) - weights_of(graph)
        np.testing.assert_array_equal(laplacian, expected)
        values, vectors = graph.spectrum
        np.testing.assert_allclose(vectors * values @ vectors.T, laplacian, atol=1e-12)
        assert np.count_nonzero(values < 1e-12) == graph.n_components

    def test_positions_follow_the_given_order(self, graph):
        assert [graph.position(node) for node in graph.nodes] == list(range(6))

    def test_frozen(self, graph):
        with pytest.raises(dataclasses.FrozenInstanceError):
            graph.nodes = ()

    @pytest.mark.parametrize(
        "get",
        [
            lambda g: g.adjacency.data,
            lambda g: g.adjacency.indices,
            lambda g: g.laplacian.data,
            lambda g: g.degrees,
            lambda g: g.n_neighbors,
            lambda g: g.components,
            lambda g: g.spectrum[0],
            lambda g: g.spectrum[1],
            lambda g: Graph.from_coordinates(np.eye(3), k=1).coordinates,
        ],
    )
    def test_arrays_are_read_only(self, graph, get):
        with pytest.raises(ValueError, match="read-only"):
            get(graph)[0] = 1


class TestInputsAreNotModified:
    @pytest.mark.parametrize("layout", SPARSE[:6], ids=lambda layout: layout.__name__)
    def test_sparse(self, layout):
        given = layout(np.array([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 0.0]]))
        given.data[...] *= 2
        parts = {k: np.copy(v) for k, v in vars(given).items() if isinstance(v, np.ndarray)}
        graph = Graph.from_adjacency(given)
        for name, before in parts.items():
            np.testing.assert_array_equal(getattr(given, name), before)
        given.data[...] = 7.0
        assert graph.degrees.max() == 2.0

    def test_explicit_zeros_and_unsorted_entries_of_csr_stay(self):
        given = sparse.csr_array(
            (np.array([0.0, 1.0, 1.0, 0.0]), np.array([2, 1, 0, 2]), np.array([0, 2, 3, 4]))
        )
        Graph.from_adjacency(given)
        assert given.data.tolist() == [0, 1, 1, 0]
        assert given.indices.tolist() == [2, 1, 0, 2]

    def test_arrays_stay_writable_and_apart(self):
        matrix, points = PAIR.copy(), np.eye(3)
        edges = np.array([[0, 1], [1, 2]])
        graphs = [
            Graph.from_adjacency(matrix),
            Graph.from_coordinates(points, k=1),
            Graph.from_edges(edges),
        ]
        before = [weights_of(graph) for graph in graphs]
        for array in (matrix, points, edges):
            array[...] = 0
        for graph, weights in zip(graphs, before, strict=True):
            np.testing.assert_array_equal(weights_of(graph), weights)
        assert graphs[1].coordinates[0, 0] == 1.0

    @pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame])
    def test_frames(self, make):
        frame = make(FRAME)
        Graph.from_edges(frame)
        assert frame.equals(make(FRAME))


def graph_or_clear_error(build, *args, **options):
    try:
        return build(*args, **options)
    except InputError as error:
        if not error.remedy:
            pytest.fail(f"no remedy in: {error}")
        return None


ODD_WEIGHTS = [-1.0, np.nan, np.inf, -np.inf, 1e308, 5e-324]
WEIGHTS = st.one_of(st.just(0.0), st.just(1.0), st.floats(1e-30, 1e30))


class TestProperties:
    @drawn(
        hnp.arrays(np.float64, (4, 4), elements=WEIGHTS),
        st.none() | st.tuples(st.integers(0, 3), st.integers(0, 3), st.sampled_from(ODD_WEIGHTS)),
        st.booleans(),
        st.booleans(),
    )
    @settings(derandomize=True, deadline=None, max_examples=200)
    def test_any_matrix_gives_a_graph_or_a_clear_error(self, matrix, odd, mirror, symmetrize):
        np.fill_diagonal(matrix, 0.0)
        matrix = np.maximum(matrix, matrix.T) if mirror else matrix
        if odd is not None:
            matrix[odd[:2]] = odd[2]
        before = matrix.copy()
        graph = graph_or_clear_error(Graph.from_adjacency, matrix, symmetrize=symmetrize)
        np.testing.assert_array_equal(matrix, before)
        fine = odd is None and (symmetrize or np.array_equal(matrix, matrix.T))
        assert graph is not None or not fine
        if graph is not None:
            found = weights_of(graph)
            np.testing.assert_array_equal(found, found.T)
            np.testing.assert_allclose(found, np.maximum(matrix, matrix.T), rtol=1e-9)
            assert np.isfinite(graph.laplacian.data).all()

    @drawn(
        st.lists(
            st.tuples(*[st.one_of(st.integers(0, 5), st.sampled_from("abc"), st.none())] * 2),
            max_size=6,
        )
    )
    @settings(derandomize=True, deadline=None, max_examples=200)
    def test_edges_are_kept_or_refused(self, edges):
        graph = graph_or_clear_error(Graph.from_edges, edges)
        flat = [end for edge in edges for end in edge]
        distinct = {frozenset(edge) for edge in edges}
        simple = len(distinct) == len(edges) and all(len(pair) == 2 for pair in distinct)
        assert (graph is not None) == (bool(edges) and None not in flat and simple)
        if graph is not None:
            assert graph.nodes == tuple(dict.fromkeys(flat))
            assert graph.n_edges == len(edges)
            for u, v in edges:
                assert weights_of(graph)[graph.position(u), graph.position(v)] == 1


class TestLargeGraphs:
    # An upper bound on work, not on time: a Python loop over edges would build a tuple of each.
    def test_arrays_of_edges_are_not_walked_through(self, monkeypatch):
        n = 100_000
        edges = np.column_stack([np.arange(n - 1), np.arange(1, n)])
        monkeypatch.setattr("graphratio.data.graph_input.plain_label", None)
        graph = Graph.from_edges(edges)
        assert graph.n_nodes == n
        assert graph.n_components == 1

    def test_coordinates_of_many_points(self):
        points = np.random.default_rng(0).normal(size=(100_000, 2))
        assert Graph.from_coordinates(points).n_neighbors.min() == 5


def test_indices_are_narrow_whatever_was_given():
    """All of SciPy's graph algorithms take them, in every version."""
    wide = sparse.csr_array(PAIR)
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    graph = Graph.from_adjacency(wide)
    for matrix in (graph.adjacency, graph.laplacian):
        assert matrix.indices.dtype == matrix.indptr.dtype == np.int32
        assert not matrix.indices.flags.writeable


def test_a_subset_keeps_weights_coordinates_and_the_order_asked_for():
    graph = Graph.from_coordinates([[0.0], [1.0], [3.0], [6.0]], nodes=list("abcd"), k=2)
    part = graph.subset(["d", "b", "c"])
    kept = [3, 1, 2]
    assert part.nodes == ("d", "b", "c")
    assert (part.adjacency.toarray() == graph.adjacency.toarray()[np.ix_(kept, kept)]).all()
    assert (part.coordinates == graph.coordinates[kept]).all()
    assert part.metric == graph.metric
