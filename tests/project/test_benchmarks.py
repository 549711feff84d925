"""The arithmetic of the benchmarks: ratios, exponents, the page, and what counts as worse."""

import copy
import json
import re
import sys
from pathlib import Path

import numpy as np
import pytest
from threadpoolctl import ThreadpoolController

# Left out by `make quick`.
pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module", autouse=True)
def _on_the_path():
    sys.path.insert(0, str(ROOT / "benchmarks"))
    yield
    sys.path.remove(str(ROOT / "benchmarks"))


@pytest.fixture(scope="module")
def stored():
    return json.loads((ROOT / "benchmarks" / "results.json").read_text())


def test_ratio_and_its_interval():
    from measure import ratio_interval

    theirs, ours = np.array([2.0, 4.0, 8.0]), np.array([1.0, 1.0, 1.0])
    ratio, low, high = ratio_interval(theirs, ours)
    assert ratio == pytest.approx(4.0)
    # t with two degrees of freedom: 4.303 standard errors of log 2.
    assert high / ratio == pytest.approx(np.exp(4.303 * np.log(2) / np.sqrt(3)), rel=1e-3)
    assert low * high == pytest.approx(ratio**2)


def test_exponent_of_a_power(monkeypatch):
    import measure

    monkeypatch.setattr(measure, "timed", lambda work, clock: (work(), None))
    sizes = (1, 2, 4, 8)
    found = measure.growth("", sizes, [lambda s=size: 3.0 * s**1.5 for size in sizes])
    assert found.exponent == pytest.approx(1.5)
    assert found.low <= found.exponent <= found.high


def test_what_grew_much_is_measured_again():
    from scale import jobs_again, tables

    case = {"graph": "grid", "law": "alike", "gamma": 1.0, "residual": 1e-7, "n_iter": 6}
    case |= {"processor_seconds": 1.0, "gibibytes": 1.0, "method": "pcg"}
    rows = [
        case | {"coupling": coupling, "n_nodes": size, "seconds": seconds}
        for coupling, times in ((0.1, (1.0, 3.0, 8.0)), (10.0, (1.0, 3.0, 9.5)))
        for size, seconds in zip((100, 400, 800), times, strict=True)
    ]
    again = jobs_again(rows)
    assert [(job["coupling"], job["n_nodes"]) for job in again] == [(10.0, 100), (10.0, 800)]
    assert "again" not in tables(rows)
    repeated = [case | job | {"seconds": s} for job, s in zip(again, (1.2, 9.0), strict=True)]
    assert "| 7.5 times |" in tables(rows + repeated)


def test_threads_are_compared_on_the_library_as_it_is(monkeypatch):
    """The comparison takes the library's limit away, so it has to know where that is."""
    import costs
    from graphratio.selection import cross_validation
    from measure import Piece

    seen, judged = set(), cross_validation.losses_on
    # Libraries are searched for once, and asked whenever losses are computed.
    libraries = ThreadpoolController().select(user_api="blas")

    def recorded(*data):
        seen.update(each["num_threads"] for each in libraries.info())
        return judged(*data)

    monkeypatch.setattr(cross_validation, "losses_on", recorded)
    make = costs.make_scenario
    small = {"n_nodes": 12, "n": 8}
    monkeypatch.setattr(costs, "make_scenario", lambda name, **given: make(name, **given | small))
    monkeypatch.setattr(costs.os, "cpu_count", lambda: 2)
    found = Piece("")
    costs._threads(found, rounds=1)
    (row,) = found.comparisons
    assert 0 < row.ours < 60
    assert row.ratio > 0
    assert seen == {1, 2}


def test_contenders_take_turns():
    from measure import side_by_side

    order = []
    side_by_side({"a": lambda: order.append("a"), "b": lambda: order.append("b")}, 3)
    assert "".join(order) == "abbaab"


