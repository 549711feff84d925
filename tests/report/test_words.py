"""Numbers and names in sentences."""

import math

import pytest

from graphratio._utils.errors import enumeration
from graphratio.report.words import count, decimals_of, difference, fixed, number, sentence


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.01234, "0.0123"),
        (412.3, "412"),
        (1234567.0, "1,234,567"),
        (1.2e-7, "1.2e-07"),
        (0, "0"),
        (-412.3, "\N{MINUS SIGN}412"),
        (-1234.0, "\N{MINUS SIGN}1,234"),
    ],
)
def test_numbers_have_few_digits(value, text):
    assert number(value) == text


def test_numbers_with_the_same_decimals():
    assert fixed(-0.5, 2) == "\N{MINUS SIGN}0.50"
    assert fixed(-0.0001, 2) == "0.00"
    assert fixed(0.5, 1, sign=True) == "+0.5"
    assert [decimals_of(text) for text in ("8.7", "9", "1,200", "1.2e-07")] == [1, 0, 0, 8]


def test_what_is_not_known_is_no_number():
    assert difference(0.01234, 0.1, 3) == "+0.012 ± 0.100"
    assert difference(0.01234, math.inf, 3) == "+0.012 (interval unknown)"
    assert difference(math.nan, math.inf, 3) == "\N{EN DASH}"


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
