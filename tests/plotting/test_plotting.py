"""Pictures: what they show, not how they look."""

import sys

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot as plt
from numpy.testing import assert_allclose
from sklearn.exceptions import NotFittedError

import graphratio as gr
from graphratio.exceptions import InputError, MissingDependencyError
from graphratio.plotting.columns import axis_of, in_columns, typical_values
from graphratio.plotting.layout import draw, node_layout

mpl.use("Agg")


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def scenario():
    return gr.datasets.make_scenario("Ia", n_nodes=20, n=40, random_state=0)


@pytest.fixture(scope="module")
def uneven():
    """A ring of nodes with levels of their own; five changed by two of their spreads."""
    rng = np.random.default_rng(0)
    values = rng.normal(size=(2, 12, 50, 2))
    values[1, :5, :, 0] += 2.0
    level = 100 * rng.normal(size=(12, 1, 2))
    samples = gr.NodeSamples.from_arrays(*(list(level + 3 * side) for side in values))
    graph = gr.Graph.from_edges([(v, (v + 1) % 12) for v in range(12)])
    model = gr.GraphRatio(n_profiles=1, random_state=0)
    return samples, model.fit(samples.standardized(by_node=True), graph)


@pytest.fixture(scope="module")
def model(scenario):
    return gr.GRULSIF(random_state=0).fit(scenario.samples, scenario.graph)


def points_of(ax):
    """Drawn nodes: positions and values, of filled ones."""
    filled = next(c for c in ax.collections if c.get_array() is not None)
    return np.asarray(filled.get_offsets()), np.asarray(filled.get_array()), filled


def texts_of(ax):
    return [text.get_text() for text in ax.texts if text.get_text()]


class TestGraph:
    def test_nodes_are_coloured_by_divergence_from_zero(self, model):
        ax = gr.plot_graph(model)
        where, values, drawn = points_of(ax)
        np.testing.assert_allclose(values, np.sort(model.divergence_))
        np.testing.assert_allclose(
            where, node_layout(model.graph_).positions[np.argsort(model.divergence_, kind="stable")]
        )
        assert drawn.get_clim() == (0.0, model.divergence_.max())

    def test_noise_does_not_fill_the_scale(self, scenario):
        same = (scenario.samples.reference(0), scenario.samples.reference(0))
        unchanged = gr.GRULSIF(bandwidth=1.0, graph_penalty=1.0, ridge=0.1).fit(same)
        _, _, drawn = points_of(gr.plot_graph(unchanged))
        assert drawn.get_clim() == (0.0, 0.1)

    def test_given_axes_are_used_and_edges_are_optional(self, model):
        _, ax = plt.subplots()
        assert gr.plot_graph(model, ax, edges=False) is ax
        assert len(ax.collections) == 1
        assert len(gr.plot_graph(model).collections) == 2

    def test_the_most_changed_nodes_are_named(self, model):
        names = {node: f"place {node}" for node in model.nodes_}
        top = f"place {model.nodes_[int(model.divergence_.argmax())]}"
        assert texts_of(gr.plot_graph(model, names=names, n_labels=1)) == [top]
        assert texts_of(gr.plot_graph(model, n_labels=0)) == []

    def test_names_do_not_cover_each_other_or_leave_the_picture(self, model):
        names = {node: f"a rather long name {node}" for node in model.nodes_}
        ax = gr.plot_graph(model, names=names, n_labels=20)
        ax.figure.draw_without_rendering()
        boxes = [text.get_window_extent() for text in ax.texts if text.get_text()]
        frame = ax.get_window_extent()
        assert len(boxes) > 3
        for i, box in enumerate(boxes):
            assert not any(box.overlaps(other) for other in boxes[:i])
            assert frame.x0 <= box.x0 < box.x1 <= frame.x1

    def test_nodes_without_a_divergence_are_hollow(self):
        samples = gr.NodeSamples.from_arrays(
            {"a": np.arange(9.0), "b": np.arange(9.0)}, {"a": np.arange(9.0)}
        )
        borrowed = gr.GRULSIF(bandwidth=1.0, graph_penalty=2.0, ridge=0.2)
        ax = gr.plot_graph(borrowed.fit(samples, gr.Graph.from_edges([("a", "b")])))
        assert len(points_of(ax)[0]) == 1
        assert ax.get_legend().get_texts()[0].get_text() == "a sample is missing"

    def test_maps_have_land_behind_the_nodes(self, scenario):
        rng = np.random.default_rng(0)
        places = np.column_stack([rng.uniform(35, 50, 20), rng.uniform(-5, 20, 20)])
        graph = gr.Graph.from_coordinates(places, k=3, metric="haversine")
        fixed = gr.GRULSIF(bandwidth=1.0, graph_penalty=20.0, ridge=2.0)
        ax = gr.plot_graph(fixed.fit(scenario.samples, graph))
        land = [c for c in ax.collections if type(c).__name__ == "PolyCollection"]
        # Paris is on land, and the Bay of Biscay is not.
        inside = [
            any(path.contains_point(point) for c in land for path in c.get_paths())
            for point in ((2.35, 48.86), (-4.0, 45.5))
        ]
        assert inside == [True, False]
        assert ax.get_aspect() == pytest.approx(1 / np.cos(np.radians(places[:, 0].mean())))
        assert ax.get_xticks().size == 0

    def test_an_unfitted_model_is_an_error(self):
        with pytest.raises(NotFittedError):
            gr.plot_graph(gr.GRULSIF())


