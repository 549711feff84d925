"""Every function takes every estimator, or says in one sentence why it cannot."""

from itertools import pairwise

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import graphratio as gr
from graphratio.distributed.local import LocalEngine
from graphratio.exceptions import InputError
from graphratio.report import write_report

N_NODES, SIZE = 8, 30
NODES = [f"v{i}" for i in range(N_NODES)]
CHANGED = np.repeat([False, True], N_NODES // 2)
GRAPH = gr.Graph.from_edges(list(pairwise(NODES)))
OTHER = gr.Graph.from_edges([(NODES[i], NODES[(i + 3) % N_NODES]) for i in range(N_NODES)])

# Few candidates, so that every estimator still selects, but soon.
WIDTHS = {"bandwidth": [0.7, 1.4], "random_state": 0}
ALONE = {"ridge": [0.01, 0.1], **WIDTHS}
COUPLED = {"graph_penalty": [0.03, 0.3], **ALONE}
ESTIMATORS = {
    "default": lambda: None,
    "GraphRatio": lambda: gr.GraphRatio(**COUPLED),
    "GraphRatio, no profiles": lambda: gr.GraphRatio(n_profiles=0, **COUPLED),
    "GRULSIF": lambda: gr.GRULSIF(**COUPLED),
    "GRULSIF, adaptive": lambda: gr.GRULSIF(adaptive=True, **COUPLED | {"bandwidth": 1.0}),
    "GRULSIF, uncoupled": lambda: gr.GRULSIF(graph_penalty=0, **ALONE),
    "GRULSIF, KL": lambda: gr.GRULSIF(loss="kl", **COUPLED),
    "GraphRatio, Jensen-Shannon": lambda: gr.GraphRatio(
        loss="jensen-shannon", **COUPLED | {"bandwidth": 1.0}
    ),
    "Pool": lambda: gr.Pool(**ALONE),
    "RULSIF": lambda: gr.RULSIF(**ALONE),
    "ULSIF": lambda: gr.ULSIF(**ALONE),
    "KLIEP": lambda: gr.KLIEP(**WIDTHS),
}
SINGLE = {"GRULSIF, uncoupled", "Pool", "RULSIF", "ULSIF", "KLIEP"}
LIKE_ANOTHER = {"default", "GraphRatio, no profiles", "GRULSIF, uncoupled"}
OTHER_LOSSES = {"GRULSIF, KL", "GraphRatio, Jensen-Shannon"}
REFITTED = {
    "GraphRatio",
    "GraphRatio, no profiles",
    "GRULSIF, adaptive",
    "RULSIF",
    "ULSIF",
    "KLIEP",
}
HALVES = REFITTED | OTHER_LOSSES

every_estimator = pytest.mark.parametrize("name", ESTIMATORS)


def make_samples(seed=0, shift=2.0):
    rng = np.random.default_rng(seed)
    reference, target = rng.normal(size=(2, N_NODES, SIZE))
    target += shift * CHANGED[:, np.newaxis]
    return gr.NodeSamples.from_arrays(list(reference), list(target), nodes=NODES)


@every_estimator
def test_two_sample_test(name):
    found = gr.two_sample_test(make_samples(), GRAPH, ESTIMATORS[name](), random_state=0)
    assert found.halves == (name in HALVES)
    assert found.rejected[CHANGED].sum() >= 3
    assert ("one half" in " ".join(found.notes)) == found.halves
    whole = gr.two_sample_test(
        make_samples(), GRAPH, ESTIMATORS[name](), null="global", random_state=0
    )
    assert whole.global_p_value < 0.01


@every_estimator
def test_kinds_of_change(name):
    estimator = ESTIMATORS[name]()
    found = gr.kinds_of_change(make_samples(), GRAPH, estimator, random_state=0)
    assert found.test.rejected[CHANGED].all()
    assert found.names == ("kind 1",)
    assert (found.kinds[CHANGED] == "kind 1").sum() >= 3
    if estimator is not None:
        assert type(found.model) is type(estimator)


@every_estimator
def test_divergence_bounds(name):
    estimator = ESTIMATORS[name]()
    found = gr.divergence_bounds(make_samples(), GRAPH, estimator, n_folds=3, random_state=0)
    assert np.isfinite(found.true_divergence_lower_bound).all()
    assert found.true_divergence_lower_bound[CHANGED].max() > 0
    assert found.level == 0.1


@every_estimator
def test_expected_ratio_interval(name):
    samples, estimator = make_samples(), ESTIMATORS[name]()
    given = {"x": [0.0, 2.0], "node": "v7", "random_state": 0}
    found = gr.expected_ratio_interval(samples, GRAPH, estimator, **given)
    assert found.ratio[1] > found.ratio[0]
    assert (found.standard_error > 0).all()
    if estimator is not None:
        fitted = ESTIMATORS[name]().fit(samples, GRAPH)
        again = gr.expected_ratio_interval(samples, None, fitted, **given)
        assert_allclose(again.expected_ratio_high, found.expected_ratio_high)


@pytest.mark.slow
@every_estimator
def test_compare_graphs(name):
    graphs = {"path": GRAPH, "other": OTHER, "none": None}
    if name in SINGLE:
        with pytest.raises(InputError, match="fits every node by itself, whatever the graph"):
            gr.compare_graphs(make_samples(), graphs, ESTIMATORS[name]())
        return
    asked = {"n_folds": 3, "n_repeats": 1, "random_state": 0}
    found = gr.compare_graphs(make_samples(), graphs, ESTIMATORS[name](), **asked)
    assert set(found.graphs) == {"path", "other"}
    assert all(np.isfinite(part.mean) for part in found.losses.values())
    assert all(np.isfinite(part.mean) for part in found.unseen.values())


@every_estimator
def test_change_points(name):
    rng = np.random.default_rng(0)
    panel = rng.normal(size=(160, N_NODES))
    panel[100:, CHANGED] += 2
    estimator = ESTIMATORS[name]()
    if estimator is not None:
        # The detector takes a number or a rule of its own, no candidates.
        given = estimator.get_params().items()
        estimator.set_params(**{key: None for key, value in given if isinstance(value, list)})
    detector = gr.GraphChangePointDetector(estimator=estimator, n_surrogates=19, random_state=0)
    assert detector.fit(panel, gr.Graph.from_adjacency(GRAPH.adjacency)).predict() == [100, 160]
    assert (detector.smoothing_ == ()) == (name in SINGLE)


@pytest.mark.filterwarnings("ignore::graphratio.exceptions.OverlapWarning")
@every_estimator
def test_transfer(name):
    samples = make_samples(shift=1.0)
    labels = {node: samples.reference(node)[:, 0] ** 2 for node in NODES}
    model = gr.NodewiseTransfer(Ridge(), ESTIMATORS[name](), random_state=0)
    assert model.fit(samples, labels, GRAPH).is_reweighted_[CHANGED].sum() >= 2


@every_estimator
def test_report(name, tmp_path):
    samples = make_samples()
    model = (ESTIMATORS[name]() or gr.GraphRatio(random_state=0)).fit(samples, GRAPH)
    assert write_report(tmp_path / "report.html", model, samples).stat().st_size > 10_000


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in ESTIMATORS if name not in LIKE_ANOTHER])
def test_the_test_keeps_its_level_with_every_estimator(name):
    """Nothing changed: p-values of 6 data sets with forty nodes each."""
    graph = gr.Graph.from_edges([(i, (i + 1) % 40) for i in range(40)])
    p_values = []
    for seed in range(6):
        rng = np.random.default_rng(1000 + seed)
        data = tuple(list(side) for side in rng.normal(size=(2, 40, 16)))
        found = gr.two_sample_test(
            data, graph, ESTIMATORS[name](), n_permutations=99, correction=None, random_state=seed
        )
        p_values.append(found.p_value)
    rate = int((np.array(p_values) <= 0.1).sum())
    assert rate <= stats.binom.ppf(0.999, 240, 0.1)


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(HALVES - LIKE_ANOTHER))
def test_neighbours_that_changed_do_not_make_a_node_look_changed(name):
    """The nodes in the middle of twenty stars, whose four leaves all moved."""
    graph = gr.Graph.from_edges([(leaf % 20, leaf) for leaf in range(20, 100)], nodes=range(100))
    small = 0
    for seed in range(2):
        rng = np.random.default_rng(2000 + seed)
        reference, target = rng.normal(size=(2, 100, 16))
        target[20:] += 1.5
        found = gr.two_sample_test(
            (list(reference), list(target)),
            graph,
            ESTIMATORS[name](),
            n_permutations=99,
            correction=None,
            random_state=seed,
        )
        small += int((found.p_value[:20] <= 0.1).sum())
    assert small <= stats.binom.ppf(0.999, 40, 0.1)


