"""A warning for features whose scales differ wildly."""

import warnings

import numpy as np
import pytest

import graphratio as gr
from graphratio.exceptions import DataWarning

NAMES = ["small", "large", "constant"]


def make_samples(factor):
    rng = np.random.default_rng(0)
    sides = rng.normal(size=(2, 4, 60, 3)) * [1.0, factor, 0.0]
    sides[1, 3, :, 0] += 2.0
    return gr.NodeSamples.from_arrays(*sides, feature_names=NAMES)


@pytest.mark.parametrize("make", [gr.GraphRatio, gr.GRULSIF, gr.Pool, gr.RULSIF, gr.KLIEP])
def test_the_features_are_named(make):
    model = make(random_state=0)
    with pytest.warns(DataWarning, match="'large' varies more than 30 times as much as 'small'"):
        model.fit(make_samples(1000.0))


def test_the_test_warns_too_and_names_the_remedy():
    with pytest.warns(DataWarning, match=r"\(samples.standardized\(\)\)") as caught:
        gr.two_sample_test(make_samples(1000.0), random_state=0)
    assert len(caught) == 1
    assert caught[0].filename == __file__


def test_moderate_scales_and_standardised_samples_are_quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        gr.Pool(random_state=0).fit(make_samples(10.0))
        gr.Pool(random_state=0).fit(make_samples(1000.0).standardized())


def test_a_rare_indicator_is_not_a_small_scale():
    rng = np.random.default_rng(0)
    sides = rng.normal(size=(2, 2, 500, 2))
    sides[..., 0] = rng.random(size=(2, 2, 500)) < 0.01
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        gr.Pool(bandwidth=1.0, ridge=0.1).fit(gr.NodeSamples.from_arrays(*sides))


def test_fits_on_folds_do_not_repeat_it():
    with pytest.warns(DataWarning) as caught:
        gr.divergence_bounds(make_samples(1000.0), estimator=gr.RULSIF(random_state=0))
    assert len(caught) == 1
    assert caught[0].filename == __file__
