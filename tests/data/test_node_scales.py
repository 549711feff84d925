"""When every node should have a scale of its own, and what that scale is."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import graphratio as gr
from graphratio.data.node_scales import Apart, neighbours_apart, nodes_differ
from graphratio.data.scaling import Scaling


@pytest.mark.parametrize(
    ("location", "scale", "differ"), [(0.5, 0.1, False), (8.0, 0.1, True), (0.5, 0.8, True)]
)
def test_nodes_of_very_different_location_or_scale(location, scale, differ):
    rng = np.random.default_rng(1)
    noise = rng.normal(size=(2, 50, 8))
    spread = np.exp(scale * rng.normal(size=(50, 1)))
    values = location * rng.normal(size=(50, 1)) + spread * noise
    assert nodes_differ(gr.NodeSamples.from_arrays(*map(list, values))) == differ


def sensors(seed=0, n_nodes=12, n=40, level=5.0, uneven=1.0):
    """Two features of a ring of sensors with levels and spreads of their own, and without them.

    The first third of the sensors is shifted by one of its own spreads in the first feature.
    """
    rng = np.random.default_rng(seed)
    reference, target = rng.normal(size=(2, n_nodes, n, 2))
    target[: n_nodes // 3, :, 0] += 1.0
    mean = level * rng.normal(size=(n_nodes, 1, 2))
    scale = np.exp(uneven * rng.normal(size=(n_nodes, 1, 2)))
    names = [f"s{v}" for v in range(n_nodes)]
    graph = gr.Graph.from_edges([(names[v], names[v - 1]) for v in range(n_nodes)], nodes=names)

    def samples(a, b):
        sides = (list(a + b * reference), list(a + b * target))
        return gr.NodeSamples.from_arrays(*sides, nodes=names, feature_names=["a", "b"])

    return samples(mean, scale), samples(0.0, 1.0), graph, mean[:, 0], scale[:, 0]


FIXED = {"bandwidth": 1.0, "graph_penalty": 0.5, "ridge": 0.05, "random_state": 0}


class TestScale:
    def test_every_node_has_mean_0_and_spread_1_over_both_samples(self):
        samples = sensors()[0].standardized(by_node=True)
        for node in samples.nodes:
            both = np.concatenate([samples.reference(node), samples.target(node)])
            np.testing.assert_allclose(both.mean(axis=0), 0, atol=1e-12)
            np.testing.assert_allclose(both.std(axis=0), 1)
        assert "standardised at every node" in repr(samples)
        assert "standardised at every node" in samples._repr_html_()

    def test_it_does_not_see_which_sample_is_which(self):
        samples = sensors()[0]
        target, reference = (
            [side(v) for v in samples.nodes] for side in (samples.target, samples.reference)
        )
        swapped = gr.NodeSamples.from_arrays(target, reference).standardized(by_node=True)
        np.testing.assert_allclose(
            swapped.target(1), samples.standardized(by_node=True).reference("s1")
        )

    def test_a_constant_is_shifted_and_takes_the_scale_of_the_others(self):
        samples = gr.NodeSamples.from_arrays(
            [[0.0, 4.0], [7.0, 7.0], [0.0, 8.0]], [[0.0, 4.0], [7.0], [0.0, 8.0]]
        ).standardized(by_node=True)
        np.testing.assert_array_equal(samples.reference(1), 0.0)
        np.testing.assert_allclose(samples.scaling.scale.ravel(), [2.0, 2.0, 4.0])

    def test_logarithms_come_first_and_stay(self):
        samples = gr.NodeSamples.from_arrays(
            [[1.0, 10.0], [5.0, 7.0]], [[100.0], [9.0]], feature_names=["pm25"]
        )
        own = samples.standardized(by_node=True, log="pm25")
        np.testing.assert_allclose(own.reference(0).ravel(), [-np.sqrt(1.5), 0.0], atol=1e-12)
        again = samples.standardized(log="pm25").standardized(by_node=True)
        np.testing.assert_allclose(again.values, own.values, atol=1e-12)
        with pytest.raises(gr.exceptions.InputError, match="already standardised"):
            own.standardized(by_node=True, log="pm25")

    @pytest.mark.parametrize("own", [False, True, ["x0"]])
    def test_original_returns(self, own):
        samples = sensors()[0]
        positive = gr.NodeSamples.from_arrays(
            [np.exp(0.1 * samples.reference(v)) for v in samples.nodes],
            [np.exp(0.1 * samples.target(v)) for v in samples.nodes],
        )
        back = positive.standardized(by_node=own, log="x1").original()
        np.testing.assert_allclose(back.values, positive.values)
        assert back.scaling is None
        assert positive.original() is positive

    def test_subsets_and_other_orders_keep_the_scale_of_each_node(self):
        samples = sensors()[0]
        own = samples.standardized(by_node=True)
        some = own.subset(["s7", "s2"])
        assert some.scaling.nodes == ("s7", "s2")
        np.testing.assert_allclose(some.original().values, samples.subset(["s7", "s2"]).values)
        turned = own.aligned(samples.nodes[::-1])
        np.testing.assert_allclose(turned.original().target("s3"), samples.target("s3"))
        assert own.scaled(turned.scaling) is own
        with pytest.raises(gr.exceptions.InputError, match="these have none: 's0'"):
            samples.scaled(some.scaling)

    def test_one_scale_for_all_can_follow(self):
        samples = sensors()[0]
        back = samples.standardized(by_node=True).standardized()
        np.testing.assert_allclose(back.values, samples.standardized().values, atol=1e-12)
        assert back.scaling.nodes is None
        logged = samples.subset().standardized(by_node=True)
        assert logged.standardized(by_node=True) is logged

    def test_logarithms_alone_can_be_standardised_later(self):
        samples = gr.NodeSamples.from_arrays([[1.0, 10.0]], [[100.0]], feature_names=["pm25"])
        logged = samples.standardized(log="pm25", standardize=False)
        np.testing.assert_allclose(
            logged.standardized().values, samples.standardized(log="pm25").values
        )
        assert logged.standardized(standardize=False) is logged

    def test_labels_by_position_reach_the_scale(self):
        plain = gr.NodeSamples.from_arrays([[0.0, 2.0], [5.0, 7.0]], [[1.0], [9.0]])
        named = plain.standardized(by_node=True).aligned(["x", "y"])
        assert named.scaling.nodes == ("x", "y")
        np.testing.assert_allclose(named.original().values, plain.values, atol=1e-12)

    def test_a_node_without_one_of_the_samples_is_refused_by_name(self):
        samples = gr.NodeSamples.from_arrays({"a": [1.0, 2.0], "b": [3.0]}, {"a": [2.0], "b": []})
        with pytest.raises(gr.exceptions.InputError, match=r"observations: 'b'.*of all nodes"):
            samples.standardized(by_node=True)

    def test_other_values_are_refused(self):
        with pytest.raises(gr.exceptions.InputError, match=r"no numeric feature 'c' .*'a', 'b'"):
            sensors()[0].standardized(by_node=["a", "c"])
        with pytest.raises(gr.exceptions.InputError, match="no node has a scale"):
            sensors()[0].standardized(by_node=True, standardize=False)


@pytest.fixture(scope="module")
def fits():
    uneven, even, graph, mean, scale = sensors()
    own = gr.GraphRatio(**FIXED).fit(uneven.standardized(by_node=True), graph)
    base = gr.GraphRatio(**FIXED).fit(even.standardized(by_node=True), graph)
    return own, base, uneven, even, graph, mean, scale


def test_indicators_of_categories_keep_their_values():
    frame = pd.DataFrame(
        {
            "node": np.repeat(["u", "v"], 40),
            "sample": np.tile(["before", "after"], 40),
            "x": np.arange(80.0),
            "road": np.tile(["wet", "dry", "dry", "icy"], 20),
        }
    )
    samples = gr.NodeSamples.from_frame(
        frame, "node", "sample", "before", "after", ["x", "road"], categorical=["road"]
    )
    own = samples.standardized(by_node=True)
    kept = samples.encoding.is_indicator
    np.testing.assert_array_equal(own.values[:, kept], samples.values[:, kept])
    assert own.scaling.own.tolist() == [not one for one in kept]
    assert not own.scaling.own_mask[kept].any()
    far = replace(samples, values=samples.values + 1000.0 * samples.node_index[:, None] * kept)
    assert {each.feature for each in neighbours_apart(far, gr.Graph.from_edges([("u", "v")]))} <= {
        "x"
    }


class TestScaling:
    """The transform by itself."""

    def parts(self, log=None):
        mean, scale = np.zeros((1, 2)), np.ones((1, 2))
        return Scaling(mean, scale, log, ("u",)), Scaling(mean + 3, scale, log, ("v",))

    def test_parts_of_a_network_join_if_they_differ_in_own_numbers_only(self):
        log = np.array([True, False])
        one, other = self.parts(log)
        joined = Scaling.joined([one, other])
        assert joined.nodes == ("u", "v")
        np.testing.assert_array_equal(joined.mean, [[0, 0], [3, 3]])
        np.testing.assert_array_equal(joined.log, log)
        assert one.joins(other)
        assert not one.joins(self.parts()[1])
        assert not one.joins(Scaling(np.zeros(2), np.ones(2), log))
        shared = replace(one, own=np.array([True, False]))
        assert not shared.joins(replace(other, own=np.array([True, False])))
        assert shared.joins(replace(other, own=shared.own, mean=np.array([[3.0, 0.0]])))

    def test_other_nodes_are_another_transform(self):
        one, _ = self.parts()
        assert one.same_as(replace(one))
        assert not one.same_as(replace(one, nodes=("w",)))
        assert not one.same_as(replace(one, own=np.array([True, False])))

    def test_wrong_shapes_and_a_missing_node_are_refused(self):
        with pytest.raises(gr.exceptions.InputError, match=r"shape \(3, 2\), .* each of 'u'"):
            Scaling(np.zeros((3, 2)), np.ones((3, 2)), nodes=("u",))
        with pytest.raises(gr.exceptions.InputError, match="which node is meant"):
            self.parts()[0].apply(np.zeros((1, 2)))

    def test_rows_for_some_nodes_are_read_only(self):
        own = sensors()[0].standardized(by_node=True).scaling.for_nodes(["s3", "s1"])
        assert not any(part.flags.writeable for part in (own.mean, own.scale))


class TestNumbers:
    """Scales hold to the last digits at any level, size and unit."""

    @pytest.mark.parametrize("n", [3, 100, 3000])
    @pytest.mark.parametrize("constant", [0.1, 0.7, 1013.25, -1e9])
    def test_a_constant_is_found_whatever_its_size(self, n, constant):
        rng = np.random.default_rng(0)
        varying = rng.normal(size=(2, 4, 60))
        sides = [[np.full(n, constant), *side] for side in varying]
        own = gr.NodeSamples.from_arrays(*sides).standardized(by_node=True)
        assert own.scaling.scale[0] == np.sort(own.scaling.scale[1:, 0])[1]
        np.testing.assert_array_equal(own.reference(0), 0.0)

    def test_a_huge_value_at_a_node_leaves_the_others_alone(self):
        rng = np.random.default_rng(0)
        sides = rng.normal(size=(2, 5, 40))
        plain = gr.NodeSamples.from_arrays(*map(list, sides)).standardized(by_node=True)
        sides[0, 0, 0] = 1e16
        own = gr.NodeSamples.from_arrays(*map(list, sides)).standardized(by_node=True)
        np.testing.assert_array_equal(own.target(3), plain.target(3))

    @pytest.mark.parametrize("unit", [1e-170, 1e-30, 1e90])
    def test_units_do_not_matter(self, unit):
        values = np.random.default_rng(0).normal(size=(2, 3, 30))
        plain = gr.NodeSamples.from_arrays(*map(list, values)).standardized(by_node=True)
        own = gr.NodeSamples.from_arrays(*map(list, unit * values)).standardized(by_node=True)
        np.testing.assert_allclose(own.values, plain.values, rtol=1e-10)


class TestModels:
    """Data with levels and spreads of their own give the answers of data without them."""

    def test_divergences_and_ratios(self, fits):
        own, base, _, even, _, mean, scale = fits
        np.testing.assert_allclose(own.divergence_, base.divergence_, atol=1e-7)
        x = even.values[:6]
        at = np.array([[own.predict(mean[v] + scale[v] * x, node=f"s{v}")] for v in range(12)])
        np.testing.assert_allclose(at[:, 0].T, base.predict(x), atol=1e-6)

    def test_all_nodes_at_once_are_the_nodes_one_by_one(self, fits, monkeypatch):
        own, uneven = fits[0], fits[2]
        x = uneven.values[::40]
        expected = np.column_stack([own.predict(x, node=node) for node in own.nodes_])
        np.testing.assert_allclose(own.predict(x), expected)
        monkeypatch.setattr("graphratio.estimators.new_points._ROWS", 2 * len(x) + 1)
        np.testing.assert_allclose(own.predict(x), expected)
        assert own.predict(np.empty((0, 2))).shape == (0, 12)

    def test_points_in_units_of_the_fit(self, fits):
        own, uneven = fits[0], fits[2]
        placed = uneven.standardized(by_node=True).subset(["s4"])
        expected = own.predict(uneven.subset(["s4"]).values, node="s4")
        np.testing.assert_allclose(
            own.predict(placed.values, node="s4", standardized=True), expected
        )
        everywhere = own.predict(placed.values, standardized=True)
        np.testing.assert_allclose(everywhere[:, 4], expected)

    def test_other_samples_weights_and_scores(self, fits):
        own, base, uneven, even, *_ = fits
        np.testing.assert_allclose(own.divergence(uneven), own.divergence_, atol=1e-10)
        np.testing.assert_allclose(own.score(uneven), base.score(even), atol=1e-7)
        weights = own.importance_weights(uneven), base.importance_weights(even)
        np.testing.assert_allclose(weights[0]["s2"], weights[1]["s2"], atol=1e-6)

    def test_profiles_need_common_units(self, fits):
        uneven, even, graph = fits[2:5]
        chosen = {**FIXED, "n_profiles": 1}
        own = gr.GraphRatio(**chosen).fit(uneven.standardized(by_node=True), graph)
        base = gr.GraphRatio(**chosen).fit(even.standardized(by_node=True), graph)
        x = np.zeros((1, 2))
        np.testing.assert_allclose(
            np.abs(own.profile_values(x, standardized=True)),
            np.abs(base.profile_values(x, standardized=True)),
            atol=1e-6,
        )
        with pytest.raises(gr.exceptions.InputError, match="standardized=True"):
            own.profile_values(x)

    def test_a_file_keeps_the_scales(self, fits, tmp_path):
        own, uneven = fits[0], fits[2]
        own.save(tmp_path / "model")
        loaded = gr.load(tmp_path / "model")
        assert loaded.scaling_.same_as(own.scaling_)
        np.testing.assert_array_equal(
            loaded.predict(uneven.values[:3]), own.predict(uneven.values[:3])
        )

    @pytest.mark.parametrize("kind", [gr.RULSIF, gr.KLIEP, gr.Pool])
    def test_every_estimator(self, fits, kind):
        uneven, even, graph = fits[2:5]
        own = kind(random_state=0).fit(uneven.standardized(by_node=True), graph)
        base = kind(random_state=0).fit(even.standardized(by_node=True), graph)
        np.testing.assert_allclose(own.divergence_, base.divergence_, atol=1e-5)
        assert own.predict(uneven.values[:3]).shape == (3, 12)

    def test_functions_that_take_a_fitted_model(self, fits):
        own, base, uneven, even, graph, mean, scale = fits
        bounds = [
            gr.divergence_bounds(data, estimator=model, random_state=0)
            for data, model in ((uneven, own), (even, base))
        ]
        found = [each.true_divergence_lower_bound for each in bounds]
        np.testing.assert_allclose(*found, atol=1e-5)
        x = np.array([[1.0, 0.0]])
        bands = [
            gr.expected_ratio_interval(data, graph, model, x=points, node="s3", random_state=0)
            for data, model, points in ((uneven, own, mean[3] + scale[3] * x), (even, base, x))
        ]
        np.testing.assert_allclose(
            bands[0].expected_ratio_high, bands[1].expected_ratio_high, atol=1e-5
        )

    def test_some_nodes_or_samples_without_labels(self, fits):
        own, uneven, graph = fits[0], fits[2], fits[4]
        some = uneven.nodes[2:8]
        bounds = gr.divergence_bounds(uneven.subset(some), graph.subset(some), own)
        assert bounds.nodes == some
        plain = gr.NodeSamples.from_arrays(
            [uneven.reference(v) for v in uneven.nodes], [uneven.target(v) for v in uneven.nodes]
        )
        np.testing.assert_array_equal(
            plain.scaled(own.scaling_).values, uneven.scaled(own.scaling_).values
        )
        np.testing.assert_allclose(own.divergence(plain), own.divergence_)
        turned = uneven.aligned(uneven.nodes[::-1])
        kinds = [
            gr.kinds_of_change(data, None, own, random_state=0).kinds
            for data in (uneven, turned, plain)
        ]
        assert (kinds[0] == kinds[1]).all()
        assert (kinds[0] == kinds[2]).all()

    def test_bounds_of_quasi_random_points_are_in_spreads(self, fits):
        uneven, graph = fits[2], fits[4]
        samples = uneven.standardized(by_node=["a"])
        how = {**FIXED, "dictionary": "quasi-random", "max_atoms": 40}
        low, high = uneven.values[:, 1].min(), uneven.values[:, 1].max()
        model = gr.GRULSIF(**{**how, "bounds": [(-3, 3), (low, high)]}).fit(samples, graph)
        assert np.abs(model.dictionary_[:, 0]).max() <= 3
        scale, mean = samples.scaling.scale[0, 1], samples.scaling.mean[0, 1]
        assert model.dictionary_[:, 1].max() <= (high - mean) / scale
        assert model.divergence_[:4].min() > model.divergence_[4:].max()
        with pytest.raises(gr.exceptions.InputError, match="in standard deviations"):
            gr.GRULSIF(**{**how, "bounds": [(90, 95), (low, high)]}).fit(samples, graph)

    def test_comparisons_take_own_units_also_where_a_sample_is_missing(self, fits):
        uneven, graph = fits[2], fits[4]
        sparse = uneven.subset(observations=~((uneven.node_index == 3) & uneven.is_target))
        found = gr.compare_graphs(sparse, {"ring": graph}, units="own", random_state=0)
        assert found.units == "own"

    def test_an_engine_joins_the_scales_of_its_partitions(self, fits):
        own, uneven, graph = fits[0], fits[2], fits[4]
        scaled = uneven.standardized(by_node=True)
        parted = gr.GraphRatio(**FIXED, engine=gr.distributed.LocalEngine(3)).fit(scaled, graph)
        assert parted.scaling_.same_as(own.scaling_)
        np.testing.assert_allclose(parted.divergence_, own.divergence_, atol=1e-6)

        def load(nodes):
            return uneven.subset(list(nodes)).standardized(by_node=True)

        loading = gr.distributed.LocalEngine(3, loader=load)
        loaded = gr.GraphRatio(**FIXED, engine=loading).fit(None, graph)
        np.testing.assert_allclose(loaded.scaling_.mean, own.scaling_.mean)
        np.testing.assert_allclose(loaded.scaling_.scale, own.scaling_.scale)
        assert loaded.scaling_.nodes == own.nodes_

        def mixed(nodes):
            part = uneven.subset(list(nodes))
            return part.standardized(by_node="s0" not in nodes)

        with pytest.raises(gr.exceptions.InputError, match="standardised in different ways"):
            gr.GraphRatio(**FIXED, engine=gr.distributed.LocalEngine(3, loader=mixed)).fit(
                None, graph
            )


class TestNeighbours:
    def apart(self, seed, **how):
        samples, _, graph, *_ = sensors(seed, **how)
        return neighbours_apart(samples, graph)

    @pytest.mark.parametrize("n", [2, 5, 20])
    def test_like_nodes_are_not_apart_however_few_the_observations(self, n):
        found = [self.apart(seed, n=n, level=0.0, uneven=0.0) for seed in range(40)]
        assert sum(bool(one) for one in found) <= 2

    @pytest.mark.parametrize(
        "draw",
        [
            lambda rng, size: rng.standard_t(2.5, size=size),
            lambda rng, size: rng.standard_cauchy(size=size),
            lambda rng, size: np.exp(1.5 * rng.normal(size=size)),
            lambda rng, size: rng.poisson(0.3, size=size).astype(float),
        ],
        ids=["t", "Cauchy", "lognormal", "rare counts"],
    )
    def test_heavy_tails_are_not_uneven_spreads(self, draw):
        found = []
        for seed in range(40):
            values = draw(np.random.default_rng(seed), (2, 12, 20, 1))
            graph = gr.Graph.from_edges([(v, (v + 1) % 12) for v in range(12)])
            found.append(neighbours_apart(gr.NodeSamples.from_arrays(*map(list, values)), graph))
        assert sum(bool(one) for one in found) <= 3

    def test_a_constant_is_not_apart_by_rounding(self):
        """Means of 0.7 differ in the last digit with the number of observations."""
        sizes = np.random.default_rng(0).integers(30, 300, size=30)
        sides = [[np.column_stack([np.linspace(-1, 1, n), np.full(n, 0.7)]) for n in sizes]] * 2
        graph = gr.Graph.from_edges([(v, (v + 1) % 30) for v in range(30)])
        assert not neighbours_apart(gr.NodeSamples.from_arrays(*sides), graph)

    @pytest.mark.parametrize("unit", [1e-300, 1e-160, 1e160, 1e300])
    def test_units_are_no_reason(self, unit):
        for samples, apart in zip(sensors(), (True, False), strict=False):
            scaled = replace(samples, values=unit * samples.values)
            assert bool(neighbours_apart(scaled, sensors()[2])) == apart

    def test_features_are_judged_one_by_one(self):
        samples, _, graph, *_ = sensors(level=5.0, uneven=0.0)
        values = samples.values.copy()
        values[:, 0] = np.random.default_rng(0).normal(size=len(values))
        mixed = replace(samples, values=values)
        found = neighbours_apart(mixed, graph)
        assert [each.feature for each in found] == ["b"]
        own = mixed.standardized(by_node="b")
        assert own.scaling.own.tolist() == [False, True]
        np.testing.assert_allclose(own.values[:, 0], mixed.standardized().values[:, 0])
        expected = mixed.standardized(by_node=True).values[:, 1]
        np.testing.assert_allclose(own.values[:, 1], expected)
        np.testing.assert_allclose(own.original().values, mixed.values, atol=1e-12)

    def test_without_edges_any_two_nodes_are_compared(self):
        samples, even, *_ = sensors()
        assert neighbours_apart(samples, gr.Graph.empty(samples.nodes))
        assert not neighbours_apart(even, gr.Graph.empty(samples.nodes))

    @pytest.mark.parametrize(("level", "uneven"), [(4.0, 0.0), (0.0, 1.2), (4.0, 1.2)])
    def test_levels_and_spreads_of_their_own_are_found(self, level, uneven):
        assert all(self.apart(seed, level=level, uneven=uneven) for seed in range(10))

    def test_levels_that_change_slowly_along_the_graph_are_not_apart(self):
        rng = np.random.default_rng(0)
        level = np.linspace(0, 20, 100)[:, np.newaxis]
        values = level + rng.normal(size=(2, 100, 30))
        graph = gr.Graph.from_edges([(v, v + 1) for v in range(99)])
        samples = gr.NodeSamples.from_arrays(*map(list, values))
        assert not neighbours_apart(samples, graph)
        assert nodes_differ(samples)

    def test_words(self):
        assert Apart("pm25", 4.21, 1.1).words == (
            "neighbouring nodes typically lie 4.2 spreads apart in 'pm25'"
        )
        assert Apart("pm25", 0.3, 2.46).words == (
            "the spreads of 'pm25' at neighbouring nodes typically differ by a factor of 2.5"
        )

    def test_a_fit_is_silent_where_scales_of_their_own_are_refused(self):
        samples, _, graph, *_ = sensors()
        sparse = samples.subset(observations=~((samples.node_index == 3) & samples.is_target))
        assert not gr.GraphRatio(**FIXED).fit(sparse.standardized(), graph).apart_

    def test_a_fit_says_so_and_what_helps(self):
        samples, even, graph, *_ = sensors()
        model = gr.GraphRatio(**FIXED).fit(samples.standardized(), graph)
        assert any(
            "share little: standardise each node by itself, samples.standardized(by_node=[...])"
            in note
            for note in model.notes_
        )
        for data, joined in ((samples.standardized(by_node=True), graph), (even, graph)):
            quiet = gr.GraphRatio(**FIXED).fit(data, joined)
            assert not quiet.apart_
        alone = gr.GraphRatio(**{**FIXED, "graph_penalty": 0.0}).fit(samples.standardized(), graph)
        assert not alone.apart_

    def test_sharing_own_units_finds_what_levels_hide(self):
        """The reason for all this: held-out losses of new observations."""
        gains = []
        for seed in range(3):
            samples, _, graph, *_ = sensors(seed, n_nodes=30, n=60)
            kept = np.arange(samples.n_observations) % 3 == 0
            seen = samples.subset(observations=kept)
            rest = samples.subset(observations=~kept)
            scores = [
                gr.GraphRatio(random_state=0).fit(seen.standardized(by_node=own), graph).score(rest)
                for own in (True, False)
            ]
            gains.append(scores[0] - scores[1])
        assert min(gains) > 0.02
