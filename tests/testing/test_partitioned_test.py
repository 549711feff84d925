"""The node test on an engine is that of one process, and observations stay where they are."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from tests.distributed.problems import (
    FaultyEngine,
    arrays_in,
    assert_no_observation_in,
    loader_of,
    loader_that_fails,
    ring,
)

import graphratio as gr
from graphratio.distributed import LocalEngine
from graphratio.exceptions import DataWarning, EngineError, InputError

# Left out by `make quick`.
pytestmark = pytest.mark.slow

FIXED = dict(bandwidth=1.2, graph_penalty=0.6, ridge=0.03)
# One bandwidth, whose features all groups share, and two, whose features each group has for itself.
PENALTIES = dict(bandwidth=1.2, graph_penalty=[0.1, 1.0], ridge=[0.03, 0.3], cv=2)
SELECTED = {**PENALTIES, "bandwidth": [0.8, 1.6]}
PROFILES = dict(n_profiles=2, bandwidth=1.2, graph_penalty=0.5, ridge=0.01, n_rounds=1)


def ask(data, settings, engine=None, kind=gr.GRULSIF, **options):
    samples, graph = data
    samples = None if engine is not None and engine.loader is not None else samples
    model = kind(**settings, engine=engine)
    return gr.two_sample_test(samples, graph, model, **{"random_state": 3, **options})


@pytest.fixture
def exact(monkeypatch):
    """In one process the neighbours' predictions are solved to a residual of 1e-4 only."""
    monkeypatch.setattr("graphratio.testing.predictions._TOLERANCE", 1e-10)
    monkeypatch.setattr("graphratio.testing.predictions._ITERATIONS", 1000)


@pytest.fixture
def two_groups(monkeypatch):
    """Two groups of nodes in two parts each: all of them are selected for and solved alike."""
    monkeypatch.setattr("graphratio.testing.predictions.N_GROUPS", 2)
    monkeypatch.setattr("graphratio.testing.predictions.N_PARTS", 2)


def assert_same(found, expected, atol=1e-5):
    """Scores are in single precision, and permutations count whole data sets."""
    for name in expected.scores:
        assert_allclose(found.scores[name], expected.scores[name], atol=atol)
        assert_array_equal(found.p_values[name], expected.p_values[name])
    assert_allclose(found.evidence, expected.evidence, atol=atol)
    for name in ("p_value", "rejected", "tested", "answerable_nodes", "extrapolated"):
        assert_array_equal(getattr(found, name), getattr(expected, name))
    assert_allclose(found.adjusted_p_value, expected.adjusted_p_value)
    assert_allclose(found.penalties, expected.penalties)
    assert_array_equal(found.answers.n_pieces, expected.answers.n_pieces)
    assert found.nodes == expected.nodes
    assert found.n_permutations == expected.n_permutations
    assert found.global_p_value == pytest.approx(expected.global_p_value)
    assert found.halves == expected.halves


