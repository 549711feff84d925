"""Labelled arrays of xarray as samples."""

import numpy as np
import pandas as pd
import pytest

import graphratio as gr
from graphratio.exceptions import InputError

xr = pytest.importorskip("xarray")

DAYS = pd.date_range("2020-01-01", periods=60)
STATIONS = ["n", "s", "w"]


@pytest.fixture
def flow():
    values = np.random.default_rng(0).normal(size=(60, 3))
    return xr.DataArray(values, {"time": DAYS, "station": STATIONS}, name="flow")


def january(data, **options):
    return gr.NodeSamples.from_xarray(
        data, "station", slice(None, "2020-01-31"), slice("2020-02", None), **options
    )


class TestFromXarray:
    def test_an_array(self, flow):
        samples = january(flow, block=None)
        assert samples.nodes == tuple(STATIONS)
        assert samples.feature_names == ("flow",)
        np.testing.assert_array_equal(samples.reference("s")[:, 0], flow.values[:31, 1])
        np.testing.assert_array_equal(samples.target("s")[:, 0], flow.values[31:, 1])
        assert samples.time is not None

    def test_the_order_of_dimensions_does_not_matter(self, flow):
        turned = january(flow.T, block=None)
        np.testing.assert_array_equal(turned.values, january(flow, block=None).values)

    def test_a_data_set_has_features(self, flow):
        data = xr.Dataset({"flow": flow, "level": flow + 1})
        samples = january(data)
        assert samples.feature_names == ("flow", "level")
        stacked = xr.concat([flow, flow + 1], pd.Index(["flow", "level"], name="what"))
        again = january(stacked, feature="what")
        assert again.feature_names == ("flow", "level")
        np.testing.assert_array_equal(again.values, samples.values)

    def test_a_coordinate_divides(self, flow):
        marked = flow.assign_coords(season=("time", np.repeat(["wet", "dry", "other"], 20)))
        samples = gr.NodeSamples.from_xarray(marked, "station", "wet", "dry", sample="season")
        assert samples.sizes.tolist() == [[20, 20]] * 3
        np.testing.assert_array_equal(samples.target("w")[:, 0], flow.values[20:40, 2])

    def test_missing_values(self, flow):
        holes = flow.copy()
        holes[3, 1] = np.nan
        with pytest.raises(InputError, match="1 in column 'flow' of node 's'"):
            january(holes)
        with pytest.warns(gr.exceptions.DataWarning, match="1 of 180 observations dropped"):
            samples = january(holes, missing="drop")
        assert samples.sizes.tolist() == [[31, 29], [30, 29], [31, 29]]

    @pytest.mark.parametrize(
        ("call", "message"),
        [
            (lambda f: january(f.rename(station="site")), "no dimension 'station'"),
            (lambda f: january(f.values), "ndarray is not a labelled array"),
            (lambda f: january(f, sample="season"), "no coordinate 'season'"),
            (lambda f: january(f, time=None), "neither sample nor time"),
            (
                lambda f: gr.NodeSamples.from_xarray(f, "station", slice("2020-01"), "2020-01-05"),
                "3 observations in common",
            ),
            (
                lambda f: gr.NodeSamples.from_xarray(f, "station", "1999", slice(None)),
                "'1999' selects no times",
            ),
            (
                lambda f: gr.NodeSamples.from_xarray(
                    f, "station", ("2020-01-01", "2020-01-05"), slice(None)
                ),
                r"\('2020-01-01', '2020-01-05'\) selects no times",
            ),
            (
                lambda f: january(xr.Dataset({"a": f, "b": f.isel(time=0, drop=True)})),
                "different dimensions",
            ),
        ],
    )
    def test_refusals(self, flow, call, message):
        with pytest.raises(InputError, match=message):
            call(flow)
