"""Kinds of change: what is found, what is promised, and how the result is used."""

import numpy as np
import pytest
from scipy import stats

import graphratio as gr
from graphratio.exceptions import InputError
from graphratio.testing import KindsOfChange, kinds
from graphratio.testing.kinds import kinds_from


def path(n_nodes):
    return gr.Graph.from_edges([(i, i + 1) for i in range(n_nodes - 1)])


@pytest.fixture(scope="module")
def network():
    """Thirty nodes on a path: eight went up, ten became erratic, one calmer."""
    rng = np.random.default_rng(2)
    reference, target = rng.normal(size=(2, 30, 80, 1))
    target[:8] += 1.5
    target[20:] *= 2.5
    target[14] *= 0.2
    return (list(reference), list(target)), path(30)


@pytest.fixture(scope="module")
def found(network):
    return gr.kinds_of_change(*network, random_state=0)


def test_nodes_that_changed_alike_are_of_one_kind(found):
    assert found.n_kinds == 2
    assert set(found.kinds[:8]) == {"kind 2"}
    assert set(found.kinds[20:]) == {"kind 1"}
    assert found.kinds[14] == "other"
    assert found.members("other") == (14,)
    assert found.counts == {"kind 1": 10, "kind 2": 8, "other": 1, "no change found": 11}


def test_changed_means_rejected_by_the_test(found, network):
    test = gr.two_sample_test(*network, correction="fdr", random_state=0)
    np.testing.assert_array_equal(found.test.p_value, test.p_value)
    np.testing.assert_array_equal(found.kinds == "no change found", ~test.rejected)


def test_a_kind_is_its_mean_ratio(found):
    x = np.linspace(-2, 2, 5)
    expected = found.model.predict(x)[:, :8].mean(axis=1)
    np.testing.assert_allclose(found.ratio(x)[:, 1], expected)


def test_table_and_texts(found):
    table = found.to_frame()
    assert list(table.columns) == ["node", "kind", "p_value", "adjusted_p_value"]
    assert table["kind"].tolist() == found.kinds.tolist()
    assert "2 kinds of change at 30 nodes (kind 1: 10, kind 2: 8" in repr(found)
    html = found._repr_html_()
    assert "0, 1, 2, 3, 4, 5 and 2 more" in html
    assert "false discovery rate of 5%" in html


def test_same_seed_same_kinds_also_with_progress(found, network, capsys):
    again = gr.kinds_of_change(*network, random_state=0, progress=True)
    assert again.kinds.tolist() == found.kinds.tolist()
    shown = capsys.readouterr().err
    assert all(part in shown for part in ("nodes:", "model selection:", "kinds of change: 5/5"))


def test_a_fitted_estimator_is_not_fitted_again(found, network, monkeypatch):
    samples, graph = network
    model = gr.GraphRatio(random_state=0).fit(samples, graph)
    fits = []
    original = gr.GraphRatio.fit
    monkeypatch.setattr(
        gr.GraphRatio, "fit", lambda self, *data: fits.append(self) or original(self, *data)
    )
    given = gr.kinds_of_change(samples, None, model, random_state=0)
    assert given.model is model
    assert len(fits) == 5
    assert all(fit.n_profiles == model.n_profiles_ for fit in fits)
    again = kinds_from(samples, model, found.test, random_state=1)
    assert again.kinds.tolist() == given.kinds.tolist() == found.kinds.tolist()


def test_samples_in_original_units_for_a_model_of_standardised_ones(network):
    (reference, target), graph = network
    samples = gr.NodeSamples.from_arrays(
        [10 + 100 * x for x in reference], [10 + 100 * x for x in target]
    )
    model = gr.GraphRatio(random_state=0).fit(samples.standardized(), graph)
    found = gr.kinds_of_change(samples, None, model, random_state=0)
    assert found.n_kinds == 2
    assert found.ratio([260.0])[0, 1] > 2


def test_an_estimator_is_left_as_it_was(network):
    estimator = gr.Pool(bandwidth=1.0, ridge=0.1)
    gr.kinds_of_change(*network, estimator, random_state=0)
    assert not hasattr(estimator, "divergence_")
    assert estimator.random_state is None


