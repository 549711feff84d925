"""The public test: what it returns, what it refuses, what it says."""

import dataclasses

import numpy as np
import pytest

import graphratio as gr
from graphratio.exceptions import DataWarning, InputError
from graphratio.testing import TwoSampleResult
from graphratio.testing.statistics import NAMES

PATH = [(i, i + 1) for i in range(9)]
COLUMNS = [
    "node",
    "effect_size",
    "p_value",
    "adjusted_p_value",
    "rejected",
    "detectable_shift",
    "answerable",
    "n_pieces_reference",
    "n_pieces_target",
]


def draw(shift=2.0, seed=0, n_nodes=10, sizes=None):
    """Two samples at every node of a path; the last three nodes changed."""
    rng = np.random.default_rng(seed)
    sizes = sizes or [(30, 30)] * n_nodes
    moved = np.arange(n_nodes) >= n_nodes - 3
    reference = [rng.normal(size=n) for n, _ in sizes]
    target = [rng.normal(size=m) + shift * c for (_, m), c in zip(sizes, moved, strict=True)]
    return reference, target


@pytest.fixture(scope="module")
def graph():
    return gr.Graph.from_edges(PATH)


@pytest.fixture(scope="module")
def result(graph):
    return gr.two_sample_test(draw(), graph, random_state=0)


def test_finds_the_changed_nodes(result):
    assert result.rejected.tolist() == [False] * 7 + [True] * 3
    assert result.evidence[7:].min() > result.evidence[:7].max()
    assert set(result.scores) == set(result.p_values) == set(NAMES)
    assert result.scores["energy"][7:].min() > result.scores["energy"][:7].max()


def test_table(result):
    frame = result.to_frame()
    assert list(frame.columns) == COLUMNS
    assert frame["node"].tolist() == list(range(10))
    assert frame["rejected"].dtype == bool
    assert not frame.isna().any().any()


def test_p_values_are_counts_and_never_zero(result):
    for p_value in (result.p_value, *result.p_values.values()):
        counts = p_value * (result.n_permutations + 1)
        np.testing.assert_allclose(counts, np.round(counts), atol=1e-6)
        assert counts.min() >= 1
        assert (p_value <= 1).all()


def test_global_p_value_of_single_tests_is_that_of_bonferroni(result, graph):
    assert result.global_p_value == pytest.approx(10 * result.p_value.min())
    same = gr.two_sample_test(draw(shift=0.0), graph, n_permutations=199, random_state=0)
    assert same.global_p_value == pytest.approx(min(1, 10 * same.p_value.min()))
    assert same.global_p_value > same.p_value.min()


@pytest.mark.parametrize("correction", ["fwer", "fdr", "fdr-by"])
def test_the_global_p_value_agrees_with_the_rejections(graph, correction):
    for shift in (0.0, 0.5, 0.8):
        found = gr.two_sample_test(
            draw(shift=shift), graph, correction=correction, n_permutations=999, random_state=0
        )
        assert found.global_p_value == found.adjusted_p_value.min()
        assert (found.global_p_value <= found.level) == found.rejected.any()
    # Simes: nodes with small p-values support each other.
    assert (found.global_p_value < 9.9 * found.p_value.min()) == (correction == "fdr")


def test_result_is_frozen(result):
    with pytest.raises(dataclasses.FrozenInstanceError):
        result.level = 0.1


def test_same_seed_same_result(graph):
    first, second = (
        gr.two_sample_test(draw(), graph, random_state=3, n_permutations=499) for _ in range(2)
    )
    np.testing.assert_array_equal(first.p_value, second.p_value)


def test_default_permutations_suffice_for_holm(result):
    assert result.n_permutations + 1 >= 10 * 10 / 0.05


@pytest.mark.parametrize(("correction", "needed"), [("fwer", "199"), ("fdr", "199"), (None, "19")])
def test_too_few_permutations_say_how_many(graph, correction, needed):
    with pytest.raises(InputError, match=f"at least {needed} permutations"):
        gr.two_sample_test(
            draw(), graph, correction=correction, n_permutations=int(needed) - 1, random_state=0
        )
    enough = gr.two_sample_test(
        draw(), graph, correction=correction, n_permutations=int(needed), random_state=0
    )
    assert enough.rejected.any()


