"""Features with few values: the dictionary has atoms at each of them."""

import numpy as np
import pytest

import graphratio as gr
from graphratio.features.dictionary import DISCRETE_VALUES, DictionaryRecipe
from graphratio.features.kernels import get_kernel, median_bandwidths

KERNEL = get_kernel("gaussian")
RING = gr.Graph.from_edges([(i, (i + k) % 100) for i in range(100) for k in (1, 2)])


def atoms_of(values):
    samples = gr.NodeSamples.from_arrays([values], [values])
    return DictionaryRecipe().build(samples, KERNEL, median_bandwidths(samples, KERNEL))


def true_divergence(p, q, alpha=0.1):
    """Of two laws on a few values."""
    p, q = np.asarray(p), np.asarray(q)
    mixture = (1 - alpha) * p + alpha * q
    return 0.5 * float(np.sum((q - mixture) ** 2 / mixture))


@pytest.mark.parametrize("noise", [0.01, 0.05])
@pytest.mark.parametrize("make", [gr.GraphRatio, gr.GRULSIF])
def test_a_flip_of_a_binary_feature_has_its_true_divergence(make, noise):
    rng = np.random.default_rng(0)
    reference = (rng.random((100, 200)) < noise).astype(float)
    target = (rng.random((100, 200)) < 1 - noise).astype(float)
    model = make(random_state=0).fit((list(reference), list(target)), RING)
    truth = true_divergence([noise, 1 - noise], [1 - noise, noise])
    assert model.divergence_.mean() == pytest.approx(truth, rel=0.1)


def test_ratings_and_counts():
    rng = np.random.default_rng(0)
    before, after = [0.1, 0.2, 0.4, 0.2, 0.1], [0.4, 0.05, 0.1, 0.05, 0.4]
    sides = [rng.choice(5, size=(100, 100), p=p).astype(float) for p in (before, after)]
    model = gr.GRULSIF(random_state=0).fit(tuple(map(list, sides)), RING)
    assert model.n_atoms_ == 5
    assert model.divergence_.mean() == pytest.approx(true_divergence(before, after), rel=0.1)


def test_every_level_beside_a_continuous_feature():
    rng = np.random.default_rng(0)
    values = np.column_stack([np.zeros(200), rng.normal(size=200)])
    values[:4, 0] = 1.0
    atoms = atoms_of(values)
    assert set(atoms[:, 0]) == {0.0, 1.0}


def test_a_constant_column_adds_nothing():
    rng = np.random.default_rng(0)
    varied = rng.normal(size=(200, 1))
    both = np.column_stack([np.full(200, 7.0), varied[:, 0]])
    assert len(atoms_of(both)) == len(atoms_of(varied))


@pytest.mark.parametrize(
    ("n_values", "n", "discrete"),
    [
        (DISCRETE_VALUES, 400, True),
        (DISCRETE_VALUES + 1, 400, False),
        (8, 40, True),
        (8, 39, False),
    ],
)
def test_which_features_are_discrete(n_values, n, discrete):
    """Few values, each taken five times on average; they are close, so that one covers others."""
    values = np.resize(np.arange(n_values) / 10, n)[:, np.newaxis]
    samples = gr.NodeSamples.from_arrays([values], [values[:0]])
    atoms = DictionaryRecipe(graph_coherence=1.0).build(samples, KERNEL, np.array([5.0]))
    assert (len(np.unique(atoms)) == n_values) == discrete
