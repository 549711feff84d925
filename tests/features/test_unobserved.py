"""Dictionaries without observations: every centre is a mean of enough of them."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import graphratio as gr
from graphratio.data.scaling import Scaling
from graphratio.exceptions import InputError
from graphratio.features.unobserved import group_centres, quasi_random


def literal_groups(rows, group_size):
    """Cut in two at the median of the widest feature, node by node and group by group."""
    if len(rows) < 2 * group_size:
        return [rows] if len(rows) >= group_size else []
    widest = np.square(rows - rows.mean(axis=0)).sum(axis=0).argmax()
    rows = rows[np.argsort(rows[:, widest], kind="stable")]
    middle = len(rows) // 2
    return literal_groups(rows[:middle], group_size) + literal_groups(rows[middle:], group_size)


@pytest.fixture
def samples():
    rng = np.random.default_rng(0)
    sizes = [(3, 8), (41, 30), (0, 6), (2, 2), (25, 0), (7, 7)]
    return gr.NodeSamples.from_arrays(
        [rng.normal(v, 1, size=(n, 3)) for v, (n, _) in enumerate(sizes)],
        [rng.normal(v, 2, size=(n, 3)) for v, (_, n) in enumerate(sizes)],
    )


@pytest.mark.parametrize("group_size", [5, 6, 12])
@pytest.mark.parametrize("rows", [4, 2**17])
def test_centres_are_means_of_groups_of_a_node(samples, group_size, rows, monkeypatch):
    monkeypatch.setattr("graphratio.features.unobserved._ROWS", rows)
    found = group_centres(samples, group_size)
    for v in range(samples.n_nodes):
        own = samples.values[samples.node_index == v]
        groups = literal_groups(own, group_size)
        assert all(group_size <= len(group) < 2 * group_size for group in groups)
        means = [group.mean(axis=0) for group in groups]
        assert_allclose(
            found.values[found.node_index == v].reshape(-1, 3), np.reshape(means, (-1, 3))
        )
    assert found.n_observations == sum(found.n_reference)


def test_small_groups_are_refused(samples):
    data = samples.subset([0, 5])
    with pytest.raises(InputError, match="group_size=4 is not a whole number of at least 5"):
        gr.Pool(dictionary="centres", group_size=4).fit(data)
    with pytest.raises(InputError, match=r"no node has 40 observations.*smaller group_size"):
        gr.Pool(dictionary="centres", group_size=40).fit(data)


def floats_in(path):
    with np.load(path) as stored:
        arrays = [stored[name] for name in stored.files if name != "model.json"]
    return np.concatenate([array.ravel() for array in arrays if array.dtype.kind == "f"])


@pytest.mark.parametrize("options", [{"dictionary": "centres"}, {"dictionary": "quasi-random"}])
def test_no_atom_and_no_file_holds_an_observation(options, tmp_path):
    rng = np.random.default_rng(3)
    data = gr.NodeSamples.from_arrays(rng.normal(size=(4, 40, 2)), rng.normal(size=(4, 40, 2)) + 1)
    graph = gr.Graph.from_edges([(0, 1), (1, 2), (2, 3)])
    if options["dictionary"] == "quasi-random":
        options = {**options, "bounds": [(-3, 4), (-3, 4)], "max_atoms": 30}
    model = gr.GraphRatio(**options, n_profiles=[1], ridge=0.01, graph_penalty=0.1, random_state=0)
    model.fit(data, graph)
    path = tmp_path / "model"
    model.save(path)
    again = gr.load(path)
    assert again.dictionary == options["dictionary"]
    assert again.group_size == 10
    assert_array_equal(again.predict(data.values[:5]), model.predict(data.values[:5]))
    observed = np.unique(data.values)
    assert floats_in(path).size > 100
    assert not np.isin(floats_in(path), observed).any()
    # The check finds observations where there are some.
    plain = gr.GraphRatio(n_profiles=[1], ridge=0.01, graph_penalty=0.1, random_state=0)
    plain.fit(data, graph).save(path)
    assert np.isin(floats_in(path), observed).any()


def test_quasi_random_points_fill_the_bounds():
    names = ("height", "weight")
    points = quasi_random([(0, 10), (-1, 1)], names, None, 200, np.random.default_rng(0))
    assert points.shape == (200, 2)
    assert points.min(axis=0) == pytest.approx([0, -1], abs=0.1)
    assert points.max(axis=0) == pytest.approx([10, 1], abs=0.1)
    # In each of 4 x 4 cells about as many: a random draw has cells with fewer than 6.
    cells = np.histogram2d(points[:, 0], points[:, 1], bins=4, range=[(0, 10), (-1, 1)])[0]
    assert cells.min() >= 9
    same = quasi_random([(0, 10), (-1, 1)], names, None, 200, np.random.default_rng(0))
    assert_array_equal(points, same)


def test_bounds_are_in_the_units_of_the_data():
    scaling = Scaling(np.array([1.0, 0.0]), np.array([2.0, 5.0]), np.array([False, True]))
    points = quasi_random([(1, 5), (1, np.e)], ("a", "b"), scaling, 64, np.random.default_rng(0))
    assert points[:, 0].min() >= 0
    assert 1.8 < points[:, 0].max() <= 2
    assert points[:, 1].min() >= 0
    assert 0.18 < points[:, 1].max() <= 0.2


@pytest.mark.parametrize(
    ("bounds", "message"),
    [
        (None, r"needs bounds.*one pair per feature: 'a', 'b'"),
        ([(0, 1)], r"shape \(1, 2\), but the data have 2 features"),
        ([(0, 1), (2, 2)], "the bounds of 'b' are 2 and 2"),
        ([(0, np.inf), (0, 1)], "the bounds of 'a' are 0 and inf"),
    ],
)
def test_bounds_are_checked(bounds, message):
    with pytest.raises(InputError, match=message):
        quasi_random(bounds, ("a", "b"), None, 10, np.random.default_rng(0))


def test_bounds_that_miss_the_data_are_refused():
    """Otherwise all kernels are zero, and the answer would be that nothing changed."""
    rng = np.random.default_rng(40400)
    samples = gr.NodeSamples.from_arrays(
        [rng.normal(100, 1, size=(30, 2))], [rng.normal(103, 1, size=(30, 2))]
    )
    missed = gr.Pool(dictionary="quasi-random", bounds=[(-1, 1), (0, 200)], random_state=0)
    for data in (samples, samples.standardized()):
        with pytest.raises(InputError, match=r"no observation lies inside.*'x0' 0%, 'x1' 100%"):
            missed.fit(data)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"bounds": [(0, 1)] * 3}, "bounds does nothing with dictionary='coherence'"),
        ({"group_size": 20}, "group_size does nothing with dictionary='coherence'"),
        ({"dictionary": "centres", "bounds": [(0, 1)] * 3}, "bounds does nothing"),
        ({"dictionary": np.zeros((1, 3)), "group_size": 20}, "dictionary=points"),
    ],
)
def test_options_of_another_dictionary_are_refused(samples, options, message):
    """Nobody should believe that a file is free of observations because of them."""
    with pytest.raises(InputError, match=message):
        gr.GRULSIF(**options).fit(samples.subset([0, 5]))


def test_categories_have_no_bounds():
    rng = np.random.default_rng(0)
    table = {
        "node": np.repeat(["a", "b"], 40),
        "sample": np.tile(["before", "after"], 40),
        "level": rng.normal(size=80),
        "sky": rng.choice(["clear", "rain"], size=80),
    }
    samples = gr.NodeSamples.from_frame(
        pd.DataFrame(table),
        node="node",
        sample="sample",
        reference="before",
        target="after",
        categorical="sky",
    )
    with pytest.raises(InputError, match=r"no categories, but the data have: 'sky'.*centres"):
        gr.Pool(dictionary="quasi-random", bounds=[(0, 1)] * 3).fit(samples)
    assert gr.Pool(dictionary="centres", ridge=0.1, bandwidth=1.0).fit(samples).n_atoms_ > 2


def test_detectors_take_centres_and_refuse_bounds():
    panel = np.random.default_rng(0).normal(size=(120, 3, 1))
    detector = gr.GraphChangePointDetector(
        10, estimator=gr.GRULSIF(dictionary="centres"), random_state=0
    )
    assert len(detector.fit(panel).dictionary_) > 3
    detector.set_params(estimator=gr.GRULSIF(dictionary="quasi-random", bounds=[(0, 1)]))
    with pytest.raises(InputError, match="scores without units"):
        detector.fit(panel)
