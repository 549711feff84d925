"""Changed nodes grouped by their ratios, and what held-out gains say of the groups."""

import numpy as np

from graphratio.testing.grouping import Gains, grouped, named, number_of_kinds

N_NODES = 20
FIRST = np.arange(N_NODES) == 0


def gains(kind, own, error=0.01):
    parts = np.broadcast_arrays(kind, own, error, error, np.empty(N_NODES))
    return Gains(*(np.array(part, dtype=float) for part in parts[:4]))


def by_number(*means):
    """Gains with a noise that all numbers of groups share."""
    noise = np.random.default_rng(0).normal(scale=0.1, size=N_NODES)
    return np.array([np.broadcast_to(mean, N_NODES) + noise for mean in means])


def test_groups_of_equal_nodes_are_fewer():
    assert grouped(np.ones((4, 3)), [3], seed=0)[0].tolist() == [0, 0, 0, 0]
    (groups,) = grouped(np.array([[1.0], [1.0], [2.0]]), [3], seed=0)
    assert len(set(groups.tolist())) == 2


def test_a_lone_outlier_does_not_take_the_place_of_a_group():
    rng = np.random.default_rng(0)
    points = np.concatenate([np.zeros((20, 2)), np.full((20, 2), 3.0), [[0.0, 4.0]]])
    (groups,) = grouped(points + 0.1 * rng.normal(size=points.shape), [2], seed=0)
    assert len(set(groups[:20].tolist())) == len(set(groups[20:40].tolist())) == 1
    assert groups[0] != groups[20]


class TestNumber:
    def test_more_kinds_must_be_worth_it(self):
        assert number_of_kinds(by_number(1.0, 2.0, 2.01)) == 2
        assert number_of_kinds(by_number(1.0, 1.01, 2.0)) == 3
        assert number_of_kinds(by_number(1.0, 1.01, 1.01, 2.0)) == 1

    def test_a_gain_within_its_error_is_none(self):
        better_at_one = 1.0 + 4.0 * FIRST - 1.0 * np.roll(FIRST, 1)
        assert number_of_kinds(by_number(1.0, better_at_one)) == 1

    def test_nodes_without_a_gain_do_not_count(self):
        found = by_number(1.0, 2.0)
        found[:, 3] = np.nan
        assert number_of_kinds(found) == 2


class TestNames:
    groups = np.repeat([0, 1], [8, 12])

    def test_the_largest_kind_is_the_first(self):
        names = named(self.groups, gains(1.0, 1.0))
        assert names.tolist() == ["kind 2"] * 8 + ["kind 1"] * 12

    def test_nodes_that_their_own_ratio_describes_far_better_are_other(self):
        names = named(self.groups, gains(np.where(FIRST, 0.2, 1.0), 1.0))
        assert (names == "other").tolist() == FIRST.tolist()

    def test_nodes_where_no_change_is_better_than_the_kind_are_other(self):
        worse = np.where(FIRST, -0.5, 1.0)
        names = named(self.groups, gains(worse, worse))
        assert (names == "other").tolist() == FIRST.tolist()

    def test_a_little_better_or_uncertain_is_not_other(self):
        for own, error in ((1.1, 0.01), (2.0, 0.5)):
            names = named(self.groups, gains(1.0, np.where(FIRST, own, 1.0), error))
            assert names[0] == "kind 2"

    def test_a_node_without_a_gain_stays_with_its_group(self):
        unknown = np.where(FIRST, np.nan, 1.0)
        assert named(self.groups, gains(unknown, unknown, unknown))[0] == "kind 2"

    def test_a_kind_that_does_not_gain_is_none(self):
        groups = np.repeat([0, 1], [3, 17])
        little = np.where(groups == 0, 0.0, 1.0)
        names = named(groups, gains(little, little))
        assert names.tolist() == ["other"] * 3 + ["kind 1"] * 17

    def test_a_kind_has_several_nodes(self):
        names = named(np.repeat([0, 1], [1, 19]), gains(1.0, 1.0))
        assert names.tolist() == ["other"] + ["kind 1"] * 19

    def test_no_kinds_if_own_ratios_gain_more(self):
        assert set(named(self.groups, gains(0.8, 1.0, 0.1))) == {"changed"}

    def test_one_of_a_few_nodes_may_be_other(self):
        found = Gains(*np.array([[1.0, 1.0, -1.0], [1.0, 1.0, 0.0], [0.01] * 3, [0.01] * 3]))
        assert named(np.zeros(3, dtype=int), found).tolist() == ["kind 1", "kind 1", "other"]
        assert set(named(np.arange(3), found)) == {"changed"}

    def test_no_kinds_if_many_nodes_are_like_none(self):
        found = gains(np.where(np.arange(N_NODES) < 6, -1.0, 1.0), 1.0)
        assert set(named(self.groups, found)) == {"changed"}
