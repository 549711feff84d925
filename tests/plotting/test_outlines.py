"""Land, borders and states behind a map."""

from importlib.resources import files

import numpy as np
import pytest
from matplotlib.path import Path

from graphratio.plotting.insets import Box, Inset
from graphratio.plotting.outlines import outlines_around, outlines_in


def on_land(outlines, place):
    return any(Path(ring).contains_point(place) for ring in outlines.land)


@pytest.mark.parametrize(
    ("place", "expected"),
    [
        ((-97.7, 30.3), True),  # Austin
        ((-157.9, 21.4), True),  # Oahu
        ((139.7, 35.7), True),  # Tokyo
        ((-30.0, 30.0), False),  # Atlantic
        ((-90.0, 26.0), False),  # Gulf of Mexico
    ],
)
def test_places_are_on_land_or_at_sea(place, expected):
    x, y = place
    shown = outlines_in(Box(x - 5, x + 5, y - 5, y + 5))
    assert on_land(shown, place) == expected


def test_rings_are_cut_to_the_box():
    box = Box(-10.0, 20.0, 38.0, 52.0)
    shown = outlines_in(box)
    points = np.concatenate(shown.land)
    assert box.grown(1e-9).holds(points).all()
    # Cutting moves no coast: a ring that is inside stays as it is.
    whole = outlines_in(Box(-180.0, 180.0, -90.0, 90.0))
    corsica = [ring for ring in whole.land if Path(ring).contains_point((9.1, 42.2))]
    assert any(np.array_equal(corsica[0], ring) for ring in shown.land)


def test_longitudes_may_go_around_the_globe():
    plain = outlines_in(Box(-125.0, -66.0, 24.0, 50.0))
    turned = outlines_in(Box(235.0, 294.0, 24.0, 50.0))
    assert len(plain.land) == len(turned.land)
    np.testing.assert_allclose(plain.land[0] + [360.0, 0.0], turned.land[0])


def test_states_are_drawn_on_maps_of_a_country_only():
    country, world = outlines_around(Box(-125.0, -66.0, 24.0, 50.0)), Box(-180, 180, -60, 80)

    # The western border of Kansas.
    def kansas(outlines):
        return any(
            np.min(np.abs(line - [-102.05, 38.5]).max(axis=1)) < 1.6 and np.ptp(line[:, 0]) < 0.2
            for line in outlines.borders
        )

    assert kansas(country)
    assert not kansas(outlines_around(world))


def test_an_inset_moves_what_it_shows():
    of, at = Box(-160.0, -154.0, 18.0, 23.0), Box(-125.0, -122.0, 24.0, 26.5)
    shown = outlines_in(of)
    moved = shown.moved(Inset(at, of, np.array([0])))
    assert len(moved.land) == len(shown.land) > 0
    assert at.grown(1e-9).holds(np.concatenate(moved.land)).all()


def test_the_file_is_small():
    assert files("graphratio.plotting").joinpath("outlines.json").stat().st_size < 200_000