def default_results(scale):
    """Models and tables for a path of five nodes, with edges of the given weight."""
    nodes = NODES[2:7]
    graph = gr.Graph.from_adjacency(GRAPH.subset(nodes).adjacency * scale, nodes=nodes)
    data = make_samples(shift=1.0).subset(nodes)
    models = [
        make(random_state=0).fit(data, graph) for make in (gr.GraphRatio, gr.GRULSIF, gr.Pool)
    ]
    asked = {gr.two_sample_test: {}, gr.kinds_of_change: {}}
    asked |= {gr.divergence_bounds: {"n_folds": 3}, gr.compare_graphs: {"n_folds": 3}}
    tables = [
        function(data, graph, random_state=0, **given).to_frame()
        for function, given in asked.items()
    ]
    return models, tables


@pytest.mark.slow
def test_the_unit_of_edge_weights_changes_no_default_result():
    scale = 1e16
    models, tables = default_results(1e-8)
    other_models, other_tables = default_results(1e-8 * scale)
    for one, other in zip(models, other_models, strict=True):
        assert_allclose(other.divergence_, one.divergence_, rtol=1e-6, atol=1e-9)
        assert_allclose(other.ridge_, one.ridge_)
        assert_allclose(other.graph_penalty_ * scale, one.graph_penalty_)
    for one, other in zip(tables, other_tables, strict=True):
        for column in one.columns[1:]:
            if one[column].dtype.kind == "f":
                assert_allclose(other[column], one[column], rtol=1e-4, atol=1e-5)
            else:
                assert (other[column] == one[column]).all()


