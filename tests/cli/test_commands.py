"""What the commands do with good input: files in, answers out."""

import contextlib
import json
import os
import re
import sys
import threading
import time

import numpy as np
import pandas as pd
import pytest

import graphratio as gr
from graphratio.report import verdicts

COLUMNS = ["--node", "station", "--sample", "period", "--reference", "before", "--target", "after"]
FEATURES = ["--features", "pm25,no2"]
ALONG_THE_ROAD = [
    "--features", "pm25", "--coordinates", "lat,lon", "--neighbors", 2, "--estimator", "graphratio",
]  # fmt: skip


def plain(text):
    """Text without colours, frames and line breaks."""
    return " ".join(re.sub(r"\x1b\[[0-9;]*m|[│╭╮╰╯─]", " ", text).split())


def nodes_of(folder):
    return pd.read_csv(folder / "nodes.csv", dtype={"node": str})


class TestReport:
    def test_writes_everything(self, data, run, tmp_path):
        folder = tmp_path / "out"
        result = run(
            "report", data, *COLUMNS, *FEATURES, "--coordinates", "lat,lon", "--neighbors", 2,
            "--output", folder,
        )  # fmt: skip
        assert result.exit_code == 0, result.output
        assert {path.name for path in folder.iterdir()} == {
            "report.html", "nodes.csv", "model.graphratio",
        }  # fmt: skip
        page = (folder / "report.html").read_text(encoding="utf-8")
        assert "<html" in page
        assert "standardised" in page
        assert str(folder / "report.html") in result.stdout
        assert "features were standardised" in result.stderr
        assert "2 nearest by great-circle distance (lat, lon)" in result.stderr
        # The table has the verdicts of the page.
        shown = json.loads(re.search(r'id="data">(.*?)</script>', page, re.DOTALL)[1])["verdicts"]
        rejected = nodes_of(folder)["rejected"]
        assert rejected.any()
        assert rejected.tolist() == [state == verdicts.CHANGED for state in shown["state"]]

    def test_too_many_nodes_are_refused_before_the_fit(self, data, run, tmp_path, monkeypatch):
        monkeypatch.setattr("graphratio.report.page_file.NODES_ON_A_PAGE", 5)
        monkeypatch.setattr(gr.GraphRatio, "fit", None)
        folder = tmp_path / "out"
        result = run("report", data, *COLUMNS, *FEATURES, "--no-graph", "--output", folder)
        assert result.exit_code == 1
        assert "at most 5 nodes, and there are 8 hint: Use `graphratio fit`" in plain(result.stderr)
        assert not folder.exists()

    def test_overwrite_replaces_only_its_own_files(self, data, run, tmp_path):
        folder = tmp_path / "out"
        folder.mkdir()
        (folder / "mine.txt").write_text("kept")
        (folder / "nodes.csv").write_text("old")
        arguments = ["report", data, *COLUMNS, *FEATURES, "--no-graph", "--output", folder]
        assert run(*arguments).exit_code == 1
        assert (folder / "nodes.csv").read_text() == "old"
        assert run(*arguments, "--overwrite").exit_code == 0
        assert (folder / "mine.txt").read_text() == "kept"
        assert len(nodes_of(folder)) == 8


