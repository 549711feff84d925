"""Saved models: the same bits back, and no file can make `load` fail in another way than ours."""

import copy
import dataclasses
import datetime as dt
import io
import json
import os
import pickle
import stat
import tracemalloc
import warnings
import zipfile

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import graphratio as gr
from graphratio.estimators import archive
from graphratio.estimators.persistence import _check
from graphratio.exceptions import FileFormatError, InputError

PENALTIES = {"bandwidth": 1.0, "ridge": 0.1}


def fitted(nodes=("a", "b", "c"), *, standardize=False, kind=gr.GRULSIF, **parameters):
    rng = np.random.default_rng(0)
    samples = gr.NodeSamples.from_arrays(
        rng.normal(size=(len(nodes), 12, 2)), rng.normal(size=(len(nodes), 9, 2)) + 0.5, nodes=nodes
    )
    edges = [(nodes[0], nodes[1], 0.3), (nodes[1], nodes[2], 1.7)]
    graph = gr.Graph.from_edges(edges, nodes=nodes)
    if kind is gr.GRULSIF:
        parameters = {"graph_penalty": 0.3, "ridge": 0.03, **parameters}
    model = kind(**{**PENALTIES, "random_state": 0, **parameters})
    return model.fit(samples.standardized() if standardize else samples, graph)


@pytest.fixture(scope="module")
def model():
    return fitted(bandwidth=[0.5, 1.0], cv=2, standardize=True)


@pytest.fixture(scope="module")
def saved(model, tmp_path_factory):
    path = tmp_path_factory.mktemp("saved") / "model.graphratio"
    model.save(path)
    return path.read_bytes()


def same(one, other):
    """Tell whether two values are equal to the bit, type and layout included."""
    if dataclasses.is_dataclass(one):
        names = [field.name for field in dataclasses.fields(one)]
        return type(one) is type(other) and all(
            same(getattr(one, name), getattr(other, name)) for name in names
        )
    if type(one) is not type(other):
        return False
    if isinstance(one, np.ndarray):
        if one.dtype == object:
            return same(one.tolist(), other.tolist())
        return (
            one.shape == other.shape
            and one.dtype == other.dtype
            and (one.tobytes() == other.tobytes())
        )
    if hasattr(one, "indptr"):
        return all(same(getattr(one, part), getattr(other, part)) for part in ("data", "indptr"))
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, dict):
        return list(one) == list(other) and all(same(one[key], other[key]) for key in one)
    return one == other or (one != one and other != other)


def assert_same_model(one, other):
    assert type(one) is type(other)
    for name, value in vars(one).items():
        assert same(value, getattr(other, name)), name
    assert set(vars(one)) == set(vars(other))


def round_trip(model, tmp_path):
    model.save(tmp_path / "model")
    return gr.load(tmp_path / "model")


