"""Estimators with other losses than Pearson's: divergences, reductions, refusals, files."""

import json
import zipfile

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

import graphratio as gr
from graphratio.distributed.local import LocalEngine
from graphratio.exceptions import FileFormatError, InputError
from graphratio.moments.losses import LOSSES

FIXED = {"bandwidth": 1.2, "graph_penalty": 0.3, "ridge": 0.01, "random_state": 0}
SELECTED = {"bandwidth": [0.8, 1.5], "graph_penalty": [0.03, 0.3], "ridge": 0.01}
OTHERS = ("kl", "jensen-shannon")
every_other = pytest.mark.parametrize("loss", OTHERS)
NODES = 6
GRAPH = gr.Graph.from_edges([(i, i + 1) for i in range(NODES - 1)])


def make_samples(seed=0, shift=1.0, size=40):
    rng = np.random.default_rng(seed)
    reference, target = rng.normal(size=(2, NODES, size))
    target[3:] += shift
    return gr.NodeSamples.from_arrays(list(reference), list(target))


@every_other
@pytest.mark.parametrize("alpha", [0.0, 0.1])
def test_without_edges_every_node_is_fitted_by_itself(loss, alpha):
    samples = make_samples()
    settings = FIXED | {"dictionary": np.linspace(-2, 3, 9)[:, np.newaxis], "tol": 1e-9}
    model = gr.GRULSIF(alpha=alpha, loss=loss, **settings).fit(samples)
    for node in range(NODES):
        alone = (samples.reference(node), samples.target(node))
        single = gr.GRULSIF(alpha=alpha, loss=loss, **settings).fit(alone)
        assert_allclose(single.divergence_[0], model.divergence_[node], rtol=1e-8)
    settings.pop("graph_penalty")
    pool = gr.Pool(alpha=alpha, loss=loss, **settings).fit(samples, GRAPH)
    assert_allclose(pool.divergence_, model.divergence_, rtol=1e-8)


@every_other
def test_strong_coupling_gives_consensus(loss):
    model = gr.GRULSIF(loss=loss, **FIXED | {"graph_penalty": 1e6}).fit(make_samples(), GRAPH)
    assert_allclose(model.coef_, np.tile(model.coef_[0], (NODES, 1)), atol=1e-4)


@every_other
def test_divergences_are_those_of_the_laws(loss):
    """With many observations the estimate comes near the divergence by quadrature."""
    samples = make_samples(size=1500)
    settings = FIXED | {"graph_penalty": 0.001, "ridge": 0.0005}
    model = gr.GRULSIF(alpha=0.1, loss=loss, **settings).fit(samples, GRAPH)
    x = np.linspace(-8, 9, 4001)
    p, q = stats.norm.pdf(x), stats.norm.pdf(x, 1.0)
    mixture = 0.5 * (p + q) if loss == "jensen-shannon" else 0.9 * p + 0.1 * q
    truth = np.sum(q * np.log(q / mixture)) * (x[1] - x[0])
    if loss == "jensen-shannon":
        truth = 0.5 * (truth + np.sum(p * np.log(p / mixture)) * (x[1] - x[0]))
    assert_allclose(model.divergence_[3:], truth, rtol=0.2)
    assert (model.divergence_[:3] < 0.1 * truth).all()
    assert model.divergence_[3:].mean() < model.divergence_ceiling_


@every_other
def test_names_ranges_and_words(loss):
    model = gr.GRULSIF(loss=loss, **FIXED).fit(make_samples(), GRAPH)
    name = {"kl": "KL", "jensen-shannon": "Jensen-Shannon"}[loss]
    assert model.divergence_name_ == name
    assert f"largest {name} divergence" in repr(model)
    assert "Pearson" not in repr(model) + model._repr_html_()
    ceiling = np.log(2) if loss == "jensen-shannon" else np.log(10)
    assert model.divergence_ceiling_ == pytest.approx(ceiling)
    ratios = model.predict(np.linspace(-30, 30, 200), clip=False)
    assert (ratios > 0).all()
    if loss == "jensen-shannon":
        assert (ratios <= 10).all()
    assert model.solution_.method == "newton"
    assert model.solution_.residual <= 1e-6
    ratios = model._ratios_at_nodes(make_samples().values, make_samples().node_index)
    losses = LOSSES[loss].of_nodes(ratios, model.sizes_, 0.1)
    assert model.score(make_samples()) == pytest.approx(-losses.mean())