@pytest.mark.usefixtures("exact")
class TestGrulsif:
    @pytest.mark.parametrize("count", [1, 3])
    def test_equals_one_process(self, count):
        data = ring()
        one = ask(data, FIXED)
        assert_same(ask(data, FIXED, LocalEngine(count)), one)
        assert 0 < one.n_rejected < 12

    @pytest.mark.parametrize("settings", [PENALTIES, SELECTED], ids=["shared", "several"])
    def test_every_group_chooses_as_in_one_process(self, settings):
        data = ring()
        one = ask(data, settings)
        assert len(set(one.penalties)) > 1
        assert_same(ask(data, settings, LocalEngine(3)), one)

    @pytest.mark.usefixtures("two_groups")
    @pytest.mark.parametrize(
        "dictionary",
        [
            {"dictionary": "centres", "group_size": 6},
            {"dictionary": "quasi-random", "bounds": [(-4, 5)] * 2},
            {"dictionary": np.random.default_rng(0).normal(size=(20, 2))},
        ],
        ids=["centres", "quasi-random", "given"],
    )
    def test_dictionaries_are_those_of_the_pooled_samples(self, dictionary):
        data = ring()
        settings = {**FIXED, **dictionary}
        assert_same(ask(data, settings, LocalEngine(3)), ask(data, settings))

    @pytest.mark.usefixtures("two_groups")
    def test_nodes_of_equal_sizes_share_splits_across_partitions(self):
        rng = np.random.default_rng(0)
        graph = gr.Graph.from_edges([(v, (v + 1) % 9) for v in range(9)])
        data = (rng.normal(size=(9, 15)), rng.normal(size=(9, 14)) + (np.arange(9) < 3)[:, None])
        samples = gr.NodeSamples.from_arrays(*map(list, data), nodes=range(9))
        for options in ({"correction": "fdr"}, {"correction": None, "n_permutations": 9_999}):
            one = ask((samples, graph), FIXED, **options)
            assert_same(ask((samples, graph), FIXED, LocalEngine(4), **options), one)

    def test_p_values_from_a_fitted_tail(self):
        rng = np.random.default_rng(1)
        graph = gr.Graph.from_edges([(0, 1), (1, 2)])
        draw = list(rng.normal(size=(2, 3, 30)))
        draw[1][0] += 6.0
        samples = gr.NodeSamples.from_arrays(*map(list, draw), nodes=range(3))
        options = {"correction": None, "level": 4e-5}
        one = ask((samples, graph), FIXED, **options)
        assert one.extrapolated.any()
        found = ask((samples, graph), FIXED, LocalEngine(2), **options)
        assert_array_equal(found.extrapolated, one.extrapolated)
        assert_allclose(found.p_value, one.p_value, rtol=1e-4)

    @pytest.mark.usefixtures("two_groups")
    def test_a_node_without_a_sample_and_a_graph_without_edges(self):
        samples, whole = ring()
        target = {v: samples.target(v) for v in whole.nodes}
        target["v7"] = np.empty((0, 2))
        thin = gr.NodeSamples.from_arrays({v: samples.reference(v) for v in whole.nodes}, target)
        one = ask((thin, whole), FIXED)
        assert not one.tested[7]
        assert_same(ask((thin, whole), FIXED, LocalEngine(3)), one)
        alone = (samples, gr.Graph.empty(whole.nodes))
        assert_same(ask(alone, PENALTIES, LocalEngine(3)), ask(alone, PENALTIES))

    @pytest.mark.parametrize("settings", [PENALTIES, SELECTED], ids=["shared", "several"])
    def test_a_partition_may_have_no_observations_left(self, settings):
        """Neither while its only node is left out, nor if that has no observations at all."""
        samples, whole = ring(8)
        sides = [
            {v: side(v) if v != "v5" else np.empty((0, 2)) for v in whole.nodes}
            for side in (samples.reference, samples.target)
        ]
        data = gr.NodeSamples.from_arrays(*sides), whole
        assert_same(ask(data, settings, LocalEngine(8)), ask(data, settings))
        one = ask(data, PROFILES, kind=gr.GraphRatio)
        assert_same(ask(data, PROFILES, LocalEngine(8), gr.GraphRatio), one)

    def test_large_graphs_are_selected_on_the_same_patches(self, monkeypatch):
        for module in ("predictions", "partitioned_penalties"):
            monkeypatch.setattr(f"graphratio.testing.{module}.MOST_SELECTED_ON", 8)
        data = ring(16)
        one = ask(data, PENALTIES)
        for engine in (LocalEngine(4), LocalEngine(4, loader=loader_of(data[0]))):
            assert_same(ask(data, PENALTIES, engine), one)

    def test_several_nodes_are_hidden_together(self, monkeypatch):
        """As in all graphs with more than 20 nodes, in smaller ones every node is hidden alone."""
        monkeypatch.setattr("graphratio.testing.predictions.N_PARTS", 1)
        data = ring()
        assert_same(ask(data, FIXED, LocalEngine(3)), ask(data, FIXED))

    @pytest.mark.usefixtures("two_groups")
    def test_many_nodes_are_permuted_in_the_same_batches(self, monkeypatch):
        for module in ("node_null", "partitioned_counts"):
            monkeypatch.setattr(f"graphratio.testing.{module}.KEPT_ROWS", 60)
        # Random numbers are drawn in chunks that end within nodes.
        monkeypatch.setattr("graphratio.distributed.fold_keys.KEYS_AT_ONCE", 7)
        draw = np.random.default_rng(0).normal(size=(2, 9, 12))
        samples = gr.NodeSamples.from_arrays(*map(list, draw), nodes=range(9))
        data = samples, gr.Graph.from_edges([(v, v + 1) for v in range(8)])
        options = {"correction": None, "n_permutations": 499}
        assert_same(ask(data, FIXED, LocalEngine(3), **options), ask(data, FIXED, **options))

    @pytest.mark.usefixtures("two_groups")
    def test_many_observations_are_reduced_by_the_same_part_of_them(self, monkeypatch):
        monkeypatch.setattr("graphratio.features.nystrom.PRINCIPAL_ROWS", 60)
        data = ring()
        assert_same(ask(data, PENALTIES, LocalEngine(3)), ask(data, PENALTIES))

    @pytest.mark.usefixtures("two_groups")
    def test_any_generator_is_left_as_by_one_process(self):
        data = ring()
        for bits in (np.random.PCG64, np.random.MT19937):
            one, other = (np.random.Generator(bits(0)) for _ in range(2))
            expected = ask(data, FIXED, random_state=one)
            assert_same(ask(data, FIXED, LocalEngine(2), random_state=other), expected)
            assert one.integers(10**9) == other.integers(10**9)


