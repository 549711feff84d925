"""The samples: containers they come in, the data rules, alignment, missing values, scaling."""

import dataclasses
import decimal
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import example, settings
from hypothesis import given as drawn
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from scipy import sparse

from graphratio import Graph, NodeSamples
from graphratio.data.alignment import align, as_samples
from graphratio.data.scaling import Scaling
from graphratio.exceptions import DataWarning, InputError


def labelled(*nodes):
    """Samples in which the observations of a node tell which node it is."""
    values = {node: 10.0 * i for i, node in enumerate(nodes)}
    return NodeSamples.from_arrays(
        {node: [value + 1, value + 2] for node, value in values.items()},
        {node: [value + 3] for node, value in values.items()},
    )


def content(samples):
    return {
        node: (samples.reference(node).tolist(), samples.target(node).tolist())
        for node in samples.nodes
    }


REF = [np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([[5.0, 6.0]])]
TGT = [np.array([[7.0, 8.0]]), np.array([[9.0, 10.0], [11.0, 12.0], [13.0, 14.0]])]


class TestContainers:
    @pytest.mark.parametrize(
        ("reference", "target"),
        [
            (REF, TGT),
            (tuple(REF), tuple(TGT)),
            ([x.tolist() for x in REF], [x.tolist() for x in TGT]),
            ([x.astype(int) for x in REF], [x.astype(np.float32) for x in TGT]),
            ([x.astype(object) for x in REF], TGT),
            ([np.asfortranarray(x) for x in REF], [np.repeat(x, 2, axis=0)[::2] for x in TGT]),
            ([pd.DataFrame(x) for x in REF], TGT),
            (dict(enumerate(REF)), dict(enumerate(TGT))),
            (dict(enumerate(REF)), {np.int64(1): TGT[1], np.int64(0): TGT[0]}),
        ],
        ids=["list", "tuple", "nested", "dtypes", "object", "order", "frames", "dict", "keys"],
    )
    def test_forms_agree(self, reference, target):
        samples = NodeSamples.from_arrays(reference, target)
        assert samples.nodes == (0, 1)
        assert samples.n_reference.tolist() == [2, 1]
        assert samples.n_target.tolist() == [1, 3]
        assert samples.values.dtype == np.float64
        for node in (0, 1):
            np.testing.assert_array_equal(samples.reference(node), REF[node])
            np.testing.assert_array_equal(samples.target(node), TGT[node])

    def test_stacking_order_and_indices(self):
        samples = NodeSamples.from_arrays(REF, TGT)
        np.testing.assert_array_equal(samples.values[:, 0], [1, 3, 7, 5, 9, 11, 13])
        assert samples.offsets.tolist() == [0, 2, 3, 4, 7]
        assert samples.node_index.tolist() == [0, 0, 0, 1, 1, 1, 1]
        assert samples.is_target.tolist() == [False, False, True, False, True, True, True]
        assert (samples.n_features, samples.n_observations, len(samples)) == (2, 7, 2)

    @pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int16, bool, object])
    def test_cubes_equal_lists(self, dtype):
        rng = np.random.default_rng(0)
        reference = rng.integers(0, 2, (3, 4, 2)).astype(dtype)
        target = rng.integers(0, 2, (3, 5, 2))
        cubes = NodeSamples.from_arrays(reference, target, nodes=["a", "b", "c"])
        lists = NodeSamples.from_arrays(list(reference), list(target), nodes=["a", "b", "c"])
        assert content(cubes) == content(lists)
        assert cubes.values.dtype == np.float64

    def test_large_cubes_are_not_walked_through(self, monkeypatch):
        monkeypatch.setattr("graphratio.data.sample_input.as_observations", None)
        samples = NodeSamples.from_arrays(np.zeros((10_000, 3, 1)), np.ones((10_000, 2, 1)))
        assert samples.n_observations == 50_000

    @pytest.mark.parametrize("shape", [(2, 0, 2), (2, 3, 2)])
    def test_a_cube_may_lack_observations(self, shape):
        samples = NodeSamples.from_arrays(np.ones(shape), np.ones((2, 4, 2)))
        assert samples.n_reference.tolist() == [shape[1]] * 2

    @pytest.mark.parametrize(
        "sample",
        [
            [1.0, 2.0],
            (1, 2),
            np.array([1.0, 2.0]),
            np.array([[1.0], [2.0]]),
            np.array([[[1.0], [2.0]]]),
            pd.Series([1, 2]),
            pl.Series([1, 2]),
            pd.DataFrame({"x": [1, 2]}),
            pl.DataFrame({"x": [1, 2]}),
            pl.LazyFrame({"x": [1, 2]}),
            range(1, 3),
            [decimal.Decimal(1), decimal.Decimal(2)],
        ],
        ids=lambda sample: type(sample).__name__,
    )
    def test_one_array_is_one_node(self, sample):
        samples = NodeSamples.from_arrays(sample, sample)
        assert samples.n_nodes == 1
        assert samples.target(0).tolist() == [[1.0], [2.0]]

    def test_array_of_arrays(self):
        ragged = np.empty(2, dtype=object)
        ragged[:] = [np.ones(2), np.ones(3)]
        assert NodeSamples.from_arrays(ragged, ragged).n_reference.tolist() == [2, 3]

    def test_nodes_label_lists_and_order_dicts(self):
        assert NodeSamples.from_arrays(REF, TGT, nodes=["b", "a"]).nodes == ("b", "a")
        reordered = NodeSamples.from_arrays(
            {"a": [1.0], "b": [2.0]}, {"b": [3.0], "a": [4.0]}, nodes=["b", "a"]
        )
        assert content(reordered) == {"b": ([[2.0]], [[3.0]]), "a": ([[1.0]], [[4.0]])}

    def test_dicts_may_lack_a_node_on_one_side(self):
        samples = NodeSamples.from_arrays({"b": [1.0], "a": [2.0]}, {"c": [3.0], "a": [4.0]})
        assert samples.nodes == ("b", "a", "c")
        assert samples.complete.tolist() == [False, True, False]
        assert samples.target("b").shape == (0, 1)
        assert "without one of the samples: 'b', 'c'" in repr(samples)

    def test_names_come_from_frames_or_count(self):
        frame = pd.DataFrame({"pm25": [1.0], "no2": [2.0]})
        assert NodeSamples.from_arrays(frame, frame).feature_names == ("pm25", "no2")
        assert NodeSamples.from_arrays(REF, TGT).feature_names == ("x0", "x1")
        named = NodeSamples.from_arrays(frame, frame, feature_names=["u", "v"])
        assert named.feature_names == ("u", "v")
        assert NodeSamples.from_arrays([1.0], [2.0], feature_names="pm25").feature_names == (
            "pm25",
        )

    @pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame])
    def test_frames_with_other_columns_are_not_mixed_up(self, make):
        one, other = make({"a": [1.0], "b": [2.0]}), make({"b": [1.0], "a": [2.0]})
        with pytest.raises(InputError, match=r"columns 'a', 'b', but .* target .* has 'b', 'a'"):
            NodeSamples.from_arrays([one], [other])

    def test_polars_in_polars_out(self):
        frame = pl.DataFrame({"x": [1.0, 2.0]})
        for form in (frame, [frame], {"a": frame}):
            assert NodeSamples.from_arrays(form, form).backend == "polars"
        assert NodeSamples.from_arrays(REF, TGT).backend == "pandas"

    @pytest.mark.parametrize(
        ("reference", "target", "message"),
        [
            ({"a": [1.0]}, [[1.0]], r"one of reference and target is a dict"),
            (REF, TGT[:1], r"reference has 2 nodes and target 1"),
            (np.ones((2, 1, 1)), np.ones((3, 1, 1)), r"reference has 2 nodes and target 3"),
            ([], [], r"no nodes"),
            ({}, {}, r"no nodes"),
            (np.ones((0, 2, 2)), np.ones((0, 2, 2)), r"no nodes"),
            ([[], []], [[], []], r"no observations at any node"),
            (np.ones((2, 0, 2)), np.ones((2, 0, 2)), r"no observations at any node"),
            (np.ones((2, 3, 0)), np.ones((2, 3, 0)), r"reference sample of node 0 has no features"),
            ([np.ones((5, 0))], [np.ones((5, 0))], r"reference sample of node 0 has no features"),
            (
                [REF[0], np.ones((2, 3))],
                TGT,
                r"most samples have 2 features, but not those of 1 \(reference: 3\)",
            ),
            (np.ones((2, 3, 2)), np.ones((2, 3, 1)), r"most samples have 1 feature"),
            ([[[1.0, 2.0], [3.0]]], [[[1.0, 2.0]]], r"reference .* 0 is not a rectangular array"),
            (["ab"], ["cd"], r"reference sample of node 0 has values of type"),
            ({"u": ["x"]}, {"u": [1.0]}, r"reference sample of node 'u' has values of type"),
            ({"u": None}, {"u": [1.0]}, r"reference sample of node 'u' is the single value None"),
            ({"u": [1.0]}, {"u": 3.0}, r"target sample of node 'u' is the single value 3.0"),
            ([np.ones((2, 2, 2))], [[1.0]], r"reference sample of node 0 is 3-D"),
            (np.ones((2, 2, 2, 2)), np.ones((2, 2, 2, 2)), r"is 4-D"),
            ([[1j]], [[1.0]], r"complex"),
            ([[10**400]], [[1.0]], r"not numbers"),
            ([{"a": 1}], [{"a": 1}], r"not numbers"),
            ([np.array(["2020"], dtype="M8[D]")], [[1.0]], r"datetime64"),
            ([sparse.csr_array(np.eye(2))], [np.eye(2)], r"sparse matrix. Pass a dense array"),
            (sparse.csr_array(np.eye(2)), np.eye(2), r"csr_array cannot be read"),
            (None, None, r"reference of type NoneType cannot be read"),
            ("ab", "cd", r"reference of type str cannot be read"),
            ({1.0, 2.0}, {3.0}, r"reference of type set cannot be read"),
            ([[np.inf]], [[1.0]], r"infinite values: 1 in column 'x0' of node 0"),
            ([[1e101]], [[1.0]], r"as large as 1e\+101"),
            (pd.DataFrame({"x": ["a"]}), [[1.0]], r"feature 'x' is not numeric"),
            (pd.DataFrame(), [[1.0]], r"no columns"),
        ],
    )
    def test_refusals(self, reference, target, message):
        with pytest.raises(InputError, match=message):
            NodeSamples.from_arrays(reference, target)

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"nodes": ["a"]}, r"1 node labels for 2 nodes"),
            ({"nodes": 3}, r"not a collection"),
            ({"nodes": ["a", None]}, r"label is missing"),
            ({"feature_names": ["u"]}, r"1 feature names for 2 features"),
            ({"feature_names": ["u", "u"]}, r"Give each feature a name of its own"),
            ({"missing": "dorp"}, r"did you mean 'drop'\?$"),
        ],
    )
    def test_options_are_checked(self, options, message):
        with pytest.raises(InputError, match=message):
            NodeSamples.from_arrays(REF, TGT, **options)

    def test_nodes_of_dicts_must_match(self):
        with pytest.raises(InputError, match=r"not in nodes: 'a'; 1 in nodes .*: 'b'"):
            NodeSamples.from_arrays({"a": [1.0]}, {"a": [1.0]}, nodes=["b"])