def test_by_hand_is_the_same_estimate():
    """At fixed hyperparameters the peer's ratios are the library's."""
    import graphratio as gr
    from by_hand import ByHand, stacked
    from graphratio.datasets import make_scenario

    scenario = make_scenario("IIb", n_nodes=12, n=20, random_state=0)
    model = gr.GRULSIF(0.1, bandwidth=1.0, graph_penalty=0.12, ridge=0.012, tol=1e-9)
    model.fit(scenario.samples, scenario.graph)
    hand = ByHand(model.dictionary_, [1.0], [(0.12, 0.012)])
    hand.fit(*stacked(scenario), scenario.graph.laplacian)
    x = scenario.samples.values[:50]
    for position, node in enumerate(scenario.samples.nodes):
        expected = model.predict(x, node=node, clip=False)
        np.testing.assert_allclose(hand.predict(x, position), expected, atol=1e-3)


RESULTS = {
    "pieces": {
        "densratio": {
            "comparisons": [
                {"work": "RULSIF", "peer": "densratio", "ratio": 8.0, "low": 7.0, "high": 9.0}
            ],
            "growth": [],
            "costs": [],
        },
        "growth": {
            "comparisons": [],
            "growth": [{"what": "nodes", "exponent": 1.0, "low": 0.9, "high": 1.1}],
            "costs": [{"what": "over products", "value": 4.0, "low": 3.9, "unit": "times"}],
        },
    }
}


class TestRegressions:
    @pytest.fixture
    def fresh(self):
        return copy.deepcopy(RESULTS)

    def test_the_same_is_not_worse(self, fresh):
        from regression import regressions

        assert regressions(RESULTS, fresh) == []
        assert regressions({"pieces": {}}, fresh) == []

    def test_ratios_that_fell_are_named(self, fresh):
        from regression import regressions

        (row,) = fresh["pieces"]["densratio"]["comparisons"]
        row.update(ratio=6.5, low=5.0, high=7.5)
        assert regressions(RESULTS, fresh) == []
        row.update(ratio=4.0, low=3.0, high=5.0)
        assert regressions(RESULTS, fresh) == ["densratio: RULSIF against densratio: 8.0 -> 4.0"]

    def test_exponents_and_multiples_that_rose_are_named(self, fresh):
        from regression import regressions

        piece = fresh["pieces"]["growth"]
        piece["growth"][0]["exponent"] = 1.2
        assert regressions(RESULTS, fresh) == []
        piece["growth"][0]["exponent"] = 1.4
        piece["costs"][0].update(value=6.0, low=5.9)
        assert regressions(RESULTS, fresh) == [
            "growth: growth with nodes: 1.0 -> 1.4",
            "growth: over products: 4.0 -> 6.0 times",
        ]


def test_the_page_is_made_of_the_results(stored):
    from page import page
    from run import PIECES

    assert (ROOT / "docs" / "benchmarks.md").read_text() == page(stored)
    assert list(stored["pieces"]) == [name for name in PIECES if name in stored["pieces"]]


def test_the_machine_has_no_name(stored):
    text = json.dumps(stored)
    assert not re.search(r"/(home|root|tmp|work|usr)/", text)


def test_claims_about_speed_are_measured(stored):
    from claims import CLAIMS, number, pages, unbacked

    assert unbacked() == []

    text = " ".join(pages().values())
    for claim in CLAIMS:
        assert claim.words in text
        assert claim.low <= number(stored, claim) <= claim.high, claim