class TestNode:
    @pytest.mark.parametrize("standardised", [False, True])
    def test_ratio_and_histograms_are_those_of_the_node(self, scenario, standardised):
        scaled = scenario.samples.standardized()
        fixed = gr.GRULSIF(bandwidth=0.5, graph_penalty=0.2, ridge=0.02)
        fixed.fit(scaled, scenario.graph)
        ax = gr.plot_node(fixed, scaled if standardised else scenario.samples, node=19)
        upper = ax.figure.axes[-1]
        line = next(line for line in upper.lines if line.get_label() == "19")
        x, ratio = line.get_data()
        np.testing.assert_allclose(ratio, fixed.predict(x, node=19))
        both = np.concatenate([scenario.samples.reference(19), scenario.samples.target(19)])
        np.testing.assert_allclose(ax.get_xlim(), (both.min(), both.max()))
        assert [text.get_text() for text in ax.get_legend().get_texts()] == [
            "reference (n = 40)",
            "target (n = 40)",
        ]
        heights = [patch.get_height() for patch in ax.patches if hasattr(patch, "get_height")]
        assert sum(heights) == pytest.approx(200)

    def test_one_is_marked_and_neighbours_are_behind(self, model, scenario):
        upper = gr.plot_node(model, scenario.samples, 0).figure.axes[-1]
        labels = [line.get_label() for line in upper.lines]
        neighbours = int(model.graph_.n_neighbors[0])
        assert labels[0] == f"its {neighbours} neighbours"
        assert len(labels) == neighbours + 3
        one = next(line for line in upper.lines if line.get_label() == "1 = no change")
        assert set(one.get_ydata()) == {1.0}
        assert upper.get_ylim()[0] == 0

    def test_other_features_are_at_the_medians(self):
        several = gr.datasets.make_scenario("IIa", n_nodes=10, n=30, random_state=0)
        fixed = gr.Pool(bandwidth=1.0, ridge=1.0).fit(several.samples, several.graph)
        ax = gr.plot_node(fixed, several.samples, 3, feature="x1")
        both = np.concatenate([several.samples.reference(3), several.samples.target(3)])
        x, ratio = ax.figure.axes[-1].lines[-1].get_data()
        points = np.tile(np.median(both, axis=0), (len(x), 1))
        points[:, 1] = x
        np.testing.assert_allclose(ratio, fixed.predict(points, node=3))
        assert "x1 (other features" in ax.get_xlabel()
        again = gr.plot_node(fixed, several.samples, 3, feature=1)
        np.testing.assert_array_equal(again.figure.axes[-1].lines[-1].get_ydata(), ratio)

    def test_logarithmic_features_have_a_logarithmic_axis(self):
        rng = np.random.default_rng(0)
        samples = gr.NodeSamples.from_arrays(
            rng.lognormal(size=(2, 50, 1)), rng.lognormal(1, size=(2, 50, 1)), feature_names=["pm"]
        )
        scaled = samples.standardized(log=["pm"])
        fitted = gr.Pool(bandwidth=1.0, ridge=0.2).fit(scaled)
        for given in (samples, scaled):
            ax = gr.plot_node(fitted, given, 1)
            assert ax.get_xscale() == "log"
            both = np.concatenate([samples.reference(1), samples.target(1)])
            np.testing.assert_allclose(ax.get_xlim(), (both.min(), both.max()))

    def test_axes_with_and_without_a_grid(self, model, scenario):
        figure, (left, right) = plt.subplots(1, 2)
        assert gr.plot_node(model, scenario.samples, 0, ax=left) is left
        assert left.get_position().x1 < right.get_position().x0
        free = figure.add_axes((0.1, 0.1, 0.5, 0.8))
        gr.plot_node(model, scenario.samples, 0, ax=free)
        upper = figure.axes[-1].get_position()
        assert free.get_position().y1 < upper.y0
        assert upper.y1 == pytest.approx(0.9)

    def test_a_node_with_one_sample_or_none(self):
        samples = gr.NodeSamples.from_arrays(
            {"a": np.arange(9.0), "b": np.arange(9.0), "c": []}, {"a": np.arange(9.0)}
        )
        graph = gr.Graph.from_edges([("a", "b"), ("b", "c")])
        fitted = gr.GRULSIF(bandwidth=1.0, graph_penalty=3.0, ridge=0.3).fit(samples, graph)
        ax = gr.plot_node(fitted, samples, "b")
        assert len(ax.get_legend().get_texts()) == 1
        assert "undefined" in ax.figure.axes[-1].get_title(loc="left")
        with pytest.raises(InputError, match="'c' has no observations"):
            gr.plot_node(fitted, samples, "c")

    def test_errors_name_what_is_wrong(self, model, scenario):
        with pytest.raises(InputError, match="no node 99"):
            gr.plot_node(model, scenario.samples, 99)
        with pytest.raises(InputError, match=r"no feature 'x9'.*'x0'"):
            gr.plot_node(model, scenario.samples, 0, feature="x9")
        with pytest.raises(InputError, match="no feature 3"):
            gr.plot_node(model, scenario.samples, 0, feature=3)
        several = gr.datasets.make_scenario("IIa", n_nodes=20, n=10, random_state=0)
        with pytest.raises(InputError, match="3 features"):
            gr.plot_node(model, several.samples, 0)


