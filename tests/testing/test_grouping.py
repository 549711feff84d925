"""Nodes grouped by their coordinates, and how many groups there are."""

import numpy as np

from graphratio.testing.grouping import group, named, number_of_kinds


def test_number_of_kinds_prefers_fewer_within_an_error():
    rng = np.random.default_rng(0)
    base = rng.normal(size=(5, 40))
    clear = base - 1.0
    noise = rng.normal(scale=0.5, size=base.shape)
    hardly = clear + noise - noise.mean() - 0.001
    assert number_of_kinds([base, clear, hardly]) == 1
    assert number_of_kinds([base, base + 1.0]) == 0


def test_groups_of_more_kinds_than_points_do_not_fail():
    kinds, centres = group(np.array([[1.0], [1.0]]), 3)
    assert len(centres) == 4
    assert (kinds == kinds[0]).all()


def test_kinds_that_do_not_beat_no_change_are_not_believed():
    rng = np.random.default_rng(0)
    kinds = np.repeat([0, 1, 2], [20, 5, 10])
    points = np.array([[0.0, 0.0], [2.0, 0.0], [0.0, 1.0]])[kinds]
    gains = rng.normal(scale=0.1, size=(5, 35)) + np.array([0.0, 1.0, -0.1])[kinds]
    gains[0, 3] = np.nan
    names = named(points, 2, gains)
    assert set(names[kinds == 1]) == {"kind 1"}
    assert set(names[kinds != 1]) == {"unchanged"}


def test_groups_between_no_change_and_a_kind_are_divided():
    # Smoothing pulls changed and unchanged neighbours together: 5 of 20 in between changed.
    points = np.repeat([[0.0], [0.2], [0.35], [1.0]], [10, 15, 5, 10], axis=0)
    points = points + np.random.default_rng(0).normal(scale=0.01, size=points.shape)
    gains = np.tile(np.repeat([0.0, -0.01, 0.1, 0.5], [10, 15, 5, 10]), (5, 1))
    names = named(points * 1.5, 2, gains)
    assert set(names[:25]) == {"unchanged"}
    assert set(names[30:]) == {"kind 1"}


def test_clear_changes_that_no_kind_describes_are_other():
    rng = np.random.default_rng(0)
    points = np.repeat([[0.0], [1.0]], [20, 15], axis=0)
    gains = rng.normal(scale=0.1, size=(5, 35)) + np.where(np.arange(35) < 10, 0.0, 1.0)
    names = named(points, 1, gains)
    assert set(names[10:20]) == {"other"}
    assert (names[:10] == "unchanged").sum() >= 9
    assert set(names[20:]) == {"kind 1"}