@every_other
def test_equal_samples_are_solved_by_a_ratio_of_one(loss):
    """What remains of the gradient is rounding: no reason for iterations or a warning."""
    values = list(np.random.default_rng(40200).normal(size=(NODES, 40, 2)))
    samples = gr.NodeSamples.from_arrays(values, [rows[::-1] for rows in values])
    pool = gr.Pool(loss=loss, **{k: FIXED[k] for k in ("bandwidth", "ridge", "random_state")})
    for model in (gr.GRULSIF(loss=loss, **FIXED), pool):
        model.fit(samples, GRAPH)
        assert model.solution_.n_iter == 0
        assert_allclose(model.divergence_, 0, atol=1e-12)


def test_no_kl_divergence_exceeds_its_ceiling():
    """A strong change at one node, whose neighbours share its intercept."""
    reference, target = np.random.default_rng(40001).normal(size=(2, NODES, 60))
    target[0] += 8
    samples = gr.NodeSamples.from_arrays(list(reference), list(target))
    model = gr.GRULSIF(loss="kl", **FIXED).fit(samples, GRAPH)
    raw = np.log(model.predict(target[0], node=0, clip=False)).mean()
    ceiling = model.divergence_ceiling_
    assert raw > ceiling
    assert 0.9 * ceiling < model.divergence_[0] <= ceiling
    assert_allclose(model.divergence(samples), model.divergence_)


@every_other
def test_held_out_divergences(loss):
    samples = make_samples(size=60)
    model = gr.GRULSIF(loss=loss, random_state=0, **SELECTED).fit(samples, GRAPH)
    assert set(model.cv_results_["rank"]) == {1, 2, 3, 4}
    best = int(np.argmax(model.cv_results_["mean_score"]))
    assert model.bandwidth_ == model.cv_results_["bandwidth"][best]
    # What the model claims on held-out data is what it reaches on fresh data, up to noise.
    fresh = np.mean([model.divergence(make_samples(seed, size=60)) for seed in range(1, 9)], axis=0)
    assert_allclose(model.divergence_held_out_, fresh, atol=0.2)
    assert (model.divergence_held_out_ < model.divergence_).mean() >= 0.5


@every_other
def test_a_choice_is_that_of_double_precision_and_a_tight_tolerance(loss, monkeypatch):
    from graphratio.estimators import dictionary_based
    from graphratio.selection import cross_validation

    scenario = gr.datasets.make_scenario("Ia", n_nodes=16, n=40, random_state=1)
    rough = gr.GRULSIF(loss=loss, random_state=0).fit(scenario.samples, scenario.graph)
    monkeypatch.setattr(cross_validation, "NEWTON_TOLERANCE", 1e-7)
    monkeypatch.setattr(cross_validation, "NEWTON_ITERATIONS", 5000)
    monkeypatch.setattr(dictionary_based, "precision_for", lambda _: np.float64)
    exact = gr.GRULSIF(loss=loss, random_state=0).fit(scenario.samples, scenario.graph)
    chosen = int(np.argmin(rough.cv_results_["rank"]))
    scores = exact.cv_results_["mean_score"]
    assert scores[chosen] >= scores.max() - 1e-3
    assert (rough.bandwidth_, rough.graph_penalty_) == (exact.bandwidth_, exact.graph_penalty_)


@every_other
def test_nodes_without_a_sample_borrow(loss):
    samples = make_samples()
    target = {v: samples.target(v) for v in range(NODES)} | {4: np.empty((0, 1))}
    reference = {v: samples.reference(v) for v in range(NODES)}
    lacking = gr.NodeSamples.from_arrays(reference, target)
    model = gr.GRULSIF(loss=loss, **FIXED).fit(lacking, GRAPH)
    x = np.linspace(-2, 3, 20)
    own, left, right = (model.predict(x, node=v) for v in (4, 3, 5))
    assert np.isnan(model.divergence_[4])
    assert (own >= np.minimum(left, right) * 0.95).all()
    assert (own <= np.maximum(left, right) * 1.05).all()