GAPS = (
    {"u": [[1.0, np.nan], [np.nan, np.nan], [1.0, 2.0]], "v": [[1.0, 2.0]]},
    {"u": [[3.0, 4.0]], "v": [[np.nan, 1.0], [5.0, 6.0]]},
)


class TestMissingValues:
    COUNTS = (
        r"1 in column 'x0' of node 'u', 2 in column 'x1' of node 'u', 1 in column 'x0' of node 'v'"
    )

    def test_are_counted_by_node_and_column(self):
        with pytest.raises(InputError, match=rf'missing values: {self.COUNTS}.*missing="drop"'):
            NodeSamples.from_arrays(*GAPS)

    def test_are_dropped_with_a_warning(self):
        message = f"3 of 7 observations dropped because of missing values: {self.COUNTS}"
        with pytest.warns(DataWarning, match=message) as caught:
            samples = NodeSamples.from_arrays(*GAPS, missing="drop")
        assert caught[0].filename == __file__
        assert content(samples) == {
            "u": ([[1.0, 2.0]], [[3.0, 4.0]]),
            "v": ([[1.0, 2.0]], [[5.0, 6.0]]),
        }

    def test_nothing_to_drop_is_silent(self):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            NodeSamples.from_arrays(REF, TGT, missing="drop")

    @pytest.mark.filterwarnings("ignore::graphratio.exceptions.DataWarning")
    def test_a_node_may_lose_all_its_observations_but_not_every_node(self):
        samples = NodeSamples.from_arrays([[np.nan], [1.0]], [[1.0], [2.0]], missing="drop")
        assert samples.n_reference.tolist() == [0, 1]
        with pytest.raises(InputError, match="no observation is left"):
            NodeSamples.from_arrays([[np.nan]], [[np.nan]], missing="drop")

    @pytest.mark.parametrize(
        "reference",
        [[1.0, None], np.ma.masked_array([1.0, 2.0], [0, 1]), pd.Series([1, None], dtype="Int64")],
    )
    def test_every_kind_of_missing_is_noticed(self, reference):
        with pytest.raises(InputError, match=r"missing values: 1 in column 'x0' of node 0"):
            NodeSamples.from_arrays([reference], [[1.0]])