class TestSelection:
    def test_the_surface_holds_the_scores_and_frames_the_choice(self, model):
        ax = gr.plot_selection(model)
        results = model.cv_results_
        here = results["bandwidth"] == model.bandwidth_
        penalties = np.unique(results["graph_penalty"])
        gammas = np.unique(results["gamma"])
        written = {text.get_position(): text.get_text() for text in ax.texts}
        assert len(written) == here.sum()
        for k in np.flatnonzero(here):
            cell = (
                int(np.searchsorted(penalties, results["graph_penalty"][k])),
                int(np.searchsorted(gammas, results["gamma"][k])),
            )
            assert written[cell] == f"{results['mean_score'][k]:.4g}"
        chosen = (
            np.searchsorted(penalties, model.graph_penalty_) - 0.5,
            np.argmin(np.abs(gammas / model.paper_penalties_["gamma"] - 1)) - 0.5,
        )
        assert ax.patches[0].get_xy() == chosen
        assert f"bandwidth {model.bandwidth_:.3g}" in ax.get_title(loc="left")

    def test_two_that_vary(self, scenario):
        pool = gr.Pool(random_state=0).fit(scenario.samples, scenario.graph)
        ax = gr.plot_selection(pool)
        assert (ax.get_xlabel(), ax.get_ylabel()) == ("ridge", "bandwidth")

    def test_one_that_varies_is_a_line(self, scenario):
        pool = gr.Pool(random_state=0, bandwidth=1.0).fit(scenario.samples, scenario.graph)
        ax = gr.plot_selection(pool)
        chosen = next(line for line in ax.lines if line.get_label() == "chosen")
        assert chosen.get_xdata() == [pool.ridge_]
        mean = next(line for line in ax.lines if line.get_label() == "mean")
        np.testing.assert_allclose(mean.get_ydata(), pool.cv_results_["mean_score"])

    @pytest.mark.parametrize("bandwidth", [None, [0.5, 1.0]])
    def test_choices_of_single_nodes_are_counted(self, scenario, bandwidth):
        alone = gr.RULSIF(random_state=0, bandwidth=bandwidth).fit(scenario.samples)
        ax = gr.plot_selection(alone)
        assert sum(int(text.get_text()) for text in ax.texts) == 20
        counts = np.asarray(ax.images[0].get_array())
        for j, penalty in enumerate(np.unique(alone.cv_results_["ridge"])):
            assert counts[:, j].sum() == (alone.ridge_ == penalty).sum()
        ticks = [text.get_text() for text in ax.get_yticklabels()]
        assert ticks == (["0.5", "1"] if bandwidth else ["0.6", "0.8", "1", "1.2", "1.4"])

    def test_nothing_selected_is_an_error(self, scenario):
        fixed = gr.Pool(bandwidth=1.0, ridge=2.0).fit(scenario.samples)
        with pytest.raises(InputError, match="nothing was selected"):
            gr.plot_selection(fixed)


