"""Far nodes in boxes of their own."""

import numpy as np
import pytest

import graphratio as gr
from graphratio.plotting.insets import Box, place_insets
from graphratio.plotting.layout import node_layout


def cloud(n=40, seed=0):
    return np.random.default_rng(seed).uniform(0, 10, size=(n, 2))


def test_without_far_nodes_there_are_no_boxes():
    points = cloud()
    frame, insets = place_insets(points, 1.0)
    assert insets == ()
    assert frame.holds(points).all()
    assert frame.width < 1.2 * np.ptp(points[:, 0])


@pytest.mark.parametrize("aspect", [1.0, 1.6])
@pytest.mark.parametrize("place", [(60.0, 5.0), (-40.0, -50.0), (5.0, 90.0)])
def test_a_far_node_is_drawn_in_the_frame_where_no_other_is(place, aspect):
    near = cloud()
    points = np.vstack([near, [place]])
    frame, (inset,) = place_insets(points, aspect)
    assert inset.nodes.tolist() == [40]
    assert frame.width < 13
    corners = np.array([[inset.at.left, inset.at.bottom], [inset.at.right, inset.at.top]])
    assert frame.holds(corners).all()
    assert not inset.at.holds(near).any()
    assert inset.at.holds(inset.moved(points[40:])).all()
    # A circle stays a circle.
    assert inset.at.width / inset.of.width == pytest.approx(inset.at.height / inset.of.height)


def test_far_nodes_close_to_each_other_share_a_box():
    together = np.array([[80.0, 0.0], [81.0, 0.5]])
    apart = np.array([[0.0, 85.0]])
    _, insets = place_insets(np.vstack([cloud(), together, apart]), 1.0)
    assert sorted(inset.nodes.tolist() for inset in insets) == [[40, 41], [42]]


def test_a_tenth_of_the_nodes_may_be_far_and_no_more():
    far = np.column_stack([np.full(6, 90.0), np.arange(6.0)])
    assert place_insets(np.vstack([cloud(60), far]), 1.0)[1]
    assert not place_insets(np.vstack([cloud(40), far]), 1.0)[1]
    assert not place_insets(np.array([[0.0, 0.0], [1.0, 0.0], [50.0, 0.0]]), 1.0)[1]


def test_far_nodes_in_all_directions_stay_where_they_are():
    far = np.array([[90.0, 0.0], [0.0, 90.0], [-90.0, 0.0], [0.0, -90.0]])
    frame, insets = place_insets(np.vstack([cloud(60), far]), 1.0)
    assert insets == ()
    assert frame.holds(far).all()


def test_equal_places_and_lines_have_a_frame():
    for points in (np.zeros((9, 2)), np.column_stack([np.arange(9.0), np.zeros(9)])):
        frame, _ = place_insets(points, 1.0)
        assert frame.width > 0
        assert frame.height > 0
        assert frame.holds(points).all()


def test_edges_into_a_box_are_not_drawn():
    points = np.vstack([cloud(), [[0.0, 90.0], [0.5, 90.5]]])
    graph = gr.Graph.from_coordinates(points, k=3, metric="haversine")
    layout = node_layout(graph)
    joined = {tuple(edge) for edge in layout.edges.tolist()}
    assert (40, 41) in joined
    assert graph.adjacency.toarray()[40, :40].sum() > 0
    assert not any(a < 40 <= b for a, b in joined)
    assert "2 places far away are drawn in a box" in layout.caption


def test_coordinates_of_a_plane_stay_where_they_are():
    points = np.vstack([cloud(), [[90.0, 0.0]]])
    layout = node_layout(gr.Graph.from_coordinates(points, k=3))
    np.testing.assert_array_equal(layout.positions, points)
    assert layout.insets == ()


def test_boxes_know_what_they_hold():
    box = Box(0.0, 2.0, 0.0, 1.0)
    points = np.array([[1.0, 0.5], [2.0, 1.0], [2.1, 0.5], [1.0, -0.1]])
    assert box.holds(points).tolist() == [True, True, False, False]