class TestFit:
    def test_nodes_csv(self, table, data, fit):
        result, folder = fit(data, *FEATURES, "--no-graph")
        assert result.exit_code == 0
        assert not (folder / "report.html").exists()
        nodes = nodes_of(folder)
        assert nodes["node"].tolist() == [f"s{v}" for v in range(8)]
        assert (nodes[["n_reference", "n_target"]] == 15).all(axis=None)
        changed = set(nodes.nlargest(3, "divergence")["node"])
        assert changed == {"s5", "s6", "s7"}
        parts = {period: rows.groupby("station")["no2"] for period, rows in table.groupby("period")}
        for statistic, column in (("mean", "no2_mean_change"), ("std", "no2_spread_change")):
            arguments = {"ddof": 0} if statistic == "std" else {}
            after, before = (getattr(parts[p], statistic)(**arguments) for p in ("after", "before"))
            np.testing.assert_allclose(nodes[column], (after - before).to_numpy(), atol=1e-12)

    def test_the_table_of_the_most_changed(self, data, fit):
        result, _ = fit(data, *FEATURES, "--no-graph")
        lines = [line for line in result.stdout.splitlines() if "│ s" in line]
        assert {line.split()[1] for line in lines[:3]} == {"s5", "s6", "s7"}
        assert "8 nodes: 240 observations, 2 features, 0 edges" in result.stdout

    def test_json(self, data, fit):
        result, folder = fit(data, *FEATURES, "--no-graph", "--json", "--quiet")
        content = json.loads(result.stdout)
        assert result.stderr == ""
        assert content["n_nodes"] == 8
        assert content["features"] == ["pm25", "no2"]
        assert content["estimator"] == "RULSIF"
        assert {entry["node"] for entry in content["most_changed"][:3]} == {"s5", "s6", "s7"}
        assert content["files"]["nodes"] == str(folder / "nodes.csv")
        assert any("standardised" in note for note in content["notes"])

    def test_quiet_and_without_progress(self, data, run, tmp_path):
        result = run(
            "fit", data, *COLUMNS, *FEATURES, "--no-graph", "--quiet", "--output", tmp_path / "out"
        )
        assert (result.exit_code, result.output) == (0, "")

    @pytest.mark.parametrize("estimator", ["grulsif", "pool", "rulsif", "ulsif", "kliep"])
    def test_estimators_alpha_and_seed(self, data, fit, estimator):
        plain = estimator in ("ulsif", "kliep")
        alpha = () if plain else ("--alpha", 0.3)
        options = ("--no-graph", "--estimator", estimator, *alpha, "--seed", 4)
        result, folder = fit(data, *FEATURES, *options)
        assert result.exit_code == 0
        model = gr.load(folder / "model.graphratio")
        assert type(model).__name__.lower() == estimator
        assert model.random_state == 4
        assert getattr(model, "alpha", 0.3) == 0.3
        assert not getattr(model, "progress", False)

    @pytest.mark.parametrize("loss", ["kl", "jensen-shannon"])
    def test_losses(self, data, fit, loss):
        options = ("--no-graph", "--estimator", "grulsif", "--loss", loss)
        result, folder = fit(data, *FEATURES, *options)
        assert result.exit_code == 0, result.output
        model = gr.load(folder / "model.graphratio")
        assert model.loss == loss
        name = {"kl": "KL", "jensen-shannon": "Jensen-Shannon"}[loss]
        assert f"(estimated {name} divergence, 0 or less shows no change)" in plain(result.stdout)
        assert set(nodes_of(folder).nlargest(3, "divergence")["node"]) == {"s5", "s6", "s7"}

    def test_negative_divergences_are_explained(self, data, fit, run):
        options = ("--features", "no2", "--no-graph", "--estimator", "kliep")
        result, folder = fit(data, *options)
        assert (nodes_of(folder)["divergence"] < 0).any()
        told = "(estimated KL divergence, 0 or less shows no change)"
        assert told in plain(result.stdout)
        assert told in plain(run("info", folder / "model.graphratio").stdout)

    def test_a_loss_of_other_estimators_is_refused(self, data, fit):
        options = ("--no-graph", "--estimator", "rulsif", "--loss", "kl")
        result, _ = fit(data, *FEATURES, *options)
        assert result.exit_code == 2
        assert "--loss does nothing with --estimator rulsif" in plain(result.output)
        assert fit(data, *FEATURES, "--no-graph", "--loss", "hellinger")[0].exit_code == 2

    def test_an_alpha_that_does_nothing_is_refused(self, data, fit):
        result, _ = fit(data, *FEATURES, "--no-graph", "--estimator", "kliep", "--alpha", 0.3)
        assert result.exit_code == 2
        assert "--alpha does nothing with --estimator kliep" in " ".join(result.output.split())

    def test_same_as_the_library(self, table, data, fit):
        _, folder = fit(data, *FEATURES, "--no-graph", "--standardize", "all")
        samples = gr.NodeSamples.from_frame(
            table, "station", "period", "before", "after", ["pm25", "no2"]
        )
        model = gr.RULSIF(random_state=0).fit(samples.standardized())
        np.testing.assert_allclose(nodes_of(folder)["divergence"], model.divergence_)

    def test_parquet_is_as_csv(self, table, data, fit, tmp_path):
        _, folder = fit(data, *FEATURES, "--no-graph")
        expected = nodes_of(folder)
        table.to_parquet(tmp_path / "data.parquet")
        result, folder = fit(tmp_path / "data.parquet", *FEATURES, "--no-graph")
        assert result.exit_code == 0
        pd.testing.assert_frame_equal(nodes_of(folder), expected)

    def test_features_by_default(self, data, fit):
        result, folder = fit(data, "--no-graph")
        assert "features: pm25, no2 (" in result.stderr
        assert list(gr.load(folder / "model.graphratio").feature_names_in_) == ["pm25", "no2"]

    def test_rows_in_neither_sample_are_counted(self, table, write, fit):
        period = table["period"].where(table["station"] != "s0", "during")
        result, folder = fit(write(table.assign(period=period)), *FEATURES, "--no-graph")
        assert "30 of 240 rows are in neither sample: 'during'" in result.stderr
        assert len(nodes_of(folder)) == 7

    def test_delimiter_and_spaces(self, table, write, fit):
        text = table.to_csv(index=False, sep=";").replace(";", " ; ")
        result, _ = fit(write("\ufeff" + text), *FEATURES, "--no-graph", "--delimiter", ";")
        assert result.exit_code == 0, result.stderr

    def test_missing_values_are_dropped_when_asked(self, table, write, fit):
        holes = table.copy()
        holes.loc[[0, 40], "pm25"] = np.nan
        holes.loc[[3], "station"] = None
        result, folder = fit(write(holes), *FEATURES, "--no-graph", "--missing", "drop")
        assert "1 row without a label" in result.stderr
        assert "2 of 239 observations dropped" in result.stderr
        assert nodes_of(folder)["n_reference"].tolist() == [13, 14, *[15] * 6]

    def test_cap_is_announced_and_depends_on_the_seed_only(self, data, fit):
        found = []
        for seed in (0, 0, 1):
            result, folder = fit(
                data, *FEATURES, "--no-graph", "--max-observations", 10, "--seed", seed
            )
            assert "at most 10 observations of each sample were used" in result.stderr
            assert "160 of 240" in result.stderr
            found.append(nodes_of(folder))
        assert (found[0][["n_reference", "n_target"]] == 10).all(axis=None)
        assert found[0].equals(found[1])
        assert not found[0].equals(found[2])

    def test_a_cap_above_all_sizes_changes_nothing(self, data, fit):
        result, folder = fit(data, *FEATURES, "--no-graph", "--max-observations", 15)
        assert "at most" not in result.stderr
        assert (nodes_of(folder)["n_reference"] == 15).all()

    def test_logarithm_and_scale(self, data, fit, table):
        for options, log, standardised in (
            (["--log", "pm25"], [True, False], True),
            (["--log", "pm25", "--standardize", "none"], [True, False], False),
            (["--standardize", "none"], None, False),
        ):
            result, folder = fit(data, *FEATURES, "--no-graph", *options)
            assert ("features were standardised" in result.stderr) == standardised
            assert ("logarithm of pm25" in result.stderr) == (log is not None)
            scaling = gr.load(folder / "model.graphratio").scaling_
            if log is None:
                assert scaling is None
                continue
            assert scaling.log.tolist() == log
            expected = np.log(table["pm25"]).mean() if standardised else 0.0
            assert scaling.mean[0] == pytest.approx(expected)

    @pytest.fixture
    def uneven(self, tmp_path_factory):
        """Stations along a road with levels of their own; the first three are shifted."""
        rng = np.random.default_rng(0)
        station, period = np.meshgrid(np.arange(9), np.repeat(["before", "after"], 40))
        values = rng.normal(size=station.shape) + ((station < 3) & (period == "after"))
        level = 100 * rng.normal(size=9)
        frame = {"station": station.ravel(), "period": period.ravel()}
        frame["pm25"] = (level[station] + 3 * values).ravel()
        frame["lat"], frame["lon"] = np.zeros(station.size), 0.1 * station.ravel()
        path = tmp_path_factory.mktemp("uneven") / "uneven.csv"
        pd.DataFrame(frame).to_csv(path, index=False)
        return path

    @pytest.mark.parametrize(
        ("asked", "own", "said"),
        [
            ([], True, "each node by itself, because neighbouring nodes typically lie"),
            (["--standardize", "node"], True, "each node by itself (--standardize all"),
            (["--standardize", "all"], False, "share little: standardise each node by itself, "),
            (["--standardize", "none"], False, "left on their own scales (--standardize none)"),
        ],
    )
    def test_stations_of_different_levels(self, uneven, fit, asked, own, said):
        result, folder = fit(uneven, *ALONG_THE_ROAD, *asked)
        assert said in plain(result.stderr)
        scaling = gr.load(folder / "model.graphratio").scaling_
        assert (scaling is not None and scaling.nodes is not None) == own
        if own:
            largest = nodes_of(folder).nlargest(3, "divergence")["node"]
            assert set(largest) == {"0", "1", "2"}

    def test_a_model_with_own_scales_predicts_and_describes_itself(
        self, uneven, fit, run, tmp_path
    ):
        _, folder = fit(uneven, *ALONG_THE_ROAD)
        told = run("info", folder / "model.graphratio")
        assert "standardised: yes, pm25 at each node by itself" in plain(told.stdout)
        table = pd.read_csv(uneven, dtype={"station": str}).iloc[::50]
        table.to_csv(tmp_path / "points.csv", index=False)
        found = run(
            "predict", folder / "model.graphratio", tmp_path / "points.csv", "--node", "station",
            "--output", tmp_path / "ratios.csv",
        )  # fmt: skip
        assert found.exit_code == 0, found.output
        model = gr.load(folder / "model.graphratio")
        expected = [
            model.predict([value], node=node)[0]
            for value, node in zip(table["pm25"], table["station"], strict=True)
        ]
        written = pd.read_csv(tmp_path / "ratios.csv")["ratio"]
        np.testing.assert_allclose(written, expected, rtol=1e-5)

    def test_nodes_without_a_sample_keep_one_scale_for_all(self, uneven, fit, tmp_path):
        table = pd.read_csv(uneven)
        table = table[(table["station"] != 4) | (table["period"] == "before")]
        table.to_csv(tmp_path / "sparse.csv", index=False)
        result, folder = fit(tmp_path / "sparse.csv", *ALONG_THE_ROAD)
        assert gr.load(folder / "model.graphratio").scaling_.nodes is None
        assert "but some nodes lack one of the samples" in plain(result.stderr)
        assert "share little" not in plain(result.stderr)
        refused, _ = fit(tmp_path / "sparse.csv", *ALONG_THE_ROAD, "--standardize", "node")
        assert refused.exit_code == 1
        assert "without reference or target observations: '4'" in plain(refused.stderr)
        assert "numbers of all nodes, --standardize all" in plain(refused.stderr)


