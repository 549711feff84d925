import numpy as np
import pytest
from scipy.stats import wasserstein_distance

import graphratio as gr
from graphratio.moments.effect_size import NEAR_CEILING, ceiling_of, effect_sizes, ranked


def samples_of(reference, target):
    return gr.NodeSamples.from_arrays(reference, target)


def test_near_the_wasserstein_distance_in_standard_deviations():
    rng = np.random.default_rng(0)
    reference = [rng.normal(size=400), rng.gamma(2.0, size=300)]
    target = [rng.normal(1.0, 2.0, size=500), rng.gamma(4.0, size=200)]
    found = effect_sizes(samples_of(reference, target))
    for one, p, q in zip(found, reference, target, strict=True):
        spread = np.sqrt((p.var() + q.var()) / 2)
        assert one == pytest.approx(wasserstein_distance(p, q) / spread, rel=0.08)


def test_largest_over_features_and_undefined_without_a_sample():
    rng = np.random.default_rng(1)
    x = rng.normal(size=(50, 2))
    found = effect_sizes(samples_of([x, x], [x + [0.0, 2.0] * np.array(1.0), np.empty((0, 2))]))
    assert found[0] == pytest.approx(2.0 / x[:, 1].std())
    assert np.isnan(found[1])


def test_units_do_not_matter_and_constants_are_finite():
    rng = np.random.default_rng(2)
    p, q = rng.normal(size=40), rng.normal(1.0, size=60)
    one = effect_sizes(samples_of([p], [q]))
    assert effect_sizes(samples_of([1e6 * p + 5], [1e6 * q + 5])) == pytest.approx(one)
    constants = effect_sizes(samples_of([[1.0] * 5, [2.0] * 5], [[1.0] * 5, [3.0] * 5]))
    assert constants[0] == 0.0
    assert np.isfinite(constants[1])
    assert constants[1] > 100


def test_nodes_near_the_ceiling_are_ordered_by_effect_size():
    rng = np.random.default_rng(3)
    shifts = np.array([40.0, 0.0, 10.0, 20.0, 1.0])
    reference = rng.normal(size=(5, 200))
    target = rng.normal(size=(5, 200)) + shifts[:, np.newaxis]
    model = gr.GRULSIF(prior_ratio=1.0, random_state=0).fit((list(reference), list(target)))
    assert model.divergence_ceiling_ == 4.5
    near = model.divergence_ > NEAR_CEILING * 4.5
    assert near.tolist() == [True, False, True, True, False]
    assert model.ranking_.tolist() == [0, 3, 2, 4, 1]
    assert model.to_frame()["near_ceiling"].tolist() == near.tolist()
    (note,) = [note for note in model.notes_ if "ordered by effect size" in note]
    assert "4.5" in note
    assert "0, 2, 3" in note


def test_no_ceiling_without_alpha():
    rng = np.random.default_rng(4)
    model = gr.ULSIF(random_state=0).fit((rng.normal(size=50), rng.normal(9.0, size=50)))
    assert model.divergence_ceiling_ == np.inf
    assert not model.to_frame()["near_ceiling"].any()


def test_nodes_near_the_ceiling_are_ranked_by_effect_size():
    divergence, effect = np.array([4.4, 0.1, np.nan, 4.3]), np.array([5.0, 0.2, np.nan, 9.0])
    assert ranked(divergence, effect, ceiling_of(0.1)).tolist() == [3, 0, 1]
    assert (ceiling_of(0.1), ceiling_of(0.0)) == (4.5, np.inf)