class TestRoundTrip:
    @pytest.mark.parametrize(
        "options",
        [
            {},
            {"standardize": True},
            {"kind": gr.Pool},
            {"kind": gr.RULSIF, "n_centers": 5},
            {"kind": gr.ULSIF, "ridge": [0.1, 1.0]},
            {"kind": gr.KLIEP, "ridge": [0.1, 1.0]},
            {"kernel": "laplacian", "prior_ratio": 1.0, "alpha": 0},
            {"bandwidth": (0.5, 1.0), "cv": 2},
            {"bandwidth": np.array([0.5, 1.0]), "ridge": [0.1, 1.0], "cv": np.int64(2)},
            {"bandwidth": np.float32(0.5), "alpha": np.float64(0.2)},
            {"dictionary": np.array([[0.0, 0.0], [1.0, 1.0]], order="F")},
            {"dictionary": [[0.0, 0.0], (1.0, 1.0)]},
            {"solver": "pcg"},
        ],
        ids=str,
    )
    def test_bit_for_bit(self, options, tmp_path):
        model = fitted(**options)
        again = round_trip(model, tmp_path)
        for name, value in model.get_params().items():
            # NumPy scalars among the parameters come back as Python numbers.
            plain = value.item() if isinstance(value, np.generic) else value
            assert same(plain, getattr(again, name)), name
            setattr(model, name, plain)
        assert_same_model(model, again)
        x = np.random.default_rng(1).normal(size=(20, 2))
        np.testing.assert_array_equal(model.predict(x), again.predict(x))
        np.testing.assert_array_equal(model.predict(x, node="b"), again.predict(x, node="b"))
        assert repr(model) == repr(again)

    @pytest.mark.parametrize(
        "nodes",
        [
            ("z", "\u00e9t\u00e9 \u2603", ""),
            (2, 0, 10**30),
            (0.1, -2.5, 1e300),
            (("a", 1), ("a", (2, 0.5)), ("b", dt.date(2020, 1, 1))),
            (dt.date(2020, 1, 2), dt.datetime(2020, 1, 2, 3, 4, 5, 6), dt.date(2019, 1, 1)),
            (dt.datetime(2020, 1, 1, tzinfo=dt.UTC), "x", 3),
            (True, "True", 2),
            ("!", "items", "\ud800"),
        ],
        ids=["str", "int", "float", "tuple", "date", "zone", "mixed", "tags"],
    )
    def test_labels(self, nodes, tmp_path):
        again = round_trip(fitted(nodes), tmp_path)
        assert again.nodes_ == nodes
        assert same(again.graph_.nodes, nodes)
        assert again.predict([[0.0, 0.0]], node=nodes[2]).shape == (1,)

    @pytest.mark.parametrize(
        "label", [str, int, lambda i: f"{i}\0", lambda i: 2**70 + i, lambda i: f"s{i}" if i else 0]
    )
    def test_many_labels(self, label, tmp_path):
        nodes = tuple(label(i) for i in range(300))
        model = fitted(nodes, kind=gr.Pool, bandwidth=1.0, ridge=0.1)
        assert round_trip(model, tmp_path).nodes_ == nodes

    def test_labels_of_many_nodes_leave_the_document_small(self, tmp_path):
        nodes = [f"station-{i:06d}" for i in range(1000)]
        fitted(nodes, kind=gr.Pool, bandwidth=1.0, ridge=0.1).save(tmp_path / "model")
        with zipfile.ZipFile(tmp_path / "model") as archive:
            assert archive.getinfo("model.json").file_size < 20_000

    def test_labels_that_no_file_can_hold(self, tmp_path, monkeypatch):
        monkeypatch.setattr(archive, "LARGEST_DOCUMENT", 10_000)
        model = fitted([(i, i) for i in range(300)], kind=gr.Pool, bandwidth=1.0, ridge=0.1)
        with pytest.raises(InputError, match="Use text or integers as labels"):
            model.save(tmp_path / "model")
        assert not (tmp_path / "model").exists()

    def test_coordinates_and_unlabelled_nodes(self, tmp_path):
        points = np.array([[10.0, 179.0], [11.0, -179.0], [12.0, 178.0]])
        graph = gr.Graph.from_coordinates(points, k=1, metric="haversine")
        model = gr.GRULSIF(**PENALTIES, graph_penalty=1.0).fit(([[1.0, 2.0]] * 3,) * 2, graph)
        again = round_trip(model, tmp_path)
        assert_same_model(model, again)
        assert not again.graph_.labelled
        assert again.graph_.metric == "haversine"

    def test_nodes_without_observations(self, tmp_path):
        graph = gr.Graph.from_edges([("a", "b")])
        samples = gr.NodeSamples.from_arrays({"a": [1.0, 2.0], "b": []}, {"a": [3.0], "b": [1.0]})
        model = gr.GRULSIF(**PENALTIES, graph_penalty=1.0).fit(samples, graph)
        assert_same_model(model, round_trip(model, tmp_path))

    def test_polars_stays_polars(self, tmp_path):
        frame = pl.DataFrame({"v": ["a", "a"], "s": ["p", "q"], "x": [0.0, 1.0]})
        samples = gr.NodeSamples.from_frame(frame, "v", "s", "p", "q")
        again = round_trip(gr.Pool(**PENALTIES).fit(samples), tmp_path)
        assert isinstance(again.to_frame(), pl.DataFrame)

    def test_generators_are_left_out(self, tmp_path):
        again = round_trip(fitted(random_state=np.random.default_rng(0)), tmp_path)
        assert again.random_state is None

    def test_a_second_generation_is_the_same(self, model, tmp_path):
        again = round_trip(model, tmp_path)
        assert_same_model(again, round_trip(again, tmp_path))

    def test_scaling_is_applied_after_loading(self, tmp_path):
        again = round_trip(fitted(standardize=True), tmp_path)
        with pytest.raises(ValueError, match="read-only"):
            again.scaling_.mean[0] = 1.0
        with pytest.raises(ValueError, match="read-only"):
            again.graph_.adjacency.data[0] = 1.0

    def test_logarithm_is_taken_after_loading(self, tmp_path):
        rng = np.random.default_rng(0)
        samples = gr.NodeSamples.from_arrays(
            np.exp(rng.normal(size=(3, 12, 2))), np.exp(rng.normal(size=(3, 9, 2)) + 0.5)
        )
        logs = gr.NodeSamples.from_arrays(
            *(
                [np.log(side(v)) * [1, 0] + side(v) * [0, 1] for v in range(3)]
                for side in (samples.reference, samples.target)
            )
        )
        model = gr.RULSIF(random_state=0).fit(samples.standardized(log="x0"))
        again = round_trip(model, tmp_path)
        plain = gr.RULSIF(random_state=0).fit(logs.standardized())
        points = samples.reference(0)
        np.testing.assert_allclose(again.predict(points), plain.predict(logs.reference(0)))
        np.testing.assert_allclose(again.divergence(samples), plain.divergence_)
        with pytest.raises(ValueError, match="read-only"):
            again.scaling_.log[0] = False
        with pytest.raises(InputError, match="zero or negative"):
            again.predict([[0.0, 1.0]])

    def test_refit_after_loading(self, model, tmp_path):
        again = round_trip(model, tmp_path)
        fresh = fitted(bandwidth=[0.5, 1.0], cv=2, standardize=True)
        samples = gr.NodeSamples.from_arrays(
            np.ones((3, 4, 2)), np.zeros((3, 4, 2)), nodes=["a", "b", "c"]
        )
        assert same(again.fit(samples).coef_, fresh.fit(samples).coef_)