def test_any_mixture_of_sizes(graph):
    sizes = [(20, 35), (31, 9), (25, 25), (8, 50), (40, 20), (30, 31), (22, 17)] + [(33, 40)] * 3
    found = gr.two_sample_test(draw(sizes=sizes), graph, random_state=0)
    assert found.rejected[7:].all()
    assert not found.rejected[:7].any()


def test_rows_follow_the_labels_of_the_graph(graph):
    reference, target = draw()
    named = gr.Graph.from_edges([(f"n{i}", f"n{j}") for i, j in PATH][::-1])
    given = (
        {f"n{i}": x for i, x in enumerate(reference)},
        {f"n{i}": x for i, x in enumerate(target)},
    )
    found = gr.two_sample_test(given, named, random_state=0)
    assert found.to_frame()["node"].tolist() == list(named.nodes)
    assert {found.nodes[v] for v in np.flatnonzero(found.rejected)} == {"n7", "n8", "n9"}


def test_nodes_without_a_sample_keep_their_row(graph):
    reference, target = draw()
    target[2] = np.empty(0)
    found = gr.two_sample_test((reference, target), graph, random_state=0)
    assert found.p_value[2] == found.adjusted_p_value[2] == 1.0
    assert np.flatnonzero(~found.tested).tolist() == [2]
    assert any("cannot be tested" in note and "2" in note for note in found.notes)
    assert found.rejected[7:].all()


def test_constant_node_is_not_rejected(graph):
    reference, target = draw()
    reference[1], target[1] = np.ones(30), np.ones(30)
    assert gr.two_sample_test((reference, target), graph, random_state=0).p_value[1] == 1.0


def test_single_node_and_no_graph():
    reference, target = draw()
    alone = gr.two_sample_test((reference[9], target[9]), random_state=0)
    assert alone.rejected.all()
    apart = gr.two_sample_test((reference, target), random_state=0)
    assert apart.rejected.tolist() == [False] * 7 + [True] * 3
    assert any("no edges" in note for note in apart.notes)


def test_tiny_samples_are_noted(graph):
    reference, target = draw()
    reference[9], target[9] = reference[9][:2], target[9][:2]
    found = gr.two_sample_test((reference, target), graph, random_state=0)
    assert np.flatnonzero(~found.answerable_nodes).tolist() == [9]
    assert found.answerable
    assert "1 cannot be judged" in found.summary
    assert any("cannot say whether these nodes changed: 9" in note for note in found.notes)
    assert found.p_value[9] >= 1 / 6 - 0.02


def test_global_null(graph):
    changed = gr.two_sample_test(draw(), graph, null="global", random_state=0)
    assert changed.global_p_value == changed.adjusted_p_value.min() == 1 / 1000
    same = gr.two_sample_test(draw(shift=0.0), graph, null="global", random_state=0)
    assert same.global_p_value > 0.05
    assert "exploratory" in repr(same)


@pytest.mark.parametrize("correction", ["fdr", "fdr-by", None])
def test_other_corrections(graph, correction):
    found = gr.two_sample_test(draw(), graph, correction=correction, random_state=0)
    assert found.rejected[7:].all()
    assert (found.adjusted_p_value >= found.p_value).all()


def test_settings_come_from_the_estimator(graph):
    model = gr.GRULSIF(bandwidth=0.8, graph_penalty=0.1, ridge=0.01)
    found = gr.two_sample_test(draw(), graph, model, random_state=0)
    assert set(found.penalties) == {(0.8, 0.1, 0.01)}
    assert found.rejected[7:].all()
    chosen = gr.two_sample_test(
        draw(), graph, gr.GRULSIF(bandwidth=[0.5, 1.0], graph_penalty=0.1), random_state=0
    )
    assert {p[0] for p in chosen.penalties} <= {0.5, 1.0}


