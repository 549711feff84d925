"""The test with any estimator: fitted on one half of the data, permuted on the other."""

import numpy as np
import pytest
from scipy.stats import binom

import graphratio as gr
from graphratio.exceptions import InputError
from graphratio.testing.halves import first_half
from graphratio.testing.permutations import Units

PATH = gr.Graph.from_edges([(i, i + 1) for i in range(5)])
# Fixed, so that the fits take no time.
RULSIF = gr.RULSIF(bandwidth=1.0, ridge=0.1)
# Not quadratic, since it learns the edges; its ratios are mostly those of the neighbours.
BORROWING = gr.GRULSIF(
    bandwidth=1.0, graph_penalty=5.0, ridge=0.05, prior_ratio=1.0, adaptive=True, cv=2
)


def draw(shift=2.0, seed=0, n=60):
    """Two samples at every node of a path; the last two nodes changed."""
    rng = np.random.default_rng(seed)
    reference, target = rng.normal(size=(2, 6, n))
    target[4:] += shift
    return list(reference), list(target)


def ragged(sizes, seed=0, **options):
    rng = np.random.default_rng(seed)
    return gr.NodeSamples.from_arrays(
        [rng.normal(size=n) for n, _ in sizes], [rng.normal(size=n) for _, n in sizes], **options
    )


def split(samples, seed=0, joint=False):
    return first_half(samples, np.random.default_rng(seed), joint=joint)


def timed(data, block=None, times=(range(60), range(60, 120))):
    return gr.NodeSamples.from_arrays(*data, time=times, block=block)


