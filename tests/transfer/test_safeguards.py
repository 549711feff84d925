"""Weights that do no harm: overlap, effective sizes and held-out losses, and what is said."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.linear_model import LinearRegression, Ridge

import graphratio as gr
from graphratio.exceptions import OverlapWarning
from graphratio.transfer.safeguards import (
    NodePowers,
    enough_effective,
    overlap_of,
    power_over_nodes,
    shrunken,
    steps_down,
)
from graphratio.transfer.trials import WeightTrial

N_NODES = 15
# The first third lies apart, the second has a shift with overlap, the third none.
APART, SHIFTED, QUIET = (slice(start, start + 5) for start in (0, 5, 10))


def ring(n_nodes=N_NODES):
    return gr.Graph.from_edges([(v, (v + 1) % n_nodes) for v in range(n_nodes)])


def stress(seed, function=lambda x: np.exp(x[..., 0] / 2) + np.sin(2 * x[..., 1]), n=50):
    """Overlap removed at a third of the nodes: reference on the left, target on the right."""
    rng = np.random.default_rng(seed)
    reference, target = rng.normal(size=(2, N_NODES, n, 2))
    fresh = rng.normal(size=(N_NODES, 1000, 2))
    reference[APART, :, 0] = -np.abs(reference[APART, :, 0])
    for points in (target, fresh):
        points[APART, :, 0] = 0.5 + np.abs(points[APART, :, 0])
        points[SHIFTED] += [1.0, 0.5]
    y = function(reference) + 0.3 * rng.normal(size=(N_NODES, n))
    return reference, target, y, fresh, function(fresh)


def errors(models, fresh, truth):
    return np.array(
        [np.mean((models[v].predict(fresh[v]) - truth[v]) ** 2) for v in range(N_NODES)]
    )


@pytest.mark.filterwarnings("ignore::graphratio.exceptions.OverlapWarning")
@pytest.mark.parametrize(
    ("estimator", "n_seeds"), [(gr.GRULSIF(bandwidth=1.0, graph_penalty=0.1, ridge=0.01), 6),
                               (gr.GraphRatio(random_state=0), 2)]
)  # fmt: skip
def test_without_overlap_weights_are_within_one_standard_error_of_none(estimator, n_seeds):
    apart, reckless = [], []
    for seed in range(n_seeds):
        reference, target, y, fresh, truth = stress(seed)
        plain = [LinearRegression().fit(*data) for data in zip(reference, y, strict=True)]
        unweighted = errors(plain, fresh, truth)
        for sharpness, gaps in ((None, apart), (1.25, reckless)):
            model = gr.NodewiseTransfer(
                LinearRegression(), estimator, sharpness=sharpness, random_state=seed
            ).fit((reference, target), y, ring())
            gap = errors(model.models_, fresh, truth) - unweighted
            gaps.append(gap[APART].mean())
    apart = np.array(apart)
    assert apart.mean() <= apart.std(ddof=1) / np.sqrt(n_seeds)
    # Without safeguards the errors there are several times as large.
    assert np.mean(reckless) > 1


@pytest.mark.filterwarnings("ignore::graphratio.exceptions.OverlapWarning")
def test_weights_are_used_where_they_clearly_help():
    """A line for a parabola, at shifted nodes beside others without overlap."""
    used, gaps = [], []
    for seed in range(20, 26):
        reference, target, y, fresh, truth = stress(seed, lambda x: x[..., 0] ** 2)
        plain = [LinearRegression().fit(*data) for data in zip(reference, y, strict=True)]
        model = gr.NodewiseTransfer(
            LinearRegression(),
            gr.GRULSIF(bandwidth=1.0, graph_penalty=0.1, ridge=0.01),
            random_state=seed,
        ).fit((reference, target), y, ring())
        used.append(model.is_reweighted_[SHIFTED])
        ratio = errors(model.models_, fresh, truth) / errors(plain, fresh, truth)
        gaps.append(ratio[SHIFTED].mean())
    assert np.mean(used) > 0.7
    assert np.mean(gaps) < 0.7


@pytest.fixture(scope="module")
def model():
    # Curved, so that weights clearly help a line where there is overlap.
    reference, target, y, _, _ = stress(0, lambda x: x[..., 0] ** 2)
    fit = gr.NodewiseTransfer(
        LinearRegression(), gr.GRULSIF(bandwidth=1.0, graph_penalty=0.1, ridge=0.01), random_state=0
    ).fit
    with pytest.warns(OverlapWarning, match=r"at 5 nodes.* not reweighted and extrapolate"):
        return fit((reference, target), y, ring())


class TestEvidence:
    def test_nodes_without_overlap_keep_equal_weights(self, model):
        found = model.evidence_
        assert found.reason[APART] == ("no overlap",) * 5
        assert found.verdict[APART] == ("equal weights",) * 5
        assert_array_equal(found.power[APART], 0)
        assert_array_equal(found.lacks_overlap, np.arange(N_NODES) < 5)
        assert (found.overlap[APART] < 0.2).all()
        assert (found.full_effective_size[APART] < 15).all()
        assert_array_equal(found.effective_size[APART], 50)
        assert all((model.weights_[v] == 1).all() for v in range(5))

    def test_nodes_with_overlap_are_reweighted(self, model):
        found = model.evidence_
        assert set(found.reason[SHIFTED]) <= {"shift", "held-out loss", "all nodes"}
        assert_array_equal(model.is_reweighted_, found.power > 0)
        assert model.is_reweighted_[SHIFTED].sum() >= 4
        assert (found.overlap[SHIFTED] > 0.4).all()

    def test_losses_are_known_where_there_is_a_shift(self, model):
        found = model.evidence_
        losses = found.loss_weighted, found.loss_unweighted, found.loss_error
        for values in (*losses, found.overlap):
            assert_array_equal(np.isnan(values), np.array(found.reason) == "no shift")

    def test_table_and_sentences_say_the_same(self, model):
        table, found = model.to_frame(), model.evidence_
        assert list(table["reason"]) == list(found.reason)
        assert list(table["verdict"]) == list(found.verdict)
        assert_allclose(table["power"], found.power)
        for v in range(N_NODES):
            text = table["explanation"][v]
            assert text == found.describe(v)
            assert text.startswith(found.verdict[v].capitalize())
        assert f"{found.full_effective_size[0]:.1f} of 50 observations" in found.describe(0)
        assert f"(p = {found.p_values[12]:.2g})" in found.describe(12)
        assert f"{found.loss_unweighted[6]:.3g} without" in found.describe(6)
        assert "no overlap at 0, 1, 2" in repr(found)

    def test_pieces(self, model):
        assert model.answerable
        assert_array_equal(model.answerable_nodes, True)
        assert_array_equal(model.n_pieces, 50)


def test_a_given_power_is_used_with_a_warning():
    reference, target, y, _, _ = stress(0)
    model = gr.NodewiseTransfer(
        LinearRegression(), gr.GRULSIF(bandwidth=1.0, graph_penalty=0.1, ridge=0.01), sharpness=2
    )
    with pytest.warns(OverlapWarning, match="a model with these weights relies on very few"):
        model.fit((reference, target), y, ring())
    assert_array_equal(model.evidence_.power[APART], 2)
    assert model.evidence_.describe(0).startswith("Reweighted: the power was given")


def test_too_few_blocks_cannot_say():
    rng = np.random.default_rng(0)
    times = (np.arange(48), np.arange(48) + 1000)
    data = gr.NodeSamples.from_arrays(
        list(rng.normal(size=(3, 48))), list(rng.normal(1, 1, size=(3, 48))), time=times, block=16
    )
    model = gr.NodewiseTransfer(Ridge(), gr.Pool(bandwidth=1.0, ridge=0.1), random_state=0)
    model.fit(data, [np.zeros(48)] * 3)
    assert not model.answerable
    assert not model.answerable_nodes.any()
    assert np.isnan(model.p_values_).all()
    assert_array_equal(model.n_pieces, 3)
    assert not model.is_reweighted_.any()
    assert model.evidence_.outcome.startswith("These data cannot say which nodes shifted")
    assert "cannot say whether the node shifted" in model.evidence_.describe(0)


class TestOverlap:
    @pytest.mark.parametrize("sizes", [(60, 60), (30, 300), (300, 30)])
    @pytest.mark.parametrize(("shift", "low", "high"), [(0, 0.85, 1), (1, 0.4, 0.9), (8, 0, 0.02)])
    def test_falls_with_the_shift_whatever_the_sizes(self, sizes, shift, low, high):
        rng = np.random.default_rng(0)
        found = [
            overlap_of(
                rng.normal(size=(sizes[0], 2)),
                rng.normal([shift, 0], 1, size=(sizes[1], 2)),
                rng.permutation(np.arange(sizes[1]) % 5),
                rng,
            )
            for _ in range(20)
        ]
        assert low <= np.mean(found) <= high

    def test_is_twice_the_share_of_reference_neighbours(self):
        """Counted by hand, with two target observations in the other fold."""
        reference, target = np.array([[0.0], [1.0]]), np.array([[0.4], [0.5], [20.0], [0.6]])
        fold = np.array([0, 1, 1, 0])
        # Two neighbours, since there are two of each sample: 0.4 has 0.5 and 0, 0.6 has 0.5 and 1,
        # 0.5 has 0.4 and 0.6, and 20 has 1 and 0.6.
        found = overlap_of(reference, target, fold, np.random.default_rng(0))
        assert found == pytest.approx(2 * (1 + 1 + 0 + 1) / 8)

    def test_few_observations_that_lie_apart_have_no_overlap(self):
        rng = np.random.default_rng(0)
        for size in (2, 3):
            target = 50 + np.arange(float(size))[:, np.newaxis]
            reference = np.arange(20.0)[:, np.newaxis]
            assert overlap_of(reference, target, np.arange(size), rng) == 0.0

    def test_copies_within_a_fold_do_not_count(self):
        """Ten nearly equal observations in a block; only other blocks say where the law is."""
        rng = np.random.default_rng(0)
        block = np.repeat(np.arange(12), 10)
        reference, target = (
            rng.normal(size=(12, 1))[block] + 1e-3 * rng.normal(size=(120, 1)) for _ in range(2)
        )
        assert overlap_of(reference, target, block, rng) > 0.5
        assert overlap_of(reference, target, np.arange(120), rng) < 0.1

    def test_ties_favour_neither_sample(self):
        rng = np.random.default_rng(0)
        same = np.zeros((80, 1))
        found = [overlap_of(same, same, np.arange(80) % 5, rng) for _ in range(10)]
        assert np.mean(found) > 0.9

    def test_unknown(self):
        line, rng = np.arange(20.0)[:, np.newaxis], np.random.default_rng(0)
        assert np.isnan(overlap_of(line, np.empty((0, 1)), np.empty(0, dtype=int), rng))
        assert np.isnan(overlap_of(np.empty((0, 1)), line, np.arange(20) % 2, rng))
        assert np.isnan(overlap_of(line, line, np.zeros(20, dtype=int), rng))


class Fixed(WeightTrial):
    """A node with a given excess of the loss at power 1."""

    def __new__(cls, *_):
        return object.__new__(cls)

    def __init__(self, excess, error):
        object.__setattr__(self, "known", (excess, error))

    def excess(self, power):
        return self.known[0] * power, self.known[1]


class TestPowers:
    def test_over_nodes_the_loss_is_lower_by_half_a_standard_error_at_least(self):
        each = np.tile([-1.0, 0.0, 1.0], 3)
        error = each.std(ddof=1) / 3
        for mean, power in ((-0.55 * error, 1.0), (-0.45 * error, 0.0), (error, 0.0)):
            # The excess and its spread grow alike, so that no power in between is better.
            assert power_over_nodes([Fixed(e + mean, 1) for e in each], [1.0, 0.5]) == power
        # A single node has its own standard error, which does not grow with the power here.
        assert power_over_nodes([Fixed(-1.5, 1)], [1.0, 0.5]) == 1.0
        assert power_over_nodes([Fixed(-0.4, 1)], [1.0, 0.5]) == 0.0
        assert power_over_nodes([], [1.0, 0.5]) == 1.0

    @pytest.mark.parametrize("far", [0.0, 30.0])
    def test_a_node_is_shrunk_as_far_as_noise_explains_the_differences(self, far):
        excess, error = np.array([-1.0, 0.0, 1.0, far]), np.ones(4)
        spread = excess.var(ddof=1)
        own = max(spread - 1, 0) / (max(spread - 1, 0) + 1)
        found, sure = shrunken(excess, error)
        assert_allclose(found, own * excess + (1 - own) * excess.mean())
        assert_allclose(sure, np.sqrt(own + (1 - own) ** 2 * spread / 4))

    def test_shrinking_edge_cases(self):
        one = shrunken(np.array([2.0]), np.array([0.5]))
        assert_allclose(one, [[2.0], [0.5]])
        # Without a standard error a node gets the mean; equal losses are certain.
        found, _ = shrunken(np.array([10.0, -10.0, 3.0]), np.array([1.0, 1.0, np.nan]))
        assert found[2] == 1.0
        assert_allclose(shrunken(np.zeros(3), np.zeros(3)), 0)

    def test_a_node_that_held_out_data_speak_against(self):
        trials = {v: Fixed(-1.0 if v else 4.0, 0.5) for v in range(12)}
        chosen, missing = np.ones(13, dtype=bool), np.arange(13) == 12
        found = NodePowers.safe(chosen, missing, [np.ones(20)] * 13, trials, [1.0])
        assert found.reason == ("held-out loss", *["shift"] * 11, "no overlap")
        assert_array_equal(found.power, [0, *[1] * 11, 0])

    def test_weights_are_flattened_until_enough_are_effective(self):
        weights = np.full(40, 0.01)
        weights[0] = 39.61
        steps = steps_down(1.25, (1.25, 2.0))
        assert steps == [1.25, 1.0, 0.75, 0.5, 0.25]
        power = enough_effective(weights, steps)
        sizes = [np.sum(weights**s) ** 2 / np.sum(weights ** (2 * s)) for s in steps]
        assert power == next(s for s, size in zip(steps, sizes, strict=True) if size >= 5)
        assert 0 < power < 1.25
        assert enough_effective(np.r_[1e6, np.zeros(39)], [3.0]) == 0

    def test_a_given_power_has_no_safeguards(self):
        found = NodePowers.given(np.array([True, False]), 2.0)
        assert found.reason == ("given", "no shift")
        assert_array_equal(found.power, [2, 0])


def test_standard_errors_count_blocks():
    """Ten copies of each observation are no more evidence than one."""
    rng = np.random.default_rng(0)
    x, fold = rng.normal(size=(12, 1)), np.arange(12) % 3
    y = x[:, 0] ** 2

    def trial(times):
        many = [np.repeat(a, times, axis=0) for a in (x, y, fold, np.arange(12))]
        return WeightTrial(
            lambda x, y, w: LinearRegression().fit(x, y, sample_weight=w),
            lambda y, found: (y - found) ** 2,
            *(many[0], many[1], many[0], np.exp(many[0][:, 0]), many[2], many[3]),
        )

    assert_allclose(trial(1).excess(1.0), trial(10).excess(1.0))
    gaps = trial(1).losses(1.0) - trial(1).losses(0.0)
    share = np.exp(x[:, 0]) / np.exp(x[:, 0]).sum()
    mean = share @ gaps
    error = np.sqrt(12 / 11 * np.sum((share * (gaps - mean)) ** 2))
    assert_allclose(trial(1).excess(1.0), (mean, error))


@pytest.mark.filterwarnings("ignore::graphratio.exceptions.OverlapWarning")
def test_a_right_model_is_not_weighted():
    """Weights can only add variance; over draws they lose nothing beyond chance."""
    gaps = []
    for seed in range(8):
        reference, target, y, fresh, truth = stress(seed, lambda x: x[..., 0] - x[..., 1])
        plain = [LinearRegression().fit(*data) for data in zip(reference, y, strict=True)]
        model = gr.NodewiseTransfer(
            LinearRegression(),
            gr.GRULSIF(bandwidth=1.0, graph_penalty=0.1, ridge=0.01),
            random_state=seed,
        ).fit((reference, target), y, ring())
        gap = errors(model.models_, fresh, truth) - errors(plain, fresh, truth)
        gaps.append(gap[SHIFTED].mean())
    gaps = np.array(gaps)
    assert gaps.mean() <= gaps.std(ddof=1) / np.sqrt(len(gaps))