class TestLabels:
    def test_compared_as_text(self, write, fit):
        rng = np.random.default_rng(0)
        frame = pd.DataFrame(
            {
                "station": np.repeat(["001", "1", "NA"], 20),
                "period": np.tile([0, 1], 30),
                "pm25": rng.normal(size=60),
            }
        )
        columns = ["--node", "station", "--sample", "period", "--reference", 0, "--target", 1]
        edges = write("a,b\n001,1\n1,NA\n", "edges.csv")
        result, folder = fit(write(frame), "--edges", edges, columns=columns)
        assert result.exit_code == 0, result.stderr
        nodes = pd.read_csv(folder / "nodes.csv", dtype=str, keep_default_na=False)
        assert nodes["node"].tolist() == ["001", "1", "NA"]

    def test_types_of_parquet(self, fit, tmp_path):
        rng = np.random.default_rng(0)
        frame = pd.DataFrame(
            {
                "station": pd.Categorical.from_codes(np.repeat([0, 1], 20), [1.0, 2.0]),
                "period": np.tile(pd.to_datetime(["2020-01-01", "2021-01-01"]), 20),
                "pm25": rng.normal(size=40),
            }
        )
        frame.to_parquet(tmp_path / "data.parquet")
        columns = ["--node", "station", "--sample", "period"]
        columns += ["--reference", "2020-01-01", "--target", "2021-01-01"]
        result, folder = fit(tmp_path / "data.parquet", "--no-graph", columns=columns)
        assert result.exit_code == 0, result.stderr
        assert nodes_of(folder)["node"].tolist() == ["1", "2"]


