"""Errors: what they say, and that they survive a trip to another process."""

import pickle

import pytest

from graphratio._utils.errors import Argument, EngineError, InputError, spelled

WORDS = ("too few: ", Argument("n_folds", 2)), ("Pass ", Argument("n_folds", 3), " or more.")


@pytest.mark.parametrize("kind", [InputError, EngineError])
def test_an_error_is_spelled_by_the_interface(kind):
    error = pickle.loads(pickle.dumps(kind(*WORDS)))
    assert str(error) == "too few: n_folds=2. Pass n_folds=3 or more."
    assert (error.problem, error.remedy) == ("too few: n_folds=2", "Pass n_folds=3 or more")
    shouted = error.spelled(lambda argument: argument.name.upper())
    assert shouted == ("too few: N_FOLDS", "Pass N_FOLDS or more")


def test_braces_and_questions_stay_as_they_are():
    assert str(InputError("there is no node '{x}'", "Did you mean '{y}'?")) == (
        "there is no node '{x}'. Did you mean '{y}'?"
    )
    assert InputError("there is no node 'x'").spelled(str) == ("there is no node 'x'", None)


def test_arguments_in_a_message_are_spelled_as_in_python():
    words = ("Pass ", Argument("missing", "drop"), " or a ", Argument("window"))
    assert spelled(words) == 'Pass missing="drop" or a window'
