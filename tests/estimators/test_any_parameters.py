"""Any parameters whatsoever: finite results, or an error that names one of them."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import graphratio as gr
from graphratio.exceptions import GraphRatioError, GraphRatioWarning
from graphratio.plotting import plot_graph

# Left out by `make quick`.
pytestmark = pytest.mark.slow

PROFILE = settings(derandomize=True, deadline=None, max_examples=40)

RNG = np.random.default_rng(0)
NODES = ("a", "b", "c")
SAMPLES = gr.NodeSamples.from_arrays(
    {node: RNG.normal(size=(6, 2)) for node in NODES},
    {node: RNG.normal(0.5, 1.0, size=(5, 2)) for node in NODES},
)
GRAPH = gr.Graph.from_edges([("a", "b"), ("b", "c")], nodes=NODES)
PANEL = RNG.normal(size=(20, 3))

# What somebody, or a program, may pass for any parameter.
ANYTHING = st.one_of(
    st.sampled_from(
        [None, True, False, "", "x", "auto", b"x", (), [], {}, [None], [[1.0]], ["1"], object]
    ),
    st.sampled_from([0, 1, 2, 3, 7, -1, 2**31, 2**63, 10**400, np.int64(2), np.uint8(3)]),
    st.sampled_from([0.0, -0.0, 0.5, 0.99, 1.0, 1e-300, 5e-324, 1e300, 1.5, np.float32(0.3)]),
    st.sampled_from([np.nan, np.inf, -np.inf, 1j, np.array(0.5), np.array([0.5, 1.0])]),
    st.sampled_from([[0.1, 1.0], (1e-3, 1e3), [np.nan], [1.0, -1.0], [0.5, "x"], range(1, 3)]),
    st.sampled_from([np.array([[0.5]]), np.random.RandomState(0), np.random.default_rng(0)]),
    st.floats(),
    st.integers(),
)
# Values of single parameters that mean something.
MEANT = {
    "kernel": ["gaussian", "laplacian"],
    "dictionary": ["coherence", "uniform", "kmeans", "all", np.zeros((2, 2)), np.ones((3, 1))],
    "loss": ["kl", "jensen-shannon"],
    "solver": ["direct", "pcg", "cbcgd"],
    "selection": ["min", "cautious", None],
    "null": ["node", "global"],
    "correction": ["fwer", "fdr", "fdr-by", None],
    "max_iter": [1, 2],
    "cv": [2, 3],
}
ESTIMATORS = {
    gr.GRULSIF: {"bandwidth": 1.0, "graph_penalty": 0.3, "ridge": 0.03},
    gr.GraphRatio: {"bandwidth": 1.0, "graph_penalty": 0.075, "ridge": 0.1, "adaptive": False},
    gr.Pool: {"bandwidth": 1.0, "ridge": 0.3},
    gr.RULSIF: {},
    gr.ULSIF: {},
    gr.KLIEP: {"bandwidth": 1.0, "ridge": 0.1},
}


# How much is computed: what is asked for is done, so nothing that takes for ever is asked for.
COUNTS = {"n_surrogates", "n_permutations", "n_repeats", "n_folds", "n_rounds", "max_iter", "cv"}


def is_cheap(name, value):
    large = isinstance(value, int | float | np.number) and not isinstance(value, bool)
    return name not in COUNTS or not large or not 20 < value < np.inf


@st.composite
def parameters(draw, names):
    """One to three parameters with values of any kind."""
    chosen = draw(st.lists(st.sampled_from(sorted(names)), min_size=1, max_size=3, unique=True))
    values = {}
    for name in chosen:
        kinds = [st.sampled_from(MEANT[name])] if name in MEANT else []
        values[name] = draw(st.one_of(*kinds, ANYTHING).filter(lambda v, n=name: is_cheap(n, v)))
    return values


def attempt(work, changed):
    """Run; None if it was refused with an error that names one of the changed parameters."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", GraphRatioWarning)
        try:
            return work()
        except GraphRatioError as error:
            told = str(error)
    assert any(name in told for name in changed), told
    return None


@pytest.mark.parametrize("kind", ESTIMATORS, ids=lambda kind: kind.__name__)
@given(data=st.data())
@PROFILE
def test_estimators(kind, data):
    usual = ESTIMATORS[kind]
    names = set(kind().get_params()) - {"progress"}
    changed = data.draw(parameters(names))
    usual = {"random_state": 0, **usual}
    model = attempt(lambda: kind(**{**usual, **changed}).fit(SAMPLES, GRAPH), changed)
    if model is not None:
        assert np.isfinite(model.coef_).all()
        assert np.isfinite(model.divergence_).all()
        assert np.isfinite(model.predict(SAMPLES.values[:3])).all()


@pytest.mark.parametrize(
    ("kind", "changed"),
    [
        (gr.ULSIF, {"bandwidth": 5e-324}),
        (gr.RULSIF, {"bandwidth": 5e-324, "kernel": "laplacian"}),
        (gr.RULSIF, {"n_centers": 10**30}),
        (gr.KLIEP, {"n_centers": 2**63}),
    ],
)
def test_what_was_found_once(kind, changed):
    model = kind(**{**ESTIMATORS[kind], **changed}).fit(SAMPLES, GRAPH)
    assert np.isfinite(model.predict(SAMPLES.values)).all()