def test_the_tolerance_of_one_process_is_the_only_difference():
    data = ring()
    one, parted = ask(data, PENALTIES), ask(data, PENALTIES, LocalEngine(3))
    for name in ("predicted", "coupled"):
        assert_allclose(parted.scores[name], one.scores[name], atol=5e-3)
        assert_allclose(parted.p_values[name], one.p_values[name], atol=3 / one.n_permutations)
    for name in ("energy", "shape", "spread"):
        assert_array_equal(parted.scores[name], one.scores[name])
    assert_array_equal(parted.rejected, one.rejected)


class TestHalves:
    @pytest.mark.parametrize("count", [1, 3])
    def test_equals_one_process(self, count):
        data = ring()
        one = ask(data, PROFILES, kind=gr.GraphRatio)
        assert_same(ask(data, PROFILES, LocalEngine(count), gr.GraphRatio), one)
        assert one.halves

    @pytest.mark.parametrize("alone", ["one", "all"])
    def test_nodes_without_a_first_half_have_the_ratio_1(self, alone):
        """A single observation is tested, so nothing is left to learn from."""
        rng = np.random.default_rng(0)
        sizes = [1 if alone == "all" or v == 5 else 14 for v in range(6)]
        draw = [[rng.normal(size=(n, 1)) + 2 * side for n in sizes] for side in (0, 1)]
        samples = gr.NodeSamples.from_arrays(*draw, nodes=range(6))
        graph = gr.Graph.from_edges([(0, 1), (1, 2), (3, 4)], nodes=range(6))
        options = {"correction": None, "n_permutations": 199}
        one = ask((samples, graph), PROFILES, kind=gr.GraphRatio, **options)
        parted = ask((samples, graph), PROFILES, LocalEngine(3), gr.GraphRatio, **options)
        assert_same(parted, one)
        assert one.p_value[5] == 1


@pytest.mark.usefixtures("two_groups")
class TestResult:
    def test_with_samples_everything_is_there(self):
        data = ring()
        one, parted = ask(data, FIXED), ask(data, FIXED, LocalEngine(3))
        assert_array_equal(parted.effect_size, one.effect_size)
        assert_array_equal(parted.detectable_shift, one.detectable_shift)
        assert parted.to_frame().columns.tolist() == one.to_frame().columns.tolist()
        assert parted.notes == one.notes
        assert parted.assumptions == one.assumptions

    def test_times_without_dependence_are_those_of_one_process(self):
        draw = np.random.default_rng(0).normal(size=(2, 6, 30))
        time = tuple([np.arange(30.0) + 30 * side] * 6 for side in (0, 1))
        samples = gr.NodeSamples.from_arrays(*map(list, draw), nodes=range(6), time=time)
        data = samples, gr.Graph.from_edges([(v, v + 1) for v in range(5)])
        one, parted = ask(data, FIXED), ask(data, FIXED, LocalEngine(2))
        assert parted.timed
        assert parted.notes == one.notes
        assert parted.correlation == one.correlation
        assert_array_equal(parted.blocks.number, one.blocks.number)

    def test_without_samples_partitions_measure_what_the_table_needs(self):
        data = ring()
        one = ask(data, FIXED)
        for count in (1, 3):
            parted = ask(data, FIXED, LocalEngine(count, loader=loader_of(data[0])))
            assert parted.samples is None
            assert_allclose(parted.effect_size, one.effect_size, rtol=1e-12)
            # By the law of the observations of a partition, not of all.
            rtol = 1e-12 if count == 1 else 0.2
            assert_allclose(parted.detectable_shift, one.detectable_shift, rtol=rtol)
            assert parted.to_frame()["p_value"].tolist() == parted.p_value.tolist()
            assert parted.summary == one.summary
            assert parted.remarks == []
            assert "was checked within partitions only" in parted.notes[-1]
            assert {v for region in parted.regions() for v in region.nodes} == {
                v for region in one.regions() for v in region.nodes
            }


