"""What the number of independent pieces lets a test answer."""

from dataclasses import replace
from math import comb

import numpy as np
import pytest

import graphratio as gr
from graphratio.data.blocks import Blocks
from graphratio.testing.multiplicity import answers, pieces_needed, smallest_p_values


def path(n_nodes):
    return gr.Graph.from_edges([(i, i + 1) for i in range(n_nodes - 1)], nodes=range(n_nodes))


def autoregressive(rng, n_nodes, n, phi):
    x = np.zeros((n_nodes, n + 50))
    noise = rng.normal(size=x.shape) * np.sqrt(1 - phi**2)
    for t in range(1, n + 50):
        x[:, t] = phi * x[:, t - 1] + noise[:, t]
    return x[:, 50:]


def timed(n_nodes, n, phi, seed, shift=0.0, **options):
    rng = np.random.default_rng(seed)
    reference, target = (autoregressive(rng, n_nodes, n, phi) for _ in range(2))
    times = (np.arange(n), np.arange(n) + 10 * n)
    return gr.NodeSamples.from_arrays(list(reference), list(target + shift), time=times, **options)


@pytest.mark.parametrize(("one", "other"), [(3, 3), (2, 5), (7, 7), (1, 9)])
def test_smallest_p_value_is_one_over_the_splits_twice_if_samples_can_be_exchanged(one, other):
    expected = (2 if one == other else 1) / comb(one + other, one)
    assert smallest_p_values(np.array([one, other])) == pytest.approx(expected)


@pytest.mark.parametrize("threshold", [0.5, 0.05, 0.05 / 50, 0.05 / 207, 1e-7])
def test_pieces_needed_is_the_smallest_number(threshold):
    needed = pieces_needed(threshold)
    assert 2 / comb(2 * needed, needed) <= threshold
    assert needed == 1 or 2 / comb(2 * needed - 2, needed - 1) > threshold


def test_a_false_discovery_rate_lets_nodes_support_each_other():
    n_pieces = np.full((40, 2), 5)
    tested = np.ones(40, dtype=bool)
    strict = answers(n_pieces, tested, 0.05 / 40, most=0.05 / 40)
    assert not strict.any
    assert strict.missing == strict.needed - 5
    together = answers(n_pieces, tested, 0.05 / 40, most=0.05)
    assert together.nodes.all()
    # 1 / 252, if neighbours tell exchanged samples apart, is the level times k / 40 for k = 3.17.
    assert together.together == 4
    n_pieces[:, 1] = 6
    # 1 / 462 in any case.
    assert answers(n_pieces, tested, 0.05 / 40, most=0.05).together == 2


def test_too_few_blocks_cannot_say_whatever_the_data_are():
    samples = timed(12, 60, 0.5, seed=0, shift=50.0, block=20)
    found = gr.two_sample_test(samples, path(12), random_state=0)
    assert not found.answerable
    assert not found.answerable_nodes.any()
    assert found.n_rejected == 0
    assert found.summary.startswith("These data cannot say whether any node changed")
    assert "about 3 independent blocks" in found.summary
    assert "3 blocks of 20 observations more" in found.summary
    assert found.answers.n_pieces.tolist() == [[3, 3]] * 12


def test_blocks_longer_than_a_sample_cannot_say():
    samples = timed(4, 30, 0.0, seed=0, block=31)
    for null in ("node", "global"):
        found = gr.two_sample_test(samples, path(4), null=null, random_state=0)
        assert not found.answerable
        assert (found.p_value == 1).all()
        assert "each sample of a node has fewer than one independent block, and" in found.summary


def test_days_are_counted_in_days():
    rng = np.random.default_rng(0)
    hours = np.datetime64("2024-01-01T00") + np.arange(96)
    days = rng.normal(size=(2, 8, 4)).repeat(24, axis=2)
    reference, target = days + 0.3 * rng.normal(size=days.shape)
    samples = gr.NodeSamples.from_arrays(
        list(reference), list(target), time=(hours, hours + np.timedelta64(30, "D"))
    )
    found = gr.two_sample_test(samples, path(8), random_state=0)
    assert samples.blocks.words() == "whole days"
    assert not found.answerable
    assert "You need about 2 days more in each sample" in found.summary


def test_autocorrelated_data_are_answered_where_there_are_enough_blocks():
    found = gr.two_sample_test(timed(12, 150, 0.5, 1, shift=1.5), path(12), random_state=0)
    assert found.answerable
    assert found.n_rejected == 12
    assert any("rests on" in note and "of each sample" in note for note in found.notes)