class TestSaving:
    def test_no_pickle_inside(self, saved):
        with zipfile.ZipFile(io.BytesIO(saved)) as archive:
            for name in archive.namelist():
                assert not archive.read(name).startswith(b"\x80")
                if name.endswith(".npy"):
                    np.lib.format.read_array(io.BytesIO(archive.read(name)), allow_pickle=False)
            json.loads(archive.read("model.json"))

    def test_replaces_and_leaves_nothing_behind(self, model, tmp_path):
        path = tmp_path / "model"
        path.write_text("old")
        model.save(str(path))
        assert [entry.name for entry in tmp_path.iterdir()] == ["model"]
        assert gr.load(path).nodes_ == model.nodes_

    @pytest.mark.skipif(os.name != "posix", reason="permissions of POSIX")
    def test_usual_permissions(self, model, tmp_path):
        (tmp_path / "plain").touch()
        model.save(tmp_path / "model")
        modes = {stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("plain", "model")}
        assert len(modes) == 1

    def test_failure_keeps_the_old_file(self, tmp_path):
        path = tmp_path / "model"
        path.write_text("old")
        model = fitted((frozenset("a"), "b", "c"))
        with pytest.raises(InputError, match=r"frozenset, which cannot be saved"):
            model.save(path)
        assert path.read_text() == "old"
        assert [entry.name for entry in tmp_path.iterdir()] == ["model"]

    @pytest.mark.parametrize(
        "value",
        [object(), {1: 2}, np.array([["a", None]], dtype=object), np.array(["2020"], "M8[D]"), 1j],
        ids=lambda value: type(value).__name__,
    )
    def test_parameters_that_cannot_be_saved(self, model, value, tmp_path):
        odd = copy.copy(model)
        odd.kernel = value
        with pytest.raises(InputError, match=r"parameters.kernel .*cannot be saved"):
            odd.save(tmp_path / "model")
        assert list(tmp_path.iterdir()) == []

    @pytest.mark.parametrize("path", [None, 3, b"model"])
    def test_what_is_no_path(self, model, path):
        with pytest.raises(InputError, match="is not a path"):
            model.save(path)
        with pytest.raises(InputError, match="is not a path"):
            gr.load(path)

    def test_places_that_cannot_be_written(self, model, tmp_path):
        with pytest.raises(InputError, match="is a folder"):
            model.save(tmp_path)
        with pytest.raises(InputError, match="cannot write to"):
            model.save(tmp_path / "no" / "model")

    def test_classes_that_load_does_not_know(self, tmp_path):
        class Mine(gr.Pool):
            pass

        model = fitted(kind=Mine)
        with pytest.raises(InputError, match="Mine is not an estimator of this library"):
            model.save(tmp_path / "model")


def load_bytes(content, path):
    path.write_bytes(content)
    with warnings.catch_warnings():
        # zipfile warns about repeated names before it refuses them.
        warnings.simplefilter("ignore", UserWarning)
        return gr.load(path)