class TestAlignment:
    def test_by_label_never_sorted(self):
        samples = labelled("b", "c", "a")
        aligned = align(samples, Graph.empty(["c", "a", "b"]))
        assert aligned.nodes == ("c", "a", "b")
        assert content(aligned) == content(samples)
        assert aligned.values[:, 0].tolist() == [11, 12, 13, 21, 22, 23, 1, 2, 3]

    def test_unlabelled_lists_take_the_labels_by_position(self):
        aligned = align(NodeSamples.from_arrays(REF, TGT), Graph.empty(["z", "a"]))
        assert aligned.nodes == ("z", "a")
        np.testing.assert_array_equal(aligned.reference("a"), REF[1])

    def test_unlabelled_lists_need_one_entry_per_node(self):
        with pytest.raises(InputError, match="samples have 2 nodes and the graph 3"):
            align(NodeSamples.from_arrays(REF, TGT), Graph.empty(["a", "b", "c"]))

    def test_labels_of_numpy_and_python_match(self):
        samples = NodeSamples.from_arrays(REF, TGT, nodes=np.array([1, 0]))
        np.testing.assert_array_equal(align(samples, Graph.empty(2)).reference(0), REF[1])

    @pytest.mark.parametrize(
        ("nodes", "message"),
        [
            (["a", "x"], r"1 in the samples but not in the graph: 'b'; 1 in the graph .*: 'x'"),
            (["a"], r"1 in the samples but not in the graph: 'b'"),
            (["a", "b", "x"], r"1 in the graph but not in the samples: 'x'"),
            (2, r"Label the graph too"),
        ],
    )
    def test_mismatches_list_the_labels(self, nodes, message):
        with pytest.raises(InputError, match=message):
            align(labelled("a", "b"), Graph.empty(nodes))

    def test_connected_nodes_may_lack_a_sample(self):
        samples = NodeSamples.from_arrays({"a": [1.0], "b": [], "c": []}, {"a": [1.0], "b": [2.0]})
        path = Graph.from_edges([("c", "b"), ("b", "a")])
        assert align(samples, path).complete.tolist() == [False, False, True]

    def test_nodes_that_cannot_borrow_are_an_error(self):
        samples = NodeSamples.from_arrays(
            {"a": [1.0], "b": [], "c": [], "d": [3.0]}, {"a": [1.0], "b": [2.0], "c": [], "d": []}
        )
        graph = Graph.from_edges([("b", "c")], nodes=["a", "b", "c", "d"])
        with pytest.raises(InputError, match=r"no connection to .*: 'b', 'c', 'd'. Connect them"):
            align(samples, graph)

    @drawn(st.permutations(["a", "b", "c", "d"]), st.permutations(["a", "b", "c", "d"]))
    @settings(derandomize=True, deadline=None, max_examples=30)
    def test_realigning_keeps_every_node_its_samples(self, first, second):
        samples = labelled(*first)
        there = samples.aligned(second)
        assert there.nodes == tuple(second)
        assert content(there) == content(samples)
        back = there.aligned(first)
        np.testing.assert_array_equal(back.values, samples.values)