class TestLayout:
    def test_the_seam_of_the_map_is_in_the_widest_gap(self):
        longitude = [-170.0, 175.0, -150.0, 160.0]
        graph = gr.Graph.from_coordinates(
            [(0.0, value) for value in longitude], k=1, metric="haversine"
        )
        x = node_layout(graph).positions[:, 0]
        assert np.ptp(x) == 50
        np.testing.assert_allclose(x % 360, np.array(longitude) % 360)

    def test_edges_across_the_seam_are_not_drawn(self):
        places = [(0.0, value) for value in np.arange(-180.0, 180.0, 40)]
        graph = gr.Graph.from_coordinates(places, k=2, metric="haversine")
        drawn = node_layout(graph).edges
        assert len(drawn) == graph.n_edges - 1 == 8

    def test_coordinates_in_the_plane_are_kept(self):
        places = np.random.default_rng(0).normal(size=(9, 2))
        np.testing.assert_array_equal(
            node_layout(gr.Graph.from_coordinates(places, k=2)).positions, places
        )

    @pytest.mark.parametrize(
        "edges", [[(i, (i + 1) % 12) for i in range(12)], [(0, i) for i in range(1, 12)], [(0, 1)]]
    )
    def test_edges_decide_without_coordinates(self, edges):
        graph = gr.Graph.from_edges(edges, nodes=range(14))
        where = node_layout(graph).positions
        np.testing.assert_array_equal(
            where, node_layout(gr.Graph.from_edges(edges, nodes=range(14))).positions
        )
        gaps = np.linalg.norm(where[:, None] - where, axis=2) + np.eye(14)
        assert np.isfinite(where).all()
        assert gaps.min() > 0.2
        # Nodes without edges stand in a block of their own, beside or below the rest.
        alone = list(graph.isolated)
        joined = [node for node in graph.nodes if node not in alone]
        beside = where[alone, 0].min() > where[joined, 0].max()
        below = where[alone, 1].max() < where[joined, 1].min()
        assert beside or below

    def test_neighbours_are_nearer_than_others(self, scenario):
        where = node_layout(scenario.graph).positions
        gaps = np.linalg.norm(where[:, None] - where, axis=2)
        joined = scenario.graph.adjacency.toarray() > 0
        others = ~joined & ~np.eye(len(where), dtype=bool)
        assert gaps[joined].mean() < 0.6 * gaps[others].mean()

    def test_no_edges_is_a_grid(self):
        where = node_layout(gr.Graph.empty(10)).positions
        assert len({tuple(point) for point in where}) == 10


