"""The numbers behind the detector: splits, scores, channels, statistics, blocks, dates, names."""

import numpy as np
import pytest
from scipy import optimize, stats
from scipy.signal import lfilter

import graphratio as gr
from graphratio.changepoints import dating, effects, naming
from graphratio.changepoints.blocks_of_time import block_length, panel_dependence, shuffled
from graphratio.changepoints.channels import Channels, filled_in
from graphratio.changepoints.common_scale import Evidence
from graphratio.changepoints.intervals import MARGIN, seeded_splits
from graphratio.changepoints.naming import chance_of_change, changed_nodes, node_p_values
from graphratio.changepoints.online import Scales
from graphratio.changepoints.panel_features import ScoreMap, look
from graphratio.changepoints.scan import cumulative, statistics_at
from graphratio.changepoints.smoother import GraphSmoother
from graphratio.changepoints.stretch import Lens, Stretch

PATH = gr.Graph.from_edges([(i, i + 1) for i in range(5)])


def lens_of(values, graph=PATH, estimator=None, **settings):
    rng = np.random.default_rng(0)
    scores = ScoreMap.of(values, standardize=True)[1]
    features = look(scores, estimator, max_directions=5, random_state=rng)
    return Lens(features, (GraphSmoother(graph, 0.5),), **settings)


def noise(n_times=120, n_nodes=6, n_measured=1, seed=0):
    return np.random.default_rng(seed).normal(size=(n_times, n_nodes, n_measured))


def test_splits_cover_all_scales_and_keep_their_margin():
    splits = seeded_splits(300, 1)
    length = splits.end - splits.begin
    assert length.max() == 300
    assert length.min() == 20
    assert ((splits.split - splits.begin >= MARGIN) & (splits.end - splits.split >= MARGIN)).all()
    assert splits.begin.min() == 0
    assert splits.end.max() == 300
    # Every place is inside an interval of every length, away from its ends.
    for one in np.unique(length):
        inside = splits.split[length == one]
        assert np.diff(np.unique(inside)).max() <= one / 2
    assert len(seeded_splits(300, 10_000).split) < len(splits.split)


def test_differences_are_those_of_the_means():
    x = np.random.default_rng(0).normal(size=(80, 3)).astype(np.float32)
    splits = seeded_splits(80, 3)
    found = splits.matrix @ cumulative(x)
    for row in (0, 17, len(found) - 1):
        a, t, b = splits.begin[row], splits.split[row], splits.end[row]
        moved = x[a:t].mean(axis=0) - x[t:b].mean(axis=0)
        scale = np.sqrt((t - a) * (b - t) / (b - a))
        np.testing.assert_allclose(found[row], scale * moved, atol=1e-4)
    assert (splits.matrix @ cumulative(noise(80, 4000)[:, :, 0].astype(np.float32))).std() == (
        pytest.approx(1, abs=0.02)
    )


def test_sums_of_wide_and_narrow_rows_are_equal():
    rows = np.random.default_rng(0).normal(size=(40, 150)).astype(np.float32)
    order = np.random.default_rng(1).permutation(40)
    wide = cumulative(rows, order)
    np.testing.assert_allclose(wide[:, :5], cumulative(rows[:, :5], order), atol=1e-4)
    np.testing.assert_allclose(wide[-1], rows.sum(axis=0), atol=1e-4)


def test_scores_are_normal_and_new_values_get_the_same():
    values = np.exp(noise(201, 2))
    one, scores = ScoreMap.of(values, standardize=True)
    assert stats.kstest(scores[:, 0, 0], "norm").pvalue > 0.99
    np.testing.assert_allclose(one(values), scores)
    assert one(np.full((1, 2, 1), 1e9))[0, 0, 0] == scores[:, 0].max()
    gaps = values.copy()
    gaps[3:9, 0] = np.nan
    one, scores = ScoreMap.of(gaps, standardize=True)
    assert np.isnan(scores[3:9, 0]).all()
    assert np.isfinite(scores[:, 1]).all()
    np.testing.assert_allclose(one(gaps), scores)


