"""All nodes permuted at once: how the largest over nodes is found and ranked."""

import numpy as np

from graphratio.testing.global_null import _compare, _one_scale
from graphratio.testing.joint_statistics import JOINT_NAMES


def test_the_largest_over_nodes_is_a_valid_test_of_the_whole_graph():
    """Exchangeable data sets: any rank of the observed one is as likely as any other."""
    rng = np.random.default_rng(0)
    complete = np.array([True, True, True, False])
    ranks = []
    for _ in range(1000):
        statistics = rng.exponential(size=(4, 4, 20)) * [[[1.0], [10.0], [0.1], [1e6]]]
        _, against = _compare(statistics, complete, alone=False)
        assert against[3] == 1
        ranks.append(round(20 * against[complete].min()))
    share = np.cumsum(np.bincount(ranks, minlength=21)[1:]) / 1000
    levels = np.arange(1, 21) / 20
    # Ties of the shares make it cautious, never too keen.
    assert (share <= levels + 4 * np.sqrt(levels * (1 - levels) / 1000)).all()
    assert (share >= levels - 0.05 - 4 * np.sqrt(levels * (1 - levels) / 1000)).all()


def test_data_sets_that_are_as_extreme_count_against_a_node():
    """The observed set leads by the divergence, another one just as much by the norm.

    Of a share of 0.1 the first rank is worth as much as the second of a share of 0.2.
    """
    statistics = np.tile(np.arange(20.0, 0, -1), (4, 1, 1))
    # Observed first: divergence rank 1, all else last.
    statistics[1:, 0, 0] = 0.1
    # The norm: another set leads whose divergence is low, and one is second.
    statistics[0, 0, 1:] = np.roll(statistics[0, 0, 1:], 10)
    statistics[2:] = 1.0
    _, against = _compare(statistics, np.array([True]), alone=False)
    # Sets 1 and 2 have the ranks 1 and 2 by the norm.
    assert round(20 * against[0]) == 3


def test_quadratic_statistics_are_compared_by_their_roots():
    """Squares of a law and the law itself come to the same scale; the witness has a sign."""
    z = np.random.default_rng(0).exponential(size=(1, 50))
    scaled = _one_scale(np.stack([z**2, 9 * z**2, -z, z**2 / 7]))
    standard = (z - z.mean()) / z.std()
    for name, row in zip(JOINT_NAMES, scaled, strict=True):
        np.testing.assert_allclose(row, -standard if name == "predicted" else standard, atol=1e-7)