@every_other
def test_relabelling_and_order_do_not_matter(loss):
    samples, turned = make_samples(), [4, 0, 5, 1, 3, 2]
    settings = FIXED | {"dictionary": np.linspace(-2, 3, 9)[:, np.newaxis], "tol": 1e-9}
    model = gr.GRULSIF(loss=loss, **settings).fit(samples, GRAPH)
    other = gr.NodeSamples.from_arrays(
        [samples.reference(v)[::-1] for v in turned], [samples.target(v)[::-1] for v in turned]
    )
    position = {v: i for i, v in enumerate(turned)}
    edges = [(position[i], position[i + 1]) for i in range(NODES - 1)]
    again = gr.GRULSIF(loss=loss, **settings).fit(
        other, gr.Graph.from_edges(edges, nodes=range(NODES))
    )
    assert_allclose(again.divergence_, model.divergence_[turned], rtol=1e-7)


def test_scaling_features_and_bandwidth_together_changes_nothing():
    samples = make_samples()
    doubled = gr.NodeSamples.from_arrays(
        [2 * samples.reference(v) for v in range(NODES)],
        [2 * samples.target(v) for v in range(NODES)],
    )
    one = gr.GRULSIF(loss="kl", **FIXED).fit(samples, GRAPH)
    other = gr.GRULSIF(loss="kl", **FIXED | {"bandwidth": 2.4}).fit(doubled, GRAPH)
    assert_allclose(other.divergence_, one.divergence_, rtol=1e-6)


def test_exchanging_the_samples_mirrors_jensen_shannon():
    samples = make_samples()
    mirrored = gr.NodeSamples.from_arrays(
        [samples.target(v) for v in range(NODES)], [samples.reference(v) for v in range(NODES)]
    )
    settings = FIXED | {"dictionary": np.linspace(-2, 3, 9)[:, np.newaxis], "tol": 1e-9}
    one = gr.GRULSIF(alpha=0, loss="jensen-shannon", **settings).fit(samples, GRAPH)
    other = gr.GRULSIF(alpha=0, loss="jensen-shannon", **settings).fit(mirrored, GRAPH)
    assert_allclose(other.divergence_, one.divergence_, rtol=1e-7)
    x = np.linspace(-2, 3, 20)
    assert_allclose(other.predict(x) * one.predict(x), 1.0, rtol=1e-6)


@every_other
def test_graph_ratio_may_switch_the_graph_off(loss):
    """Neighbours that have nothing in common: the held-out loss drops the graph."""
    rng = np.random.default_rng(0)
    n_nodes = 30
    reference = rng.normal(size=(n_nodes, 80))
    target = rng.normal(size=(n_nodes, 80)) + rng.choice([-2.0, 0.0, 2.0], size=(n_nodes, 1))
    graph = gr.Graph.from_edges([(i, (i + 1) % n_nodes) for i in range(n_nodes)])
    model = gr.GraphRatio(loss=loss, random_state=0).fit((list(reference), list(target)), graph)
    assert not model.shared_
    strongest = 10 * LOSSES[loss].curvature * n_nodes / graph.mean_degree
    assert model.graph_penalty_ < 1e-3 * strongest
    assert 0.0 in model.cv_results_["graph_penalty"]


class TestRefusals:
    def fit(self, model):
        return model.fit(make_samples(), GRAPH)

    def test_unknown_loss(self):
        with pytest.raises(InputError, match="loss='hellinger' is not one of"):
            self.fit(gr.GRULSIF(loss="hellinger"))

    @every_other
    def test_solvers(self, loss):
        with pytest.raises(InputError, match="solver='cbcgd' solves one linear system"):
            self.fit(gr.GRULSIF(loss=loss, solver="cbcgd"))

    @every_other
    def test_engines(self, loss):
        for kind in (gr.GRULSIF, gr.GraphRatio):
            with pytest.raises(InputError, match="does not run on an engine"):
                self.fit(kind(loss=loss, engine=LocalEngine(2)))

    def test_other_priors(self):
        with pytest.raises(InputError, match=r"prior_ratio=0\.5 does nothing with loss='kl'"):
            self.fit(gr.GRULSIF(loss="kl", prior_ratio=0.5))

    def test_profiles(self):
        with pytest.raises(InputError, match="n_profiles=2 needs loss='pearson'"):
            self.fit(gr.GraphRatio(loss="kl", n_profiles=2))

    def test_memory(self):
        with pytest.raises(InputError, match="more than max_memory"):
            self.fit(gr.GRULSIF(loss="kl", max_memory="1MiB", **FIXED))

    def test_a_bound_of_kl_needs_a_mixture(self):
        model = gr.GRULSIF(alpha=0, loss="kl", **FIXED)
        with pytest.raises(InputError, match="Kullback-Leibler divergence needs alpha > 0"):
            gr.divergence_bounds(make_samples(), GRAPH, model)


