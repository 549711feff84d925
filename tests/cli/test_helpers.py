"""The small parts of the command line: texts, options, columns, settings."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

import graphratio as gr
from graphratio._utils.errors import Argument
from graphratio.cli import console, output
from graphratio.cli.console import as_option, plain, visible
from graphratio.cli.expand import expand, option
from graphratio.cli.inputs import split_names
from graphratio.cli.models import settings_of
from graphratio.cli.periods import TimeAxis
from graphratio.cli.table_files import as_numbers, as_text


def test_control_characters_are_written_out():
    assert visible("a\x1b[31mb\n") == "a\\x1b[31mb\n"


def test_arguments_are_spelled_as_options():
    assert as_option(Argument("missing", "drop")) == "--missing drop"
    assert as_option(Argument("max_atoms")) == "max_atoms in Python"
    assert as_option(Argument("samples.standardized()")) == "--standardize all"


def test_json_has_plain_values_only():
    found = plain({"a": np.array([1.0, np.nan]), "b": (np.int64(2), None)})
    assert found == {"a": [1.0, None], "b": [2, None]}


@dataclass
class Walk:
    """Options of the command below."""

    steps: int
    pace: int = option("Walking", "Steps per second.", default=2, min=1)


def test_a_dataclass_becomes_one_parameter_per_field():
    calls = []

    def walk(options: Walk, loud: bool = False) -> None:
        calls.append((options, loud))

    expand(walk)(steps=1, loud=True)
    assert calls == [(Walk(steps=1, pace=2), True)]


def test_a_name_may_contain_a_comma():
    assert split_names("pm25, no2", ["pm25", "no2"]) == ["pm25", "no2"]
    assert split_names("a,b", ["a,b"]) == ["a,b"]


def test_settings_are_the_fitted_hyperparameters():
    model = gr.Pool(bandwidth=1.0, ridge=0.1).fit(([0.0, 1.0], [1.0, 2.0]))
    expected = {"alpha": 0.1, "bandwidth": 1.0, "graph_penalty": 0.0, "ridge": 0.1}
    assert settings_of(model) == expected


def test_columns_as_text_and_as_numbers():
    assert as_text(pd.Series([1.0, None, 2.5])).tolist() == ["1", "", "2.5"]
    assert as_text(pd.Series(["001", "NA"])).tolist() == ["001", "NA"]
    numbers = as_numbers(pd.Series(["1", "2.5", "NA"]), "pm25")
    assert numbers.tolist()[:2] == [1.0, 2.5]
    assert np.isnan(numbers[2])


def test_times_with_a_zone_are_compared_in_utc_and_keep_their_clock():
    given = ["2020-03-01T23:30-07:00", "2020-03-02T00:30+05:30", "2020-03-02T01:00Z", "2020-03-02"]
    axis = TimeAxis(pd.Series(given), "when")
    utc = ["2020-03-02T06:30", "2020-03-01T19:00", "2020-03-02T01:00", "2020-03-02"]
    local = ["2020-03-01T23:30", "2020-03-02T00:30", "2020-03-02T01:00", "2020-03-02"]
    np.testing.assert_array_equal(axis.values, np.array(utc, "M8[us]"))
    np.testing.assert_array_equal(axis.local, np.array(local, "M8[us]"))


def test_numbers_of_a_table_have_no_exponent_where_it_can_be_avoided():
    values = [-3564.2, 12.345, 0.0001234, 3e10, float("nan"), 7, None]
    shown = ["-3,564", "12.3", "0.000123", "3e+10", "-", "7", "-"]
    assert [console._shown(value) for value in values] == shown


def test_headings_are_in_english():
    assert output._heading("n_neighbors_mean_change_with_neighbors") == (
        "n neighbors mean change with neighbours"
    )