@pytest.mark.usefixtures("two_groups")
class TestTraffic:
    @pytest.mark.parametrize(
        ("kind", "settings"),
        [(gr.GRULSIF, {**SELECTED, "graph_penalty": 0.1}), (gr.GraphRatio, PROFILES)],
    )
    @pytest.mark.parametrize(
        "dictionary",
        [
            {"dictionary": "centres", "group_size": 6},
            {"dictionary": "quasi-random", "bounds": [(-4, 5)] * 3},
        ],
        ids=lambda dictionary: dictionary["dictionary"],
    )
    def test_no_observation_travels(self, kind, settings, dictionary):
        samples, whole = ring(9, n_features=3)
        messages = []
        engine = LocalEngine(2, loader=loader_of(samples), observe=messages.append)
        ask((samples, whole), {**settings, **dictionary}, engine, kind)
        assert_no_observation_in(messages, samples, least=5_000)

    def test_no_message_grows_with_the_observations(self):
        """But a few numbers per node, moments and counts leave a partition."""
        points = np.linspace(-2, 2, 7)[:, None]
        graph = gr.Graph.from_edges([(v, v + 1) for v in range(11)])
        seen = []
        for n in (20, 200):
            draw = np.random.default_rng(0).normal(size=(2, 12, n, 1))
            samples = gr.NodeSamples.from_arrays(*map(list, draw), nodes=range(12))
            messages = []
            engine = LocalEngine(3, observe=messages.append)
            ask((samples, graph), {**FIXED, "dictionary": points}, engine, n_permutations=2_999)
            sizes = {}
            for m in messages:
                total = sum(a.size for a in arrays_in(m.payload))
                sizes[m.method, m.outgoing] = max(total, sizes.get((m.method, m.outgoing), 0))
            m = next(m for m in messages if m.method == "test.set_features" and m.outgoing)
            sizes["features"] = m.payload[0].shape[1]
            seen.append(sizes)
        for few, many in zip(*[sizes.items() for sizes in seen], strict=True):
            assert few[0] == many[0]
        for sizes in seen:
            m = sizes["features"]
            # Four nodes on each partition: evidence, five scores, six counts.
            assert sizes["test.count", True] == 4 * 12
            assert sizes["test.predict", False] == 4 * 2 * m
            assert sizes["test.set_features", True] == 4 * m
            # The rough moment is over all seven atoms, the last one over the kept directions.
            assert sizes["test.pooled_moment", True] <= 7**2
        # Of the observations only the rows of the first rotation are told to partitions.
        grows = {name for name in seen[0] if seen[1][name] > 2 * seen[0][name]}
        assert grows <= {("test.pooled_moment", False)}


