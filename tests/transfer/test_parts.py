"""Evidence, blending and strength of the weights, on cases with a known answer."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import graphratio as gr
from graphratio.exceptions import InputError
from graphratio.transfer.labelled import weight_parameter
from graphratio.transfer.nodewise import _reweighted
from graphratio.transfer.shift import SMALLEST, _welch, shift_p_values
from graphratio.transfer.trials import WeightTrial, matching_weights
from graphratio.transfer.weight_powers import best_exponent, blended, sharpened

SIZES = [(30, 25), (22, 30), (40, 40)]
PATH = gr.Graph.from_edges([(0, 1), (1, 2)])


@pytest.fixture
def samples():
    rng = np.random.default_rng(0)
    return gr.NodeSamples.from_arrays(
        [rng.normal(size=(n, 1)) for n, _ in SIZES],
        [rng.normal(0.4, 1, size=(m, 1)) for _, m in SIZES],
    )


def joint_ratio():
    return gr.GRULSIF(bandwidth=1.0, graph_penalty=0.3, ridge=0.03)


def with_mean_one(weights):
    return weights / weights.mean()


@pytest.mark.parametrize("share", [0.25, 0.5, 1.0])
def test_blended_weights_are_the_geometric_mean_with_those_of_the_node_alone(samples, share):
    joint = joint_ratio().fit(samples, PATH).importance_weights(samples)
    # With fewer observations than centres nothing about RULSIF is random.
    alone = gr.RULSIF(alpha=0.1).fit(samples).importance_weights(samples)
    chosen = np.array([True, False, True])
    found = blended(joint, samples, chosen, 0.1, share, np.random.default_rng(0))
    for node in (0, 2):
        own, shared = (np.maximum(part[node], 1e-3) for part in (alone, joint))
        assert_allclose(found[node], with_mean_one(own**share * shared ** (1 - share)))
        assert not np.allclose(found[node], joint[node], rtol=0.01)
    assert_allclose(found[1], joint[1])


def test_the_models_are_fitted_with_blended_weights(samples):
    y = [np.zeros(n) for n, _ in SIZES]
    settings = {"own_share": 1, "level": 1, "sharpness": 1}
    model = gr.NodewiseTransfer(LinearRegression(), joint_ratio(), **settings)
    model.fit(samples, y, PATH)
    alone = gr.RULSIF(alpha=0.1).fit(samples).importance_weights(samples)
    for node in range(3):
        own = with_mean_one(np.maximum(alone[node], 1e-3))
        assert_allclose(model.weights_[node], own)


def test_evidence_is_the_one_sided_test_of_welch(samples):
    scores = samples.values[:, 0]
    expected = [
        stats.ttest_ind(
            samples.target(v)[:, 0], samples.reference(v)[:, 0], equal_var=False,
            alternative="greater",
        ).pvalue
        for v in range(3)
    ]  # fmt: skip
    assert_allclose(_welch(scores, samples.sizes), expected)
    # A mean that is smaller is no evidence, and neither are equal scores.
    assert_allclose(_welch(-scores, samples.sizes), 1 - np.array(expected))
    assert_allclose(_welch(np.ones_like(scores), samples.sizes), 1)


def test_nodes_with_fewer_than_five_observations_are_not_tested():
    rng = np.random.default_rng(0)
    sizes = [(SMALLEST, 30), (SMALLEST - 1, 30), (30, SMALLEST - 1), (30, SMALLEST)]
    data = gr.NodeSamples.from_arrays(
        *([rng.normal(size=(pair[side], 1)) for pair in sizes] for side in (0, 1))
    )
    graph = gr.Graph.from_edges([(0, 1), (1, 2), (2, 3)])
    model = joint_ratio().fit(data, graph)
    p_values = shift_p_values(model, data, graph, 5, rng)
    assert np.isnan(p_values).tolist() == [False, True, True, False]


def test_nodes_are_reweighted_by_the_rule_of_benjamini_and_hochberg():
    p_values = np.array([0.01, 0.06, 0.07, 0.09, 0.5])
    graph = gr.Graph.empty(5)
    # At 10 % the limits are 0.02, 0.04, 0.06, 0.08, 0.1: only the first is below its own.
    assert _reweighted(p_values, 0.1, graph).tolist() == [True] + [False] * 4
    assert _reweighted(p_values, 1, graph).all()


@pytest.mark.parametrize(("weight", "followed"), [(0.9, False), (1.0, False), (1.1, True)])
def test_untested_nodes_follow_the_majority_of_their_neighbours(weight, followed):
    """By edge weight; a tie is no majority, and neighbours without a test have no vote."""
    p_values = np.array([np.nan, 1e-6, 0.9, np.nan])
    graph = gr.Graph.from_edges([(0, 1, weight), (0, 2, 1.0), (0, 3, 5.0)])
    assert _reweighted(p_values, 0.1, graph)[0] == followed


@pytest.mark.parametrize(("gain", "chosen"), [(1.9, 1.25), (2.1, 3.0)])
def test_another_power_must_be_better_by_two_standard_errors(gain, chosen):
    """Errors of nine nodes that differ by `gain` standard errors on average."""
    each = np.tile([-1.0, 0.0, 1.0], 3)
    better = each + gain * each.std(ddof=1) / 3
    errors = np.column_stack([np.full(9, 5.0), np.full(9, 4.0), 4.0 - better])
    assert best_exponent(errors, [0.0, 1.25, 3.0]) == chosen


class Remembers:
    """Predicts 1 at points it was fitted on, 0 elsewhere."""

    def __init__(self, x):
        self.seen = set(x[:, 0])

    def predict(self, x):
        return np.array([float(value in self.seen) for value in x[:, 0]])


def test_the_strength_is_judged_on_observations_left_out():
    """Every target observation counts its nearest reference observation, never fitted on."""
    x, target = np.arange(10.0)[:, np.newaxis], np.array([[0.1], [0.2], [7.3], [8.9]])
    y = np.where(np.isin(np.arange(10), [0, 9]), 3.0, 5.0)
    fits = []

    def fit(points, labels, weights):
        fits.append(weights)
        return Remembers(points)

    def error(truth, found):
        return truth + 100 * found

    fold = np.random.default_rng(0).permutation(np.arange(len(x)) % 5)
    weights = np.arange(1.0, 11)
    trial = WeightTrial(fit, error, x, y, target, weights, fold, np.arange(10))
    assert_allclose([trial.target_error(s) for s in (1.0, 2.0)], (3 + 3 + 5 + 3) / 4)
    assert_allclose(trial.loss(1.0), weights @ y / weights.sum())
    assert all(weights.mean() == pytest.approx(1) for weights in fits)
    # Losses of a power are computed once.
    assert len(fits) == 10


def test_a_power_keeps_the_mean_and_lifts_tiny_weights():
    weights = np.array([0.0, 1e-9, 1.0, 3.0])
    assert_allclose(
        sharpened(weights, 1.25), with_mean_one(np.array([1e-3, 1e-3, 1.0, 3.0]) ** 1.25)
    )
    assert_allclose(sharpened(weights, 0.0), 1)


def test_weights_reach_the_last_step_of_a_pipeline():
    model = make_pipeline(StandardScaler(), LinearRegression())
    assert weight_parameter(model) == "linearregression__sample_weight"


def test_matching_weights_count_the_nearest_targets():
    reference, target = np.array([[0.0], [1.0], [5.0]]), np.array([[0.9], [1.2], [-3.0]])
    assert matching_weights(reference, target).tolist() == [1.0, 2.0, 0.0]


def test_evidence_on_dependent_data_counts_blocks():
    """Levels of days differ by chance; taken for independent, hours call it a shift."""
    found = {None: [], 8: []}
    for seed in range(20):
        rng = np.random.default_rng(seed)
        level = rng.normal(size=(2, 4, 6)).repeat(8, axis=2)
        reference, target = level + 0.3 * rng.normal(size=level.shape)
        times = (np.arange(48), np.arange(48) + 1000)
        for block, p_values in found.items():
            data = gr.NodeSamples.from_arrays(
                list(reference), list(target), time=times, block=block
            )
            model = gr.Pool(bandwidth=1.0, ridge=0.1).fit(data)
            p_values.append(shift_p_values(model, data, model.graph_, 3, rng))
    alarms = {block: np.mean(np.array(p) <= 0.05) for block, p in found.items()}
    assert alarms[None] > 0.5
    assert alarms[8] <= 0.125
    few = data.subset(observations=np.tile(np.arange(48) < 24, 8))
    assert np.isnan(shift_p_values(model, few, model.graph_, 3, rng)).all()


class TestBadArguments:
    """Each is refused with its name and a remedy."""

    REFERENCE = np.random.default_rng(0).normal(size=(4, 12, 1))

    def fit(self, predictor=None, y=None, **given):
        y = self.REFERENCE[:, :, 0] if y is None else y
        model = gr.NodewiseTransfer(predictor or LinearRegression(), random_state=0, **given)
        return model.fit((self.REFERENCE, self.REFERENCE + 1), y)

    @pytest.mark.parametrize(
        ("given", "message"),
        [
            ({"predictor": LinearRegression}, r"predictor is the class.*LinearRegression\(\)"),
            ({"sharpness": []}, "sharpness is an empty sequence"),
            ({"sharpness": [1.0, -1.0]}, "sharpness"),
            ({"y": {0: [1], 1: [1], 2: [1], 4: [1]}}, "y and the samples .* same nodes: 4, 3"),
            ({"y": [[[1], [2, 3]]] * 4}, "y of node 0 has entries of different lengths"),
            ({"predictor": LogisticRegression(), "y": [[None] * 12] * 4}, "missing classes"),
            ({"predictor": LogisticRegression()}, "has fractions, and the predictor is a class"),
        ],
    )
    def test_of_fit(self, given, message):
        with pytest.raises(InputError, match=message):
            self.fit(**given)

    def test_of_score(self):
        model = self.fit(estimator=gr.RULSIF(random_state=0), level=1, sharpness=0.0)
        target, y = self.REFERENCE + 1, self.REFERENCE[:, :, 0]
        assert model.score(target, y) <= 1
        for x, labels, message in (
            (target, y[:2], "y has 2 entries for 4 nodes"),
            (target, None, "y has no entries for 4 nodes"),
            (target, {0: y[0]}, "no labels for the nodes 1, 2, 3"),
            (target, y[:, :3], "y of node 0 has shape .* 12 target observations"),
            ([np.empty((0, 1))] * 4, [[]] * 4, "no observations to score"),
        ):
            with pytest.raises(InputError, match=message):
                model.score(x, labels)
        with pytest.raises(InputError, match="12 target"):
            model.score(target[0], y[0, :3], node=0)

    def test_unfitted(self):
        with pytest.raises(NotFittedError):
            _ = gr.NodewiseTransfer(LinearRegression()).answerable
