"""Injected faults: every one ends in the right answer, or in a clear error."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from tests.distributed.problems import FIXED, FaultyEngine, ring

import graphratio as gr
from graphratio.exceptions import EngineError, InputError

# Left out by `make quick`.
pytestmark = pytest.mark.slow

SELECTED = dict(bandwidth=[0.8, 1.6], graph_penalty=[0.24, 2.4], ridge=[0.1], cv=2, random_state=0)


@pytest.fixture(scope="module")
def data():
    return ring()


@pytest.fixture(scope="module")
def whole(data):
    return gr.GRULSIF(**FIXED, tol=1e-10).fit(*data)


def n_calls(engine, data, **settings):
    gr.GRULSIF(**settings, engine=engine).fit(*data)
    return len(engine.log)


def test_a_loss_at_any_call_changes_nothing(data, whole):
    settings = dict(**FIXED, tol=1e-9)
    total = n_calls(FaultyEngine(), data, **settings)
    assert total > 20
    for number in range(total):
        engine = FaultyEngine(losses={number: (number % 3,)}, checkpoint_every=3)
        model = gr.GRULSIF(**settings, engine=engine).fit(*data)
        assert model.solution_.converged
        assert_allclose(model.coef_, whole.coef_, atol=1e-7)
        assert_allclose(model.divergence_, whole.divergence_, atol=1e-7)
        assert_array_equal(model.dictionary_, whole.dictionary_)
        assert model.solution_.recoveries == 1


def test_a_loss_during_selection_changes_nothing(data):
    plain = FaultyEngine()
    expected = gr.GRULSIF(**SELECTED, engine=plain).fit(*data)
    for number in np.linspace(0, len(plain.log) - 1, 6).astype(int).tolist():
        engine = FaultyEngine(losses={number: (2,)})
        model = gr.GRULSIF(**SELECTED, engine=engine).fit(*data)
        assert model.bandwidth_ == expected.bandwidth_
        assert model.graph_penalty_ == expected.graph_penalty_
        # Held-out scores are those of a run without faults, since a lost solve begins again.
        assert_array_equal(model.cv_results_["mean_score"], expected.cv_results_["mean_score"])
        assert_allclose(model.coef_, expected.coef_, atol=1e-5)


def test_iterations_that_were_lost_do_not_count(data, monkeypatch):
    """A solve that begins again from nothing may take as many iterations as any other."""
    monkeypatch.setattr("graphratio.estimators.partitioned.SOLVE_ITERATIONS", 9)
    plain = FaultyEngine()
    expected = gr.GRULSIF(**SELECTED, engine=plain).fit(*data)
    first = plain.log.index("held_out_loss")
    solve = plain.log[:first].count("conjugate.advance")
    assert solve > 4
    engine = FaultyEngine(losses={first - 2: (0,)})
    model = gr.GRULSIF(**SELECTED, engine=engine).fit(*data)
    assert_array_equal(model.cv_results_["mean_score"], expected.cv_results_["mean_score"])
    assert_allclose(model.coef_, expected.coef_, atol=1e-5)


def test_two_at_once_and_one_during_recovery(data, whole):
    for losses, bad in [
        ({12: (0, 2)}, {}),
        ({12: (0, 1, 2)}, {}),
        ({12: (1,)}, {1: (0,)}),  # a second one while the first is rebuilt
        ({12: (1,), 13: (1,)}, {}),  # the new one during the calls that set it up
        ({12: (1,), 13: (2,)}, {2: (0, 1)}),
    ]:
        engine = FaultyEngine(losses=losses, bad_rebuilds=bad)
        model = gr.GRULSIF(**FIXED, tol=1e-9, engine=engine).fit(*data)
        assert_allclose(model.coef_, whole.coef_, atol=1e-7)


def test_loss_while_the_partitions_are_made(data, whole):
    engine = FaultyEngine(bad_rebuilds={0: (1, 2)})
    model = gr.GRULSIF(**FIXED, tol=1e-9, engine=engine).fit(*data)
    assert_allclose(model.coef_, whole.coef_, atol=1e-7)


def test_going_on_from_the_last_copy_saves_iterations(data):
    """A loss late in the iteration repeats no more than what came after the last copy."""
    settings = dict(**FIXED, tol=1e-10)
    plain = FaultyEngine(checkpoint_every=2)
    undisturbed = gr.GRULSIF(**settings, engine=plain).fit(*data).solution_.n_iter
    late = max(i for i, name in enumerate(plain.log) if name == "conjugate.direction")
    engine = FaultyEngine(losses={late: (0,)}, checkpoint_every=2)
    again = gr.GRULSIF(**settings, engine=engine).fit(*data).solution_.n_iter
    assert undisturbed < again < 2 * undisturbed


class TestGivingUp:
    def settings(self, every, **kwargs):
        """Partition 1 is lost at every call from the twentieth on."""
        losses = {number: (1,) for number in range(20, 500)}
        return FaultyEngine(losses=losses, checkpoint_every=every, **kwargs)

    def test_error_keeps_the_checkpoint(self, data, tmp_path):
        path = tmp_path / "theta.npy"
        engine = self.settings(1, retries=2, checkpoint=path)
        model = gr.GRULSIF(**FIXED, tol=1e-10, engine=engine)
        with pytest.raises(
            EngineError, match=r"partitions \[1\] were lost \(injected.*2 recov"
        ) as info:
            model.fit(*data)
        assert not hasattr(model, "coef_")
        theta = info.value.checkpoint
        assert theta.shape[:2] == (12, 1)
        assert np.isfinite(theta).all()
        assert theta.any()
        assert_array_equal(np.load(path), theta)
        assert str(path) in str(info.value)
        assert "start=error.checkpoint" in str(info.value)
        assert_array_equal(pickle.loads(pickle.dumps(info.value)).checkpoint, theta)

    def test_start_goes_on_from_it(self, data, tmp_path, whole):
        path = tmp_path / "theta.npy"
        gr.GRULSIF(**FIXED, tol=1e-9, engine=FaultyEngine(checkpoint=path)).fit(*data)
        for start in (path, np.load(path)):
            model = gr.GRULSIF(**FIXED, tol=1e-8, engine=FaultyEngine(start=start)).fit(*data)
            assert model.solution_.n_iter == 0
            assert_allclose(model.coef_, whole.coef_, atol=1e-6)

    def test_without_a_copy_the_error_says_so(self, data):
        engine = FaultyEngine(losses={n: (0,) for n in range(100)}, retries=1)
        with pytest.raises(EngineError, match="no coefficients yet") as info:
            gr.GRULSIF(**FIXED, engine=engine).fit(*data)
        assert info.value.checkpoint is None
        assert "start=" not in str(info.value)

    def test_no_retries(self, data):
        with pytest.raises(EngineError, match="0 recoveries"):
            gr.GRULSIF(**FIXED, engine=FaultyEngine(losses={8: (0,)}, retries=0)).fit(*data)

    @pytest.mark.parametrize("method", ["held_out_loss", "conjugate.refresh", "divergences"])
    def test_a_call_that_always_fails_ends(self, data, method):
        """What succeeds before it, again and again, is no progress."""
        engine = FaultyEngine(losses={method: (1,)}, retries=2)
        settings = SELECTED if method == "held_out_loss" else FIXED
        with pytest.raises(EngineError, match="2 recoveries in a row did not help"):
            gr.GRULSIF(**settings, engine=engine).fit(*data)
        assert engine.log.count(method) == 3

    def test_progress_resets_the_count(self, data, whole):
        """Four losses, each after a new copy, with two retries."""
        plain = FaultyEngine(checkpoint_every=1)
        gr.GRULSIF(**FIXED, tol=1e-10, engine=plain).fit(*data)
        first = plain.log.index("conjugate.direction")
        # A recovery replays four calls and restarts with two; a copy takes three more.
        losses = {first + 2 + 14 * k: (k % 3,) for k in range(4)}
        engine = FaultyEngine(losses=losses, checkpoint_every=1, retries=2)
        model = gr.GRULSIF(**FIXED, tol=1e-9, engine=engine).fit(*data)
        assert_allclose(model.coef_, whole.coef_, atol=1e-7)
        assert model.solution_.recoveries == 4


def test_bad_start_is_refused(data, tmp_path):
    with pytest.raises(InputError, match="start has the shape"):
        gr.GRULSIF(**FIXED, engine=FaultyEngine(start=np.zeros((2, 1, 3)))).fit(*data)
    with pytest.raises(InputError, match="cannot be read as a checkpoint"):
        gr.GRULSIF(**FIXED, engine=FaultyEngine(start=tmp_path / "none.npy")).fit(*data)
    with pytest.raises(InputError, match="no directory"):
        FaultyEngine(checkpoint=tmp_path / "absent" / "theta.npy")
