"""Blocks of nodes that see few directions, kept as a few rows."""

import numpy as np
import pytest

from graphratio.moments.second_moments import (
    FEW_ROWS,
    FEWEST_FEATURES,
    PRECISION,
    DenseSecond,
    FactoredSecond,
    compressed,
)

M = FEWEST_FEATURES


def blocks_of_rank(ranks, m=M):
    rng = np.random.default_rng(0)
    rows = [rng.normal(size=(rank, m)) / m for rank in ranks]
    return DenseSecond(np.stack([own.T @ own for own in rows]).astype(np.float32))


def test_products_are_those_of_the_blocks():
    blocks = blocks_of_rank([3, 20, 0, 7, 31])
    found = compressed(blocks)
    assert isinstance(found, FactoredSecond)
    assert found.few_rows
    assert found.low_rank
    # A node without observations in a sample has a block of zeros.
    for own, block in zip(found.dense(), blocks.blocks, strict=True):
        np.testing.assert_allclose(own, block, atol=2 * PRECISION * np.trace(block))
    theta = np.random.default_rng(1).normal(size=(5, 4, M)).astype(np.float32)
    np.testing.assert_allclose(found.apply(theta), blocks.apply(theta), atol=1e-5)
    # Nodes with similar ranks are kept together, so that few zeros are multiplied.
    assert [psi.shape[1] for _, psi, _ in found.parts][-1] == 31
    assert min(psi.shape[1] for _, psi, _ in found.parts) < 10


@pytest.mark.parametrize(
    "blocks",
    [
        blocks_of_rank([int(FEW_ROWS * M) + 8] * 12),
        blocks_of_rank([3] * 12, m=M - 1),
        DenseSecond(blocks_of_rank([3] * 12).blocks.astype(np.float64)),
    ],
    ids=["many directions", "few features", "double precision"],
)
def test_other_blocks_stay(blocks):
    assert compressed(blocks) is blocks


def test_a_probe_that_is_too_hopeful_is_corrected():
    ranks = np.full(64, M // 2)
    ranks[np.unique(np.linspace(0, 63, 8).astype(int))] = 2
    blocks = blocks_of_rank(ranks)
    assert compressed(blocks) is blocks
