import numpy as np
import pytest
from numpy.testing import assert_array_equal

from graphratio.exceptions import InputError
from graphratio.selection.cross_validation import defined_means, mean_over_folds
from graphratio.selection.search import Axis, Trial, advantage, decades, listed, moderate, search


def test_the_advantage_is_paired():
    assert advantage(np.array([0.0, 0.0]), np.array([1.0, 3.0])) == (2.0, 1.0)
    assert advantage(np.array([0.0, np.nan]), np.array([1.0, 3.0])) == (1.0, 0.0)


def test_a_bowl_is_searched_in_few_steps():
    axis = Axis(np.arange(9.0), start=1, stride=2)

    def bowl(point, n_folds):
        return Trial(np.full((1, 1, 1), (axis.values[point[0]] - 6.0) ** 2))

    best, tried = search([axis], bowl)
    assert (best, len(tried)) == ((6,), 5)


def trial(loss, *, blocked=False):
    """Losses of nodes with this mean, whose differences from others have a standard error."""
    noise = np.random.default_rng(int(1e3 * abs(loss))).normal(size=36)
    return Trial((loss + (noise - noise.mean()) / noise.std())[np.newaxis, np.newaxis], blocked)


@pytest.mark.parametrize(
    ("ahead", "blocked", "n_tried"),
    [(9.0, False, 6), (0.5, False, 7), (9.0, True, 7)],
    ids=["outclassed", "behind", "blocks of time"],
)
def test_fine_steps_end_where_a_rival_is_far_ahead(ahead, blocked, n_tried):
    axes = [Axis(np.arange(2.0), 0), Axis(np.arange(9.0), start=1, stride=2)]

    def bowl(point, n_folds):
        return trial(float((point[1] - 6) ** 2 + point[0]) / 100, blocked=blocked)

    tried = search(axes, bowl, trial(bowl((0, 1), None).loss - ahead, blocked=blocked))[1]
    assert len(tried) == n_tried


def test_axes():
    powers = decades(-1, 1, start=1.0, zero=True)
    assert powers.values.round(2).tolist() == [0.0, 0.1, 0.32, 1.0, 3.16, 10.0]
    assert powers.values[powers.start] == 1.0
    assert listed(np.array([1.0, 2.0, 4.0])).start == 1


def test_immoderate_penalties_are_named():
    message = r"ridge=\[0.1, 1e-300\] is not between 1e-12 and 1e\+12"
    with pytest.raises(InputError, match=message):
        moderate(np.array([0.1, 1e-300]), "ridge")


def test_means_leave_out_what_is_not_defined():
    gaps = np.array([[1.0, np.nan, 3.0], [np.nan, np.nan, np.nan]])
    assert_array_equal(defined_means(gaps, axis=1), [2.0, np.nan])
    scores = np.array([[1.0, np.nan, 3.0], [2.0, 5.0, 4.0]])
    assert mean_over_folds(scores).tolist() == [2.0, 3.0]