def test_weights_that_cannot_be_computed_with_are_refused_by_name():
    with pytest.raises(InputError, match="not between 1e-30 and 1e\\+30: 'a' - 'b'"):
        gr.Graph.from_edges([("a", "b", 1e45), ("b", "c", 1.0)])
    with pytest.raises(InputError, match="'b' - 'c'"):
        gr.Graph.from_edges([("a", "b", 1.0), ("b", "c", 1e-45)])


def test_paper_penalties():
    samples = make_samples()
    model = gr.GRULSIF(bandwidth=1.0, graph_penalty=0.8, ridge=0.04).fit(samples, GRAPH)
    assert model.paper_penalties_ == pytest.approx({"lambda": 0.1, "gamma": 0.05})
    for alone in (
        gr.Pool(bandwidth=1.0, ridge=0.04).fit(samples),
        gr.GRULSIF(bandwidth=1.0, graph_penalty=0, ridge=0.04).fit(samples, GRAPH),
    ):
        assert alone.graph_penalty_ == 0
        assert alone.paper_penalties_ == pytest.approx({"lambda": 1.0, "gamma": 0.005})
    assert set(gr.GraphRatio(random_state=0).fit(samples, GRAPH).paper_penalties_) == {
        "lambda",
        "gamma",
    }


def test_no_graph_penalty_is_every_node_on_its_own_with_the_same_ridge():
    samples = make_samples()
    fixed = {"bandwidth": 1.0, "ridge": 0.05, "random_state": 0, "tol": 1e-10}
    alone = gr.Pool(**fixed).fit(samples, GRAPH)
    for solver in ("auto", "pcg", "direct"):
        model = gr.GRULSIF(graph_penalty=0, solver=solver, **fixed).fit(samples, GRAPH)
        assert_allclose(model.divergence_, alone.divergence_, rtol=1e-8)
    nearly = gr.GRULSIF(graph_penalty=1e-12, **fixed).fit(samples, GRAPH)
    assert_allclose(nearly.divergence_, alone.divergence_, rtol=1e-6)


