"""Blocks: what belongs together, at one node and at all of them."""

import numpy as np
import pytest

import graphratio as gr
from graphratio.data.block_cutting import joint_blocks
from graphratio.data.durations import DAY, calendar_number, duration_words, parse_duration
from graphratio.exceptions import InputError


def hours(n, start="2020-03-02"):
    return np.datetime64(start, "h") + np.arange(n)


def built(n=10, m=10, n_nodes=2, time="shared", **options):
    """Independent values; shared times, own times, or none."""
    rng = np.random.default_rng(0)
    reference, target = rng.normal(size=(n_nodes, n)), rng.normal(size=(n_nodes, m))
    if time == "shared":
        options["time"] = (range(n), range(n, n + m))
    elif time == "own":
        stamps = rng.permutation(n_nodes * (n + m)).reshape(n_nodes, -1)
        options["time"] = (stamps[:, :n], stamps[:, n:])
    elif time is not None:
        options["time"] = time
    return gr.NodeSamples.from_arrays(list(reference), list(target), **options)


def together(samples):
    """The sets of rows that are a block at a node."""
    number, node = samples.blocks.number, samples.node_index
    return {
        tuple(np.flatnonzero((number == k) & (node == v)))
        for k, v in zip(number, node, strict=True)
    }


def test_without_time_nothing_is_guessed():
    smooth = np.cumsum(np.random.default_rng(0).normal(size=300))
    samples = gr.NodeSamples.from_arrays(smooth[:150], smooth[150:])
    blocks = samples.blocks
    assert (blocks.kind, blocks.exist, blocks.describe()) == ("none", False, "")
    np.testing.assert_array_equal(blocks.counts, samples.sizes)


def test_a_number_without_time_follows_the_rows():
    samples = built(7, 5, time=None, block=3)
    assert together(samples) == {
        (0, 1, 2), (3, 4, 5, 6), (7, 8, 9, 10, 11), (12, 13, 14), (15, 16, 17, 18),
        (19, 20, 21, 22, 23),
    }  # fmt: skip
    np.testing.assert_array_equal(samples.blocks.counts, [[2, 1], [2, 1]])
    # The rest is in the block before it, and marked.
    assert np.flatnonzero(~samples.blocks.whole).tolist() == [6, 10, 11, 18, 22, 23]
    assert not samples.blocks.shared


@pytest.mark.parametrize("time", ["shared", "own"])
def test_a_number_follows_the_times(time):
    samples = built(12, 8, 3, time=time, block=4)
    for rows in together(samples):
        own = samples.segments == samples.segments[rows[0]]
        ordered = np.flatnonzero(own)[np.argsort(samples.time[own])]
        first = int(np.flatnonzero(ordered == min(rows, key=lambda i: samples.time[i]))[0])
        assert sorted(ordered[first : first + 4]) == list(rows)
    assert samples.blocks.shared == (time == "shared")


def test_shared_times_have_the_same_number_at_all_nodes():
    blocks = built(12, 8, 3, block=4).blocks
    np.testing.assert_array_equal(blocks.number.reshape(3, 20), np.tile(blocks.number[:20], (3, 1)))
    assert set(blocks.number[:12]).isdisjoint(blocks.number[12:20])


def test_shared_times_with_a_gap_at_one_node():
    """A node that missed a time keeps the blocks of the others."""
    samples = gr.NodeSamples.from_arrays(
        [np.zeros(6), np.zeros(5)],
        [np.zeros(3), np.zeros(3)],
        time=([range(6), [0, 2, 3, 4, 5]], [range(6, 9)] * 2),
        block=3,
    )
    assert samples.blocks.number.tolist() == [0, 0, 0, 1, 1, 1, 2, 2, 2, 0, 0, 1, 1, 1, 2, 2, 2]


def test_times_that_repeat_at_a_node_are_counted_per_node():
    samples = built(6, 6, time=([0, 0, 1, 1, 2, 2], [3, 3, 4, 4, 5, 5]), block=2)
    assert not samples.blocks.shared
    assert {len(rows) for rows in together(samples)} == {2}


def test_calendar_blocks_keep_days_whole():
    samples = built(50, 30, time=(hours(50), hours(30, "2020-07-01")), block="1D")
    blocks = samples.blocks
    days = samples.time.astype("M8[D]")
    for a in range(80):
        np.testing.assert_array_equal(
            blocks.number == blocks.number[a],
            (days == days[a]) & (samples.is_target == samples.is_target[a]),
        )
    assert (blocks.kind, blocks.words(), blocks.shared) == ("calendar", "whole days", True)
    # The third day has two hours and the second one of the target six: no complete blocks.
    np.testing.assert_array_equal(blocks.counts, [[2, 1], [2, 1]])


def test_a_day_in_both_samples_is_two_blocks():
    samples = built(4, 4, 1, time=(hours(4), hours(4) + 8), block="1D")
    assert len(set(samples.blocks.number)) == 2


@pytest.mark.parametrize(
    ("block", "words"),
    [("6h", "blocks of 6 hours"), ("1W", "blocks of 7 days"), ("36h", "blocks of 36 hours"),
     ("90min", "blocks of 90 minutes"), ("d", "whole days"), (5, "blocks of 5 observations"),
     (None, "observations")],
)  # fmt: skip
def test_words(block, words):
    samples = built(50, 50, time=(hours(50), hours(50, "2020-07-01")), block=block)
    assert samples.blocks.words() == words
    assert bool(samples.blocks.describe()) == (block is not None)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("1D", 86400), ("2d", 172800), ("6h", 21600), ("6H", 21600), ("30min", 1800), ("10s", 10),
     ("1W", 604800), (" 3 h ", 10800)],
)  # fmt: skip
def test_durations(text, seconds):
    assert parse_duration(text) == np.timedelta64(seconds, "s")


