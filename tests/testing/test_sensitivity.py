"""Which shift would have been found, and how many observations a test needs."""

import numpy as np
import pytest
from scipy import stats

import graphratio as gr
from graphratio.exceptions import InputError
from graphratio.testing import sensitivity
from graphratio.testing.sensitivity import (
    OWN_SHARE,
    ShiftLaw,
    detectable_shifts,
    independent_sizes,
    observations_needed,
    usual_observations,
)


def drawn(n, n_nodes=20, n_features=1, seed=0, shift=0.0, changed=()):
    rng = np.random.default_rng(seed)
    reference, target = rng.normal(size=(2, n_nodes, n, n_features))
    target[list(changed), :, 0] += shift
    return gr.NodeSamples.from_arrays(list(reference), list(target))


@pytest.mark.slow
@pytest.mark.parametrize(("n", "n_features", "level"), [(25, 1, 0.05), (40, 3, 0.005)])
def test_a_lone_node_with_this_shift_is_found_about_four_times_in_five(n, n_features, level):
    """Eight nodes far apart change in each data set, so that each changed alone."""
    ring = gr.Graph.from_edges([(i, (i + 1) % 40) for i in range(40)])
    changed = np.arange(0, 40, 5)
    options = {
        # Fixed, so that the selection takes no time.
        "estimator": gr.GRULSIF(bandwidth=0.7, graph_penalty=0.5, ridge=0.005),
        "correction": None,
        "level": level,
        "n_permutations": 1999,
        "random_state": 0,
    }
    quiet = gr.two_sample_test(drawn(n, 40, n_features), ring, **options)
    shift = quiet.detectable_shift
    assert np.ptp(shift) < 1e-9
    found = 0
    for seed in range(1, 16):
        samples = drawn(n, 40, n_features, seed, shift[0], changed)
        found += gr.two_sample_test(samples, ring, **options).rejected[changed].sum()
    assert 0.7 <= found / 120 <= 0.92


@pytest.mark.parametrize("n_levels", [2, 5])
def test_levels_are_no_easier_to_find_than_normal_data(n_levels):
    """A shifted level lies between the old ones, where no observation can be."""
    rng = np.random.default_rng(0)
    sizes = np.full((20, 2), 80.0)
    levels = rng.integers(n_levels, size=(2, 20, 80)).astype(float)
    usual = rng.normal(size=(2, 20, 80))
    found = [
        detectable_shifts(gr.NodeSamples.from_arrays(list(x[0]), list(x[1])), sizes, 0.05 / 20)[0]
        for x in (levels, usual)
    ]
    assert found[0] == pytest.approx(found[1], rel=0.15)
    assert found[0] > 0.55


def test_one_feature_without_noise_is_close_to_the_t_test():
    """For normal data the energy distance loses little to the best test."""
    law = ShiftLaw.of(np.random.default_rng(0).normal(size=(256, 1)))
    for n, threshold in ((20, 0.05), (50, 0.002), (200, 0.001)):
        found = law.smallest_shift(np.array([n, n]), threshold)
        level = threshold * OWN_SHARE
        critical = stats.t.isf(level / 2, 2 * n - 2)
        shifts = np.linspace(0.05, 3, 600)
        power = stats.nct.sf(critical, 2 * n - 2, shifts * np.sqrt(n / 2))
        best = shifts[np.argmax(power >= 0.8)]
        assert best * 0.97 <= found <= 1.2 * best


def test_it_falls_with_the_number_of_observations():
    samples = drawn(30)
    sizes = np.array([[n, n] for n in (5, 10, 20, 40, 80, 160, 640)], dtype=float)
    found = detectable_shifts(samples, sizes, 0.01)
    assert (np.diff(found) < 0).all()
    # Four times as many halve the shift, once there are many.
    assert found[-2] / found[-1] == pytest.approx(2, rel=0.1)
    # 20 against very many tell as much as 40 against 40, whichever sample is the small one.
    lopsided = detectable_shifts(samples, np.array([[20.0, 1e6], [1e6, 20.0]]), 0.01)
    np.testing.assert_allclose(lopsided, found[3], rtol=0.05)


def test_it_falls_with_the_threshold_and_grows_with_the_power():
    law = ShiftLaw.of(usual_observations(drawn(30)))
    size = np.array([30, 30])
    by_threshold = [law.smallest_shift(size, t) for t in (0.05, 0.01, 0.001)]
    assert by_threshold == sorted(by_threshold)
    by_power = [law.smallest_shift(size, 0.01, power) for power in (0.5, 0.8, 0.95)]
    assert by_power == sorted(by_power)
    assert by_power[0] < 0.9 * by_power[2]


def test_quiet_neighbours_take_their_part_of_the_level(monkeypatch):
    law, size = ShiftLaw.of(usual_observations(drawn(30))), np.array([30, 30])
    found = law.smallest_shift(size, 0.01)
    monkeypatch.setattr(sensitivity, "OWN_SHARE", 1.0)
    assert found == pytest.approx(law.smallest_shift(size, 0.01 * OWN_SHARE))
    assert found > law.smallest_shift(size, 0.01)


def test_units_of_the_data_do_not_matter():
    samples = drawn(30, n_features=2)
    scaled = gr.NodeSamples.from_arrays(
        [1e3 * samples.reference(v) + 5 for v in range(20)],
        [1e3 * samples.target(v) - 7 for v in range(20)],
    )
    sizes = np.full((20, 2), 30.0)
    np.testing.assert_allclose(
        detectable_shifts(samples, sizes, 0.01), detectable_shifts(scaled, sizes, 0.01)
    )