@every_other
def test_bounds_are_below_the_truth(loss):
    alpha = 0.1
    model = gr.GRULSIF(alpha=alpha, loss=loss, **FIXED)
    x = np.linspace(-8, 9, 4001)
    p, q = stats.norm.pdf(x), stats.norm.pdf(x, 1.0)
    mixture = 0.5 * (p + q) if loss == "jensen-shannon" else (1 - alpha) * p + alpha * q
    truth = np.sum(q * np.log(q / mixture)) * (x[1] - x[0])
    covered = []
    for seed in range(6):
        found = gr.divergence_bounds(make_samples(seed, size=60), GRAPH, model, random_state=0)
        assert found.divergence_name == LOSSES[loss].divergence_name
        assert f"true {found.divergence_name} divergence above 0" in found.outcome
        assert (found.fitted_divergence_interval[:, 1] <= LOSSES[loss].ceiling(alpha)).all()
        covered.append(found.true_divergence_lower_bound <= np.repeat([0.0, truth], 3))
    # 36 bounds at 90 %; the probability of more than 9 failures is below 0.3 %.
    assert np.sum(~np.array(covered)) <= 9
    assert found.true_divergence_lower_bound[3:].max() > 0


class TestFiles:
    @every_other
    def test_round_trip(self, loss, tmp_path):
        model = gr.GRULSIF(loss=loss, **FIXED).fit(make_samples(), GRAPH)
        model.save(tmp_path / "m.graphratio")
        read = gr.load(tmp_path / "m.graphratio")
        assert read.loss == loss
        x = np.linspace(-2, 3, 7)
        assert (read.predict(x) == model.predict(x)).all()
        assert (read.divergence(make_samples()) == model.divergence(make_samples())).all()

    @pytest.mark.parametrize(
        ("name", "value", "message"),
        [
            ("loss", "hellinger", "hellinger"),
            ("loss", "pearson", "not those of a fit with loss='pearson'"),
        ],
    )
    def test_another_loss_in_the_file(self, name, value, message, tmp_path):
        path = tmp_path / "m.graphratio"
        gr.GRULSIF(loss="kl", **FIXED).fit(make_samples(), GRAPH).save(path)
        with zipfile.ZipFile(path) as archive:
            parts = {entry: archive.read(entry) for entry in archive.namelist()}
        key = next(entry for entry in parts if entry.endswith(".json"))
        document = json.loads(parts[key])
        document["parameters"][name] = value
        parts[key] = json.dumps(document).encode()
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for entry, content in parts.items():
                archive.writestr(entry, content)
        with pytest.raises(FileFormatError, match=message):
            gr.load(path)


@every_other
def test_adaptive_edges_break_between_kinds(loss):
    scenario = gr.datasets.make_scenario("Ia", n_nodes=40, n=60, random_state=0)
    settings = {"bandwidth": 1.0, "graph_penalty": 0.3, "ridge": 0.001, "random_state": 0}
    model = gr.GRULSIF(loss=loss, adaptive=True, **settings).fit(scenario.samples, scenario.graph)
    assert model.n_rounds_ > 0
    learned = model.graph_learned_.adjacency.tocoo()
    groups = np.asarray(scenario.groups)
    across = groups[learned.row] != groups[learned.col]
    assert np.median(learned.data[across]) < 0.5 * np.median(learned.data[~across])
    assert model.solution_.residual <= 1e-6


def test_graph_ratio_learns_edges_and_repeats_what_it_chose():
    scenario = gr.datasets.make_scenario("Ib", n_nodes=40, n=50, random_state=0)
    model = gr.GraphRatio(loss="kl", bandwidth=1.5, ridge=0.004, random_state=0)
    model.fit(scenario.samples, scenario.graph)
    assert model.n_rounds_ > 0
    rank, rounds = model.cv_results_["rank"], model.cv_results_["n_rounds"]
    assert rounds[int(np.argmin(rank))] == model.n_rounds_
    given = gr.GraphRatio(loss="kl", adaptive=False, **model._chosen | {"n_rounds": None})
    plain = given.fit(scenario.samples, scenario.graph)
    assert plain.n_rounds_ == 0
    assert plain.graph_learned_.same_as(scenario.graph)
    copy = model._again(fixed=True).fit(scenario.samples, scenario.graph)
    assert copy.n_rounds_ == model.n_rounds_
    assert_allclose(copy.divergence_, model.divergence_, rtol=1e-4)
