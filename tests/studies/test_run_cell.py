"""The rows of one cell, computed a second time by other means."""

import numpy as np
import pytest
from studies.paper.cells import Cell
from studies.paper.methods import METHODS, PLAIN
from studies.paper.run_cell import run_cell

import graphratio as gr
from graphratio.datasets import make_scenario


@pytest.mark.parametrize("method", METHODS)
def test_rows_are_what_the_estimator_gives(method):
    alpha = 0.0 if method in PLAIN else 0.2
    cell = Cell("Ib", method, n=20, n_nodes=8, alpha=alpha, seed=3, n_points=50)
    found = run_cell(cell)
    scenario = make_scenario("Ib", n_nodes=8, n=20, random_state=3)
    model = {
        "GRULSIF": lambda: gr.GRULSIF(alpha, random_state=3),
        "POOL": lambda: gr.Pool(alpha, random_state=3),
        "RULSIF": lambda: gr.RULSIF(alpha, selection="min", random_state=3),
        "ULSIF": lambda: gr.ULSIF(selection="min", random_state=3),
        "KLIEP": lambda: gr.KLIEP(random_state=3),
        "RULSIF-cautious": lambda: gr.RULSIF(alpha, random_state=3),
    }[method]()
    model.fit(scenario.samples, scenario.graph)
    np.testing.assert_array_equal(found["divergence_estimated"], model.divergence_)
    np.testing.assert_array_equal(found["ridge"], model.ridge_)
    assert found["group"] == scenario.groups.tolist()
    assert found["changed"] == scenario.changed.tolist()
    assert found["alpha"] == alpha
    if method == "KLIEP":
        assert found["divergence"] == "KL"
        np.testing.assert_array_equal(found["divergence_true"], scenario.true_kl_divergence())
    else:
        assert found["divergence"] == "Pearson"
        np.testing.assert_array_equal(found["divergence_true"], scenario.true_divergence(alpha))


def test_error_is_the_mean_square_under_the_mixture():
    """At a node without change and with an estimate near 1 it is the variance around 1."""
    cell = Cell("Ia", "POOL", n=40, n_nodes=8, alpha=0.5, seed=0, n_points=4000)
    found = run_cell(cell)
    scenario = make_scenario("Ia", n_nodes=8, n=40, random_state=0)
    model = gr.Pool(0.5, random_state=0).fit(scenario.samples, scenario.graph)
    for node in (2, 7):
        points = scenario.sample_mixture(node, 4000, 0.5, random_state=99)
        square = (model.predict(points, node) - scenario.true_ratio(points, node, 0.5)) ** 2
        spread = square.std() / np.sqrt(4000)
        assert found["squared_error"][node] == pytest.approx(square.mean(), abs=6 * spread)


def test_all_methods_see_the_same_data_and_points(monkeypatch):
    seen = []
    original = gr.datasets.Scenario.mean_squared_error

    def watched(self, predict, *args):
        def noting(x, node):
            seen.append((self.samples.values.sum(), x.sum()))
            return predict(x, node)

        return original(self, noting, *args)

    monkeypatch.setattr(gr.datasets.Scenario, "mean_squared_error", watched)
    for method in ("POOL", "RULSIF"):
        run_cell(Cell("Ia", method, n=20, n_nodes=8, alpha=0.1, seed=1, n_points=20))
    assert len(seen) == 16
    assert seen[:8] == seen[8:]