def test_a_change_of_the_data_does_not_count_as_spread():
    """Every sample is centred by itself."""
    plain, moved = drawn(30), drawn(30, shift=50.0, changed=range(20))
    np.testing.assert_allclose(usual_observations(plain), usual_observations(moved), atol=1e-9)


def test_nodes_that_cannot_be_judged_have_an_infinite_shift():
    samples = drawn(30)
    sizes = np.array([[30, 30], [0, 30], [30, 0], [1e-3, 5]])
    found = detectable_shifts(samples, sizes, 0.01)
    assert np.isinf(found).tolist() == [False, True, True, True]
    constant = gr.NodeSamples.from_arrays([np.ones(9)], [np.ones(9)])
    assert np.isinf(detectable_shifts(constant, np.array([[9.0, 9.0]]), 0.01)).all()
    # Three against three cannot be rejected, whatever the shift.
    result = gr.two_sample_test(([np.arange(3.0)], [np.arange(3.0)]), random_state=0)
    assert np.isinf(result.detectable_shift).all()


def test_a_feature_that_never_changes_is_left_out():
    values = np.random.default_rng(0).normal(size=(100, 1))
    both = np.column_stack([values, np.ones(100)])
    size = np.array([30, 30])
    assert ShiftLaw.of(both).smallest_shift(size, 0.01) == pytest.approx(
        ShiftLaw.of(values).smallest_shift(size, 0.01)
    )


def test_dependent_observations_count_for_less():
    rng = np.random.default_rng(0)
    x = np.zeros((2, 6, 350))
    for t in range(1, 350):
        x[:, :, t] = 0.6 * x[:, :, t - 1] + rng.normal(size=(2, 6))
    times = (np.arange(300), np.arange(1000, 1300))
    sides = [list(side) for side in x[:, :, 50:]]
    timed = gr.NodeSamples.from_arrays(*sides, time=times)
    pieces = timed.blocks.counts
    sizes = independent_sizes(timed.sizes, pieces, timed.blocks)
    # The autocorrelation time of an AR(1) process with 0.6 is 1.6 / 0.4 = 4.
    np.testing.assert_allclose(sizes, 75, rtol=0.5)
    assert (sizes >= pieces).all()
    blocked = gr.NodeSamples.from_arrays(*sides, block=50)
    np.testing.assert_array_equal(
        independent_sizes(blocked.sizes, np.full((6, 2), 6), blocked.blocks), 6.0
    )
    np.testing.assert_array_equal(
        independent_sizes(drawn(30).sizes, np.full((20, 2), 1), drawn(30).blocks), 30.0
    )


class TestObservationsNeeded:
    @pytest.mark.parametrize("shift", [0.3, 0.7, 1.5])
    @pytest.mark.parametrize("correction", ["fwer", None])
    def test_it_inverts_the_smallest_shift(self, shift, correction):
        samples = drawn(60)
        needed = gr.observations_needed(shift, samples, correction=correction)
        threshold = 0.05 / 20 if correction else 0.05
        sizes = np.array([[needed, needed], [needed - 1, needed - 1]], dtype=float)
        enough, too_few = detectable_shifts(samples, sizes, threshold)
        assert enough <= shift < too_few

    def test_what_makes_a_test_harder_needs_more(self):
        plain = observations_needed(0.8, n_nodes=10)
        assert observations_needed(0.8, n_nodes=100) > plain
        assert observations_needed(0.8, n_nodes=10, n_features=2) > plain
        assert observations_needed(0.8, n_nodes=10, power=0.95) > plain
        assert observations_needed(0.8, n_nodes=10, correction="fdr-by") > plain
        assert observations_needed(0.8, n_nodes=10, correction="fdr") == plain
        single = observations_needed(0.8)
        assert single == observations_needed(0.8, n_nodes=10, correction=None)
        assert single == observations_needed(0.8, n_nodes=10, level=0.5)

    def test_samples_tell_the_law_and_the_number_of_nodes(self):
        samples = drawn(60)
        assert observations_needed(0.8, samples) == observations_needed(0.8, samples, n_nodes=20)
        assert observations_needed(0.8, samples) == pytest.approx(
            observations_needed(0.8, n_nodes=20), rel=0.1
        )
        # Heavy tails make the standard deviation large, and its shift easy to see.
        rng = np.random.default_rng(0)
        heavy = [list(side) for side in rng.standard_t(2.5, size=(2, 20, 60))]
        assert observations_needed(0.8, tuple(heavy)) < observations_needed(0.8, samples)

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"shift": -1}, "shift=-1"),
            ({"shift": 0}, "shift"),
            ({"shift": "big"}, "shift='big'"),
            ({"level": 2}, "level=2"),
            ({"power": 1.5}, "power=1.5"),
            ({"correction": "holm"}, "correction='holm'"),
            ({"n_nodes": 0}, "n_nodes=0"),
            ({"n_features": 0}, "n_features=0"),
            ({"shift": 1e-9}, "needs more than 10,000,000 observations"),
        ],
    )
    def test_errors_name_the_argument(self, options, message):
        with pytest.raises(InputError, match=message):
            observations_needed(**({"shift": 0.5} | options))

    def test_features_come_from_the_samples(self):
        with pytest.raises(InputError, match="n_features=2 and samples are both given"):
            observations_needed(0.5, drawn(20), n_features=2)