class TestStandardized:
    def test_pooled_mean_and_spread(self):
        rng = np.random.default_rng(0)
        samples = NodeSamples.from_arrays(rng.normal(3, 5, (4, 9, 2)), rng.normal(1, 2, (4, 5, 2)))
        scaled = samples.standardized()
        np.testing.assert_allclose(scaled.values.mean(axis=0), 0, atol=1e-12)
        np.testing.assert_allclose(scaled.values.std(axis=0), 1, rtol=1e-12)
        np.testing.assert_allclose(scaled.scaling.mean, samples.values.mean(axis=0))
        np.testing.assert_allclose(scaled.scaling.scale, samples.values.std(axis=0))
        assert "standardised" in repr(scaled)
        assert samples.scaling is None

    def test_does_not_see_which_sample_is_which(self):
        one = NodeSamples.from_arrays([[0.0, 1.0]], [[5.0]]).standardized()
        other = NodeSamples.from_arrays([[5.0]], [[0.0, 1.0]]).standardized()
        assert one.scaling.same_as(other.scaling)

    def test_twice_is_once(self):
        scaled = labelled("a", "b").standardized()
        assert scaled.standardized() is scaled

    @pytest.mark.parametrize("scale", [1e-300, 1e-200, 1.0, 1e90])
    def test_any_scale(self, scale):
        values = np.array([1.0, 2.0, 4.0]) * scale
        scaled = NodeSamples.from_arrays([values], [values]).standardized()
        assert scaled.values.std() == pytest.approx(1.0)

    @pytest.mark.parametrize("value", [0.0, 0.1, 1e90, -1e-200])
    def test_constant_features_are_only_shifted(self, value):
        rows = np.column_stack([np.full(7, value), np.arange(7)])
        scaled = NodeSamples.from_arrays([rows], [rows]).standardized()
        assert scaled.scaling.scale[0] == 1.0
        np.testing.assert_allclose(scaled.values[:, 0], 0, atol=1e-15 * max(abs(value), 1))

    def test_scaling_is_applied_once_and_only_the_same(self):
        samples = labelled("a", "b")
        scaled = samples.standardized()
        scaling = scaled.scaling
        np.testing.assert_array_equal(samples.scaled(scaling).values, scaled.values)
        assert scaled.scaled(scaling) is scaled
        assert samples.scaled(None) is samples
        other = Scaling(scaling.mean + 1, scaling.scale)
        for wrong in (other, None):
            with pytest.raises(InputError, match="not standardised in the same way"):
                scaled.scaled(wrong)

    def test_logarithm_comes_first(self):
        rng = np.random.default_rng(0)
        samples = NodeSamples.from_arrays(
            np.exp(rng.normal(size=(2, 9, 2))),
            np.exp(rng.normal(size=(2, 5, 2))),
            feature_names=["skewed", "plain"],
        )
        for log in ("skewed", ["skewed"]):
            scaled = samples.standardized(log=log)
            np.testing.assert_allclose(scaled.values.mean(axis=0), 0, atol=1e-12)
            np.testing.assert_allclose(scaled.values.std(axis=0), 1, rtol=1e-12)
            np.testing.assert_allclose(scaled.scaling.mean[0], np.log(samples.values[:, 0]).mean())
            np.testing.assert_allclose(scaled.scaling.mean[1], samples.values[:, 1].mean())
            assert scaled.scaling.log.tolist() == [True, False]
        only = samples.standardized(log="skewed", standardize=False)
        np.testing.assert_array_equal(only.values[:, 0], np.log(samples.values[:, 0]))
        np.testing.assert_array_equal(only.values[:, 1], samples.values[:, 1])
        assert samples.standardized(standardize=False) is samples
        assert not scaled.scaling.same_as(samples.standardized().scaling)
        assert not only.scaling.same_as(scaled.scaling)
        with pytest.raises(InputError, match="not standardised in the same way"):
            scaled.scaled(samples.standardized().scaling)
        with pytest.raises(InputError, match="already standardised"):
            samples.standardized().standardized(log="skewed")

    def test_logarithm_of_what_has_none(self):
        samples = NodeSamples.from_arrays({"a": [1.0, 0.0], "b": [-1.0]}, {"a": [2.0], "b": [3.0]})
        with pytest.raises(InputError, match=r"'x0' needs positive.*2 are.*at nodes 'a', 'b'"):
            samples.standardized(log="x0")
        with pytest.raises(InputError, match=r"no feature 'x1' to take.*'x0'"):
            samples.standardized(log=["x1"])
        scaling = NodeSamples.from_arrays([1.0], [2.0]).standardized(log="x0").scaling
        with pytest.raises(InputError, match=r"feature 0.*1 of 2 values are zero or negative"):
            scaling.apply(np.array([[1.0], [0.0]]))

    def test_alignment_keeps_it(self):
        scaled = labelled("a", "b").standardized()
        assert scaled.aligned(["b", "a"]).scaling is scaled.scaling


