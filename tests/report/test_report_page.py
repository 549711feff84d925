"""The report without a browser: what is in the file, and what it costs."""

from __future__ import annotations

import json
import re
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import graphratio as gr
from graphratio.exceptions import InputError
from graphratio.plotting.layout import draw, node_layout
from graphratio.report import node_summary, write_report
from graphratio.report.divergence_scale import DivergenceScale
from graphratio.report.node_panels import Detail, pack
from graphratio.report.page_file import compiled_once, script_json


def embedded(path: Path) -> dict[str, Any]:
    page = path.read_text(encoding="utf-8")
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.S)
    assert found
    return json.loads(found[1])


def two_samples(n_nodes: int = 6, n: int = 30, d: int = 1, seed: int = 0) -> Any:
    rng = np.random.default_rng(seed)
    target = rng.normal(size=(n_nodes, n, d)) + np.arange(n_nodes)[:, None, None] / 3
    return list(rng.normal(size=(n_nodes, n, d))), list(target)


def test_summary_of_nodes(square: Any) -> None:
    model, samples, _ = square
    table = node_summary(model, samples.aligned(samples.nodes[::-1]))
    assert table["node"] == list(model.nodes_)
    assert table["divergence"] == model.divergence_.tolist()
    node = model.nodes_[5]
    weights = model.importance_weights(samples)[node]
    assert table["effective_sample_size"][5] == pytest.approx(
        weights.sum() ** 2 / (weights**2).sum()
    )
    change = samples.target(node).mean(axis=0) - samples.reference(node).mean(axis=0)
    assert table["f0_mean_change"][5] == pytest.approx(change[0])
    spread = samples.target(node).std(axis=0) - samples.reference(node).std(axis=0)
    assert table["<b>no2</b> & co_spread_change"][5] == pytest.approx(spread[1])


def test_a_missing_sample_is_none_and_not_estimated(tmp_path: Path) -> None:
    reference, target = two_samples()
    target[2] = np.empty((0, 1))
    reference[4] = np.empty((0, 1))
    samples = gr.NodeSamples.from_arrays(reference, target)
    graph = gr.Graph.from_edges([(i, i + 1) for i in range(5)], nodes=range(6))
    model = gr.GRULSIF(bandwidth=1.0, graph_penalty=0.06, ridge=0.006).fit(samples, graph)
    table = node_summary(model, samples)
    assert table["divergence"][2] is None
    assert table["x0_mean_change"][2] is None
    assert table["effective_sample_size"][2] > 0
    assert table["effective_sample_size"][4] is None
    path = write_report(tmp_path / "r.html", model, samples)
    assert embedded(path)["nodes"]["divergence"][2] is None
    tile = '<span class="value">2</span> <span class="label">cannot say</span>'
    assert tile in path.read_text(encoding="utf-8")


def test_standardised_samples_are_refused(square: Any, tmp_path: Path) -> None:
    model, samples, _ = square
    with pytest.raises(InputError, match="before standardized"):
        write_report(tmp_path / "r.html", model, samples.standardized())


def test_a_missing_folder_is_named(square: Any, tmp_path: Path) -> None:
    model, samples, _ = square
    with pytest.raises(InputError, match="nowhere"):
        write_report(tmp_path / "nowhere" / "r.html", model, samples)


def test_nothing_breaks_out_of_the_page(report_file: Path) -> None:
    page = report_file.read_text(encoding="utf-8")
    assert "<img src=x" not in page
    assert "<script>alert" not in page
    assert "before <i>" not in page
    assert embedded(report_file)["nodes"]["label"][1] == "<img src=x onerror=alert(1)>"
    # The chart library mentions addresses in its code; the page itself has none.
    own = page[: page.index("charts-ready")]
    assert not re.search(r"https?://", own)


def test_script_json_reads_back() -> None:
    data = {"a": "</script><!--&\u2028", "b": [1.5, None]}
    text = script_json(data)
    assert json.loads(text) == data
    assert not set("<>&\u2028") & set(text)


