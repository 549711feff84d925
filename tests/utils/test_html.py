"""What notebooks show of data, models and results."""

from dataclasses import replace
from functools import cache
from html.parser import HTMLParser
from itertools import pairwise

import numpy as np
import pytest
from sklearn import config_context
from sklearn.linear_model import LinearRegression

import graphratio as gr
from graphratio import theory

HOSTILE = "<script>alert('x')</script>"


class Reader(HTMLParser):
    """Collects the tags, and checks that they are closed in order."""

    def __init__(self):
        super().__init__()
        self.open, self.seen, self.text = [], set(), ""

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)
        self.seen.add(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data + "\n"


def read(html):
    reader = Reader()
    reader.feed(html)
    reader.close()
    assert not reader.open
    return reader


def fitted(estimator, feature="speed", last="c"):
    rng = np.random.default_rng(0)
    nodes = ["a", "b", last]
    samples = gr.NodeSamples.from_arrays(
        rng.normal(size=(3, 30, 1)),
        rng.normal(size=(3, 40, 1)) + np.array([0, 0, 3])[:, None, None],
        nodes=nodes,
        feature_names=[feature],
    )
    return estimator.fit(samples.standardized(), gr.Graph.from_edges([("a", "b"), ("b", last)]))


@pytest.mark.parametrize("name", ["GRULSIF", "Pool", "RULSIF", "ULSIF", "KLIEP"])
def test_a_fitted_model_is_a_table(name):
    model = fitted(getattr(gr, name)(random_state=0))
    page = read(model._repr_html_())
    assert page.seen == {"div", "code", "table", "tr", "th", "td"}
    assert f"{name}(random_state=0)" in page.text
    assert "90 reference and 120 target observations of speed, standardised" in page.text
    assert "selected" in page.text
    assert "bandwidth" in page.text
    rows = page.text[page.text.index("most changed") :].split("\n")
    assert rows[4] == "c"
    assert rows[7] == f"{model.divergence_[2]:.3g}"
    assert model._repr_mimebundle_()["text/html"] == model._repr_html_()


def test_given_hyperparameters_are_not_called_selected():
    model = fitted(gr.GRULSIF(bandwidth=0.5, graph_penalty=0.3, ridge=0.075))
    text = read(model._repr_html_()).text
    assert "given" in text
    assert "bandwidth 0.5, graph_penalty 0.3, ridge 0.075" in text


def test_text_of_the_user_is_escaped():
    model = fitted(gr.GRULSIF(random_state=0), feature=HOSTILE, last=HOSTILE)
    html = model._repr_html_()
    assert "<script" not in html
    assert read(html).text.count(HOSTILE) == 2


def test_an_unfitted_model_is_shown_as_scikit_learn_does():
    html = gr.GRULSIF(alpha=0.3)._repr_html_()
    assert "sk-" in html
    assert "most changed" not in html


def test_plain_text_can_be_asked_for():
    model = fitted(gr.Pool(random_state=0))
    with config_context(display="text"):
        assert not hasattr(model, "_repr_html_")
        assert "text/html" not in model._repr_mimebundle_()


def test_nodes_without_a_divergence_are_not_listed():
    samples = gr.NodeSamples.from_arrays(
        {"a": np.arange(9.0), "b": np.arange(9.0)}, {"a": np.arange(9.0)}
    )
    model = gr.GRULSIF(bandwidth=1.0, graph_penalty=2.0, ridge=0.2)
    html = model.fit(samples, gr.Graph.from_edges([("a", "b")]))._repr_html_()
    assert "nan" not in html.lower()
    assert "divergence is undefined" in html  # the note about b


# Results of the library, by what their headline says. Labels are hostile.
@cache
def results():
    """Every kind of public result on one small network, lazily by name."""
    rng = np.random.default_rng(0)
    nodes = [f"{HOSTILE}{i}" for i in range(8)]
    reference, target = rng.normal(size=(2, 8, 40, 1))
    target[:4] += 1.4
    samples = gr.NodeSamples.from_arrays(
        reference, target, nodes=nodes, feature_names=[f"speed {HOSTILE}"]
    )
    graph = gr.Graph.from_edges(list(pairwise(nodes)), nodes=[*nodes, f"alone {HOSTILE}"])
    within = gr.Graph.from_edges(list(pairwise(nodes)), nodes=nodes)
    model = gr.GRULSIF(bandwidth=1.0, graph_penalty=0.05, ridge=0.01, prior_ratio=1)
    model.fit(samples, within)
    test = gr.two_sample_test(samples, within, n_permutations=999, random_state=0)
    found = gr.compare_graphs(samples, within, model, random_state=0)
    data = gr.datasets.load_flights(time=False)
    moments = np.diag(4.0 * np.arange(1.0, 20.0) ** -1.5)
    transfer = gr.NodewiseTransfer(LinearRegression(), random_state=0)
    transfer.fit(samples, list(reference[:, :, 0]), within)
    return {
        "samples": (samples, "samples at 8 nodes"),
        "graph": (graph, "graph of 9 nodes and 7 edges"),
        "network": (replace(data, description=f"Flights {HOSTILE}"), "Flights"),
        "scenario": (gr.datasets.make_scenario("Ia", n_nodes=8, random_state=0), "scenario Ia: 4"),
        "model": (model, "GRULSIF("),
        "solution": (model.solution_, "converged: "),
        "weights": (model.importance_weights(samples), "weights at 8 nodes"),
        "test": (test, "4 of 8 nodes changed"),
        "region": (test.regions()[0], "region of 4 nodes, at least "),
        "kinds": (gr.kinds_of_change(samples, None, model, random_state=0), "kind"),
        "checks": (samples.check(), "findings"),
        "bounds": (gr.divergence_bounds(samples, within, model, random_state=0), "above 0"),
        "interval": (
            gr.expected_ratio_interval(
                samples, within, model, x=[[0.0], [1.0]], node=nodes[0], random_state=0
            ),
            "2 points",
        ),
        "comparison": (found, "graph"),
        "worth": (found.worth["graph"], "graph"),
        "mean changes": (gr.mean_changes(samples, within), "changes of means at 8 nodes"),
        "capacity": (theory.estimate_capacity(moments), "decay"),
        "convergence": (
            theory.convergence_bound(
                1000,
                10,
                decay=2.0,
                capacity=1.0,
                smoothness=5.0,
                bound=10.0,
                alpha=0.1,
                graph_factor=1.0,
            ),
            "squared error at most",
        ),
        "cycles": (
            theory.cbcgd_cycle_bound(
                np.stack([np.eye(2)] * 3),
                gr.Graph.from_edges([(0, 1), (1, 2)]),
                0.1,
                1.0,
                1.0,
                1e-6,
            ),
            "cycles",
        ),
        "transfer": (transfer.evidence_, "nodes with a shift"),
    }


NAMES = (
    "samples", "graph", "network", "scenario", "model", "solution", "weights", "test", "region",
    "kinds", "checks", "bounds", "interval", "comparison", "worth", "mean changes", "capacity",
    "convergence", "cycles", "transfer",
)  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_every_result_is_a_small_escaped_table_with_a_headline(name):
    result, headline = results()[name]
    html = result._repr_html_()
    page = read(html)
    assert page.seen <= {"div", "code", "table", "tr", "th", "td"}
    assert headline in page.text
    assert len(html) < 10_000


def test_labels_of_the_user_are_shown_as_text():
    assert set(results()) == set(NAMES)
    shown = [name for name in NAMES if HOSTILE in read(results()[name][0]._repr_html_()).text]
    assert {"samples", "graph", "network", "model", "weights", "test", "kinds"} <= set(shown)
    assert {"bounds", "mean changes", "transfer", "region"} <= set(shown)
