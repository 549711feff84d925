"""Checks of parameters and points: what passes, what is refused, and in which words."""

import datetime
import fractions
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest

from graphratio._utils.errors import Argument, listing
from graphratio._utils.optional import import_optional
from graphratio._utils.parameters import (
    as_generator,
    check_choice,
    check_flag,
    check_integer,
    check_real,
)
from graphratio.data.validation import as_labels, as_points, distinct_codes, written
from graphratio.exceptions import (
    DataWarning,
    FileFormatError,
    GraphRatioError,
    GraphRatioWarning,
    InputError,
    MissingDependencyError,
)


class TestReal:
    @pytest.mark.parametrize(
        "value", [1, 0.5, np.float32(0.5), np.int64(1), fractions.Fraction(1, 2)]
    )
    def test_numbers_come_back_as_float(self, value):
        found = check_real(value, "alpha", low=0, high=2)
        assert type(found) is float
        assert found == value

    @pytest.mark.parametrize(
        "value",
        [True, np.True_, "1", None, np.nan, np.inf, -np.inf, 1j, [1.0], np.ones(1), 10**400, 0, 2],
    )
    def test_others_are_refused(self, value):
        with pytest.raises(InputError, match=r"^alpha=.* is not a number in \(0, 2\)\.$"):
            check_real(value, "alpha", low=0, high=2)

    @pytest.mark.parametrize(("value", "side"), [(0, "include_low"), (2, "include_high")])
    def test_ends_of_the_interval(self, value, side):
        assert check_real(value, "alpha", low=0, high=2, **{side: True}) == value


class TestInteger:
    @pytest.mark.parametrize("value", [2, np.int8(2), np.uint64(2)])
    def test_whole_numbers(self, value):
        found = check_integer(value, "cv", low=2, high=2)
        assert type(found) is int
        assert found == 2

    @pytest.mark.parametrize("value", [True, np.True_, 2.0, "2", None, [2], 1, np.nan])
    def test_others_are_refused(self, value):
        with pytest.raises(InputError, match=r"^cv=.* is not a whole number of at least 2\.$"):
            check_integer(value, "cv", low=2)

    def test_upper_end(self):
        with pytest.raises(InputError, match="from 2 to 5"):
            check_integer(6, "cv", low=2, high=5)


class TestChoice:
    def test_suggests_the_nearest(self):
        with pytest.raises(InputError, match=r"'direct', 'pcg'; did you mean 'pcg'\?$"):
            check_choice("pgc", "solver", ("direct", "pcg"))

    @pytest.mark.parametrize("value", [None, 3, ["pcg"], np.array(["pcg"]), "zzz"])
    def test_others_are_refused(self, value):
        with pytest.raises(InputError, match=r"is not one of 'direct', 'pcg'\.$"):
            check_choice(value, "solver", ("direct", "pcg"))


class TestPoints:
    @pytest.mark.parametrize(
        "x",
        [
            [[1, 2]],
            np.array([[1, 2]], np.float32),
            pd.DataFrame({"a": [1], "b": [2.0]}),
            pl.DataFrame({"a": [1], "b": [2.0]}),
        ],
        ids=["list", "float32", "pandas", "polars"],
    )
    def test_forms_agree(self, x):
        points = as_points(x, 2)
        assert points.dtype == np.float64
        assert points.tolist() == [[1.0, 2.0]]

    def test_one_feature_may_be_flat(self):
        assert as_points([1, 2, 3], 1).shape == (3, 1)

    def test_no_points(self):
        assert as_points(np.empty((0, 2)), 2).shape == (0, 2)

    @pytest.mark.parametrize(
        ("x", "message"),
        [
            ([1.0, 2.0], r"1-D with 2 values.*reshape\(1, -1\)"),
            ([1.0, 2.0, 3.0], r"1 feature, but the model was fitted with 2"),
            (np.ones((3, 4)), r"4 features, but the model was fitted with 2"),
            (np.ones((1, 2, 2)), r"x is 3-D"),
            (3.0, r"single value 3.0"),
            (None, r"single value None"),
            ([[1.0, np.nan], [1.0, 1.0], [np.inf, 0.0]], r"NaN or infinite values in rows 0, 2"),
            ([[1.0, None]], r"NaN or infinite values in rows 0"),
            ([[1.0, 1e101]], r"as large as 1e\+101"),
            ([[1.0, "a"]], r"not numbers"),
            ([[1.0, 2.0], [3.0]], r"not a rectangular array"),
            ([[1.0, 10**400]], r"not numbers"),
            ([[1j, 2.0]], r"complex"),
        ],
    )
    def test_refusals(self, x, message):
        with pytest.raises(InputError, match=message):
            as_points(x, 2)


