"""Data checks: each finds what it is for, and nothing in clean data."""

import numpy as np
import pytest

import graphratio as gr
from graphratio._utils.errors import Argument
from graphratio.data.checks import checks_before
from graphratio.data.frames import make_frame


def clean(n_nodes=6, n=60, d=1, seed=0, **options):
    rng = np.random.default_rng(seed)
    reference, target = rng.normal(10, 1, size=(2, n_nodes, n, d))
    return reference, target, options


def built(reference, target, options=None):
    return gr.NodeSamples.from_arrays(reference, target, **(options or {}))


def kinds(samples):
    return [finding.kind for finding in samples.check()]


def only(samples):
    findings = list(samples.check())
    assert len(findings) == 1, findings
    return findings[0]


def hours(n, start="2020-03-02"):
    return np.datetime64(start, "h") + np.arange(n)


LAWS = {
    "normal": lambda rng, shape: rng.normal(10, 1, shape),
    "heavy": lambda rng, shape: rng.standard_t(3, shape),
    "skewed": lambda rng, shape: np.exp(rng.normal(size=shape)),
    "rounded": lambda rng, shape: rng.normal(10, 1, shape).round(1),
    "counts": lambda rng, shape: rng.poisson(3, shape).astype(float),
    "binary": lambda rng, shape: (rng.random(shape) < 0.2).astype(float),
    "far apart": lambda rng, shape: (
        rng.normal(size=shape) + 100 * np.arange(shape[1])[:, None, None]
    ),
}


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("d", [1, 3])
@pytest.mark.parametrize("timed", [False, True])
def test_clean_data_have_no_findings(law, d, timed):
    rng = np.random.default_rng(0)
    options = {"time": (hours(80), hours(80, "2020-05-04"))} if timed else {}
    found = []
    for _ in range(20):
        reference, target = LAWS[law](rng, (2, 8, 80, d))
        found += built(reference, target, options).check().findings
    # "Months" of two different ones, and one in a hundred for the order of rows.
    assert len(found) <= 2, [finding.text() for finding in found]


def test_nothing_is_changed():
    reference, target, _ = clean()
    samples = built(reference, target)
    before = samples.values.copy()
    samples.check()
    np.testing.assert_array_equal(samples.values, before)


class TestValues:
    @pytest.mark.parametrize("d", [1, 2])
    @pytest.mark.parametrize("timed", [False, True])
    def test_duplicates(self, d, timed):
        reference, target, _ = clean(d=d)
        reference[2, 50:] = reference[2, 30:40]
        target[4, 7] = target[4, 3]
        options = {}
        if timed:
            when = np.tile(hours(60), (6, 1))
            when[2, 50:] = when[2, 30:40]
            options["time"] = (when, hours(60, "2021-03-01"))
        found = only(built(reference, target, options))
        assert (found.kind, found.count) == ("duplicates", 10 if timed else 11)
        assert found.nodes == ((2,) if timed else (2, 4))
        assert "remove the copies" in found.remedy()

    def test_rounded_values_repeat_by_chance(self):
        reference, target, _ = clean(d=2)
        assert not len(built(reference.round(1), target.round(1)).check())

    def test_zeros_for_missing_values(self):
        reference, target, options = clean(feature_names=["flow"])
        reference[1, ::4], target[1, ::5], target[3, :6] = 0, 0, 0
        found = only(built(reference, target, options))
        assert (found.kind, found.feature, found.nodes) == ("spike", "flow", (1, 3))
        assert found.count == 15 + 12 + 6
        assert "the value 0 makes up" in found.text()
        assert found.remedy() == 'Replace it by NaN and pass missing="drop"'

    def test_different_spikes_are_one_finding(self):
        reference, target, _ = clean()
        reference[1, :10], reference[2, :10] = -999, -99
        spikes = [one for one in built(reference, target).check() if one.kind == "spike"]
        assert len(spikes) == 1
        assert "single values such as" in spikes[0].text()

    def test_discrete_features_have_no_spikes(self):
        rng = np.random.default_rng(0)
        reference, target = rng.choice([0.0, 1, 2], p=[0.9, 0.05, 0.05], size=(2, 4, 100, 1))
        assert "spike" not in kinds(built(reference, target))

    @pytest.mark.parametrize("wrong", [999.0, -273.0])
    def test_values_far_outside(self, wrong):
        reference, target, options = clean(feature_names=["pm25"])
        target[5, 11] = wrong
        found = only(built(reference, target, options))
        assert (found.kind, found.count, found.nodes) == ("outliers", 1, (5,))
        assert f"such as {wrong:g}" in found.text()
        assert 'log="pm25"' in found.remedy()

    def test_scales(self):
        reference, target, _ = clean(d=3)
        reference[..., 1] *= 1000
        target[..., 1] *= 1000
        samples = built(reference, target)
        found = only(samples)
        assert (found.kind, found.feature, found.count) == ("scales", "x1", 2)
        assert not len(samples.standardized().check())
        assert samples.check().sentences(without=("scales",)) == []

    def test_nodes_that_hardly_vary(self):
        reference, target, _ = clean()
        reference[1], target[1] = 1 + reference[1] / 200, 1 + target[1] / 200
        finding = only(built(reference, target, {"feature_names": ["pressure"]}))
        assert (finding.kind, finding.nodes, finding.feature) == ("node scales", (1,), "pressure")
        told = "at 1 node (1) 'pressure' varies less than 1/100 as much as at others"
        assert told in finding.sentence
        assert Argument("log", "pressure") in finding.help
        below = only(built(reference - 20, target - 20, {"feature_names": ["pressure"]}))
        assert Argument("log", "pressure") not in below.help
        # A constant has no scale, and a factor of 50 is usual.
        reference[1], target[1] = 0.1, 0.3
        reference[2], target[2] = reference[2] / 50, target[2] / 50
        assert "node scales" not in kinds(built(reference, target))

    def test_few_observations(self):
        rng = np.random.default_rng(0)
        samples = built(
            {"a": rng.normal(size=5), "b": rng.normal(size=30)},
            {"a": rng.normal(size=30), "b": rng.normal(size=30)},
        )
        found = only(samples)
        assert (found.kind, found.count, found.nodes) == ("few", 1, ("a",))

    def test_indicators_of_categories_are_left_alone(self):
        rng = np.random.default_rng(0)
        table = make_frame(
            {
                "v": ["a", "b"] * 100,
                "s": ["r"] * 100 + ["t"] * 100,
                "x": rng.normal(size=200),
                "sky": (["clear"] * 19 + ["rain"]) * 10,
            },
            "pandas",
        )
        samples = gr.NodeSamples.from_frame(table, "v", "s", "r", "t", categorical="sky")
        assert not set(kinds(samples)) & {"spike", "outliers", "stuck"}


