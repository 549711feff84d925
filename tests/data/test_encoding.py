"""Categorical features: indicators, their kernel, their scale, their names."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

import graphratio as gr
from graphratio.data.encoding import MOST_LEVELS, Encoding, asked_levels
from graphratio.exceptions import DataWarning, InputError
from graphratio.features.kernels import get_kernel

GRAPH = gr.Graph.from_edges([("a", "b"), ("b", "c")])


def make_table(n=80, seed=0):
    """Three sites; at "b" rain becomes frequent and clear days rare."""
    rng = np.random.default_rng(seed)
    rows = []
    for site in "abc":
        for period in ("before", "after"):
            wet = site == "b" and period == "after"
            sky = rng.choice(
                ["clear", "rain", "snow"], n, p=[0.1, 0.8, 0.1] if wet else [0.6, 0.3, 0.1]
            )
            rows.append(
                pd.DataFrame(
                    {
                        "site": site,
                        "period": period,
                        "pm25": rng.normal(120, 30, n),
                        "sky": sky,
                        "day": rng.integers(1, 8, n),
                    }
                )
            )
    return pd.concat(rows, ignore_index=True)


def read(table, **kwargs):
    return gr.NodeSamples.from_frame(table, "site", "period", "before", "after", **kwargs)


def test_a_column_becomes_one_indicator_per_level():
    samples = read(make_table(), features=["pm25"], categorical=["sky", "day"])
    assert samples.feature_names == (
        *("pm25", "sky=clear", "sky=rain", "sky=snow"),
        *(f"day={i}" for i in range(1, 8)),
    )
    assert_array_equal(samples.values[:, 1:4].sum(axis=1), 1)
    assert_array_equal(samples.values[:, 4:].sum(axis=1), 1)
    assert "categorical: 'sky', 'day'" in repr(samples)


def test_without_features_all_numbers_and_the_named_categories():
    samples = read(make_table(), categorical="sky")
    assert samples.encoding.columns == ("pm25", "sky", "day")


def test_polars_and_pandas_read_the_same():
    table = make_table()
    one = read(table, features=["pm25", "sky"], categorical="sky")
    other = read(pl.from_pandas(table), features=["pm25", "sky"], categorical="sky")
    assert_array_equal(one.values, other.values)
    assert one.feature_names == other.feature_names


@pytest.mark.parametrize(
    "declared",
    [
        lambda t: t.astype({"sky": "category"}),
        lambda t: pl.from_pandas(t).cast({"sky": pl.Categorical}),
        lambda t: pl.from_pandas(t).cast({"sky": pl.Enum(["snow", "rain", "clear", "hail"])}),
    ],
    ids=["pandas", "polars categorical", "polars enum"],
)
def test_columns_of_a_categorical_type_are_recognised(declared):
    samples = read(declared(make_table()), features=["pm25", "sky"])
    assert samples.feature_names == ("pm25", "sky=clear", "sky=rain", "sky=snow")


def test_text_is_not_taken_for_a_category_by_itself():
    """A number written badly would become hundreds of levels in silence."""
    with pytest.raises(InputError, match=r"'sky' is not numeric.*categorical=\['sky'\]"):
        read(make_table(), features=["pm25", "sky"])


def test_levels_of_other_rows_do_not_count():
    table = make_table()
    extra = table.head(5).assign(period="during", sky="fog")
    samples = read(pd.concat([table, extra]), features=["sky"], categorical="sky")
    assert samples.encoding.levels == {"sky": ("clear", "rain", "snow")}


@given(st.integers(0, 2**32 - 1), st.floats(0.3, 5.0), st.sampled_from(["gaussian", "laplacian"]))
@settings(max_examples=30, deadline=None)
def test_kernel_is_a_product_of_unit_norm_and_positive_definite(seed, sigma, name):
    rng = np.random.default_rng(seed)
    encoding = Encoding(("x", "a", "b"), {"a": tuple("pqr"), "b": tuple("uv")})
    coded = np.column_stack(
        [rng.normal(size=40), rng.integers(0, 3, 40), rng.integers(0, 2, 40)]
    ).astype(float)
    gram = get_kernel(name)(encoding.expand(coded), encoding.expand(coded), sigma)
    differ = (coded[:, None, 1:] != coded[None, :, 1:]).sum(axis=2)
    step = np.abs(coded[:, None, 0] - coded[None, :, 0])
    if name == "gaussian":
        product = np.exp(-(step**2) / (2 * sigma**2)) * np.exp(-differ / sigma**2)
    else:
        product = np.exp(-step / sigma) * np.exp(-2 * differ / sigma)
    assert_allclose(gram, product, rtol=1e-12)
    assert_array_equal(np.diag(gram), 1.0)
    assert np.linalg.eigvalsh(gram).min() > -1e-10
    assert_array_equal(encoding.collapse(encoding.expand(coded)), coded)


def test_standardising_leaves_indicators_alone_however_rare():
    table = make_table()
    table.loc[0, "sky"] = "hail"
    scaled = read(table, features=["pm25"], categorical="sky").standardized()
    assert_allclose(scaled.values[:, 0].std(), 1.0)
    assert set(np.unique(scaled.values[:, 1:])) == {0.0, 1.0}
    # A mismatch is as far as two draws of a standardised number are on average.
    gaps = scaled.values[:, None, :] - scaled.values[None, :200, :]
    squares = (gaps**2)[..., 0].mean(), (gaps[..., 1:] ** 2).sum(axis=2).max()
    assert squares == pytest.approx((2.0, 2.0), rel=0.05)


def test_ratio_of_categories_alone_is_the_ratio_of_shares():
    """With hardly any penalty the estimate is what counting gives, at every level."""
    table = make_table(n=300)
    samples = read(table, features=[], categorical="sky")
    model = gr.GRULSIF(
        alpha=0.1, bandwidth=1.0, graph_penalty=3e-7, ridge=3e-10, random_state=0
    ).fit(samples, GRAPH)
    shares = table.groupby(["site", "period"])["sky"].value_counts(normalize=True)
    points = pd.DataFrame({"sky": ["clear", "rain", "snow"]})
    for site in "abc":
        p, q = shares[site, "before"], shares[site, "after"]
        exact = (q / (0.9 * p + 0.1 * q))[points["sky"]].to_numpy()
        assert_allclose(model.predict(points, node=site), exact, rtol=1e-3)


def test_every_level_has_atoms():
    samples = read(make_table(), features=["pm25"], categorical="sky").standardized()
    model = gr.Pool(bandwidth=2.0, ridge=0.3).fit(samples)
    assert model.dictionary_[:, 1:].any(axis=0).all()


def test_finds_the_node_whose_categories_changed():
    samples = read(make_table(n=150), features=["pm25"], categorical="sky").standardized()
    model = gr.GRULSIF(prior_ratio=1, random_state=0).fit(samples, GRAPH)
    assert model.nodes_[int(model.divergence_.argmax())] == "b"
    at = pd.DataFrame({"sky": ["rain", "clear"], "pm25": 120.0})
    more, fewer = model.predict(at, node="b")
    assert more > 1.3
    assert fewer < 0.5
    alone = gr.Graph.empty(samples.nodes)
    test = gr.two_sample_test(samples, alone, n_permutations=200, random_state=0)
    assert test.rejected.tolist() == [False, True, False]


def test_saved_models_know_their_levels(tmp_path):
    samples = read(make_table(), features=["pm25"], categorical="sky").standardized()
    model = gr.RULSIF(bandwidth=1.5, ridge=0.1, random_state=0).fit(samples)
    model.save(tmp_path / "model")
    again = gr.load(tmp_path / "model")
    points = pd.DataFrame({"sky": ["rain", "snow"], "pm25": [100.0, 140.0]})
    assert_array_equal(again.predict(points), model.predict(points))
    assert again.encoding_.levels == {"sky": ("clear", "rain", "snow")}


@pytest.mark.filterwarnings("ignore:the feature .pm25. varies more")
def test_unknown_level_is_an_error_with_its_name():
    samples = read(make_table(), features=["pm25"], categorical="sky")
    model = gr.Pool(bandwidth=20.0, ridge=0.3).fit(samples)
    points = pd.DataFrame({"pm25": [120.0] * 3, "sky": ["fog", "rain", "fog"]})
    with pytest.raises(InputError, match=r"'sky' has unknown levels: 'fog' \(2 rows\)"):
        model.predict(points)


@pytest.mark.filterwarnings("ignore:the feature .pm25. varies more")
def test_other_samples_are_read_with_the_levels_of_the_model():
    table = make_table()
    samples = read(table, features=["pm25"], categorical="sky")
    model = gr.Pool(bandwidth=20.0, ridge=0.3).fit(samples)
    dry = table[table["sky"] != "snow"]
    with pytest.raises(InputError, match=r"categorical=model\.encoding_\.levels"):
        model.divergence(read(dry, features=["pm25"], categorical="sky"))
    others = read(dry, features=["pm25"], categorical=model.encoding_.levels)
    assert np.isfinite(model.divergence(others)).all()


def test_missing_categories_are_counted_by_column():
    table = make_table()
    table.loc[[0, 1], "sky"] = None
    table.loc[2, "sky"] = " "
    with pytest.raises(InputError, match="3 in column 'sky' of node 'a'"):
        read(table, features=["pm25"], categorical="sky")
    with pytest.warns(DataWarning, match="3 of 480 observations dropped"):
        samples = read(table, features=["pm25"], categorical="sky", missing="drop")
    assert samples.n_observations == 477


@pytest.mark.parametrize(
    ("categorical", "message"),
    [
        ("cloud", "no column 'cloud'"),
        (["site"], "'site' is given as categorical and as node, sample or time"),
        ({"sky": "rain"}, "the levels of 'sky' are 'rain'"),
        (3, "categorical=3 is not a list"),
        ({"sky": []}, "the known ones are none"),
        ({"sky": ["clear", "rain", "rain", "snow"]}, "same name: 'sky=rain'"),
    ],
)
def test_bad_categories(categorical, message):
    with pytest.raises(InputError, match=message):
        read(make_table(), features=["pm25"], categorical=categorical)


def test_too_many_levels_are_no_category():
    table = make_table().assign(ident=lambda t: [f"id{i}" for i in range(len(t))])
    with pytest.raises(InputError, match=rf"480 distinct values.*More than {MOST_LEVELS}"):
        read(table, features=["pm25"], categorical="ident")


def test_name_of_an_indicator_may_not_be_taken():
    table = make_table().assign(**{"sky=rain": 0.0})
    with pytest.raises(InputError, match="same name: 'sky=rain'"):
        read(table, features=["sky=rain"], categorical="sky")


def test_columns_of_categories_by_name_or_with_levels():
    assert asked_levels("sky") == {"sky": None}
    assert asked_levels(["sky", "day"]) == {"sky": None, "day": None}
    assert asked_levels({"day": [1, 2]}) == {"day": ("1", "2")}
