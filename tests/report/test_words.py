"""Numbers and names in sentences."""

import pytest

from graphratio._utils.errors import enumeration
from graphratio.report.words import count, number, sentence


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.01234, "0.0123"), (412.3, "412"), (1234567.0, "1,234,567"), (1.2e-7, "1.2e-07"), (0, "0")],
)
def test_numbers_have_few_digits(value, text):
    assert number(value) == text


def test_one_is_singular():
    assert (count(1, "node"), count(1200, "node")) == ("1 node", "1,200 nodes")


def test_long_enumerations_are_counted():
    assert enumeration([]) == ""
    assert enumeration(["a"]) == "a"
    assert enumeration(["a", "b", "c"]) == "a, b and c"
    assert enumeration(list("abcde"), limit=2) == "a, b and 3 more"


def test_sentences_begin_with_a_capital_and_end_once():
    assert sentence("the graph has 2 parts") == "The graph has 2 parts."
    assert sentence("Is it?") == "Is it?"