@pytest.fixture(scope="module")
def kinds():
    scenario = gr.datasets.make_scenario("Ia", n_nodes=60, n=50, random_state=1)
    return scenario, gr.GraphRatio(random_state=0).fit(scenario.samples, scenario.graph)


def legend_of(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


class TestProfiles:
    def test_each_profile_with_where_it_occurs(self, kinds):
        scenario, model = kinds
        axes = gr.plot_profiles(model, scenario.samples)
        assert axes.shape == (2, 2)
        for k, (left, right) in enumerate(axes):
            values = points_of(right)[1]
            np.testing.assert_allclose(
                np.sort(np.abs(values)), np.sort(np.abs(model.coordinates_[:, k]))
            )
            # The nodes with the profile have about the ratio that is drawn.
            node = int(np.argmax(model.coordinates_[:, k]))
            x, ratio = left.lines[-1].get_data()
            inside = np.abs(x) < 1.5
            np.testing.assert_allclose(
                ratio[inside], model.predict(x[inside], node=node), rtol=0.25, atol=0.1
            )

    def test_two_features_are_a_plane_and_one_can_be_chosen(self):
        scenario = gr.datasets.make_scenario("IIb", n_nodes=20, n=30, random_state=0)
        model = gr.GraphRatio(
            n_profiles=3,
            bandwidth=3.0,
            graph_penalty=1.0 / scenario.graph.mean_degree,
            ridge=1e-3,
            n_rounds=1,
            adaptive=False,
        ).fit(scenario.samples, scenario.graph)
        axes = gr.plot_profiles(model, scenario.samples, most=1)
        assert axes.shape == (1, 2)
        assert (axes[0, 0].get_xlabel(), axes[0, 0].get_ylabel()) == ("x0", "x1")
        axes = gr.plot_profiles(model, scenario.samples, feature="x1")
        assert axes[0, 0].get_xlabel() == "x1 (other features at their medians)"

    def test_learned_graph_shows_what_was_cut(self, kinds):
        scenario, model = kinds
        ax = gr.plot_learned_graph(model)
        cut = model.cut_links()
        count = f"{len(cut)} of {scenario.graph.n_edges} links were cut"
        assert ax.get_title(loc="left") == f"Which neighbours change alike: {count}"
        dotted = next(c for c in ax.collections if c.get_label() == "cut")
        assert len(dotted.get_segments()) == len(cut)
        assert legend_of(ax) == ["kept, thicker with more weight", "cut"]

    def test_kinds_of_change_on_the_map_and_along_a_feature(self, kinds):
        scenario, model = kinds
        found = gr.kinds_of_change(scenario.samples, None, model, random_state=0)
        where, along = found.plot()
        sizes = [f"{kind} ({number})" for kind, number in found.counts.items()]
        assert legend_of(where) == sizes
        assert legend_of(along) == list(found.names)
        drawn = legend_of(gr.plot_learned_graph(model, kinds=found))
        assert drawn == ["kept, thicker with more weight", "cut", *sizes]
        x, ratio = along.lines[1].get_data()
        np.testing.assert_allclose(ratio, found.ratio(x)[:, 0])

    def test_ratios_of_kinds_end_with_their_data(self, kinds):
        scenario, model = kinds
        found = gr.kinds_of_change(scenario.samples, None, model, random_state=0)
        _, along = found.plot()
        values = scenario.samples.values[:, 0]
        for name in found.names:
            own = values[(found.kinds == name)[scenario.samples.node_index]]
            low, high = np.quantile(own, [0.005, 0.995])
            solid = next(line for line in along.lines if line.get_label() == name)
            assert low <= solid.get_xdata().min()
            assert solid.get_xdata().max() <= high
            colour = solid.get_color()
            dotted = [
                line for line in along.lines
                if line.get_color() == colour and line.get_linestyle() == ":"
            ]  # fmt: skip
            for line in dotted:
                assert np.ptp(line.get_xdata()) <= 1.12 * (high - low)
        other = gr.Pool(bandwidth=1.0, ridge=0.1).fit(([0.0, 1.0], [1.0, 2.0]))
        other.graph_learned_ = other.graph_
        with pytest.raises(InputError, match="different nodes"):
            gr.plot_learned_graph(other, kinds=found)

    def test_without_kinds_there_is_only_a_map(self):
        rng = np.random.default_rng(0)
        found = gr.kinds_of_change(
            (list(rng.normal(size=(5, 20))), list(rng.normal(size=(5, 20)))), random_state=0
        )
        (where,) = found.plot()
        assert legend_of(where) == ["no change found (5)"]

    def test_graph_that_was_not_learned_is_said_to_be_as_given(self, model):
        assert (
            gr.plot_learned_graph(model).get_title(loc="left")
            == "The links as given: none was learned"
        )

    def test_selection_of_a_search_holds_what_was_chosen(self, kinds):
        _, model = kinds
        ax = gr.plot_selection(model)
        assert f"profiles {model.n_profiles_}" in ax.get_title(loc="left")
        best = max(model.cv_results_["mean_score"])
        assert f"{best:.4g}" in texts_of(ax)


class TestOwnScales:
    """Nodes that were standardised by themselves."""

    def test_a_node_is_drawn_in_its_own_units(self, uneven):
        samples, model = uneven
        upper = gr.plot_node(model, samples, node=3).figure.axes[-1]
        curves = {line.get_label(): line.get_data() for line in upper.lines}
        x, ratio = curves["3"]
        both = np.vstack([samples.reference(3), samples.target(3)])
        assert both[:, 0].min() <= x[0] < x[-1] <= both[:, 0].max()
        middle = float(np.median(both[:, 1]))
        points = np.column_stack([x, np.full(len(x), middle)])
        np.testing.assert_allclose(ratio, model.predict(points, node=3), rtol=1e-6)
        # A neighbour is drawn where it has data, so that both are alike.
        neighbour = upper.lines[0].get_data()[1]
        assert np.corrcoef(neighbour, ratio)[0, 1] > 0.8

    def test_profiles_and_kinds_are_drawn_in_spreads(self, uneven):
        samples, model = uneven
        left = gr.plot_profiles(model, samples, feature=0)[0, 0]
        found = gr.kinds_of_change(samples, None, model, random_state=0)
        assert found.names
        for ax in (left, found.plot()[1]):
            assert ax.get_xlabel().startswith("x0, SDs from the node's mean")
            x = ax.lines[-1].get_data()[0]
            assert -4 < x.min() < -1 < 1 < x.max() < 4
        plane = gr.plot_profiles(model, samples)[0, 0]
        assert plane.get_ylabel() == "x1, SDs from the node's mean"
        with pytest.raises(gr.exceptions.InputError, match="standardized=True"):
            found.ratio([[0.0, 0.0]])


def test_a_missing_matplotlib_names_the_extra(model, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(MissingDependencyError, match=r'"\.\[plot\]"'):
        gr.plot_graph(model)


def test_unknown_names_are_still_errors():
    with pytest.raises(AttributeError, match="no attribute 'plot_everything'"):
        gr.plot_everything


def test_node_along_a_category():
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {
            "site": np.repeat(["a", "b"], 120),
            "period": np.tile(["before", "after"], 120),
            "pm25": rng.normal(size=240),
            "sky": rng.choice(["clear", "rain", "snow"], 240),
        }
    )
    samples = gr.NodeSamples.from_frame(
        table, "site", "period", "before", "after", ["pm25"], categorical="sky"
    )
    model = gr.Pool(bandwidth=1.5, ridge=0.2).fit(samples.standardized())
    ax = gr.plot_node(model, samples, "a", feature="sky")
    assert [tick.get_text() for tick in ax.get_xticklabels()] == ["clear", "rain", "snow"]
    own = next(line for line in ax.figure.axes[-1].lines if line.get_label() == "a")
    # The number is at its median, the level as drawn.
    middle = np.median(table.loc[table["site"] == "a", "pm25"])
    at = pd.DataFrame({"pm25": middle, "sky": ["clear", "rain", "snow"]})
    assert_allclose(own.get_ydata()[::2], model.predict(at, node="a"))
    assert gr.plot_node(model, samples, "a").get_xlabel().startswith("pm25")


def test_profiles_along_a_category():
    rng = np.random.default_rng(0)
    n_nodes, n = 12, 60
    site, period = np.repeat(np.arange(n_nodes), 2 * n), np.tile(np.repeat(["b", "a"], n), n_nodes)
    wet = (site < 6) & (period == "a")
    sky = np.where(rng.random(len(site)) < np.where(wet, 0.85, 0.3), "rain", "clear")
    table = pd.DataFrame(
        {"site": site, "period": period, "pm25": rng.normal(size=len(site)), "sky": sky}
    )
    samples = gr.NodeSamples.from_frame(
        table, "site", "period", "b", "a", ["pm25"], categorical="sky"
    ).standardized()
    graph = gr.Graph.from_edges([(i, i + 1) for i in range(n_nodes - 1)])
    model = gr.GraphRatio(
        n_profiles=1,
        bandwidth=1.5,
        graph_penalty=0.1 / graph.mean_degree,
        ridge=0.1,
        n_rounds=2,
        adaptive=False,
        random_state=0,
    ).fit(samples, graph)
    axes = gr.plot_profiles(model, samples, feature="sky")
    assert [tick.get_text() for tick in axes[0, 0].get_xticklabels()] == ["clear", "rain"]
    curve = axes[0, 0].lines[-1].get_ydata()
    assert curve[0] == curve[1] < 1 < curve[2] == curve[3]


def test_a_curve_is_flat_over_every_level():
    positions, values = axis_of(np.array([0.0, 1.0]), ("a", "b"), 9, False)
    assert positions.tolist() == [-0.5, 0.5, 0.5, 1.5]
    assert values.tolist() == [0, 0, 1, 1]


def test_typical_values_are_medians_and_most_frequent_levels():
    values = np.array([[1.0, 2.0], [2.0, 0.0], [9.0, 2.0]])
    assert typical_values(values, [(), ("a", "b", "c")]).tolist() == [2.0, 2.0]


def test_a_category_is_one_column_of_level_numbers():
    table = pd.DataFrame({"v": [0, 0], "t": ["b", "a"], "sky": ["rain", "clear"]})
    samples = gr.NodeSamples.from_frame(table, "v", "t", "b", "a", categorical="sky")
    assert in_columns(samples).values.ravel().tolist() == [1.0, 0.0]


def test_the_ends_of_a_path_are_far_apart():
    xy = draw(gr.Graph.from_edges([(0, 1), (1, 2), (2, 3)]))
    assert np.linalg.norm(xy[0] - xy[3]) > np.linalg.norm(xy[0] - xy[1])