def test_channels_are_standardised_and_give_other_times_the_same():
    values = noise(200) + noise(200, 1, seed=1)
    lens = lens_of(values)
    x = lens.features(ScoreMap.of(values, standardize=True)[1])
    channels, columns = Channels.of(x, lens.smoothers)
    assert [one.name for one in channels.channels] == ["node", "all", "rest", "near"]
    for part in columns:
        np.testing.assert_allclose(part.mean(axis=0), 0, atol=1e-4)
        np.testing.assert_allclose(part.std(axis=0), 1, atol=1e-3)
    for part, again in zip(columns, channels(x), strict=True):
        np.testing.assert_allclose(part, again, atol=1e-4)
    # What all nodes share is gone.
    common = columns[1][:, 0, 0]
    assert np.corrcoef(columns[2][:, 0, 0], common)[0, 1] == pytest.approx(0, abs=1e-3)
    assert np.corrcoef(columns[0][:, 0, 0], common)[0, 1] > 0.5


@pytest.mark.parametrize("n_nodes", [6, 2100])
def test_smoothing_solves_its_system_twice(n_nodes):
    graph = gr.Graph.from_edges([(i, (i + 1) % n_nodes) for i in range(n_nodes)])
    field = np.random.default_rng(0).normal(size=(2, n_nodes))
    found = GraphSmoother(graph, 0.7).apply(field)
    once = found + 0.7 * (graph.laplacian @ found.T).T
    np.testing.assert_allclose(once + 0.7 * (graph.laplacian @ once.T).T, field, atol=1e-8)


def test_statistics_are_largest_and_summed_energies():
    values = noise(100)
    stretch = Stretch(values, 0, 100, lens_of(values))
    splits = seeded_splits(100, stretch.layout.width)
    found = statistics_at(splits, cumulative(stretch.rows), stretch.layout)
    row = 11
    a, t, b = splits.begin[row], splits.split[row], splits.end[row]
    scale = np.sqrt((t - a) * (b - t) / (b - a))
    for number, (channel, kind, group) in enumerate(stretch.layout.statistics):
        x = stretch.columns(channel)
        moved = scale * (x[t:b].mean(axis=0) - x[a:t].mean(axis=0))
        weights = stretch.layout.weights[stretch.layout.groups.index(group)]
        energy = weights @ moved**2
        expected = energy.max()
        if kind == "sum":
            z = (energy.sum() - 6 * weights.sum()) / np.sqrt(12 * (weights**2).sum())
            expected = max(z, 0) ** 2
        assert found[number, row] == pytest.approx(expected, rel=1e-3, abs=1e-4)
    assert np.exp(stretch.layout.log_shares).sum() == pytest.approx(1)
    # A scan takes off what the largest of so many short intervals reaches by chance.
    scan = stretch.scan(400)
    penalty = 2 * np.log(400 / (scan.splits.end - scan.splits.begin))
    plain = statistics_at(scan.splits, cumulative(stretch.rows), stretch.layout)
    np.testing.assert_allclose(scan.curves(), plain - penalty, atol=1e-4)


def test_the_estimator_fixes_what_it_names():
    estimator = gr.GRULSIF(bandwidth=0.7, ridge=0.03, dictionary=np.linspace(-2, 2, 5))
    fixed = lens_of(noise(), estimator=estimator).features
    assert fixed.kernel_map.bandwidth == 0.7
    assert fixed.dictionary.ravel().tolist() == [-2, -1, 0, 1, 2]
    assert fixed.ridge == 0.03


@pytest.mark.parametrize(("n", "level"), [(19, 0.05), (39, 0.1), (99, 0.05), (50, 0.05)])
def test_every_panel_in_turn_alarms_as_often_as_stated(n, level):
    """Of n + 1 exchangeable panels, each in its turn the real one among n surrogates."""
    panels = np.random.default_rng(0).gumbel(size=(n + 1, 1))
    alarms = 0
    for i, real in enumerate(panels):
        evidence = Evidence.of(real, np.delete(panels, i, axis=0), np.zeros(1), level)
        score = float(evidence.scores(real).max())
        alarm = score > evidence.threshold
        assert alarm == (evidence.p_value(score) <= level + 1e-12)
        alarms += alarm
    assert alarms == int(level * (n + 1) + 1e-9)