class TestFirstHalf:
    def test_takes_half_of_every_sample(self):
        sizes = [(10, 7), (1, 4), (0, 6), (13, 2)]
        samples = ragged(sizes)
        for seed in range(20):
            learned = split(samples, seed)
            counts = np.bincount(samples.segments[learned], minlength=8)
            np.testing.assert_array_equal(counts, np.ravel(sizes) // 2)

    def test_every_observation_is_as_likely(self):
        samples = ragged([(6, 4), (8, 10)])
        share = np.mean([split(samples, seed) for seed in range(4000)], axis=0)
        # Five standard deviations.
        np.testing.assert_allclose(share, 0.5, atol=5 * 0.5 / np.sqrt(4000))

    @pytest.mark.parametrize("backwards", [False, True])
    def test_blocks_stay_whole(self, backwards):
        """A rest too short for a block is learned from; time may run against the rows."""
        sizes = [(12, 14), (19, 6), (9, 24)]
        time = tuple(
            [-np.arange(n) - 100 * v for v, n in enumerate(side)]
            for side in zip(*sizes, strict=True)
        )
        samples = ragged(sizes, block=3, time=time if backwards else None)
        code, kept = samples.blocks.number, samples.blocks.whole
        for seed in range(20):
            learned = split(samples, seed)
            assert learned[~kept].all()
            for unit in np.unique(samples.segments * 1000 + code):
                own = kept & (samples.segments * 1000 + code == unit)
                assert len(set(learned[own])) == 1
            # Whole blocks of every sample are left to be tested.
            left = np.bincount(samples.segments[~learned], minlength=6)
            assert (left % 3 == 0).all()
            assert (left > 0).all()

    def test_blocks_without_a_rest_are_halved(self):
        sizes = [(12, 18), (6, 24)]
        samples = ragged(sizes, block=3)
        for seed in range(10):
            learned = split(samples, seed)
            counts = np.bincount(samples.segments[learned], minlength=4)
            np.testing.assert_array_equal(counts, [6, 9, 3, 12])

    @pytest.mark.parametrize("block", [None, 2])
    def test_joint_stamps_are_the_same_at_all_nodes(self, block):
        """Nodes observe different stamps; each is learned from everywhere or nowhere."""
        sizes = [(8, 12), (6, 10), (8, 8)]
        time = ([range(8 - n, 8) for n, _ in sizes], [range(8, 8 + m) for _, m in sizes])
        samples = ragged(sizes, time=time, block=block).jointly_blocked()
        stamps = samples.time.astype(int)
        for seed in range(20):
            learned = split(samples, seed, joint=True)
            inside, outside = set(stamps[learned]), set(stamps[~learned])
            assert not inside & outside
            # Of 8 reference and 12 target stamps.
            assert sum(stamp < 8 for stamp in inside) == 4
            assert sum(stamp >= 8 for stamp in inside) == 6
            if block:
                assert {stamp ^ 1 for stamp in inside} == inside

    def test_without_joint_every_node_draws_its_own(self):
        samples = ragged([(20, 20)] * 2, time=(range(20), range(20, 40)), block=2)
        learned = split(samples).reshape(2, 40)
        assert (learned[0] != learned[1]).any()

    def test_same_seed_same_halves(self):
        samples = ragged([(20, 31)] * 3)
        np.testing.assert_array_equal(split(samples, 4), split(samples, 4))
        assert (split(samples, 4) != split(samples, 5)).any()


@pytest.mark.parametrize(
    "estimator", [RULSIF, gr.GraphRatio(cv=2, random_state=0)], ids=["RULSIF", "GraphRatio"]
)
def test_finds_a_clear_change(estimator):
    found = gr.two_sample_test(draw(), PATH, estimator, random_state=0)
    assert found.rejected.tolist() == [False] * 4 + [True] * 2
    assert found.evidence[4:].min() > found.evidence[:4].max()
    assert found.halves
    assert found.penalties == ()
    assert set(found.scores) == set(found.p_values) == {"held-out ratio"}
    assert any("fitted on one half" in note for note in found.notes)
    assert not hasattr(estimator, "nodes_")


@pytest.mark.parametrize(
    "estimator",
    [
        gr.ULSIF(bandwidth=1.0, ridge=0.1),
        gr.KLIEP(bandwidth=1.0, ridge=0.1),
        gr.GRULSIF(bandwidth=1.0, graph_penalty=0.1, ridge=0.1, prior_ratio=1.0, adaptive=True),
    ],
    ids=["ULSIF", "KLIEP", "learned edges"],
)
def test_every_estimator_that_cannot_follow_permutations_is_tested_by_halves(estimator):
    found = gr.two_sample_test(draw(), PATH, estimator, n_permutations=199, random_state=0)
    assert found.halves
    assert found.rejected.tolist() == [False] * 4 + [True] * 2


def test_only_parameters_count_not_what_was_fitted():
    fitted = gr.RULSIF(**RULSIF.get_params()).fit(draw(seed=9), PATH)
    first, second = (
        gr.two_sample_test(draw(), PATH, model, n_permutations=199, random_state=0)
        for model in (RULSIF, fitted)
    )
    np.testing.assert_array_equal(first.p_value, second.p_value)


@pytest.mark.parametrize("null", ["node", "global"])
@pytest.mark.parametrize("shift", [0.0, 5.0])
def test_p_values_are_counts_and_never_zero(null, shift):
    found = gr.two_sample_test(
        draw(shift), PATH, RULSIF, null=null, n_permutations=199, random_state=0
    )
    adjusted = found.adjusted_p_value if null == "global" else found.p_value
    for p_value in (found.p_value, adjusted, found.p_values["held-out ratio"]):
        np.testing.assert_allclose(p_value * 200, np.round(p_value * 200), atol=1e-9)
        assert p_value.min() >= 1 / 200
        assert p_value.max() <= 1
    assert found.global_p_value >= 1 / 200
    if shift:
        assert found.p_value.min() == 1 / 200


@pytest.mark.parametrize("null", ["node", "global"])
def test_same_seed_same_result(null):
    first, second, other = (
        gr.two_sample_test(
            draw(0.3), PATH, RULSIF, null=null, n_permutations=199, random_state=seed
        )
        for seed in (3, 3, 4)
    )
    np.testing.assert_array_equal(first.scores["held-out ratio"], second.scores["held-out ratio"])
    np.testing.assert_array_equal(first.p_value, second.p_value)
    assert first.global_p_value == second.global_p_value
    assert (first.scores["held-out ratio"] != other.scores["held-out ratio"]).any()


class TestGlobalNull:
    def test_without_time(self):
        changed = gr.two_sample_test(draw(), PATH, RULSIF, null="global", random_state=0)
        assert changed.global_p_value == changed.adjusted_p_value.min() == 1 / 1000
        assert (changed.halves, changed.joint) == (True, False)
        same = gr.two_sample_test(draw(0.0), PATH, RULSIF, null="global", random_state=0)
        assert same.global_p_value > 0.05

    @pytest.mark.parametrize("block", [None, 3])
    def test_with_time(self, block):
        options = {"null": "global", "random_state": 0}
        changed = gr.two_sample_test(timed(draw(), block), PATH, RULSIF, **options)
        assert changed.global_p_value <= 2 / 1000
        assert (changed.halves, changed.joint) == (True, True)
        same = gr.two_sample_test(timed(draw(0.0), block), PATH, RULSIF, **options)
        assert same.global_p_value > 0.05

    def test_stamps_of_both_samples_are_refused(self):
        samples = timed(draw(), times=(range(60), range(60)))
        with pytest.raises(InputError, match="60 times are in the"):
            gr.two_sample_test(samples, PATH, RULSIF, null="global", random_state=0)

    # Left out by `make quick`.
    @pytest.mark.slow
    def test_nodes_that_move_together_need_time(self):
        """A fit that borrows would learn from what it is tested on, unless stamps stay together."""

        def rejections(time):
            found = []
            for seed in range(50):
                rng = np.random.default_rng(seed)
                x = rng.normal(size=40) + 0.1 * rng.normal(size=(6, 40))
                found.append(
                    gr.two_sample_test(
                        gr.NodeSamples.from_arrays(list(x[:, :20]), list(x[:, 20:]), time=time),
                        PATH,
                        BORROWING,
                        null="global",
                        n_permutations=19,
                        random_state=seed,
                    )
                )
            return sum(one.global_p_value <= 0.1 for one in found)

        # The chance that a valid test fails here is 0.1 %.
        limit = binom.isf(0.001, 50, 0.1)
        assert rejections((np.arange(20), np.arange(20, 40))) <= limit < rejections(None)


@pytest.mark.slow
def test_unchanged_nodes_among_changed_ones_keep_the_level():
    """A node whose neighbours all changed, with an estimator that couples them."""
    star = gr.Graph.from_edges([(0, v) for v in range(1, 4)])
    count, n_sets = 0, 60
    for seed in range(n_sets):
        reference, target = np.random.default_rng(seed).normal(size=(2, 4, 20))
        target[1:] += 2
        found = gr.two_sample_test(
            (list(reference), list(target)),
            star,
            BORROWING,
            correction=None,
            n_permutations=19,
            random_state=seed,
        )
        count += found.p_value[0] <= 0.1
    # The chance that a valid test fails here is 0.1 %.
    assert count <= binom.isf(0.001, n_sets, 0.1)


@pytest.mark.parametrize("null", ["node", "global"])
def test_nodes_without_a_sample_keep_their_row(null):
    reference, target = draw()
    target[1] = np.empty(0)
    # A single observation is tested, and there is nothing to learn from.
    reference[2], target[2] = reference[2][:1], target[2][:1]
    found = gr.two_sample_test(
        (reference, target), PATH, RULSIF, null=null, n_permutations=199, random_state=0
    )
    assert found.tested.tolist() == [True, False, True, True, True, True]
    assert found.p_value[1] == found.adjusted_p_value[1] == 1
    assert found.p_value[2] == 1
    assert found.rejected[4:].all()


def test_blocks_follow_time():
    """With blocks as long as the fluctuations the level holds; the note counts the blocks."""
    found = gr.two_sample_test(timed(draw(4.0), 5), PATH, RULSIF, random_state=0)
    assert found.blocks.length == 5
    assert "blocks of 5 observations" in found.assumptions[0]
    # Six blocks of each sample are left: 924 splits.
    assert found.p_value[4:].max() <= 3 / 924
    assert found.p_value[:4].min() > 0.01


def test_a_rest_too_short_for_a_block_is_no_block_to_learn_from():
    """Seven observations in blocks of three: one block and the rest to learn from, one to test."""
    samples = ragged([(7, 7), (6, 8)], block=3)
    for seed in range(30):
        learned = split(samples, seed)
        counts = np.bincount(samples.segments[~learned], minlength=4)
        np.testing.assert_array_equal(counts, 3)


def test_blocks_that_leave_nothing_to_test_are_refused():
    with pytest.raises(InputError, match="block=61 leaves no complete block in a sample"):
        gr.two_sample_test(timed(draw(), 61), PATH, RULSIF)
    short = gr.NodeSamples.from_arrays(*draw(n=10), block=6)
    found = gr.two_sample_test(short, PATH, RULSIF, random_state=0)
    assert found.tested.all()


def test_blocks_of_interleaved_stamps_stay_whole():
    """Even stamps are the reference, odd ones the target: every unit has three stamps of one."""
    rng = np.random.default_rng(0)
    data = tuple(list(side) for side in rng.normal(size=(2, 6, 24)))
    stamps = (np.arange(0, 48, 2), np.arange(1, 48, 2))
    seen = []
    original = Units.of.__func__

    def spy(cls, pooled, generator, blocks):
        units = original(cls, pooled, generator, blocks)
        seen.append(units)
        return units

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Units, "of", classmethod(spy))
        samples = timed(data, 3, stamps)
        gr.two_sample_test(samples, PATH, RULSIF, null="global", random_state=0)
    assert (seen[0].of_row >= 0).all()
    assert (np.bincount(seen[0].of_row) == 3).all()


def test_the_statistic_is_the_mean_ratio_of_the_held_out_target_minus_that_of_both():
    reference, target = draw(n=12)
    samples = gr.NodeSamples.from_arrays(reference, target)
    estimator = gr.RULSIF(bandwidth=1.0, ridge=0.1, random_state=3)
    found = gr.two_sample_test(samples, PATH, estimator, random_state=7)
    learned = split(samples, seed=7)
    model = estimator.fit(samples.subset(observations=learned), PATH)
    rest = samples.subset(observations=~learned)
    for node in range(6):
        sides = (rest.reference(node), rest.target(node))
        ratio = [model.predict(x, node, clip=False) for x in sides]
        both = np.concatenate(ratio)
        # In units of the spread that sampling without replacement gives: 6 of 12 each.
        spread = np.sqrt(both.var(ddof=1) * (1 / 6 - 1 / 12))
        expected = (ratio[1].mean() - both.mean()) / spread
        assert found.scores["held-out ratio"][node] == pytest.approx(expected, rel=1e-4)