def test_curves_are_the_model_s_ratios(square: Any, report_file: Path) -> None:
    model, samples, _ = square
    panels = embedded(report_file)["panels"]
    node, grid = 7, panels["grid"]
    codes = np.frombuffer(_decode(panels["curves"][node]), dtype="<u2") / 65535
    curves = (codes * panels["top"][node]).reshape(-1, 2, grid)
    label = model.nodes_[node]
    pooled = np.concatenate([samples.reference(label), samples.target(label)])
    x = np.tile(np.median(pooled, axis=0), (grid, 1))
    x[:, 1] = np.linspace(panels["low"][node][1], panels["high"][node][1], grid)
    np.testing.assert_allclose(curves[0, 1], model.predict(x, node=label), atol=2e-3)
    for place, other in enumerate(panels["drawn"][node]):
        expected = model.predict(x, node=model.nodes_[other])
        np.testing.assert_allclose(curves[place + 1, 1], expected, atol=2e-3)


def test_histograms_count_everything(square: Any, report_file: Path) -> None:
    _, samples, _ = square
    for histograms in embedded(report_file)["panels"]["histograms"]:
        for reference, target, beyond in histograms:
            assert sum(reference) + sum(target) + beyond == 80
    assert samples.n_observations == 80 * 30


def _decode(text: str) -> bytes:
    import base64

    return base64.b64decode(text)


@pytest.mark.parametrize("estimator", [gr.Pool, gr.RULSIF, gr.ULSIF, gr.KLIEP])
@pytest.mark.parametrize("given", [False, True])
def test_every_estimator_has_a_report(estimator: Any, given: bool, tmp_path: Path) -> None:
    samples = gr.NodeSamples.from_arrays(*two_samples())
    fixed = {"bandwidth": 1.0, "ridge": 0.1} if given else {}
    model = estimator(random_state=0, **fixed).fit(samples)
    charts = embedded(write_report(tmp_path / "r.html", model, samples))["selection"]
    assert bool(charts) is not given


def test_a_loaded_model_has_the_same_report(square: Any, tmp_path: Path) -> None:
    model, samples, _ = square
    model.save(tmp_path / "m.graphratio")
    loaded = gr.load(tmp_path / "m.graphratio")
    first = write_report(tmp_path / "a.html", model, samples).read_bytes()
    assert write_report(tmp_path / "b.html", loaded, samples).read_bytes() == first


