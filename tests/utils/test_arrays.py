"""Batches cover every row of every segment exactly once, with bounded padding."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphratio._utils.arrays import WIDTH_RATIO, as_slice, batches, node_ranges


@given(
    st.lists(st.integers(0, 60), max_size=25),
    st.integers(0, 3),
    st.none() | st.integers(1, 200),
)
@settings(derandomize=True, deadline=None, max_examples=200)
def test_every_row_once_and_little_padding(sizes, gap, max_rows):
    sizes = np.array(sizes, dtype=np.intp)
    starts = np.cumsum(sizes + gap) - sizes
    covered = {}
    for batch in batches(starts, sizes, max_rows):
        width = batch.rows.shape[1]
        valid = np.ones(batch.rows.shape, bool) if batch.valid is None else batch.valid
        assert batch.valid is None or not batch.valid.all()
        assert max_rows is None or batch.rows.size <= max(max_rows, width)
        for segment, rows, real in zip(batch.segments.tolist(), batch.rows, valid, strict=True):
            assert segment not in covered
            covered[segment] = rows[real].tolist()
            inside = (rows >= starts[segment]) & (rows < starts[segment] + sizes[segment])
            assert inside.all()
            assert width <= max(WIDTH_RATIO * sizes[segment], sizes[segment])
    expected = {
        v: list(range(starts[v], starts[v] + sizes[v])) for v in np.flatnonzero(sizes).tolist()
    }
    assert covered == expected


@pytest.mark.parametrize("sizes", [[], [0, 0]])
def test_nothing_to_do(sizes):
    assert list(batches(np.zeros(len(sizes), int), np.array(sizes, int))) == []


@pytest.mark.parametrize("sizes", [[0, 0], [0, 0, 3, 0, 4, 2], [9], [3, 0, 3]])
def test_ranges_of_nodes_cover_all_of_them(sizes):
    """Also nodes without rows, wherever they are."""
    found = node_ranges(np.column_stack([sizes, np.zeros_like(sizes)]), 5)
    assert [v for part in found for v in range(part.start, part.stop)] == list(range(len(sizes)))


def test_number_of_rectangles_grows_slowly():
    sizes = np.arange(1, 2_001)
    starts = np.cumsum(sizes) - sizes
    assert sum(1 for _ in batches(starts, sizes)) < 40


def test_positions_without_a_gap_become_a_slice():
    assert as_slice(np.array([2, 3, 4])) == slice(2, 5)
    assert as_slice(np.array([2, 4])).tolist() == [2, 4]