class TestGenerator:
    def test_seeds_repeat(self):
        for seed in (0, np.int64(0)):
            expected = np.random.default_rng(0).integers(1 << 30)
            assert as_generator(seed).integers(1 << 30) == expected

    def test_generators_pass_through(self):
        rng = np.random.default_rng(0)
        assert as_generator(rng) is rng

    def test_legacy_state_seeds_and_advances(self):
        one, other = np.random.RandomState(3), np.random.RandomState(3)
        assert as_generator(one).random() == as_generator(other).random()
        assert as_generator(one).random() != as_generator(np.random.RandomState(3)).random()

    @pytest.mark.parametrize("seed", [-1, 1.5, "0", [1]])
    def test_others_are_refused(self, seed):
        with pytest.raises(InputError, match="not a seed"):
            as_generator(seed)


def test_distinct_codes_number_by_first_appearance():
    values = np.array([5, -1, 5, 9, -1])
    distinct, codes = distinct_codes(values)
    assert distinct == [5, -1, 9]
    assert [distinct[code] for code in codes] == values.tolist()


class TestExceptions:
    def test_every_error_is_ours_and_of_a_usual_kind(self):
        for error, usual in (
            (InputError, ValueError),
            (FileFormatError, ValueError),
            (MissingDependencyError, ImportError),
        ):
            assert issubclass(error, GraphRatioError)
            assert issubclass(error, usual)
        assert issubclass(DataWarning, GraphRatioWarning)

    @pytest.mark.parametrize(
        ("parts", "text"),
        [
            (("it broke", "mend it"), "it broke. mend it."),
            (("it broke.", "mend it."), "it broke. mend it."),
            (("it broke",), "it broke."),
            (("it broke; or did it?",), "it broke; or did it?"),
        ],
    )
    def test_sentences(self, parts, text):
        assert str(InputError(*parts)) == text

    def test_pickles(self):
        error = pickle.loads(pickle.dumps(InputError("it broke", "mend it")))
        assert (error.problem, error.remedy) == ("it broke", "mend it")

    def test_warnings_spell_arguments(self):
        warning = DataWarning(("1 times are absent. Pass ", Argument("missing", "drop")))
        assert str(warning) == '1 time is absent. Pass missing="drop"'
        assert warning.spelled(lambda one: f"--{one.name}") == "1 time is absent. Pass --missing"
        assert str(pickle.loads(pickle.dumps(warning))) == str(warning)

    def test_listing_counts_the_rest(self):
        assert listing(["a"] * 7, limit=2) == "'a', 'a' and 5 more"
        assert listing([]) == ""


class TestOptionalPackages:
    def test_says_what_to_install(self):
        with pytest.raises(
            MissingDependencyError,
            match=r"drawing needs .*'no_such_package'.*pip install \"\.\[plot\]\"",
        ):
            import_optional("no_such_package.part", "plot", "drawing")

    def test_a_failure_inside_the_package_is_not_hidden(self, tmp_path, monkeypatch):
        (tmp_path / "broken_inside.py").write_text("import no_such_package\n")
        monkeypatch.syspath_prepend(tmp_path)
        with pytest.raises(ModuleNotFoundError, match="no_such_package") as caught:
            import_optional("broken_inside", "plot", "drawing")
        assert not isinstance(caught.value, MissingDependencyError)


def test_flags_of_numpy_are_flags():
    assert check_flag(np.True_, "clip") is True
    with pytest.raises(InputError, match="clip=1 is neither True nor False"):
        check_flag(1, "clip")


def test_labels_become_python_values():
    stamp = np.datetime64("2020-01-01", "ns")
    assert as_labels([np.int64(3), "b", stamp]) == (3, "b", datetime.datetime(2020, 1, 1))


def test_values_are_written_as_one_would_type_them():
    values = [1.0, " rain ", np.datetime64("2020-03-01"), b"x "]
    assert [written(value) for value in values] == ["1", "rain", "2020-03-01", "x"]