@pytest.mark.slow
def test_false_alarms_under_autocorrelation_are_those_of_the_level():
    """Without blocks nearly every data set has a false alarm."""
    # Fixed, so that the selection takes no time.
    model = gr.GRULSIF(bandwidth=0.7, graph_penalty=0.5, ridge=0.005)
    options = {"n_permutations": 639, "random_state": 0}
    alarms = 0
    for seed in range(40):
        samples = timed(16, 150, 0.5, seed)
        alarms += gr.two_sample_test(samples, path(16), model, **options).n_rejected > 0
    # 99 % of binomial counts with chance 0.05 are at most 6.
    assert alarms <= 6
    single = timed(16, 150, 0.5, 0, block=None)
    assert gr.two_sample_test(single, path(16), model, **options).n_rejected > 0


def under_one_weather(n_nodes, n_days, seed, shift=0.0):
    """All nodes share the level of every day; four observations a day."""
    rng = np.random.default_rng(seed)
    days = rng.normal(size=(2, 1, n_days)).repeat(4, axis=2)
    reference, target = days + rng.normal(size=(2, n_nodes, 4 * n_days))
    times = np.arange(4 * n_days)
    return gr.NodeSamples.from_arrays(
        list(reference), list(target + shift), time=(times, times + 1000), block=4
    )


def test_correlated_nodes_are_permuted_together():
    """Sixteen nodes and five blocks: enough for the largest of all nodes, not for Holm.

    Own evidence has half of the level, which four blocks do not reach.
    """
    samples = under_one_weather(16, 5, seed=0, shift=6.0)
    found = gr.two_sample_test(samples, path(16), random_state=0)
    assert found.cross_fitted
    assert found.joint
    assert found.answers.needed == 5
    assert found.answerable
    assert found.rejected.all()
    assert found.adjusted_p_value.min() == pytest.approx(2 * 2 / 252, abs=0.01)
    strict = gr.two_sample_test(samples, path(16), correction="fdr-by", random_state=0)
    assert strict.answers.needed > 5


@pytest.mark.slow
def test_false_alarms_of_correlated_nodes_are_those_of_the_level():
    alarms = 0
    for seed in range(40):
        samples = under_one_weather(12, 10, seed)
        found = gr.two_sample_test(samples, path(12), n_permutations=479, random_state=seed)
        alarms += found.n_rejected > 0
    # 99 % of binomial counts with chance 0.05 are at most 6.
    assert alarms <= 6


@pytest.mark.parametrize("n_days", [1, 2, 3])
def test_few_shared_days_reject_nothing(n_days):
    """A single day of each has one split up to an exchange; rounding must not decide."""
    samples = under_one_weather(8, n_days, seed=1, shift=9.0)
    found = gr.two_sample_test(samples, path(8), random_state=0)
    assert not found.answerable
    assert found.n_rejected == 0
    assert found.summary.startswith("These data cannot say")


def test_nothing_is_rejected_that_cannot_be_answered():
    """Also where Holm's later steps, or neighbours, would reach their threshold."""
    rng = np.random.default_rng(0)
    reference, target = list(rng.normal(size=(20, 60))), list(rng.normal(size=(20, 60)) + 3)
    reference[0], target[0] = reference[0][:4], target[0][:4]
    for correction in ("fwer", "fdr", "fdr-by", None):
        found = gr.two_sample_test(
            (reference, target), path(20), correction=correction, random_state=0
        )
        assert not (found.rejected & ~found.answerable_nodes).any()
    found = gr.two_sample_test((reference, target), path(20), random_state=0)
    (note,) = [note for note in found.notes if "cannot say" in note]
    assert "about 4 observations" in note


def test_nodes_without_blocks_do_not_count_as_tests():
    rng = np.random.default_rng(0)
    sizes = [25] * 5 + [4] * 15
    reference = [rng.normal(size=n) for n in sizes]
    target = [rng.normal(5.0, size=n) for n in sizes]
    samples = gr.NodeSamples.from_arrays(reference, target, block=5)
    found = gr.two_sample_test(samples, random_state=0)
    assert found.answerable_nodes.tolist() == [True] * 5 + [False] * 15
    assert found.rejected[:5].all()


def test_false_discovery_rates_need_what_all_nodes_together_can_reach():
    """4 against 4 blocks reach 2 / 70; Benjamini-Yekutieli asks 30 nodes for 0.05 / 4."""
    samples = timed(30, 40, 0.0, seed=0, shift=5.0, block=10)
    assert gr.two_sample_test(samples, correction="fdr", random_state=0).answerable
    assert not gr.two_sample_test(samples, correction="fdr-by", random_state=0).answerable


