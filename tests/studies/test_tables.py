"""Summaries of results whose answers are known."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from studies.paper.tables import (
    divergence_table,
    error_table,
    factor_table,
    main_part,
    order_table,
    run_errors,
)
from studies.paper.theory_curve import (
    GAMMAS,
    GroupRatios,
    bound_on,
    group_ratios,
    smoothness,
)

from graphratio.datasets import make_scenario
from graphratio.theory import convergence_bound, graph_factor

ERRORS = {
    "GRULSIF": [0.10, 0.12, 0.30],
    "POOL": [0.20, 0.24, 0.60],
    "KLIEP": [0.19, 0.50, 0.40],
}


@pytest.fixture
def results():
    """Three methods on three data sets of two nodes, the second with a true divergence of 1."""
    return pd.DataFrame(
        [
            {
                "scenario": "Ia",
                "method": method,
                "n_nodes": 2,
                "n": 50,
                "alpha": 0.0 if method == "KLIEP" else 0.1,
                "n_points": 10,
                "seed": seed,
                "node": node,
                "group": f"C{node}",
                # The mean over the two nodes is the error.
                "squared_error": error * (0.5 + node),
                "divergence": "KL" if method == "KLIEP" else "Pearson",
                "divergence_estimated": node + 0.1 * seed,
                "divergence_true": float(node),
                "seconds": 1.0,
            }
            for method, errors in ERRORS.items()
            for seed, error in enumerate(errors)
            for node in (0, 1)
        ]
    )


def test_error_is_the_mean_over_nodes_and_relative_to_the_variance(results):
    runs = run_errors(results)
    for method, errors in ERRORS.items():
        part = runs[runs["method"] == method]
        np.testing.assert_allclose(part["error"], errors)
        # The variance of the ratio is twice the divergence: 0 and 2, mean 1.
        expected = errors if method != "KLIEP" else [np.nan] * 3
        np.testing.assert_allclose(part["relative_error"], expected)


def test_intervals_are_student_intervals_of_logarithms(results):
    table = error_table(results).set_index("method")
    logs = np.log(ERRORS["GRULSIF"])
    low, high = stats.t.interval(0.95, 2, logs.mean(), stats.sem(logs))
    row = table.loc["GRULSIF"]
    assert row["error"] == pytest.approx(np.exp(logs.mean()))
    assert (row["error_low"], row["error_high"]) == pytest.approx((np.exp(low), np.exp(high)))
    assert (row["error_smallest"], row["error_largest"], row["n_seeds"]) == (0.10, 0.30, 3)
    assert row["mean_error"] == pytest.approx(np.mean(ERRORS["GRULSIF"]))


def test_order_is_judged_on_the_same_data_sets(results):
    table = order_table(results).set_index("method")
    assert table["rank"].to_dict() == {"GRULSIF": 1, "POOL": 2, "KLIEP": 3}
    # POOL errs twice as much on every data set, however different these are.
    pool = table.loc["POOL"]
    assert pool[["factor", "factor_low", "factor_high"]].tolist() == pytest.approx([2, 2, 2])
    assert pool["clear"]
    ratios = np.log(np.array(ERRORS["KLIEP"]) / ERRORS["POOL"])
    assert table.loc["KLIEP", "factor"] == pytest.approx(np.exp(ratios.mean()))
    assert not table.loc["KLIEP", "clear"]


def test_factors_are_paired_by_data_set(results):
    row = factor_table(results, "POOL", "GRULSIF").iloc[0]
    assert row[["factor", "factor_low", "factor_high"]].tolist() == pytest.approx([2, 2, 2])
    # Where one of the two is missing there is no factor.
    part = results[(results["seed"] > 0) | (results["method"] != "KLIEP")]
    row = factor_table(part, "KLIEP", "POOL").iloc[0]
    expected = np.sqrt(0.50 / 0.24 * 0.40 / 0.60)
    assert (row["n_seeds"], row["factor"]) == (2, pytest.approx(expected))


def test_divergences_are_compared_with_the_truth(results):
    table = divergence_table(results).set_index(["method", "group"])
    row = table.loc[("POOL", "C1")]
    assert row["bias"] == pytest.approx(0.1)
    assert (row["true"], row["median"]) == (1.0, pytest.approx(1.1))


def test_a_single_seed_has_no_interval(results):
    table = error_table(results[results["seed"] == 0])
    assert table["error_low"].isna().all()


def test_main_part_is_the_graph_size_with_most_runs(results):
    other = results[(results["method"] == "POOL") & (results["seed"] == 0)].assign(n_nodes=4)
    assert set(main_part(pd.concat([results, other]))["n_nodes"]) == {2}


class TestTheory:
    def test_smoothness_is_the_graph_norm_written_out(self):
        scenario = make_scenario("Ia", n_nodes=20, n=1, random_state=0)
        rng = np.random.default_rng(0)
        groups = ("C1", "C2", "C3", "C4")
        ratios = GroupRatios(groups, rng.normal(size=(4, 3)), np.zeros(4), 2.0, 1.0, 0.1)
        theta = ratios.coefficients[[groups.index(group) for group in scenario.groups]]
        weights = scenario.graph.adjacency.toarray()
        twice = 0.3 * (theta**2).sum()
        for u in range(20):
            for v in range(u):
                twice += weights[u, v] * ((theta[u] - theta[v]) ** 2).sum()
        assert smoothness(scenario, ratios, 0.3) == pytest.approx(np.sqrt(0.5 * twice))

    def test_ratios_are_well_approximated(self):
        scenario = make_scenario("IIb", n_nodes=20, n=1, random_state=0)
        ratios = group_ratios(scenario, bandwidth=4.0, alpha=0.1)
        assert ratios.decay > 1
        # The variance of the changed ratio is twice its divergence.
        variance = 2 * scenario.behaviours["C(u)"].divergence("pearson", 0.1)
        assert dict(zip(ratios.groups, ratios.unexplained, strict=True))["C(u)"] < 0.01 * variance

    def test_bound_is_the_smallest_over_gamma(self):
        scenario = make_scenario("Ib", n_nodes=20, n=1, random_state=0)
        ratios = group_ratios(scenario, bandwidth=1.0, alpha=0.1)
        bounds = [
            convergence_bound(
                50,
                20,
                decay=ratios.decay,
                capacity=ratios.capacity,
                smoothness=smoothness(scenario, ratios, gamma),
                bound=10.0,
                alpha=0.1,
                graph_factor=graph_factor(scenario.graph, gamma),
            ).squared_error
            for gamma in GAMMAS
        ]
        found = bound_on(scenario, ratios, n=50)
        assert found["bound"] == min(bounds)
        assert found["gamma"] == GAMMAS[int(np.argmin(bounds))]
        assert found["graph_factor"] == graph_factor(scenario.graph, found["gamma"])