def test_a_surrogate_as_high_as_the_panel_counts_against_it():
    one = Evidence(np.zeros(1), np.ones(1), np.zeros(1), np.array([0.5, 1.0, 1.0, 2.0]), 1.0)
    assert [one.p_value(s) for s in (0.1, 1.0, 1.5, 2.0, 3.0)] == [1, 4 / 5, 2 / 5, 2 / 5, 1 / 5]


def test_blocks_keep_neighbours_together():
    order = shuffled(100, 10, np.random.default_rng(0))
    assert sorted(order.tolist()) == list(range(100))
    follow = np.diff(order) % 100 == 1
    assert follow.sum() >= 89
    assert not follow.all()
    assert sorted(shuffled(7, 10, np.random.default_rng(0)).tolist()) == list(range(7))


def longest_blocks(values):
    """Blocks of a panel, with the true search for suspects."""
    from graphratio.changepoints.change_search import Search

    lens = lens_of(values, gr.Graph.empty(values.shape[1]))
    search = Search(values, lens, 0.05, 19, np.random.default_rng(0))
    return block_length(search.stretch(0, len(values)).z, search._suspect)


def test_changes_do_not_count_as_dependence_but_autocorrelation_does():
    values = noise(400)
    assert longest_blocks(values) == 1
    shifted = values.copy()
    shifted[150:] += 2.0
    assert panel_dependence(ScoreMap.of(shifted, standardize=True)[1], []).length > 50
    assert longest_blocks(shifted) == 1
    single = 0
    for seed in range(12):
        up_and_down = noise(400, seed=seed)
        up_and_down[150:250] += 2.0
        single += longest_blocks(up_and_down) == 1
    # As in panels without change: one in twenty shows dependence by chance.
    assert single >= 10
    slow = lfilter([1], [1, -0.8], noise(700), axis=0)[100:]
    assert 30 <= longest_blocks(slow) <= 90
    slow[300:] += 5.0
    assert 20 <= longest_blocks(slow) <= 90


def volatile(n_times, n_nodes, seed=0):
    """Calm and restless times, GARCH with 0.1 and 0.85."""
    rng = np.random.default_rng(seed)
    x, variance = rng.normal(size=(n_times + 200, n_nodes)), np.ones(n_nodes)
    for row in x:
        row *= np.sqrt(variance)
        variance = 0.05 + 0.1 * row**2 + 0.85 * variance
    return x[200:, :, np.newaxis]


def test_blocks_of_volatile_nodes_lose_little_of_the_long_run_variance():
    """Squares forget a twentieth a step, so blocks must be longer than tau asks for."""
    values = volatile(2000, 16)
    found = panel_dependence(ScoreMap.of(values, standardize=True)[1], [])
    # Clipped squares of ranks have about 0.12 * 0.95^(lag - 1): 48 / tau with tau about 6.
    assert 5.5 <= found.squared_slowness <= 12
    assert 100 <= longest_blocks(values) <= 220
    assert longest_blocks(values) > 1.2 * found.length


def test_five_changes_of_one_long_series_are_not_taken_for_dependence():
    lengths = []
    for seed in range(4):
        values = noise(600, 1, seed=seed)
        for step in (100, 300, 500):
            values[step : step + 100] += 2.0
        lengths.append(longest_blocks(values))
    assert np.median(lengths) == 1


def test_a_single_series_whose_spread_changes_keeps_some_steps_together():
    """It may be restless as well, which one series does not show."""
    lengths = []
    for seed in range(8):
        values = noise(400, 1, seed=seed)
        values[200:] *= 2.5
        lengths.append(longest_blocks(values))
    assert np.median(lengths) == 30
    assert max(lengths) <= 50


def test_profile_is_the_gain_of_a_split_in_log_likelihood():
    """Against brute force, with the variance that the best split leaves."""
    y = np.random.default_rng(0).normal(size=(30, 2))
    y[18:, 0] += 2
    allowed = slice(2, 29)
    total = ((y - y.mean(axis=0)) ** 2).sum(axis=0)
    left = np.stack(
        [
            sum(((part - part.mean(axis=0)) ** 2).sum(axis=0) for part in (y[:s], y[s:]))
            for s in range(2, 29)
        ]
    )
    expected = (total - left) / (left.min(axis=0) / 30) / 2.5
    found = dating._profile(y, 2.5, allowed)
    np.testing.assert_allclose(found[allowed], expected)
    assert np.isinf(found[[0, 1, 29]]).all()