def test_single_node_and_constant_feature(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    reference = np.column_stack([rng.normal(size=30), np.full(30, 7.0)])
    samples = gr.NodeSamples.from_arrays(reference, reference + np.array([2.0, 0.0]))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = gr.RULSIF(random_state=0).fit(samples)
    data = embedded(write_report(tmp_path / "r.html", model, samples))
    assert data["panels"]["low"][0][1] < 7 < data["panels"]["high"][0][1]


def test_many_features_are_cut_to_the_most_moved(tmp_path: Path) -> None:
    reference, target = two_samples(4, 25, 15)
    for part in target:
        part[:, 14] += 3
    samples = gr.NodeSamples.from_arrays(reference, target)
    model = gr.Pool(bandwidth=4.0, ridge=0.4).fit(samples)
    shown = [
        f["name"]
        for f in embedded(write_report(tmp_path / "r", model, samples))["panels"]["features"]
    ]
    assert len(shown) == 12
    assert "x14" in shown


def test_few_observations_are_said(tmp_path: Path) -> None:
    reference, target = two_samples()
    reference[3] = reference[3][:7]
    samples = gr.NodeSamples.from_arrays(reference, target, nodes=["a", "b", "c", "dd", "e", "f"])
    model = gr.Pool(bandwidth=1.0, ridge=0.6).fit(samples)
    page = write_report(tmp_path / "r.html", model, samples).read_text(encoding="utf-8")
    assert "1 node has fewer than 20 observations" in page
    assert "dd (7)" in page
    named = write_report(tmp_path / "n.html", model, samples, noun=("airport", "airports"))
    assert "1 airport has fewer than 20 observations" in named.read_text(encoding="utf-8")


def test_too_strong_penalties_are_said(tmp_path: Path) -> None:
    samples = gr.NodeSamples.from_arrays(*two_samples())
    model = gr.Pool(bandwidth=1.0, ridge=300.0).fit(samples)
    page = write_report(tmp_path / "r.html", model, samples).read_text(encoding="utf-8")
    assert "Read with care: most divergences" in page


class TestScale:
    def test_one_outlier_does_not_take_the_colours(self) -> None:
        divergence = np.append(np.linspace(0, 0.5, 99), 40.0)
        scale = DivergenceScale.of(divergence, 0.1, "Pearson")
        assert scale.top < 0.6
        assert scale.capped >= 1

    def test_noise_stays_pale(self) -> None:
        scale = DivergenceScale.of(np.full(20, 0.004), 0.1, "Pearson")
        assert scale.top == scale.clear

    @pytest.mark.parametrize(
        ("alpha", "name", "expected"),
        [(0.0, "Pearson", np.expm1(0.25) / 2), (0.0, "Kullback-Leibler", 0.125)],
    )
    def test_clear_is_half_a_standard_deviation(
        self, alpha: float, name: str, expected: float
    ) -> None:
        assert DivergenceScale.of(np.zeros(1), alpha, name).clear == pytest.approx(expected)

    def test_relative_divergence_by_quadrature(self) -> None:
        rng = np.random.default_rng(0)
        x = rng.normal(0.5, 1, 400_000)
        q, p = np.exp(-((x - 0.5) ** 2) / 2), np.exp(-(x**2) / 2)
        expected = (q / (0.9 * p + 0.1 * q)).mean() / 2 - 0.5
        scale = DivergenceScale.of(np.zeros(1), 0.1, "Pearson")
        assert scale.clear == pytest.approx(expected, rel=0.02)


class TestLayout:
    def test_drawing_is_stable_and_spreads_nodes(self) -> None:
        rng = np.random.default_rng(0)
        graph = gr.Graph.from_coordinates(rng.uniform(size=(300, 2)), k=4)
        bare = gr.Graph.from_adjacency(graph.adjacency)
        first = draw(bare)
        np.testing.assert_array_equal(first, draw(bare))
        rows, columns = bare.adjacency.nonzero()
        near = np.linalg.norm(first[rows] - first[columns], axis=1).mean()
        apart = np.linalg.norm(first[:, None] - first[None], axis=2)
        assert near < 0.3 * apart.mean()
        assert np.partition(apart, 1, axis=1)[:, 1].min() > 0.05

    def test_components_do_not_overlap(self) -> None:
        edges = [(0, 1), (1, 2), (2, 0), (3, 4), (4, 5), (5, 3)]
        xy = draw(gr.Graph.from_edges(edges, nodes=range(8)))
        apart = np.linalg.norm(xy[:, None] - xy[None], axis=2) + 9 * np.eye(8)
        assert apart.min() > 0.5

    def test_the_globe_is_cut_in_the_gap(self) -> None:
        islands = {"a": (0.0, 178.0), "b": (1.0, -179.0), "c": (2.0, -175.0)}
        layout = node_layout(gr.Graph.from_coordinates(islands, k=1, metric="haversine"))
        assert np.ptp(layout.positions[:, 0]) == pytest.approx(7)

    def test_edges_around_the_back_are_left_out(self) -> None:
        ring = {i: (0.0, float(lon)) for i, lon in enumerate(range(-180, 180, 30))}
        graph = gr.Graph.from_coordinates(ring, k=2, metric="haversine")
        layout = node_layout(graph)
        assert len(layout.edges) == graph.n_edges - 1
        assert "around the back" in layout.caption

    def test_three_coordinates_are_flattened(self) -> None:
        rng = np.random.default_rng(0)
        points = rng.normal(size=(20, 3)) * [5, 0.1, 2]
        layout = node_layout(gr.Graph.from_coordinates(points, k=2))
        assert np.abs(np.corrcoef(layout.positions[:, 0], points[:, 0])[0, 1]) > 0.99


def test_detail_shrinks_with_size() -> None:
    sizes = [Detail.for_size(n, 3) for n in (50, 500, 5000)]
    assert sizes[0].neighbours >= sizes[1].neighbours > sizes[2].neighbours
    assert sizes[1].points >= 30
    assert sizes[2].points == 0


class TestManyNodes:
    @pytest.fixture
    def page(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
        """A page of 6 nodes on which only 2 have charts; the last nodes change most."""
        monkeypatch.setattr("graphratio.report.node_panels.CHART_BUDGET", 4)
        monkeypatch.setattr("graphratio.report.node_panels.FEWEST_PANELS", 2)
        samples = gr.NodeSamples.from_arrays(*two_samples(d=2))
        graph = gr.Graph.from_edges([(i, i + 1) for i in range(5)])
        model = gr.GRULSIF(bandwidth=1.0, graph_penalty=0.06, ridge=0.006).fit(samples, graph)
        return model, samples, write_report(tmp_path / "r.html", model, samples)

    def test_only_the_most_changed_have_charts(self, page: Any) -> None:
        model, _, path = page
        data = embedded(path)
        panels, most = data["panels"], sorted(model.ranking_[:2].tolist())
        assert panels["nodes"] == most
        for name in ("low", "high", "median", "histograms", "curves", "top", "drawn", "points"):
            assert len(panels[name]) == 2
        assert len(data["borrowed"]["largest"]) == 2
        assert len(data["borrowed"]["own"]) == len(data["nodes"]["mean"]) == 6
        # They are the charts of these nodes, not of the first ones.
        codes = np.frombuffer(_decode(panels["curves"][1]), dtype="<u2") / 65535
        own = codes[: panels["grid"]] * panels["top"][1]
        x = np.tile(panels["median"][1], (panels["grid"], 1))
        x[:, 0] = np.linspace(panels["low"][1][0], panels["high"][1][0], panels["grid"])
        np.testing.assert_allclose(own, model.predict(x, node=most[1]), atol=2e-3)

    def test_the_page_says_what_was_left_out(self, page: Any, large_report: Path) -> None:
        text = page[2].read_text(encoding="utf-8")
        assert "charts of the 2 most changed of 6 nodes, and only numbers of the other 4." in text
        assert 'id="left-out"' not in large_report.read_text(encoding="utf-8")
        assert embedded(large_report)["panels"]["nodes"] is None

    def test_too_many_nodes_are_refused_first(
        self, page: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        monkeypatch.setattr("graphratio.report.page_file.NODES_ON_A_PAGE", 5)
        with pytest.raises(InputError, match=r"at most 5 nodes, and there are 6.*node_summary"):
            write_report(tmp_path / "no.html", page[0], page[1])
        assert not (tmp_path / "no.html").exists()


def test_a_report_says_what_the_atoms_are(tmp_path: Path) -> None:
    samples = gr.NodeSamples.from_arrays(*two_samples())
    fixed = {"bandwidth": 1.0, "ridge": 0.1}
    for dictionary, words in (("coherence", "observations"), ("centres", "group centres")):
        model = gr.Pool(dictionary=dictionary, **fixed).fit(samples)
        text = write_report(tmp_path / "r.html", model, samples).read_text(encoding="utf-8")
        assert f"<td>{model.n_atoms_} {words}</td>" in text


def test_size_at_500_nodes(large_report: Path) -> None:
    assert large_report.stat().st_size < 8_000_000


def test_shifts_that_have_a_divergence() -> None:
    scale = DivergenceScale.of(np.array([-0.01, 0.02, 0.4]), 0.1, "Pearson")
    assert (round(scale.clear, 3), scale.top) == (0.107, 0.4)
    assert scale.shift.round(1).tolist() == [0.0, 0.2, 0.9]


def test_shares_are_packed_into_two_bytes() -> None:
    assert pack(np.array([0.0, 1.0])) == "AAD//w=="


def test_the_chart_library_is_compiled_once() -> None:
    found = compiled_once("(function(root, factory) {} (this, () => { return 1; }));")
    assert found == "(function(root, factory) {} (this, (() => { return 1; })));"
    assert compiled_once("var Plotly = 1;") == "var Plotly = 1;"