def test_a_node_without_data_cannot_borrow_without_a_graph_penalty():
    reference, target = np.random.default_rng(0).normal(size=(2, 3, 9))
    data = (list(reference), [target[0], target[1], np.empty(0)])
    graph = gr.Graph.from_edges([(0, 1), (1, 2)])
    assert np.isnan(gr.GRULSIF(random_state=0).fit(data, graph).divergence_[2])
    for make in (gr.GRULSIF, gr.GraphRatio):
        with pytest.raises(InputError, match="without reference or target observations: 2"):
            make(graph_penalty=0).fit(data, graph)


@pytest.mark.parametrize("make", [gr.GraphRatio, gr.GRULSIF, gr.RULSIF])
def test_the_random_state_of_a_function_seeds_an_estimator_without_one(make):
    given = ALONE if make is gr.RULSIF else COUPLED
    samples, estimator = make_samples(shift=1.0), make(**given | {"random_state": None})
    if make is gr.GRULSIF:
        estimator.set_params(adaptive=True, bandwidth=1.0, graph_penalty=0.3, ridge=0.1)
    for function in (gr.two_sample_test, gr.kinds_of_change, gr.divergence_bounds):
        one, other = (
            function(samples, GRAPH, estimator, random_state=3).to_frame() for _ in range(2)
        )
        assert one.equals(other)
    assert estimator.random_state is None


def test_gamma_of_a_selection_on_a_part_is_that_of_all_nodes():
    rng = np.random.default_rng(0)
    data = tuple(list(side) for side in rng.normal(size=(2, 40, 6)))
    graph = gr.Graph.from_edges([(i, i + 1) for i in range(39)])
    model = gr.GRULSIF(
        bandwidth=1.0, graph_penalty=0, max_atoms=6, cv=2, selection_nodes=20, random_state=0
    ).fit(data, graph)
    chosen = int(np.argmin(model.cv_results_["rank"]))
    assert model.cv_results_["gamma"][chosen] == pytest.approx(model.paper_penalties_["gamma"])


@pytest.mark.parametrize(
    "make",
    [
        gr.GraphRatio,
        lambda **seed: gr.GraphRatio(n_profiles=0, **seed),
        gr.GRULSIF,
        lambda **seed: gr.GRULSIF(adaptive=True, **seed),
        gr.Pool,
    ],
)
def test_a_fixed_copy_repeats_what_the_fit_chose(make):
    names = ("bandwidth_", "graph_penalty_", "ridge_", "n_rounds_", "n_profiles_", "n_atoms_")
    model = make(random_state=0).fit(make_samples(), GRAPH)
    other = model._again(fixed=True).fit(make_samples(seed=1, shift=0.5), GRAPH)
    for name in names:
        if hasattr(model, name):
            assert getattr(other, name) == pytest.approx(getattr(model, name)), name


def test_an_adaptive_fit_keeps_a_graph_penalty_that_is_a_number():
    model = gr.GRULSIF(adaptive=True, graph_penalty=0.5, random_state=0)
    assert model.fit(make_samples(), GRAPH).graph_penalty_ == 0.5


def test_an_interval_where_a_copy_has_no_graph_and_a_node_no_sample():
    """A sample of one observation is empty in one of the groups of the jackknife."""
    rng = np.random.default_rng(0)
    sizes = [(40, 40)] * 5 + [(40, 1)]
    data = ([rng.normal(size=n) for n, _ in sizes], [rng.normal(1.5, 1, size=m) for _, m in sizes])
    graph = gr.Graph.from_edges([(i, i + 1) for i in range(5)])
    fitted = gr.GraphRatio(random_state=0).fit(data, graph)
    fitted.graph_penalty_ = 0.0
    found = gr.expected_ratio_interval(data, None, fitted, x=[0.0], node=5, random_state=0)
    assert np.isfinite(found.standard_error).all()