@pytest.mark.parametrize("jump", [0.3, 0.7, 1.5])
def test_the_interval_of_a_date_has_its_95_percent(jump):
    """Twice the log-likelihood on either side of the true date is a random walk with drift."""
    rng = np.random.default_rng(0)
    n_steps = int(60 / jump**2)
    highest = np.zeros((2, 4000))
    for side in highest:
        walk = np.zeros(4000)
        for _ in range(n_steps):
            walk += 2 * jump * rng.normal(size=4000) - jump**2
            np.maximum(side, walk, out=side)
    missed = np.mean(highest.max(axis=0) > dating.interval_drop(jump))
    assert missed == pytest.approx(0.05, abs=0.01)


def test_the_drop_of_tiny_jumps_is_that_of_brownian_motion():
    drop = optimize.brentq(lambda x: (1 - np.exp(-x / 2)) ** 2 - 0.95, 1, 20)
    assert pytest.approx(drop) == dating.interval_drop(0.0)


@pytest.mark.parametrize(("n_nodes", "shift"), [(1, 1.5), (6, 0.87)])
def test_dates_and_their_intervals(n_nodes, shift):
    """One series, or three of six that move by as much together: most dates hit within 3 steps."""
    graph = gr.Graph.empty(1) if n_nodes == 1 else PATH
    errors, inside = [], 0
    for seed in range(40):
        values = noise(200, n_nodes, seed=seed)
        values[120:, :3] += shift
        if seed == 0:
            lens = lens_of(values, graph)
        dated = dating.date(Stretch(values, 0, 200, lens), 110, 1)
        errors.append(abs(dated.step - 120))
        inside += dated.interval[0] <= 120 <= dated.interval[1]
    # A jump of 1.5 standard deviations of a step is dated within 3 steps in 92 % by the best rule.
    assert np.mean(np.array(errors) <= 3) >= 0.75
    assert np.median(errors) <= 1
    # Of 40 intervals of 95 % at least 34 hold the date with probability 0.99.
    assert inside >= 34


def test_blocks_widen_the_interval():
    assert dating._inflation(noise(4000)[:, 0, 0], 2000, 1) == 1.0
    slow = lfilter([1], [1, -0.5], noise(4000)[:, 0, 0])
    # Long-run variance over variance of an autoregression a is (1 + a) / (1 - a).
    assert dating._inflation(slow, 2000, 40) == pytest.approx(3.0, rel=0.25)


def test_nodes_far_from_the_clear_ones_are_not_named():
    """With 25 clear nodes Benjamini and Hochberg let in p-values that 75 others reach by chance."""
    quiet = (np.arange(75) + 0.5) / 75
    p_values = np.r_[np.full(25, 1e-40), quiet]
    named = np.arange(26)
    assert quiet[0] <= 0.05 * 26 / 100
    assert np.flatnonzero(chance_of_change(p_values, named) > 0.5).tolist() == list(range(25))
    # Weaker ones that chance does not explain stay, however clear the others are.
    p_values[25] = 1e-5
    assert (chance_of_change(p_values, named)[:26] > 0.5).all()


def test_few_nodes_must_pass_benjamini_and_hochberg_too(monkeypatch):
    """Two of four p-values of 4 % are likelier changed than not, but not certain enough."""
    monkeypatch.setattr(naming, "node_p_values", lambda *_: np.array([0.04, 0.041, 0.7, 0.8]))
    assert changed_nodes(None, 0, 0, 1, 0.05).tolist() == [0]
    assert changed_nodes(None, 0, 0, 1, 0.1).tolist() == [0, 1]


def test_what_changed_accounts_for_dependence():
    slow = lfilter([1], [1, -0.8], noise(700, 200), axis=0)[100:]
    p_values = effects._means(slow[:300], slow[300:], 40)
    # Of 200 p-values 10 are expected below 5 %; without the dependence more than a third is.
    assert np.sum(p_values <= 0.05) <= 20
    assert np.sum(effects._means(slow[:300], slow[300:], 1) <= 0.05) >= 60