def test_weeks_begin_on_monday():
    days = np.arange("2024-01-01", "2024-01-15", dtype="M8[D]").astype("M8[us]")
    number = calendar_number(days, 7 * DAY)
    assert np.unique(number, return_counts=True)[1].tolist() == [7, 7]


def test_pieces_of_several_days_begin_with_the_data():
    for start in ("2020-03-02", "2020-03-03", "2020-03-04"):
        number = calendar_number(hours(96, start).astype("M8[us]"), 2 * DAY)
        assert np.unique(number, return_counts=True)[1].tolist() == [48, 48]


def test_duration_words():
    assert duration_words(np.timedelta64(1, "D")) == "1 day"
    assert duration_words(np.timedelta64(60, "m")) == "60 minutes"
    assert duration_words(np.timedelta64(5, "s")) == "5 seconds"


@pytest.mark.parametrize(
    ("block", "time", "message"),
    [
        ("weekly", "shared", 'block="weekly" is not a duration'),
        ("0h", "shared", 'block="0h" is not a duration'),
        (0, "shared", "block"),
        (2.5, "shared", "block"),
        ("1D", "shared", "is a duration, but the times are numbers"),
        ("1D", None, "is a duration, but there are no times"),
    ],
)
def test_specifications_that_cannot_be(block, time, message):
    with pytest.raises(InputError, match=message):
        built(time=time, block=block)


def test_parts_keep_their_blocks():
    samples = built(12, 8, 3, block=4, nodes=[0, 1, 2])
    rows = np.random.default_rng(1).random(60) < 0.6
    some = samples.subset(observations=rows)
    np.testing.assert_array_equal(some.blocks.number, samples.blocks.number[rows])
    turned = samples.aligned([2, 0, 1])
    np.testing.assert_array_equal(
        turned.blocks.number, samples.blocks.number.reshape(3, 20)[[2, 0, 1]].ravel()
    )
    np.testing.assert_array_equal(turned.standardized().blocks.number, turned.blocks.number)
    np.testing.assert_array_equal(samples.subset([1]).blocks.counts, [[3, 2]])


def test_joint_blocks_hold_all_nodes():
    own = built(6, 6, 2, time="own", block=3)
    joint = joint_blocks(own, own.time, own.blocks)
    order = np.argsort(own.time + 1000 * own.is_target)
    np.testing.assert_array_equal(joint.number[order], np.repeat(np.arange(8), 3))
    single = built(4, 4, 2, block=None)
    joint = joint_blocks(single, single.time, single.blocks)
    np.testing.assert_array_equal(joint.number, np.tile(np.arange(8), 2))


def test_a_sample_shorter_than_a_measured_block_is_one_block():
    smooth = np.convolve(np.random.default_rng(0).normal(size=230), np.ones(31), mode="valid")
    samples = gr.NodeSamples.from_arrays(
        {"a": smooth[:95], "b": smooth[:10]},
        {"a": smooth[95:190], "b": smooth[95:105]},
        time=({"a": range(95), "b": range(10)}, {"a": range(95, 190), "b": range(95, 105)}),
    )
    assert samples.blocks.length > 10
    np.testing.assert_array_equal(samples.blocks.counts[1], [1, 1])


@pytest.mark.parametrize(("phi", "n"), [(0.5, 400), (0.8, 800)])
def test_blocks_know_what_they_lose_of_the_variance(phi, n):
    rng = np.random.default_rng(5)
    x = rng.normal(size=(30, 2 * n))
    for t in range(1, 2 * n):
        x[:, t] = phi * x[:, t - 1] + np.sqrt(1 - phi**2) * x[:, t]
    samples = gr.NodeSamples.from_arrays(
        list(x[:, :n]), list(x[:, n:]), time=(np.arange(n), np.arange(n, 2 * n))
    )
    length = samples.blocks.length
    lag = np.arange(1, length)
    of_block = 1 + 2 * np.sum((1 - lag / length) * phi**lag)
    of_all = (1 + phi) / (1 - phi)
    np.testing.assert_allclose(samples.blocks.lost, 1 - of_block / of_all, rtol=0.3)


def test_given_blocks_and_independent_data_lose_nothing():
    rng = np.random.default_rng(6)
    arrays = [list(rng.normal(size=(4, 60))) for _ in range(2)]
    for options in ({}, {"block": 5}, {"time": (np.arange(60), np.arange(60, 120))}):
        assert not gr.NodeSamples.from_arrays(*arrays, **options).blocks.lost.any()


@pytest.mark.parametrize("dates", [True, False])
def test_days_that_depend_on_each_other_lose_less_the_more_of_them_are_merged(dates):
    rng = np.random.default_rng(8)
    days = np.arange(240)
    level = rng.normal(size=(2, 240))
    for day in range(1, 240):
        level[:, day] = 0.6 * level[:, day - 1] + 0.8 * level[:, day]
    values = [list(np.repeat(side, 6) + rng.normal(size=(5, 1440))) for side in level]
    stamps = [np.repeat(days + 1000 * side, 6) for side in (0, 1)]
    if dates:
        hours = np.tile(np.arange(6), 240)
        begin = np.datetime64("2020-01-01T00", "h")
        stamps = [begin + 24 * stamp + 3 * hours for stamp in stamps]
    samples = gr.NodeSamples.from_arrays(*values, time=tuple(stamps))
    blocks = samples.blocks
    assert blocks.measured.by_day
    merged = samples.exchangeable().blocks
    assert merged.n_units == blocks.exchange > 1
    tau = blocks.measured.day_tau
    np.testing.assert_allclose(merged.lost, (tau - 1 / tau) / 2 / blocks.exchange)