def test_the_detector_reads_the_norm_of_a_graph_penalty():
    panel = np.random.default_rng(0).normal(size=(100, N_NODES))
    graph = gr.Graph.from_adjacency(GRAPH.adjacency)

    def fitted(estimator):
        detector = gr.GraphChangePointDetector(estimator=estimator, n_surrogates=19)
        return detector.fit(panel, graph)

    plain = fitted(gr.GRULSIF(graph_penalty=0.5))
    variance = plain._watch.settings.lens.features.variance
    assert_allclose(plain.smoothing_, [0.5 / variance])
    again = fitted(gr.GraphRatio(n_profiles=0, graph_penalty=0.5))
    assert len(again.smoothing_) == 1
    assert again.smoothing_[0] > 0.5
    assert_allclose(fitted(gr.GraphRatio(graph_penalty=0.5)).smoothing_, [0.5])


@pytest.mark.parametrize("nothing", [0, [0.0], np.array(0.0)])
def test_any_zero_switches_the_graph_off(nothing):
    with pytest.raises(InputError, match="fits every node by itself"):
        gr.compare_graphs(make_samples(), GRAPH, gr.GRULSIF(graph_penalty=nothing))


def test_an_interval_refuses_another_graph_than_that_of_the_fit():
    fitted = gr.GRULSIF(bandwidth=1.0, graph_penalty=1.0, ridge=0.1).fit(make_samples(), GRAPH)
    given = {"x": [0.0], "node": "v0"}
    with pytest.raises(InputError, match="fitted with another graph"):
        gr.expected_ratio_interval(make_samples(), OTHER, fitted, **given)
    same = gr.Graph.from_edges(list(pairwise(NODES)))
    assert gr.expected_ratio_interval(make_samples(), same, fitted, **given).node == "v0"


class TestWorthOfAGraph:
    """The rival of a graph is the same estimator without it."""

    @pytest.mark.slow
    def test_shared_profiles_are_no_merit_of_a_random_graph(self):
        """Two kinds of change at random nodes: profiles help, the graph cannot."""
        helped = 0
        for seed in range(3):
            rng = np.random.default_rng(seed)
            reference, target = rng.normal(size=(2, 30, 40))
            kind = rng.integers(3, size=30)
            target += np.choose(kind, [0.0, 1.5, -1.5])[:, np.newaxis]
            graph = gr.Graph.from_edges(
                [(i, int(rng.integers(i))) for i in range(1, 30)], nodes=range(30)
            )
            found = gr.compare_graphs(
                (list(reference), list(target)),
                {"random": graph, "none": None},
                ESTIMATORS["GraphRatio"](),
                worth=False,
                random_state=0,
            )
            assert found.best is None
            helped += len(found.helped())
        # Of 90 nodes at a level of 5 %, one side: 2 or 3 by chance.
        assert helped <= 7

    def test_nodes_without_neighbours_are_not_judged(self):
        graph = gr.Graph.from_edges([("v0", "v1")], nodes=NODES)
        found = gr.compare_graphs(make_samples(), graph, gr.GRULSIF(**COUPLED), random_state=0)
        assert set(found.neighbors[2:]) == {"not assessed"}
        assert set(found.neighbors[:2]) <= {"helped", "hurt", "unclear"}

    @pytest.mark.parametrize("make", [gr.GraphRatio, gr.GRULSIF])
    def test_a_learned_graph(self, make):
        found = gr.compare_graphs(make_samples(), None, make(**COUPLED), random_state=0)
        assert set(found.losses) == {
            "without a graph",
            "all nodes as one",
            "learned from the data",
        }
        assert found.learned_graph.n_nodes == N_NODES