@given(data=st.data())
@PROFILE
def test_two_sample_test(data):
    names = ["null", "correction", "level", "n_permutations", "random_state"]
    changed = data.draw(parameters([*names, "estimator"]))
    usual = {"n_permutations": 19, "correction": None, "level": 0.2}
    found = attempt(
        lambda: gr.two_sample_test(SAMPLES, GRAPH, **{**usual, **changed}), {*usual, *changed}
    )
    if found is not None:
        assert np.all((found.p_value > 0) & (found.p_value <= 1))
        assert np.isfinite(found.evidence).all()


@given(data=st.data())
@PROFILE
def test_change_points(data):
    names = ["window", "season", "trend", "memory", "level", "n_surrogates", "block"]
    names += ["max_directions", "standardize", "random_state", "estimator"]
    changed = data.draw(parameters(names))
    usual = {"window": 5, "n_surrogates": 19}
    found = attempt(
        lambda: gr.GraphChangePointDetector(**{**usual, **changed}).fit(PANEL, GRAPH),
        {*usual, *changed},
    )
    if found is not None:
        assert np.isfinite(found.statistic_).all()
        assert 0 < found.p_value_ <= 1


@given(data=st.data())
@PROFILE
def test_transfer(data):
    from sklearn.linear_model import LinearRegression

    names = ["estimator", "relative", "level", "sharpness", "cv", "random_state"]
    changed = data.draw(parameters([*names, "predictor"]))
    y = {node: SAMPLES.reference(node).sum(axis=1) for node in NODES}
    usual = {"predictor": LinearRegression(), "cv": 2}
    quick = {"estimator": gr.Pool(bandwidth=1.0, ridge=0.3)}
    model = attempt(
        lambda: gr.NodewiseTransfer(**{**quick, **usual, **changed}).fit(SAMPLES, y, GRAPH),
        {*usual, *changed},
    )
    if model is not None:
        assert np.isfinite(model.predict(SAMPLES)["a"]).all()


MODEL = gr.Pool(bandwidth=1.0, ridge=0.3).fit(SAMPLES, GRAPH)
SHARED = ["level", "n_folds", "n_repeats", "random_state"]


@given(data=st.data())
@settings(PROFILE, max_examples=20)
def test_bounds(data):
    changed = data.draw(parameters([*SHARED, "simultaneous", "estimator"]))
    usual = {"estimator": gr.Pool(bandwidth=1.0, ridge=0.3)}
    found = attempt(
        lambda: gr.divergence_bounds(SAMPLES, GRAPH, **{**usual, **changed}), {*usual, *changed}
    )
    if found is not None:
        assert np.isfinite(found.true_divergence_lower_bound).all()
        assert np.isfinite(found.fitted_divergence_interval).all()


@given(data=st.data())
@settings(PROFILE, max_examples=20)
def test_intervals(data):
    changed = data.draw(parameters(["level", "simultaneous", "random_state", "estimator"]))
    usual = {"estimator": MODEL, "x": SAMPLES.values[:3], "node": "a"}
    found = attempt(
        lambda: gr.expected_ratio_interval(SAMPLES, GRAPH, **{**usual, **changed}), changed
    )
    if found is not None:
        assert np.all(found.expected_ratio_low <= found.expected_ratio_high)


@given(data=st.data())
@settings(PROFILE, max_examples=20)
def test_comparisons_of_graphs(data):
    changed = data.draw(parameters([*SHARED, "learn", "estimator"]))
    usual = {"estimator": gr.GRULSIF(bandwidth=1.0, graph_penalty=[0.03, 0.3], ridge=0.03)}
    found = attempt(
        lambda: gr.compare_graphs(SAMPLES, GRAPH, **{**usual, **changed}), {*usual, *changed}
    )
    assert found is None or found.verdict


FITTED = gr.GRULSIF(bandwidth=1.0, graph_penalty=0.3, ridge=0.03).fit(SAMPLES, GRAPH)
FLAGS = {
    "GRULSIF progress": lambda flag: gr.GRULSIF(cv=2, progress=flag).fit(SAMPLES, GRAPH),
    "GRULSIF adaptive": lambda flag: gr.GRULSIF(adaptive=flag).fit(SAMPLES, GRAPH),
    "GraphRatio adaptive": lambda flag: gr.GraphRatio(adaptive=flag).fit(SAMPLES, GRAPH),
    "RULSIF nonnegative": lambda flag: gr.RULSIF(nonnegative=flag).fit(SAMPLES),
    "predict clip": lambda flag: FITTED.predict(np.zeros((1, 2)), clip=flag),
    "importance_weights relative": lambda flag: FITTED.importance_weights(SAMPLES, relative=flag),
    "bounds simultaneous": lambda flag: gr.divergence_bounds(
        SAMPLES, estimator=FITTED, simultaneous=flag
    ),
    "interval simultaneous": lambda flag: gr.expected_ratio_interval(
        SAMPLES, estimator=FITTED, x=np.zeros((1, 2)), node="a", simultaneous=flag
    ),
    "detector standardize": lambda flag: gr.GraphChangePointDetector(standardize=flag).fit(
        PANEL, GRAPH
    ),
    "edges symmetrize": lambda flag: gr.Graph.from_edges([("a", "b")], symmetrize=flag),
    "map edges": lambda flag: plot_graph(FITTED, edges=flag),
}


@pytest.mark.parametrize("what", FLAGS)
@pytest.mark.parametrize("value", [np.array([0.5, 1.0]), "yes", None, 2])
def test_what_is_true_or_false_is_nothing_else(what, value):
    with pytest.raises(GraphRatioError, match="neither True nor False") as refused:
        FLAGS[what](value)
    assert str(refused.value).startswith(what.split()[1])