def test_the_global_null_multiplies_the_splits_of_nodes():
    rng = np.random.default_rng(0)
    sides = rng.normal(size=(2, 30, 20))
    samples = gr.NodeSamples.from_arrays(list(sides[0]), list(sides[1] + 2.0), block=10)
    found = gr.two_sample_test(samples, path(30), null="global", random_state=0)
    assert found.answerable
    assert found.global_p_value < 0.05


def test_a_node_with_a_long_memory_cannot_be_judged_by_short_blocks():
    rng = np.random.default_rng(0)
    reference, target = (autoregressive(rng, 20, 400, 0.2) for _ in range(2))
    reference[3], target[3] = (autoregressive(rng, 1, 400, 0.97)[0] for _ in range(2))
    times = (np.arange(400), np.arange(400) + 4000)
    samples = gr.NodeSamples.from_arrays(list(reference), list(target), time=times)
    found = gr.two_sample_test(samples, path(20), random_state=0)
    assert np.flatnonzero(found.answers.long_memory).tolist() == [3]
    assert not found.rejected[3]
    assert any("longer than a block lasts: 3" in note for note in found.notes)


def test_a_slow_component_under_noise_makes_blocks_long():
    rng = np.random.default_rng(0)
    fast, slow = rng.normal(size=(2, 20, 1000)), [autoregressive(rng, 20, 1000, 0.98)] * 2
    sides = [noise + 0.3 * drift for noise, drift in zip(fast, slow, strict=True)]
    times = (np.arange(1000), np.arange(1000) + 10_000)
    samples = gr.NodeSamples.from_arrays(*(list(side) for side in sides), time=times)
    assert samples.blocks.measured.tau < 15
    # 4 tau would be about 40; the drift has a memory of 50 by itself.
    assert samples.blocks.length > 100


