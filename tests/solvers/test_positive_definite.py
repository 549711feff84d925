import numpy as np
import pytest

from graphratio.solvers.positive_definite import LARGE_BLOCK, inverses, solve_positive

RNG = np.random.default_rng(0)


def blocks_of(m, dtype):
    rows = RNG.normal(size=(3, 2, 2 * m, m))
    return (rows.transpose(0, 1, 3, 2) @ rows / m + 0.1 * np.eye(m)).astype(dtype)


@pytest.mark.parametrize("m", [3, LARGE_BLOCK, 50])
@pytest.mark.parametrize(("dtype", "digits"), [(np.float32, 1e-4), (np.float64, 1e-12)])
def test_inverses_of_all_blocks_are_symmetric(m, dtype, digits):
    blocks = blocks_of(m, dtype)
    before = blocks.copy()
    found = inverses(blocks)
    assert found.dtype == dtype
    assert found.shape == blocks.shape
    np.testing.assert_array_equal(found, found.transpose(0, 1, 3, 2))
    np.testing.assert_allclose(found @ blocks, np.broadcast_to(np.eye(m), found.shape), atol=digits)
    np.testing.assert_array_equal(blocks, before)


@pytest.mark.parametrize("m", [3, 50])
def test_a_block_that_is_not_definite_is_inverted_too(m):
    blocks = blocks_of(m, np.float64)
    blocks[1, 1, 0, 0] = -5.0
    np.testing.assert_allclose(inverses(blocks)[1, 1], np.linalg.inv(blocks[1, 1]), atol=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_singular_system_has_its_shortest_solution(dtype):
    vector = np.array([3.0, 4.0])
    matrix = np.outer(vector, vector).astype(dtype)
    np.testing.assert_allclose(solve_positive(matrix, 25 * vector), vector, rtol=1e-5)
    regular = matrix + np.eye(2, dtype=dtype)
    solved = solve_positive(regular, vector)
    assert solved.dtype == dtype
    np.testing.assert_allclose(regular @ solved, vector, rtol=1e-5)