def test_nothing_is_fitted_if_nothing_changed():
    rng = np.random.default_rng(0)
    data = tuple(list(side) for side in rng.normal(size=(2, 6, 20)))
    found = gr.kinds_of_change(data, path(6), random_state=0)
    assert set(found.kinds) == {"no change found"}
    assert (found.model, found.n_kinds) == (None, 0)
    assert "0 kinds of change at 6 nodes (no change found: 6)" in repr(found)
    with pytest.raises(InputError, match="no change was found"):
        found.ratio([0.0])


def test_own_changes_of_all_nodes_are_no_kinds_and_said_once():
    rng = np.random.default_rng(0)
    reference, target = rng.normal(size=(2, 24, 200, 2))
    target *= rng.choice([0.3, 1.0, 2.0], size=(24, 1, 2))
    target += rng.uniform(-2.5, 2.5, size=(24, 1, 2))
    found = gr.kinds_of_change((list(reference), list(target)), random_state=0)
    assert set(found.kinds) == {"changed"}
    assert found.n_kinds == 0
    assert sum("there are no kinds" in note for note in found.notes) == 1
    assert found.ratio([[0.0, 0.0]]).shape == (1, 0)


def test_one_changed_node_is_no_kind():
    rng = np.random.default_rng(0)
    reference, target = rng.normal(size=(2, 8, 40))
    target[3] += 3.0
    found = gr.kinds_of_change((list(reference), list(target)), path(8), random_state=0)
    assert found.counts == {"changed": 1, "no change found": 7}
    assert found.notes[0] == "only one node changed, so there are no kinds"


def test_nodes_that_lack_a_sample_are_not_tested(network):
    (reference, target), graph = network
    target = [np.zeros((0, 1)) if v == 3 else x for v, x in enumerate(target)]
    found = gr.kinds_of_change((reference, target), graph, random_state=0)
    assert found.kinds[3] == "not tested"
    assert "not tested" not in np.delete(found.kinds, 3)


def test_another_graph_and_other_samples_are_refused(network):
    samples, graph = network
    model = gr.Pool(bandwidth=1.0, ridge=0.1).fit(samples, graph)
    with pytest.raises(InputError, match="another graph"):
        gr.kinds_of_change(samples, gr.Graph.empty(30), model)
    fewer = ([x[:-1] for x in samples[0]], samples[1])
    with pytest.raises(InputError, match=r"fitted on 80 \+ 80 observations of node 0"):
        gr.kinds_of_change(fewer, None, model, random_state=0)
    whole = gr.two_sample_test(samples, graph, null="global", random_state=0)
    with pytest.raises(InputError, match='null="node"'):
        kinds_from(samples, model, whole)


@pytest.mark.slow
def test_a_quiet_network_has_no_kinds_but_by_chance():
    """Any node is called changed in at most 5 % of 40 data sets, up to the binomial error."""
    # Fixed, so that the selection takes no time.
    model = gr.GRULSIF(bandwidth=0.7, graph_penalty=0.5, ridge=0.005)
    alarms = 0
    for seed in range(40):
        rng = np.random.default_rng(7000 + seed)
        data = tuple(list(side) for side in rng.normal(size=(2, 10, 20)))
        found = gr.kinds_of_change(data, path(10), model, n_permutations=399, random_state=seed)
        alarms += set(found.kinds) != {"no change found"}
    assert alarms <= stats.binom.ppf(0.999, 40, 0.05)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["Ib", "IIa"])
def test_the_kinds_of_the_scenarios(name):
    scenario = gr.datasets.make_scenario(name, n_nodes=60, n=50, random_state=1)
    found = gr.kinds_of_change(scenario.samples, scenario.graph, random_state=0)
    true = sorted(set(scenario.groups[scenario.changed]))
    assert found.n_kinds == len(true)
    for group in true:
        inside, sizes = np.unique(found.kinds[scenario.groups == group], return_counts=True)
        assert inside[sizes.argmax()].startswith("kind ")
        assert sizes.max() > 0.9 * sizes.sum()


def test_the_result_is_exported():
    assert isinstance(KindsOfChange, type)
    assert kinds.kinds_of_change is gr.kinds_of_change