class TestGraphs:
    def test_edges_with_weights(self, data, edges, fit):
        result, folder = fit(data, *FEATURES, "--edges", edges)
        assert result.exit_code == 0
        graph = gr.load(folder / "model.graphratio").graph_
        assert graph.degrees.tolist() == [1.5, *[3.0] * 6, 1.5]
        assert graph.coordinates is None

    def test_edges_and_coordinates_give_a_map(self, data, edges, fit):
        _, folder = fit(data, *FEATURES, "--edges", edges, "--coordinates", "lat,lon")
        graph = gr.load(folder / "model.graphratio").graph_
        assert graph.n_edges == 7
        assert graph.metric == "haversine"
        assert graph.coordinates[3].tolist() == [53.0, 4.0]

    def test_both_directions_are_one_edge(self, data, write, fit):
        text = "".join(f"s{v},s{v + 1}\ns{v + 1},s{v}\n" for v in range(7))
        result, folder = fit(data, *FEATURES, "--edges", write("a,b\n" + text, "edges.csv"))
        assert "7 edges are given in both directions" in result.stderr
        assert gr.load(folder / "model.graphratio").graph_.n_edges == 7

    def test_isolated_nodes_when_allowed(self, data, write, fit):
        edges = write("a,b\n" + "".join(f"s{v},s{v + 1}\n" for v in range(6)), "edges.csv")
        options = ("--allow-isolated", "--estimator", "grulsif")
        result, folder = fit(data, *FEATURES, "--edges", edges, *options)
        assert "nodes without edges, estimated on their own: 's7'" in result.stderr
        assert gr.load(folder / "model.graphratio").graph_.isolated == ("s7",)

    def test_nodes_without_rows_borrow_or_stay_out(self, data, edges, run, tmp_path):
        with open(edges, "a", encoding="utf-8") as stream:
            stream.write("s7,x,1\ny,z,1\n")
        folder = tmp_path / "out"
        arguments = ["fit", data, *COLUMNS, *FEATURES, "--edges", edges, "--output", folder]
        result = run(*arguments, "--coordinates", "lat,lon")
        assert result.exit_code == 0, result.stderr
        assert "names 1 node without rows in the table" in result.stderr
        assert "left out 2 nodes of the edges file without a path" in result.stderr
        assert "no map: 1 node" in result.stderr
        nodes = nodes_of(folder)
        assert nodes["node"].tolist()[-1] == "x"
        assert nodes["divergence"].isna().tolist() == [False] * 8 + [True]

    @pytest.mark.parametrize(
        ("names", "options", "metric"),
        [
            (("lat", "lon"), [], "haversine"),
            (("Latitude", "LONG"), [], "haversine"),
            (("x", "y"), [], "euclidean"),
            (("x", "y"), ["--metric", "haversine"], "haversine"),
            (("lat", "lon"), ["--metric", "euclidean"], "euclidean"),
        ],
    )
    def test_metric_goes_by_the_names(self, table, write, fit, names, options, metric):
        renamed = table.rename(columns=dict(zip(("lat", "lon"), names, strict=True)))
        arguments = ["--coordinates", ",".join(names), "--neighbors", 1, *options]
        result, folder = fit(write(renamed), *FEATURES, *arguments)
        assert result.exit_code == 0, result.stderr
        assert gr.load(folder / "model.graphratio").graph_.metric == metric