def test_pool_tests_every_node_by_itself(graph):
    found = gr.two_sample_test(draw(), graph, gr.Pool(bandwidth=0.8), random_state=0)
    assert {p[:2] for p in found.penalties} == {(0.8, 0.0)}
    assert not found.halves
    assert found.rejected.tolist() == [False] * 7 + [True] * 3


def test_nodes_are_ordered_by_p_value_and_then_by_effect(result):
    assert result.order.tolist()[:3] == sorted(
        [7, 8, 9], key=lambda v: (result.p_value[v], -result.effect_size[v])
    )
    assert (np.diff(result.p_value[result.order]) >= 0).all()
    tied = dataclasses.replace(result, p_value=np.full(10, 0.5), tested=np.arange(10) != 8)
    effects = tied.effect_size[tied.order]
    assert tied.order.size == 9
    assert 8 not in tied.order
    assert (np.diff(effects) <= 0).all()


def test_what_would_have_been_found(result, graph):
    """With more rejections Holm's threshold for a further node is larger."""
    assert result.threshold == pytest.approx(0.05 / 7)
    shifts = result.detectable_shift
    assert np.isfinite(shifts).all()
    quiet = gr.two_sample_test(draw(shift=0.0), graph, n_permutations=399, random_state=0)
    assert quiet.threshold == pytest.approx(0.05 / 10)
    assert (quiet.detectable_shift > shifts).all()
    for correction, threshold in (("fdr", 0.05 * 4 / 10), (None, 0.05)):
        other = dataclasses.replace(result, correction=correction)
        assert other.threshold == pytest.approx(threshold)


def test_repr_and_html(result):
    assert "3 of 10 nodes changed" in repr(result)
    html = result._repr_html_()
    assert "adjusted" in html
    assert "independent" in html
    hostile = dataclasses.replace(result, nodes=("<b>", *result.nodes[1:]), rejected=~result.tested)
    assert "<b>" not in hostile._repr_html_()


def test_regions(result):
    (region,) = result.regions()
    assert region.nodes == (7, 8, 9)
    assert region.size == region.changed_at_least == 3
    assert region.largest_effect == result.effect_size[7:].max()
    assert region.mean_effect == pytest.approx(result.effect_size[7:].mean())
    assert region.smallest_p_value == result.p_value.min()
    with pytest.raises(InputError, match="dependence"):
        result.regions("none")


def test_plot(result):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    ax = result.plot(n_labels=3)
    assert ax.get_title(loc="left") == "3 of 10 nodes changed"
    # Colours are effects, and those that changed are marked.
    kept, changed = (c for c in ax.collections if c.get_array() is not None)
    np.testing.assert_array_equal(kept.get_array(), result.effect_size[~result.rejected])
    np.testing.assert_array_equal(changed.get_array(), result.effect_size[result.rejected])
    assert changed.get_linewidths()[0] > 2 * kept.get_linewidths()[0]
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    assert labels == ["no change found", "changed, at level 0.05"]
    # The global null does not say of a node that it changed.
    ax = dataclasses.replace(result, null="global").plot()
    assert ax.get_title(loc="left") == "3 of 10 nodes stand out (exploratory)"
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    assert labels == ["does not stand out", "stands out (exploratory), at level 0.05"]
    matplotlib.pyplot.close("all")


def test_polars_in_polars_out():
    polars = pytest.importorskip("polars")
    rng = np.random.default_rng(0)
    table = polars.DataFrame(
        {"v": ["a", "b"] * 40, "s": (["r"] * 2 + ["t"] * 2) * 20, "x": rng.normal(size=80)}
    )
    samples = gr.NodeSamples.from_frame(table, "v", "s", "r", "t")
    frame = gr.two_sample_test(
        samples, gr.Graph.from_edges([("a", "b")]), random_state=0
    ).to_frame()
    assert isinstance(frame, polars.DataFrame)
    assert frame.columns == COLUMNS


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"null": "nodes"}, "null='nodes'"),
        ({"correction": "holm"}, "correction='holm'"),
        ({"level": 1.5}, "level=1.5"),
        ({"n_permutations": 0}, "n_permutations=0"),
        ({"estimator": "pool"}, "estimator='pool' is not an estimator of this library"),
    ],
)
def test_bad_input(graph, options, message):
    with pytest.raises(InputError, match=message):
        gr.two_sample_test(draw(), graph, **options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"time": (range(30), range(30))}, "30 times are in the"),
    ],
)
def test_times_and_blocks_that_do_not_fit(graph, options, message):
    samples = gr.NodeSamples.from_arrays(*draw(), **options)
    with pytest.raises(InputError, match=message):
        gr.two_sample_test(samples, graph, null="global")