def archive_of(members, compression=zipfile.ZIP_DEFLATED):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", compression, compresslevel=1) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def members_of(saved):
    with zipfile.ZipFile(io.BytesIO(saved)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


class TestForeignFiles:
    @pytest.mark.parametrize(
        "content",
        [
            b"",
            b"just text",
            b"PK\x03\x04",
            b"PK\x05\x06" + bytes(18),
            pickle.dumps({"format": "graphratio-model"}),
            archive_of({"readme.txt": "hello"}),
            archive_of({"model.json": "not json"}),
            archive_of({"model.json": b"\xff\xfe\x00"}),
            archive_of({"model.json": "[" * 100_000}),
            archive_of({"model.json": "[1, 2]"}),
            archive_of({"model.json": "{}"}),
            archive_of({"model.json": '{"format": "graphratio-model"}'}),
            archive_of({"model.json": '{"format": "other-model", "format_version": 1}'}),
        ],
        ids=range(13),
    )
    def test_are_refused(self, content, tmp_path):
        with pytest.raises(FileFormatError, match="not a graphratio model, or it is damaged"):
            load_bytes(content, tmp_path / "file")

    def test_numpy_archives_are_refused(self, tmp_path):
        np.savez(tmp_path / "arrays.npz", coef=np.eye(2))
        with pytest.raises(FileFormatError, match=r"not compressed by deflate|no model\.json"):
            gr.load(tmp_path / "arrays.npz")

    @pytest.mark.parametrize("name", ["missing", "."])
    def test_no_file(self, name, tmp_path):
        with pytest.raises(InputError, match=r"does not exist|is a directory"):
            gr.load(tmp_path / name)

    def test_files_that_may_not_be_read(self, saved, tmp_path, monkeypatch):
        def denied(*args, **kwargs):
            raise PermissionError(13, "Permission denied")

        (tmp_path / "model").write_bytes(saved)
        monkeypatch.setattr("pathlib.Path.open", denied)
        with pytest.raises(InputError, match=r"cannot be read .*Permission denied"):
            gr.load(tmp_path / "model")


class TestDamagedFiles:
    def test_truncations(self, saved, tmp_path):
        for length in [*range(0, len(saved), 97), len(saved) - 1]:
            with pytest.raises(FileFormatError):
                load_bytes(saved[:length], tmp_path / "model")

    def test_flipped_bytes_are_noticed_or_harmless(self, model, saved, tmp_path):
        # Time stamps and the like carry nothing of the model; all else has a check sum.
        refused = 0
        positions = range(0, len(saved), 61)
        for position in positions:
            damaged = bytearray(saved)
            damaged[position] ^= 0x55
            try:
                again = load_bytes(bytes(damaged), tmp_path / "model")
            except FileFormatError:
                refused += 1
            else:
                assert_same_model(model, again)
        assert refused > 0.7 * len(positions)

    @pytest.mark.parametrize("compression", [zipfile.ZIP_STORED, zipfile.ZIP_BZIP2])
    def test_other_compressions(self, saved, compression, tmp_path):
        with pytest.raises(FileFormatError, match="not compressed by deflate"):
            load_bytes(archive_of(members_of(saved), compression), tmp_path / "model")

    def test_bombs_are_not_unpacked(self, saved, tmp_path):
        members = members_of(saved)
        document = json.loads(members["model.json"])
        size = 1 << 40
        document["arrays"]["fitted.coef_"] = {"shape": [size // 8], "dtype": "<f8"}
        content = archive_of({**members, "model.json": json.dumps(document)})
        # The size that the directory at the end of the file claims for the array.
        entry = content.rindex(b"arrays/fitted.coef_.npy")
        forged = content[: entry - 22] + b"\xfe\xff\xff\xff" + content[entry - 18 :]
        with pytest.raises(FileFormatError, match=r"claims 4294967294 bytes"):
            load_bytes(forged, tmp_path / "model")

    def test_headers_take_no_memory(self, saved, tmp_path):
        """The header of an array asks for 64 GiB; the declaration and the sizes are right."""
        members = members_of(saved)
        name = "arrays/fitted.coef_.npy"
        good = np.load(io.BytesIO(members[name]))
        forged = io.BytesIO()
        header = {"descr": good.dtype.str, "fortran_order": False, "shape": (2**33,)}
        np.lib.format.write_array_header_1_0(forged, header)
        members[name] = forged.getvalue() + good.tobytes()
        tracemalloc.start()
        with pytest.raises(FileFormatError, match=r"coef_ is not as declared"):
            load_bytes(archive_of(members), tmp_path / "model")
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak < 10 * 2**20

    def test_names_inside_are_no_paths(self, saved, tmp_path):
        """Members that name other places, and links, are neither followed nor unpacked."""
        (tmp_path / "inside").mkdir()
        secret = tmp_path / "secret.npy"
        np.save(secret, np.zeros(3))
        for name in ("../secret.npy", str(secret), "arrays/../../secret.npy"):
            members = members_of(saved)
            members[name] = members.pop("arrays/fitted.coef_.npy")
            with pytest.raises(FileFormatError):
                load_bytes(archive_of(members), tmp_path / "inside" / "model")
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, content in members_of(saved).items():
                entry = zipfile.ZipInfo(name)
                entry.compress_type = zipfile.ZIP_DEFLATED
                if name == "arrays/fitted.coef_.npy":
                    entry.external_attr, content = 0o120777 << 16, b"../secret.npy"
                archive.writestr(entry, content)
        with pytest.raises(FileFormatError):
            load_bytes(buffer.getvalue(), tmp_path / "inside" / "model")
        assert sorted(e.name for e in tmp_path.rglob("*")) == ["inside", "model", "secret.npy"]

    @pytest.mark.parametrize("where", ["document", "fitted", "parameters", "array", "member"])
    def test_junk_is_refused_before_it_is_read(self, saved, tmp_path, where):
        members = members_of(saved)
        document = json.loads(members["model.json"])
        junk = "x" * (40 * 2**20)
        if where in ("array", "member"):
            zeros = io.BytesIO()
            np.save(zeros, np.zeros(5 * 2**20))
            members["arrays/junk.npy"] = zeros.getvalue()
            if where == "array":
                document["arrays"]["junk"] = {"shape": [5 * 2**20], "dtype": "<f8"}
        elif where == "document":
            document["junk"] = junk
        else:
            document[where]["junk"] = junk[: 2 * 2**20]
        members["model.json"] = json.dumps(document)
        content = archive_of(members)
        tracemalloc.start()
        with pytest.raises(FileFormatError, match=r"too large|unknown|unused"):
            load_bytes(content, tmp_path / "model")
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak < 20 * 2**20

    def test_every_array_is_needed_and_as_declared(self, saved, tmp_path):
        members = members_of(saved)
        swapped = io.BytesIO()
        np.save(swapped, np.arange(3))
        objects = io.BytesIO()
        np.save(objects, np.array([{}], dtype=object), allow_pickle=True)
        for name in members:
            if name == "model.json":
                continue
            without = {key: value for key, value in members.items() if key != name}
            for content in (
                without,
                *({**members, name: b.getvalue()} for b in (swapped, objects)),
            ):
                with pytest.raises(FileFormatError):
                    load_bytes(archive_of(content), tmp_path / "model")

    def test_another_version_names_the_writer(self, saved, tmp_path):
        members = members_of(saved)
        document = json.loads(members["model.json"])
        document.update(format_version=99, library_version="9.9")
        members["model.json"] = json.dumps(document)
        with pytest.raises(FileFormatError, match=r"format version 99, .* reads 7.*graphratio 9.9"):
            load_bytes(archive_of(members), tmp_path / "model")


def places(value, path=()):
    """Paths to everything inside a JSON document."""
    yield path
    if isinstance(value, dict | list):
        for key, child in value.items() if isinstance(value, dict) else enumerate(value):
            yield from places(child, (*path, key))


def replaced(document, path, value):
    document = copy.deepcopy(document)
    parent = document
    for key in path[:-1]:
        parent = parent[key]
    if value is ...:
        del parent[path[-1]]
    else:
        parent[path[-1]] = value
    return document


HOSTILE = [
    None, True, -1, 0, 3, 1.5, 1e400, "x", "", [], [[]], {}, {"!": "graph"}, {"!": "nonsense"},
    {"!": "list", "items": 3}, {"!": "tuple", "items": [{}]}, {"!": "array", "key": "fitted.coef_"},
    {"!": "array", "key": "nowhere"}, {"!": "array", "key": []}, {"!": "dict", "items": []},
    {"!": "date", "iso": 5}, {"!": []}, {"!": "objects", "items": [1]}, ...,
]  # fmt: skip


def use(model):
    """Everything a user does with a model, which must work once it has been loaded."""
    x = np.zeros((2, model.n_features_in_))
    assert np.isfinite(model.predict(x)).all()
    model.predict(x, node=model.nodes_[0])
    samples = tuple(np.ones((2, len(model.nodes_), 3, model.n_features_in_)))
    model.divergence(samples)
    model.score(samples)
    model.importance_weights(samples)
    model.to_frame()
    repr(model)


@pytest.fixture(scope="module", params=["shared dictionary", "centres of each node"])
def members(request, saved, tmp_path_factory):
    if request.param == "shared dictionary":
        return members_of(saved)
    path = tmp_path_factory.mktemp("centred") / "model"
    fitted(kind=gr.RULSIF, ridge=[0.1, 1.0], n_centers=3).save(path)
    return members_of(path.read_bytes())


class TestHostileDocuments:
    @pytest.mark.parametrize("which", range(len(HOSTILE)))
    @pytest.mark.filterwarnings("ignore::graphratio.exceptions.DataWarning")
    def test_a_wrong_value_anywhere(self, members, which, tmp_path):
        document = json.loads(members["model.json"])
        # Each value at every fourteenth place, so that every place sees some of them.
        wrong = [path for path in places(document) if path][which % 14 :: 14]
        refused = 0
        for path in wrong:
            text = json.dumps(replaced(document, path, HOSTILE[which]))
            try:
                again = load_bytes(archive_of({**members, "model.json": text}), tmp_path / "model")
            except FileFormatError:
                refused += 1
            else:
                use(again)
        assert refused > len(wrong) / 3

    @pytest.mark.parametrize("value", [None, 3, "x", [], [{}]])
    def test_a_wrong_document(self, members, value, tmp_path):
        with pytest.raises(FileFormatError):
            load_bytes(archive_of({**members, "model.json": json.dumps(value)}), tmp_path / "model")

    def test_unknown_estimators(self, members, tmp_path):
        for name in ("Nobody", "load", "__name__", "BaseEstimator", None, ["Pool"]):
            document = {**json.loads(members["model.json"]), "estimator": name}
            with pytest.raises(FileFormatError):
                load_bytes(
                    archive_of({**members, "model.json": json.dumps(document)}), tmp_path / "f"
                )

    @pytest.mark.parametrize("name", ["predict", "__class__", "__dict__", "extra_"])
    def test_only_what_a_fit_leaves_is_set(self, members, name, tmp_path):
        document = json.loads(members["model.json"])
        document["fitted"][name] = "evil"
        with pytest.raises(FileFormatError, match=f"missing or unknown: '{name}'"):
            load_bytes(archive_of({**members, "model.json": json.dumps(document)}), tmp_path / "f")

    @given(st.binary(max_size=200), st.integers(0, 10_000))
    @settings(derandomize=True, deadline=None, max_examples=30)
    def test_random_bytes_over_the_document(self, members, tmp_path_factory, noise, start):
        text = members["model.json"]
        start %= len(text)
        damaged = text[:start] + noise + text[start + len(noise) :]
        path = tmp_path_factory.mktemp("noise") / "model"
        try:
            again = load_bytes(archive_of({**members, "model.json": damaged}), path)
        except FileFormatError:
            return
        use(again)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("GRULSIF", lambda table: table.pop("rank")),
        ("GRULSIF", lambda table: table.pop("ridge")),
        ("GRULSIF", lambda table: table.update(rank=table["rank"][:-1])),
        ("GRULSIF", lambda table: table.update({key: part[:0] for key, part in table.items()})),
        ("RULSIF", lambda table: table.pop("mean_score")),
        ("RULSIF", lambda table: table.update(mean_score=table["mean_score"][:-1])),
    ],
)
def test_scores_that_no_selection_leaves_are_refused(name, change):
    """The notes of a model are made from its scores, also after it was read from a file."""
    rng = np.random.default_rng(0)
    model = getattr(gr, name)(ridge=[0.1, 1.0], random_state=0)
    model.fit((list(rng.normal(size=(2, 9))), list(rng.normal(size=(2, 9)))))
    fitted = {key: getattr(model, key) for key in model._fitted_names}
    _check(model.get_params(), fitted)
    fitted["cv_results_"] = dict(fitted["cv_results_"])
    change(fitted["cv_results_"])
    with pytest.raises(ValueError, match="cv_results_ is not the result of a fit"):
        _check(model.get_params(), fitted)