class TestFrozen:
    def test_attributes(self):
        with pytest.raises(dataclasses.FrozenInstanceError):
            labelled("a").nodes = ()

    @pytest.mark.parametrize(
        "prepare",
        [
            lambda samples: samples,
            lambda samples: samples.aligned(["b", "a"]),
            lambda samples: samples.standardized(),
        ],
        ids=["built", "aligned", "standardized"],
    )
    @pytest.mark.parametrize(
        "name", ["values", "n_reference", "n_target", "offsets", "node_index", "is_target"]
    )
    def test_arrays(self, prepare, name):
        with pytest.raises(ValueError, match="read-only"):
            getattr(prepare(labelled("a", "b")), name)[0] = 0

    @pytest.mark.parametrize("name", ["mean", "scale"])
    def test_scaling(self, name):
        with pytest.raises(ValueError, match="read-only"):
            getattr(labelled("a").standardized().scaling, name)[0] = 0

    def test_views_of_a_node_are_read_only(self):
        with pytest.raises(ValueError, match="read-only"):
            labelled("a").reference("a")[0] = 0

    @pytest.mark.parametrize("as_cube", [False, True])
    @pytest.mark.filterwarnings("ignore::graphratio.exceptions.DataWarning")
    def test_inputs_are_neither_modified_nor_shared(self, as_cube):
        reference = np.array([[[1.0], [np.nan]], [[2.0], [3.0]]])
        target = np.ones((2, 1, 1))
        given = (reference, target) if as_cube else (list(reference), list(target))
        before = reference.copy()
        samples = NodeSamples.from_arrays(*given, missing="drop")
        np.testing.assert_array_equal(reference, before)
        reference[...] = 9.0
        assert samples.reference(1).tolist() == [[2.0], [3.0]]