def correlated(rho, seed=0):
    rng = np.random.default_rng(seed)
    common = rng.normal(size=60)
    x = np.sqrt(rho) * common + np.sqrt(1 - rho) * rng.normal(size=(10, 60))
    return list(x[:, :30]), list(x[:, 30:])


def test_correlated_nodes_are_allowed_for(graph):
    times = (range(30), range(30, 60))
    for time in (None, times):
        samples = gr.NodeSamples.from_arrays(*correlated(0.6), time=time)
        found = gr.two_sample_test(samples, graph, n_permutations=399, random_state=0)
        assert found.correlation.is_high
        assert found.correlation.value == pytest.approx(0.6, abs=0.15)
        assert found.correlation.by_stamp == (time is not None)
        assert found.cross_fitted
        assert found.joint
        what = "positions in the samples" if time is None else "times"
        assert any(f"learned and tested at different {what}" in note for note in found.notes)
        assert any("positions were used as times" in note for note in found.notes) == (not time)
        assert any("nodes may depend on each other" in text for text in found.assumptions)
        assert "predicted" in found.p_values
    apart = gr.two_sample_test(samples, gr.Graph.empty(10), n_permutations=399, random_state=0)
    assert any("neighbours were not used" in note for note in apart.notes)


def test_correlated_nodes_raise_a_warning_where_the_estimator_must_be_refitted(graph):
    model = gr.RULSIF(bandwidth=1.0, ridge=0.1)
    with pytest.warns(DataWarning, match="move together"):
        found = gr.two_sample_test(
            correlated(0.6), graph, model, n_permutations=199, random_state=0
        )
    assert found.halves
    assert not found.cross_fitted
    (note,) = [note for note in found.notes if "move together" in note]
    for remedy in ("leave out estimator", "GRULSIF or Pool", 'null="global"', "without edges"):
        assert remedy in note


def test_times_that_do_not_match_show_no_correlation(graph):
    """What looked correlated by position is not."""
    apart = (
        [np.arange(30) + 100 * v for v in range(10)],
        [np.arange(50, 80) + 100 * v for v in range(10)],
    )
    timed = gr.NodeSamples.from_arrays(*correlated(0.6), time=apart)
    found = gr.two_sample_test(timed, graph, n_permutations=199)
    assert found.correlation is None
    assert any("could not be checked" in note for note in found.notes)


def test_independent_nodes_raise_none(graph):
    assert isinstance(gr.two_sample_test(draw(), graph, n_permutations=199), TwoSampleResult)


def test_time_is_read_by_label(graph):
    reference, target = draw()
    times = {v: np.arange(30) for v in range(10)}, {v: np.arange(30, 60) for v in range(10)}
    samples = gr.NodeSamples.from_arrays(reference, target, time=times, block=3)
    found = gr.two_sample_test(samples, graph, null="global", random_state=0)
    assert found.global_p_value < 0.01
    assert (found.joint, found.blocks.length) == (True, 3)
    assert "blocks of 3 times" in found.assumptions[0]


def test_inputs_are_not_modified(graph):
    reference, target = draw()
    before = [x.copy() for x in reference + target]
    samples = gr.NodeSamples.from_arrays(reference, target, block=2)
    gr.two_sample_test(samples, graph, n_permutations=199)
    for x, y in zip(before, reference + target, strict=True):
        np.testing.assert_array_equal(x, y)
