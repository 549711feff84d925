"""What notebooks show of a model."""

from html.parser import HTMLParser

import numpy as np
import pytest
from sklearn import config_context

import graphratio as gr

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
    assert "nan" not in html
    assert "NaN" in html  # the note about b