class TestLookups:
    @pytest.mark.parametrize("node", [np.str_("a"), "a"])
    def test_by_label(self, node):
        assert labelled("b", "a").reference(node).tolist() == [[11.0], [12.0]]

    def test_unknown_label(self):
        with pytest.raises(InputError, match=r"no node 'nort'. Did you mean 'north'"):
            labelled("north").target("nort")

    @pytest.mark.parametrize("given", [(1,), [[1.0], [2.0]], None, "ab", Graph.empty(1)])
    def test_as_samples_takes_samples_or_a_pair(self, given):
        with pytest.raises(InputError, match=r"tuple \(reference, target\)"):
            as_samples(given)

    def test_as_samples(self):
        samples = labelled("a")
        assert as_samples(samples) is samples
        assert as_samples((REF, TGT)).n_nodes == 2


SCALARS = st.one_of(
    st.floats(width=32),
    st.floats(),
    st.integers(-(10**6), 10**6),
    st.sampled_from([None, "x", 1j, 10**400, np.nan, np.inf, 1e90, 5e-324]),
)


class TestProperties:
    @drawn(
        st.lists(st.lists(SCALARS, max_size=3), max_size=3),
        st.lists(st.lists(SCALARS, max_size=3), max_size=3),
        st.sampled_from(["error", "drop"]),
    )
    @example([[]], [[0.0, 5e-324]], "error")
    @settings(derandomize=True, deadline=None, max_examples=300)
    def test_anything_gives_finite_samples_or_a_clear_error(self, reference, target, missing):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DataWarning)
            try:
                samples = NodeSamples.from_arrays(reference, target, missing=missing)
            except InputError as error:
                complaint = error
            else:
                complaint = None
                assert np.isfinite(samples.values).all()
                assert np.isfinite(samples.standardized().values).all()
                assert samples.n_nodes == len(reference)
        assert complaint is None or complaint.remedy


class TestSubset:
    samples = NodeSamples.from_arrays(
        {"a": [1.0, 2.0], "b": [3.0], "c": [4.0]}, {"a": [5.0], "b": [6.0, 7.0], "c": [8.0]}
    ).standardized()

    def test_nodes_come_in_the_order_asked_for(self):
        part = self.samples.subset(["c", "a"])
        assert part.nodes == ("c", "a")
        assert part.sizes.tolist() == [[1, 1], [2, 1]]
        for node in part.nodes:
            assert_array_equal(part.reference(node), self.samples.reference(node))
            assert_array_equal(part.target(node), self.samples.target(node))
        assert part.scaling is self.samples.scaling

    def test_observations_are_dropped_where_they_are(self):
        keep = np.array([True, False, True, False, True, True, True, False])
        part = self.samples.subset(observations=keep)
        assert part.sizes.tolist() == [[1, 1], [0, 2], [1, 0]]
        assert_array_equal(part.values, self.samples.values[keep])

    def test_both_at_once(self):
        keep = self.samples.is_target
        part = self.samples.subset(["b"], observations=keep)
        assert part.sizes.tolist() == [[0, 2]]
        assert_array_equal(part.target("b"), self.samples.target("b"))

    def test_an_unknown_node_is_named(self):
        with pytest.raises(InputError, match="there is no node 'd'"):
            self.samples.subset(["d"])