def test_days_that_depend_on_each_other_are_exchanged_in_longer_blocks():
    rng = np.random.default_rng(1)
    levels = np.stack([autoregressive(rng, 8, 60, 0.7) for _ in range(2)]).repeat(6, axis=2)
    reference, target = levels + 0.5 * rng.normal(size=levels.shape)
    hours = np.datetime64("2024-01-01T00") + np.arange(360) * np.timedelta64(4, "h")
    samples = gr.NodeSamples.from_arrays(
        list(reference), list(target), time=(hours, hours + np.timedelta64(200, "D"))
    )
    assert samples.blocks.words() == "whole days"
    count = samples.blocks.exchange
    assert count == int(np.ceil(4 * samples.blocks.measured.day_tau))
    assert count > 4
    merged = samples.exchangeable().blocks
    assert merged.counts.tolist() == [[60 // count] * 2] * 8
    assert merged.duration == count * np.timedelta64(1, "D")
    found = gr.two_sample_test(samples, path(8), random_state=0)
    assert (found.answers.n_pieces == 60 // count).all()
    bounds = gr.divergence_bounds(samples, path(8), gr.Pool(random_state=0), random_state=0)
    assert (bounds.n_pieces <= 60 // count + 1).all()


def test_samples_of_one_day_are_said_to_be():
    rng = np.random.default_rng(0)
    hours = np.datetime64("2024-01-01T00") + np.arange(24)
    sides = rng.normal(size=(2, 6, 24))
    samples = gr.NodeSamples.from_arrays(
        *(list(side) for side in sides), time=(hours, hours + np.timedelta64(7, "D"))
    )
    assert [one.kind for one in samples.check().findings] == ["single day"]
    found = gr.two_sample_test(samples, path(6), random_state=0)
    assert any("cover a single day" in note for note in found.notes)


def test_rows_that_look_dependent_are_noted_without_times():
    rng = np.random.default_rng(0)
    sides = [list(autoregressive(rng, 20, 200, 0.8)) for _ in range(2)]
    found = gr.two_sample_test(tuple(sides), path(20), random_state=0)
    assert any("successive rows are alike" in note for note in found.notes)


def test_kinds_say_cannot_say():
    samples = timed(12, 60, 0.5, seed=0, shift=50.0, block=20)
    found = gr.kinds_of_change(samples, path(12), correction="fwer", random_state=0)
    assert set(found.kinds) == {"cannot say"}
    assert not found.answerable


def test_the_last_node_may_lack_observations():
    rng = np.random.default_rng(0)
    sides = [[*autoregressive(rng, 5, 100, 0.7), np.empty(0)] for _ in range(2)]
    times = [[np.arange(100)] * 5 + [np.empty(0)], [np.arange(500, 600)] * 5 + [np.empty(0)]]
    samples = gr.NodeSamples.from_arrays(*sides, time=tuple(times))
    assert samples.blocks.measured.node_tau.shape == (6,)
    assert samples.subset([0, 5]).blocks.exist


def correlated_in_time(seed, shift=0.0, n=240, n_nodes=8):
    rng = np.random.default_rng(seed)
    reference, target = (autoregressive(rng, n_nodes, n, 0.7) for _ in range(2))
    times = (np.arange(n), np.arange(n) + 10 * n)
    return gr.NodeSamples.from_arrays(list(reference), list(target + shift), time=times)


WAYS = {
    "node": {},
    "global": {"null": "global"},
    "halves": {"estimator": gr.RULSIF(bandwidth=1.0, ridge=0.1)},
    "halves, global": {"estimator": gr.RULSIF(bandwidth=1.0, ridge=0.1), "null": "global"},
}


@pytest.mark.parametrize("way", WAYS)
def test_every_way_to_test_allows_for_what_blocks_lose(way, monkeypatch):
    def p_values():
        found = [
            gr.two_sample_test(samples, path(8), n_permutations=999, random_state=0, **WAYS[way])
            for samples in (correlated_in_time(seed, 0.25) for seed in range(3))
        ]
        return np.concatenate([one.p_value for one in found])

    careful = p_values()
    monkeypatch.setattr(Blocks, "lost", property(lambda self: np.zeros(len(self.counts))))
    plain = p_values()
    assert (careful != plain).any()
    assert careful.mean() > plain.mean()


def test_shared_times_allow_for_what_blocks_lose(monkeypatch):
    rng = np.random.default_rng(0)
    common = autoregressive(rng, 2, 240, 0.7)
    own = autoregressive(rng, 16, 240, 0.7)
    values = 0.7 * own.reshape(2, 8, 240) + 0.7 * common[:, np.newaxis]
    times = (np.arange(240), np.arange(240) + 2400)
    samples = gr.NodeSamples.from_arrays(list(values[0]), list(values[1] + 0.3), time=times)

    def tested():
        return gr.two_sample_test(samples, path(8), random_state=0)

    careful = tested()
    assert careful.joint
    monkeypatch.setattr(Blocks, "lost", property(lambda self: np.zeros(len(self.counts))))
    assert careful.p_value.mean() > tested().p_value.mean()


def test_one_block_of_each_sample_says_nothing():
    samples = correlated_in_time(1, n=40)
    single = gr.NodeSamples.from_arrays(
        [samples.reference(v) for v in range(8)],
        [samples.target(v) for v in range(8)],
        time=(np.arange(40), np.arange(400, 440)),
        block=40,
    )
    lossy = replace(single.blocks, measured=samples.blocks.measured)
    assert lossy.lost.any()
    single.__dict__["blocks"] = lossy
    result = gr.two_sample_test(single, path(8), null="global", random_state=0)
    assert result.global_p_value == 1.0
    assert (result.p_value == 1.0).all()


def test_blocks_of_interleaved_times_hold_as_many_observations_of_every_node():
    rng = np.random.default_rng(3)
    x = autoregressive(rng, 12, 480, 0.7)
    t = np.arange(240)
    samples = gr.NodeSamples.from_arrays(
        list(x[:, :240]),
        list(x[:, 240:]),
        time=([60 * t + v for v in range(12)], [60 * (240 + t) + v for v in range(12)]),
    )
    graph = path(12)
    alone = gr.two_sample_test(samples, graph, random_state=0).blocks
    joint = gr.two_sample_test(
        samples, graph, null="global", n_permutations=99, random_state=0
    ).blocks
    assert alone.length > 10
    assert abs(int(joint.counts.min()) - int(alone.counts.min())) <= 1


def test_the_note_on_correlation_counts_what_nodes_share():
    """All nodes have all times in common, but few independent blocks."""
    samples = timed(12, 60, 0.5, seed=0, block=30)
    notes = gr.two_sample_test(samples, path(12), random_state=0).notes
    (said,) = [note for note in notes if "could not be checked" in note]
    assert "two nodes need 5 independent blocks (blocks of 30 observations) in common" in said


def test_a_single_piece_is_singular():
    samples = timed(6, 60, 0.97, seed=0, block="auto")
    found = gr.two_sample_test(samples, path(6), random_state=0)
    pieces = found.answers.n_pieces.min(axis=1)
    assert pieces.max() == 1
    assert any(note.endswith("rests on 1 independent piece of each sample") for note in found.notes)