class TestTimes:
    @pytest.mark.parametrize(
        "options",
        [
            ["--split", "2020-03-01"],
            ["--split", "2020-03"],
            ["--split", "2020-03-10"],
            ["--reference-range", "2020-02-01:2020-02-10", "--target-range", "2020-03:2020-03"],
            [
                "--reference-range", "2020-02-01T00:00:2020-02-28T12:00",
                "--target-range", "2020-02-29:2021",
            ],
        ],
    )  # fmt: skip
    @pytest.mark.parametrize("clock", ["", " 00:00:00", "T00:00:00Z"])
    def test_dates(self, table, write, fit, options, clock):
        columns = ["--node", "station", "--time", "date", *options]
        data = write(table.assign(date=table["date"] + clock))
        result, folder = fit(data, *FEATURES, "--no-graph", columns=columns)
        assert result.exit_code == 0, result.stderr
        assert (nodes_of(folder)[["n_reference", "n_target"]] == 15).all(axis=None)
        assert nodes_of(folder).nlargest(3, "divergence")["node"].min() == "s5"

    def test_numbers(self, table, write, fit):
        years = table["date"].map({"2020-02-10": 1999, "2020-03-10": 2001})
        columns = ["--node", "station", "--time", "date", "--split", 2000]
        result, _ = fit(write(table.assign(date=years)), *FEATURES, "--no-graph", columns=columns)
        assert "Compared 'from 2000' (target) with 'before 2000' (reference)" in result.stdout

    def test_times_beside_a_sample_change_no_fit(self, data, fit, tmp_path):
        options = [*FEATURES, "--no-graph", "--output"]
        plain, _ = fit(data, *options, tmp_path / "plain")
        timed, _ = fit(data, *options, tmp_path / "timed", "--time", "date")
        assert plain.exit_code == timed.exit_code == 0, timed.stderr
        pd.testing.assert_frame_equal(nodes_of(tmp_path / "plain"), nodes_of(tmp_path / "timed"))

    def test_times_outside_and_empty_ones(self, table, write, fit):
        dates = table["date"].copy()
        dates[:2] = ["2030-01-01", None]
        columns = ["--node", "station", "--time", "date"]
        columns += ["--reference-range", "2020-02:2020-02", "--target-range", "2020-03:2020-03"]
        data = write(table.assign(date=dates))
        result, _ = fit(data, *FEATURES, "--no-graph", "--missing", "drop", columns=columns)
        assert "2 of 240 rows are in neither sample: other times" in result.stderr


