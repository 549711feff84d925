"""The search for shared profiles, beside the plain fits that are its rivals."""

import numpy as np
import pytest

import graphratio as gr
from graphratio.selection import profile_search, search
from graphratio.selection.profile_search import ProfileSelection

N_NODES = 36
RING = gr.Graph.from_edges([(i, (i + 1) % N_NODES) for i in range(N_NODES)])


def own_places(seed):
    """Every node has its own location and scale, so there is little that profiles could share."""
    rng = np.random.default_rng(seed)
    places = 6 * rng.normal(size=(N_NODES, 1, 2))
    scales = np.exp(rng.normal(size=(N_NODES, 1, 2)))
    shifts = rng.normal(size=(N_NODES, 1, 2))
    reference = places + scales * rng.normal(size=(N_NODES, 60, 2))
    return list(reference), list(places + scales * (shifts + rng.normal(size=(N_NODES, 60, 2))))


def two_shifts(seed):
    rng = np.random.default_rng(seed)
    shifts = np.where(np.arange(N_NODES) < N_NODES // 2, 1.2, -1.2)[:, np.newaxis]
    reference = rng.normal(size=(N_NODES, 40))
    return list(reference), list(rng.normal(size=(N_NODES, 40)) + shifts)


def fitted(samples, monkeypatch, large):
    """A fit, and how often the search tried a point in how many folds."""
    asked = []
    trial = ProfileSelection._trial

    def counted(self, point, n_folds=None):
        asked.append(n_folds)
        return trial(self, point, n_folds)

    with monkeypatch.context() as patch:
        patch.setattr(profile_search, "LARGE_MOMENTS", 0 if large else np.inf)
        # Few nodes cannot be far apart in standard errors.
        patch.setattr(search, "OUTCLASSED", 1.0)
        patch.setattr(ProfileSelection, "_trial", counted)
        return gr.GraphRatio(random_state=0).fit(samples, RING), asked


def test_with_large_moments_the_first_fold_ends_the_search(monkeypatch):
    model, asked = fitted(own_places(2), monkeypatch, large=True)
    known, asked_before = fitted(own_places(2), monkeypatch, large=False)
    assert not model.shared_
    assert asked.count(None) == 1
    assert asked_before.count(None) > 3
    np.testing.assert_array_equal(model.coef_, known.coef_)
    # What was tried in all folds is in the table, and the model says what it means.
    assert (model.cv_results_["n_profiles"] > 0).any()
    assert any("every node has its own ratio" in note for note in model.notes_)


@pytest.mark.parametrize("seed", [1, 2])
def test_profiles_that_may_win_are_searched_in_all_folds(seed, monkeypatch):
    model, asked = fitted(two_shifts(seed), monkeypatch, large=True)
    known, _ = fitted(two_shifts(seed), monkeypatch, large=False)
    assert model.shared_
    assert asked.count(None) > 3
    np.testing.assert_array_equal(model.coef_, known.coef_)