def test_tables_in_the_pages_are_the_stored_results():
    from dask_engine import growth_table, overhead_table
    from scale import tables

    def stored_in(name):
        return json.loads((ROOT / "benchmarks" / f"{name}.json").read_text())

    dask = stored_in("dask")
    made = {
        ("scaling", "scale"): tables(stored_in("scale")),
        ("dask", "overhead"): overhead_table(dask["overhead"]),
        ("dask", "growth"): growth_table(dask["growth"]),
    }
    for (page, name), table in made.items():
        text = (ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8")
        assert f"<!-- {name}: measured -->\n\n{table}\n<!-- {name}: end -->\n" in text


def test_a_table_goes_between_its_marks(tmp_path):
    from page import between

    path = tmp_path / "page.md"
    path.write_text("before\n<!-- x: measured -->\nold\n<!-- x: end -->\nafter\n")
    between(path, "x", "| new |\n")
    between(path, "x", "| newer |\n")
    assert path.read_text() == (
        "before\n<!-- x: measured -->\n\n| newer |\n\n<!-- x: end -->\nafter\n"
    )


def test_growth_is_relative_to_the_smallest_graph_of_a_kind():
    from scale import tables

    fit = {"graph": "grid", "law": "alike", "coupling": 1.0, "gamma": 1.0, "n_iter": 5}
    fit |= {"processor_seconds": 1.0, "gibibytes": 1.0}
    rows = [fit | {"n_nodes": n, "seconds": s} for n, s in ((100, 2.0), (800, 17.0))]
    selection = {"graph": "grid", "n_nodes": 9, "selection_nodes": "all", "seconds": 3.0}
    after = {"n_nodes": 9, "after": {"bounds": 2.0}}
    text = tables([*rows, selection | {"gibibytes": 0.5}, after])
    assert "| 17.0 s | 8.5 times |" in text
    assert "| grid | 9 | all nodes | 3.0 s | 0.5 GiB |" in text
    assert "| bounds | 2.0 s |" in text


class TestSimulatedCluster:
    def test_the_page_has_the_stored_numbers(self):
        import simulated_cluster as simulated

        found = json.loads(simulated.RESULTS.read_text())
        page = simulated.PAGE.read_text(encoding="utf-8")
        for name in ("solve", "shared", "set_up"):
            assert getattr(simulated, f"{name}_table")(found[name]) in page
        assert simulated.example_table(found) in page

    def test_messages_and_bytes_are_those_of_the_formulas(self):
        from simulated_cluster import PARTITIONS, RESULTS

        found = json.loads(RESULTS.read_text())
        assert [row["partitions"] for row in found["solve"]] == list(PARTITIONS)
        for row in found["solve"]:
            assert row["messages"] == 2 * row["partitions"]
        for row in found["solve"] + found["shared"]:
            # What is pickled has a few hundred bytes around its arrays.
            assert 1 <= row["bytes"] / row["bytes_by_model"] < 1.03

    def test_a_small_run(self, monkeypatch):
        import simulated_cluster as simulated

        monkeypatch.setattr(simulated, "CASE", simulated.Case(12, n_atoms=8))
        monkeypatch.setattr(simulated, "SHARED_SIDE", 10)
        row = simulated.solved(3)
        assert row["messages"] == 6
        assert row["slowest"] <= row["work"] <= 3 * row["slowest"]
        assert simulated.shared(3)["messages"] == 3 * 11
        assert simulated.set_up(18)["nodes"] == 324


def test_the_page_has_what_was_asked_of_large_graphs():
    import capabilities

    rows = json.loads(capabilities.RESULTS.read_text())
    asked = {(row["question"], row["n_nodes"]) for row in rows}
    assert asked == {(name, size) for name, sizes in capabilities.SIZES.items() for size in sizes}
    assert capabilities.table(rows) in capabilities.PAGE.read_text(encoding="utf-8")
    found = {(row["question"], row["n_nodes"]): row for row in rows}
    # What the page promises.
    assert found["fit", 100_000]["processor_seconds"] < 300
    assert found["fit", 100_000]["gibibytes"] < 10
    assert found["bounds", 20_000]["processor_seconds"] < 180
    assert found["report", 20_000]["processor_seconds"] < 120
    assert found["report", 20_000]["megabytes"] < 12


def test_a_small_question(tmp_path):
    import capabilities

    row = capabilities.run({"question": "save and load", "n_nodes": 50})
    assert row["processor_seconds"] > 0
    assert row["megabytes"] > 0
    assert "| 50 |" in capabilities.table([row])