class TestUsage:
    @pytest.mark.parametrize(
        ("arguments", "words"),
        [
            ([], "DATA"),
            (["DATA", *COLUMNS], "--edges FILE"),
            (["DATA", *COLUMNS, "--no-graph", "--edges", "e.csv"], "not both"),
            (["DATA", "--node", "s", "--no-graph"], "--time COLUMN"),
            (["DATA", *COLUMNS[:6], "--no-graph"], "both --reference"),
            (
                ["DATA", *COLUMNS, "--time", "t", "--split", "2020", "--no-graph"],
                "--sample divides them too",
            ),
            (["DATA", *COLUMNS, "--split", "2020", "--no-graph"], "--split"),
            (["DATA", "--node", "s", "--time", "t", "--no-graph"], "either --split"),
            (["DATA", "--node", "s", "--time", "t", "--target", "x", "--no-graph"], "--sample"),
            (["DATA", *COLUMNS, "--no-graph", "--alpha", "1"], "below"),
            (["DATA", *COLUMNS, "--no-graph", "--alpha", "2"], "below"),
            (["DATA", *COLUMNS, "--no-graph", "--estimator", "magic"], "magic"),
            (["DATA", *COLUMNS, "--no-graph", "--nonsense"], "--nonsense"),
        ],
    )
    def test_usage_errors_exit_with_2(self, run, arguments, words):
        for command in ("report", "fit"):
            result = run(command, *arguments)
            assert result.exit_code == 2
            assert words in plain(result.stderr)

    @pytest.mark.parametrize("command", ["report", "fit", "predict", "info", "demo"])
    def test_help_teaches_by_example(self, run, command):
        result = run(command, "--help")
        assert result.exit_code == 0
        after_usage = plain(result.stdout).partition("]")[2]
        assert f" graphratio {command} " in after_usage


