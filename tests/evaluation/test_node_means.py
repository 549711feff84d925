import numpy as np

import graphratio as gr
from graphratio.evaluation.node_means import NodeMeans
from graphratio.evaluation.pieces import IndependentPieces


def by_block(terms, samples):
    pieces = IndependentPieces.of(samples)
    return pieces.terms(terms, samples.sizes), pieces.counts


def test_terms_of_blocks_keep_the_mean_and_show_the_dependence():
    rng = np.random.default_rng(0)
    levels = rng.normal(size=(2, 3, 10)).repeat(6, axis=2)
    sides = levels + 0.1 * rng.normal(size=levels.shape)
    samples = gr.NodeSamples.from_arrays(*(list(side) for side in sides), block=6)
    terms = samples.values[:, 0]
    pieces, counts = by_block(terms, samples)
    assert counts.tolist() == [[10, 10]] * 3
    single, blocked = NodeMeans.of(terms, samples.sizes), NodeMeans.of(pieces, counts)
    np.testing.assert_allclose(blocked.mean, single.mean)
    # Six copies of nearly the same value say as much as one.
    np.testing.assert_allclose(blocked.error / single.error, np.sqrt(6), rtol=0.1)


def test_blocks_of_unequal_sizes_keep_the_mean():
    samples = gr.NodeSamples.from_arrays([np.arange(7.0)], [np.arange(5.0)], block=2)
    terms = np.arange(12.0) ** 2
    pieces, counts = by_block(terms, samples)
    single, blocked = NodeMeans.of(terms, samples.sizes), NodeMeans.of(pieces, counts)
    assert counts.tolist() == [[3, 2]]
    np.testing.assert_allclose(blocked.mean, single.mean)
