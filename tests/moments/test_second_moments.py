"""The average of the second moments, as a sum over the rows of all nodes."""

import numpy as np
import pytest

from graphratio._utils import jobs
from graphratio._utils.jobs import SMALL_TASK, working
from graphratio.moments.second_moments import SUMS_AT_ONCE, FactoredSecond


def second_moments(n_parts, n_rows, m=16):
    rng = np.random.default_rng(0)
    parts = [
        (np.array([node]), rng.normal(size=(1, n_rows, m)), rng.random((1, n_rows)))
        for node in range(n_parts)
    ]
    return FactoredSecond(n_parts, parts)


# Rows of a part that is just large enough for threads.
FEWEST_ROWS = SUMS_AT_ONCE * SMALL_TASK // 16


@pytest.mark.parametrize("n_rows", [10, FEWEST_ROWS - 1, FEWEST_ROWS])
def test_the_number_of_threads_changes_no_bit(n_rows):
    found = []
    for n_jobs in (1, 2, 3):
        with working(n_jobs):
            found.append(second_moments(2, n_rows).mean())
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[0], found[2])
    expected = second_moments(2, n_rows).dense().mean(axis=0)
    np.testing.assert_allclose(found[0], expected, rtol=1e-10, atol=1e-9)


@pytest.mark.parametrize(("n_rows", "n_pools"), [(10, 0), (FEWEST_ROWS - 1, 0), (FEWEST_ROWS, 2)])
def test_only_large_parts_start_threads(monkeypatch, n_rows, n_pools):
    """Starting them takes longer than a small sum."""
    begun = []
    pool = jobs.ThreadPoolExecutor

    def counted(workers):
        begun.append(workers)
        return pool(workers)

    monkeypatch.setattr(jobs, "ThreadPoolExecutor", counted)
    with working(2):
        second_moments(2, n_rows).mean()
    assert begun == [2] * n_pools