def test_a_table_of_many_nodes_is_quick(run, tmp_path):
    """A tenth of the size that must take less than 15 s, all the way to the report."""
    rng = np.random.default_rng(0)
    n_nodes, n = 40, 2 * 100
    frame = pd.DataFrame(rng.normal(size=(n_nodes * n, 3)), columns=["a", "b", "c"])
    frame.insert(0, "station", np.repeat([f"s{v}" for v in range(n_nodes)], n))
    frame.insert(1, "period", np.tile(["before", "after"], n_nodes * n // 2))
    frame["x"] = frame["station"].str[1:].astype(float)
    frame["y"] = 0.0
    frame.to_csv(tmp_path / "data.csv", index=False)
    began = time.process_time()
    result = run(
        "report", tmp_path / "data.csv", *COLUMNS, "--features", "a,b,c", "--coordinates", "x,y",
        "--output", tmp_path / "out",
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    assert time.process_time() - began < 8


def test_without_pyarrow_it_says_what_to_install(run, write, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    result = run("fit", write(b"PAR1", "data.parquet"), *COLUMNS, "--no-graph")
    assert result.exit_code == 1
    assert 'pip install ".[parquet]"' in " ".join(result.stderr.split())


@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
def test_progress_on_a_terminal_only(data, run, program, tmp_path, monkeypatch, capsys):
    """The same command with standard error on a terminal draws a bar, and stays quiet elsewhere."""
    arguments = ["fit", data, *COLUMNS, *FEATURES, "--no-graph", "--estimator", "pool"]
    arguments += ["--output", str(tmp_path / "out"), "--overwrite"]
    ours, theirs = os.openpty()
    shown = []

    def read():
        # A closed terminal ends in an error, not in an empty read.
        with contextlib.suppress(OSError):
            while part := os.read(ours, 4096):
                shown.append(part)

    # A terminal keeps little: what is not read would stop the program.
    reader = threading.Thread(target=read)
    reader.start()
    with open(theirs, "w") as terminal, monkeypatch.context() as patch:
        patch.setattr(sys, "stderr", terminal)
        program.main(arguments, standalone_mode=False)
    reader.join()
    os.close(ours)
    assert b"model selection: [####################]" in b"".join(shown)
    assert "model selection" not in capsys.readouterr().out
    elsewhere = run(*arguments)
    assert elsewhere.exit_code == 0, elsewhere.stderr
    assert "model selection" not in elsewhere.stderr
    assert "note: features were standardised" in elsewhere.stderr


def test_an_edges_file_without_a_header_is_refused(data, write, run, tmp_path):
    edges = write("".join(f"s{v},s{v + 1}\n" for v in range(7)), "bare.csv")
    result = run("fit", data, *COLUMNS, *FEATURES, "--edges", edges, "--output", tmp_path / "bare")
    assert result.exit_code == 1
    assert "is an edge, 's0' - 's1', and not a header" in result.stderr


def test_an_older_report_does_not_stay_beside_new_results(data, fit):
    result, folder = fit(data, *FEATURES, "--no-graph")
    assert result.exit_code == 0, result.stderr
    (folder / "report.html").write_text("old", encoding="utf-8")
    (folder / "thesis.txt").write_text("mine", encoding="utf-8")
    result, folder = fit(data, *FEATURES, "--no-graph")
    assert result.exit_code == 0, result.stderr
    assert sorted(path.name for path in folder.iterdir()) == [
        "model.graphratio",
        "nodes.csv",
        "thesis.txt",
    ]


def test_ratios_are_shrunk_towards_no_change(data, fit):
    _, folder = fit(data, *FEATURES, "--no-graph", "--estimator", "pool")
    assert gr.load(folder / "model.graphratio").prior_ratio == 1