def test_correlations_of_slow_features_differ_by_chance():
    slow = lfilter([1], [1, -0.8], noise(700, 150, 2), axis=0)[100:]
    changed = [
        sum(
            effects._correlations(x[:300], x[300:], (0, 1), "xy", block, 0.05).changed
            for x in np.swapaxes(slow, 0, 1)
        )
        for block in (1, 40)
    ]
    # Of 150 one in twenty may; more than a fifth would without the dependence.
    assert changed[0] >= 30
    assert changed[1] <= 14


def test_nodes_are_named_by_their_own_observations():
    values = noise(300, 40, seed=2)
    values[150:, :10] += 1.2
    graph = gr.Graph.from_edges([(i, i + 1) for i in range(39)])
    stretch = Stretch(values, 0, 300, lens_of(values, graph))
    named = changed_nodes(stretch, 150, 150, 1, 0.05)
    assert set(range(10)) <= set(named.tolist())
    assert len(named) <= 13
    quiet = node_p_values(stretch, 150, 150, 1, 0.05)[10:]
    # Two of thirty below 5 % would be usual, six would not.
    assert np.sum(quiet < 0.05) <= 5


def test_quiet_nodes_with_a_memory_are_not_named_more_often():
    values = lfilter([1], [1, -0.5], noise(1200, 300), axis=0)[200:]
    stretch = Stretch(values, 0, 1000, lens_of(values, gr.Graph.empty(300)))
    p_values = node_p_values(stretch, 600, 600, 18, 0.05)
    # Of 300 p-values 15 and 3 are expected; at most 27 and 9 with probability 0.998.
    assert np.sum(p_values <= 0.05) <= 27
    assert np.sum(p_values <= 0.01) <= 9
    # Without the memory they would be far too small.
    assert np.sum(node_p_values(stretch, 600, 600, 1, 0.05) <= 0.01) >= 20


def test_gaps_are_filled_with_what_varies_as_much():
    """A mean would leave the observed steps of a node too much of its variance."""
    x = noise(200, 2).transpose(0, 2, 1)
    x[20:180, :, 1] = np.nan
    filled = filled_in(x)
    there = np.r_[0:20, 180:200]
    np.testing.assert_array_equal(filled[there], x[there])
    assert filled[20:180, 0, 1].std() == pytest.approx(x[there, 0, 1].std(), rel=1e-6)
    # Four times the forty others in a row, from somewhere on.
    order = [np.flatnonzero(x[there, 0, 1] == value)[0] for value in filled[20:60, 0, 1]]
    assert (np.diff(order) % 40 == 1).all()
    np.testing.assert_array_equal(filled_in(x, np.ones((1, 2)))[20:180, 0, 1], 1.0)


def test_the_kernel_sees_shapes():
    """One pooled sample has enough atoms for all directions."""
    features = lens_of(noise(300)).features
    assert features.kernel_map.n_components == 5
    assert len(features.dictionary) > 20


@pytest.mark.parametrize("block", [1, 20])
def test_onsets_are_the_date_unless_nodes_say_otherwise(block):
    values = noise(300, 12, seed=4)
    if block > 1:
        values = lfilter([1], [1, -0.5], values, axis=0)
    values[150:, :11] += 1.5
    values[180:, 11] += 6.0
    stretch = Stretch(values, 0, 300, lens_of(values, gr.Graph.empty(12)))
    onsets = dating.node_onsets(stretch, 150, (149, 151), np.arange(12), block)
    assert (onsets[:11] == 150).sum() >= 10
    assert abs(onsets[11] - 180) <= 2


def test_missing_values_leave_the_others_as_they_are():
    values = noise(300, 6, seed=3)
    values[150:, :2] += 2.0
    gaps = values.copy()
    gaps[np.random.default_rng(0).uniform(size=(300, 6)) < 0.2] = np.nan
    stretch = Stretch(gaps, 0, 300, lens_of(gaps))
    assert changed_nodes(stretch, 150, 150, 1, 0.05).tolist() == [0, 1]
    assert abs(dating.date(stretch, 140, 1).step - 150) <= 2


def test_short_scales_online_must_exceed_more():
    """The largest of 1,000 / h squares of normal numbers grows as twice their logarithm."""
    scales = Scales.of(20, 200)
    splits = scales.splits(0, np.array([300]))
    h = splits.end - splits.split
    assert h.min() == 10
    np.testing.assert_allclose(scales.penalty(splits), 2 * np.log(1000 / h), rtol=1e-5)