@pytest.mark.usefixtures("two_groups")
class TestFaults:
    def test_a_loss_changes_nothing(self):
        data, chosen = ring(8), {**PENALTIES, "ridge": 0.03}
        options = {"correction": None, "n_permutations": 199}
        loader = loader_of(data[0])
        plain = FaultyEngine(loader=loader)
        expected = ask(data, chosen, plain, **options)
        wanted = ("attach", "test.describe", "uncovered", "test.labelled_moment", "assign_folds")
        wanted += ("held_out_loss", "test.hide", "test.predicted", "test.predict", "test.count")
        calls = [plain.log.index(name) for name in wanted]
        calls.append(len(plain.log) - 1 - plain.log[::-1].index("conjugate.advance"))
        for number in calls:
            engine = FaultyEngine(losses={number: (number % 3,)}, loader=loader)
            found = ask(data, chosen, engine, **options)
            assert len(engine.log) > len(plain.log), plain.log[number]
            for name in ("evidence", "p_value", "penalties"):
                assert_array_equal(getattr(found, name), getattr(expected, name))

    def test_a_loss_of_halves_changes_nothing(self):
        data = ring()
        plain = FaultyEngine()
        expected = ask(data, PROFILES, plain, gr.GraphRatio)
        for number in (2, len(plain.log) - 1):
            engine = FaultyEngine(losses={number: (0, 2)})
            found = ask(data, PROFILES, engine, gr.GraphRatio)
            assert_array_equal(found.p_value, expected.p_value)

    @pytest.mark.parametrize("method", ["attach", "test.predicted", "test.count"])
    def test_a_worker_that_is_always_lost_is_an_error(self, method):
        engine = FaultyEngine(losses={method: (1,)}, retries=2)
        with pytest.raises(EngineError, match=r"partitions \[1\] were lost \(injected"):
            ask(ring(), FIXED, engine)
        assert engine.log.count(method) == 3

    def test_a_loader_that_fails_is_named(self):
        samples, whole = ring()
        loader = loader_that_fails(samples)
        # The fit on the first half loads the data again.
        with pytest.raises(InputError, match=r"partition 0 .*raised OSError: disk gone"):
            ask((samples, whole), PROFILES, LocalEngine(3, loader=loader), gr.GraphRatio)


@pytest.mark.usefixtures("two_groups")
class TestRefusals:
    def test_dependent_observations(self):
        draw = np.random.default_rng(0).normal(size=(2, 3, 20, 1))
        timed = gr.NodeSamples.from_arrays(*draw, block=5)
        for kind, settings in ((gr.GRULSIF, FIXED), (gr.GraphRatio, PROFILES)):
            with pytest.raises(InputError, match=r"cannot be tested with .* as independent"):
                ask((timed, None), settings, LocalEngine(2), kind)

    def test_correlated_nodes(self):
        rng = np.random.default_rng(0)
        draw = rng.normal(size=(2, 8, 60)) + 2 * rng.normal(size=(2, 1, 60))
        samples = gr.NodeSamples.from_arrays(*map(list, draw), nodes=range(8))
        data = samples, gr.Graph.from_edges([(v, v + 1) for v in range(7)])
        one = ask(data, FIXED)
        assert one.cross_fitted
        # With samples all pairs of nodes are compared, wherever partitions end.
        for engine in (LocalEngine(8), LocalEngine(2, loader=loader_of(samples))):
            with pytest.raises(InputError, match=r"correlated \(0\.\d\d at .* Test in one process"):
                ask(data, FIXED, engine)
        alone = ask(data, FIXED, LocalEngine(8, loader=loader_of(samples)))
        assert "no partition has two nodes whose observations can be matched" in alone.notes[-1]
        with pytest.warns(DataWarning, match="neighbouring nodes move together"):
            ask(data, PROFILES, LocalEngine(2), gr.GraphRatio)

    def test_what_is_missing(self):
        samples, whole = ring()
        with pytest.raises(InputError, match="no samples, and the engine has no loader"):
            ask((None, whole), FIXED, LocalEngine(2))
        engine = LocalEngine(2, loader=loader_of(samples))
        with pytest.raises(InputError, match=r"samples were given, but the loader .*Pass None in"):
            gr.two_sample_test(samples, whole, gr.GRULSIF(engine=engine))
        for asked in (gr.two_sample_test, gr.divergence_bounds):
            with pytest.raises(InputError, match=r"loader needs a graph, .* Pass the graph"):
                asked(None, None, gr.GRULSIF(engine=engine))
        with pytest.raises(InputError, match="needs all observations in one place"):
            ask((samples, whole), {"dictionary": "kmeans"}, LocalEngine(2))
        with pytest.raises(InputError, match="too large for any node to be significant"):
            ask((samples, whole), FIXED, LocalEngine(2), n_permutations=19)

    def test_the_global_null_runs_in_one_process(self):
        samples, whole = ring()
        model = gr.GRULSIF(**FIXED, engine=LocalEngine(2, loader=loader_of(samples)))
        with pytest.raises(InputError, match=r'no samples\. Pass .*two_sample_test with null="nod'):
            gr.two_sample_test(None, whole, model, null="global")