class TestEngine:
    """Parts that do not run on an engine are named, and the rest is fitted."""

    def test_graph_ratio(self):
        samples = make_samples()
        model = gr.GraphRatio(engine=LocalEngine(2), **COUPLED).fit(samples, GRAPH)
        here = gr.GraphRatio(**COUPLED).fit(samples, GRAPH)
        assert "engine" not in " ".join(model.notes_)
        assert (model.shared_, model.n_profiles_) == (here.shared_, here.n_profiles_)
        assert_allclose(model.divergence_, here.divergence_, rtol=1e-5)
        assert model.divergence_[CHANGED].min() > model.divergence_[~CHANGED].max()
        assert model.profile_values([0.0, 1.0]).shape == (2, model.n_profiles_)

    def test_saved(self, tmp_path):
        model = gr.GraphRatio(engine=LocalEngine(2), **COUPLED).fit(make_samples(), GRAPH)
        model.save(tmp_path / "model.graphratio")
        again = gr.load(tmp_path / "model.graphratio")
        assert again.notes_ == model.notes_

    def test_report_and_plot(self, tmp_path):
        samples = make_samples()
        model = gr.GraphRatio(engine=LocalEngine(2), **COUPLED).fit(samples, GRAPH)
        assert write_report(tmp_path / "report.html", model, samples).exists()
        gr.plot_learned_graph(model)

    def test_functions_fit_in_this_process(self):
        """Copies of an estimator neither use its engine nor draw its progress bar."""
        estimator = gr.GRULSIF(engine=LocalEngine(2), progress=True, adaptive=True, random_state=0)
        copy = estimator._again(fixed=False)
        assert copy.engine is None
        assert copy.progress is False
        assert copy.adaptive is True
        assert isinstance(estimator.engine, LocalEngine)

    def test_no_note_where_nothing_was_left_out(self):
        model = gr.GraphRatio(n_profiles=0, adaptive=False, engine=LocalEngine(2), **COUPLED)
        assert "engine" not in " ".join(model.fit(make_samples(), GRAPH).notes_)
        plain = ESTIMATORS["GRULSIF, adaptive"]().fit(make_samples(), GRAPH)
        assert "engine" not in " ".join(plain.notes_)

    def test_adaptive_edges(self):
        fixed = {"bandwidth": 1.0, "graph_penalty": 0.5, "ridge": 0.1, "tol": 1e-10}
        engine = LocalEngine(2)
        there = gr.GRULSIF(adaptive=True, engine=engine, **fixed).fit(make_samples(), GRAPH)
        here = gr.GRULSIF(**fixed).fit(make_samples(), GRAPH)
        assert "edge weights were not learned" in repr(there)
        assert_allclose(there.divergence_, here.divergence_, rtol=1e-7)


class TestScikitLearn:
    """Searches and pipelines of scikit-learn refuse in one sentence that names the remedy."""

    REFUSAL = "scikit-learn's searches, cross-validation and pipelines cannot use it. Pass the"

    def test_search(self):
        search = GridSearchCV(gr.GRULSIF(), {"bandwidth": [0.5, 1.0]})
        with pytest.raises(InputError, match=self.REFUSAL):
            search.fit(make_samples())
        with pytest.raises(InputError, match=self.REFUSAL):
            search.fit(make_samples(), GRAPH)

    def test_cross_validation(self):
        with pytest.raises(InputError, match=self.REFUSAL):
            cross_val_score(gr.Pool(), make_samples())

    def test_pipeline(self):
        with pytest.raises(InputError, match=self.REFUSAL):
            make_pipeline(StandardScaler(), gr.GRULSIF()).fit(make_samples())


@pytest.mark.parametrize("wrong", ["GRULSIF", gr.GRULSIF, Ridge(), 3])
def test_anything_else_is_refused_alike(wrong):
    samples = make_samples()
    panel = np.random.default_rng(0).normal(size=(100, N_NODES))
    calls = [
        lambda: gr.two_sample_test(samples, GRAPH, wrong),
        lambda: gr.kinds_of_change(samples, GRAPH, wrong),
        lambda: gr.divergence_bounds(samples, GRAPH, wrong),
        lambda: gr.expected_ratio_interval(samples, GRAPH, wrong, x=[0.0], node="v0"),
        lambda: gr.compare_graphs(samples, GRAPH, wrong),
        lambda: gr.GraphChangePointDetector(estimator=wrong).fit(panel),
        lambda: gr.NodewiseTransfer(Ridge(), wrong).fit(
            samples, {node: samples.reference(node)[:, 0] for node in NODES}, GRAPH
        ),
    ]
    for call in calls:
        with pytest.raises(InputError, match="is not an estimator of this library"):
            call()