class TestTimes:
    times = (hours(60), hours(60, "2021-03-01"))

    def test_stuck_sensors(self):
        reference, target, _ = clean()
        reference[3, 20:40] = 11.5
        found = [
            one for one in built(reference, target, {"time": self.times}).check()
            if one.kind == "stuck"
        ]  # fmt: skip
        assert [(one.count, one.nodes) for one in found] == [(20, (3,))]
        assert "up to 20 observations" in found[0].text()
        # Without times the order of rows is no order in time.
        assert "stuck" not in kinds(built(reference, target))

    def test_a_run_in_time_needs_no_order_of_rows(self):
        reference, target, _ = clean()
        reference[3, 20:40] = 11.5
        order = np.random.default_rng(0).permutation(60)
        times = (self.times[0][order], self.times[1])
        assert "stuck" in kinds(built(reference[:, order], target, {"time": times}))

    def test_frequent_values_have_long_runs_by_chance(self):
        rng = np.random.default_rng(0)
        reference, target = (rng.random((2, 10, 60, 1)) < 0.2).astype(float)
        assert "stuck" not in kinds(built(reference, target, {"time": self.times}))

    def test_a_sensor_that_never_moves(self):
        reference, target, _ = clean()
        reference[2] = 4.0
        assert "stuck" in kinds(built(reference, target, {"time": self.times}))

    def test_overlap(self):
        reference, target, _ = clean()
        when = np.tile(hours(60, "2021-03-01"), (6, 1))
        when[4] = hours(60) + 30
        found = [
            one for one in built(reference, target, {"time": (hours(60), when)}).check()
            if one.kind == "overlap"
        ]  # fmt: skip
        assert [(one.count, one.nodes) for one in found] == [(1, (4,))]

    def test_hours_of_the_day(self):
        reference, target, _ = clean(n=240)
        day = np.arange(240)
        working = np.datetime64("2020-03-02", "h") + 24 * (day // 10) + 8 + day % 10
        around = np.datetime64("2021-03-01", "h") + day
        found = [
            one for one in built(reference, target, {"time": (working, around)}).check()
            if "hours of the day" in one.text()
        ]  # fmt: skip
        assert len(found) == 1
        assert "58 % of the target" in found[0].text()
        assert "reference hardly covers: 0h, 1h, 2h" in found[0].text()

    def test_weekdays(self):
        reference, target, _ = clean(n=40)
        working = np.busday_offset("2020-03-02", np.arange(40))
        every = np.datetime64("2021-03-01") + np.arange(40)
        texts = [one.text() for one in built(reference, target, {"time": (working, every)}).check()]
        assert any(
            "weekdays that the reference hardly covers: Saturday, Sunday" in t for t in texts
        )

    def test_one_sample_of_a_single_day(self):
        reference, target, _ = clean(n=24)
        hours = np.datetime64("2020-03-02T00") + np.arange(24)
        days = np.datetime64("2020-04-06T00") + 25 * np.arange(24)
        texts = [one.text() for one in built(reference, target, {"time": (hours, days)}).check()]
        assert any(text.startswith("the reference sample covers a single day") for text in texts)

    def test_months_that_only_one_sample_covers(self):
        reference, target, _ = clean(n=360)
        year = np.datetime64("2019-01-01") + np.arange(360)
        spring = np.datetime64("2020-01-01") + np.arange(360) // 4
        texts = [one.text() for one in built(reference, target, {"time": (year, spring)}).check()]
        assert any(
            "of the reference lies in months that the target hardly covers" in t for t in texts
        )

    def test_winter_against_summer_is_a_question(self):
        reference, target, _ = clean(n=60)
        winter = np.datetime64("2020-01-01") + np.arange(60)
        summer = np.datetime64("2020-07-01") + np.arange(60)
        assert "seasons" not in kinds(built(reference, target, {"time": (winter, summer)}))


class TestRows:
    def test_rows_that_follow_each_other(self):
        rng = np.random.default_rng(0)
        smooth = np.cumsum(rng.normal(size=(2, 6, 60, 1)), axis=2)
        found = only(built(*smooth))
        assert found.kind == "dependent rows"
        assert found.remedy() == "Say when they were made: pass time"
        assert "dependent rows" not in kinds(built(*smooth, {"time": (range(60), range(60, 120))}))
        assert "dependent rows" not in kinds(built(*smooth, {"block": None}))

    @pytest.mark.parametrize("step", [1, -1])
    def test_sorted_rows_are_reported_as_sorted(self, step):
        reference, target, options = clean(feature_names=["x"])
        found = only(
            built(
                np.sort(reference, axis=1)[:, ::step], np.sort(target, axis=1)[:, ::step], options
            )
        )
        assert (found.kind, found.feature) == ("sorted rows", "x")


def test_representations():
    reference, target, options = clean(feature_names=["flow"])
    assert repr(built(reference, target, options).check()) == "no findings"
    assert "no findings" in built(reference, target, options).check()._repr_html_()
    target[5, 11] = 1e6
    checks = built(reference, target, options).check()
    assert repr(checks).startswith("1 finding:\n  1 value of 'flow' lies far outside")
    assert checks.findings[0].remedy().startswith("Correct it, ")
    assert "such as 1e+06" in checks._repr_html_()
    assert len(checks.sentences()) == len(checks) == 1


def test_empty_samples_and_single_observations():
    samples = gr.NodeSamples.from_arrays(
        {"a": [1.0], "b": []}, {"a": [2.0], "b": [3.0]}, time=({"a": [0]}, {"a": [1], "b": [2]})
    )
    assert kinds(samples) == ["few"]


class TestLogarithms:
    """What a logarithm resolves is not reported once it was taken."""

    @staticmethod
    def skewed(far=1.0):
        rng = np.random.default_rng(0)
        sizes = 10.0 ** np.arange(5)[:, np.newaxis]
        before, after = sizes * np.exp(rng.normal(0, 0.2, (2, 5, 60)))
        before[0, 0] *= far
        return gr.NodeSamples.from_arrays(list(before), list(after), feature_names=["sales"])

    def test_scales_of_nodes_are_judged_as_the_fit_sees_them(self):
        samples = self.skewed()
        assert Argument("log", "sales") in only(samples).help
        logged = samples.standardized(log="sales")
        assert not checks_before(samples, logged.scaling).findings
        assert len(checks_before(samples, samples.standardized().scaling)) == 1
        assert len(checks_before(samples, None)) == 1

    def test_an_outlier_is_still_one(self):
        samples = self.skewed(far=1e6)
        logged = samples.standardized(log="sales")
        (found,) = checks_before(samples, logged.scaling)
        assert found.kind == "outliers"
        assert f"such as {samples.reference(0)[0, 0]:g}" in found.text()
        assert found.remedy() == "Correct it"
        assert logged.check().findings[0].remedy() == "Correct it"

    def test_a_long_tail_is_none_beside_its_logarithm_and_tiny_values_are_outliers(self):
        rng = np.random.default_rng(0)
        tail = gr.NodeSamples.from_arrays(
            list(np.exp(rng.normal(0, 2.5, (2, 400)))),
            list(np.exp(rng.normal(0, 2.5, (2, 400)))),
            feature_names=["sales"],
        )
        assert kinds(tail) == ["outliers"]
        assert not checks_before(tail, tail.standardized(log="sales").scaling).findings
        before, after = np.exp(rng.normal(0, 0.1, (2, 3, 60)))
        after[1, 5] = 1e-9
        tiny = gr.NodeSamples.from_arrays(list(before), list(after), feature_names=["sales"])
        (found,) = checks_before(tiny, tiny.standardized(log="sales").scaling)
        assert "such as 1e-09" in found.text()
