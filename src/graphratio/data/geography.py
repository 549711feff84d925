"""Places of nodes: weights of libpysal, frames of geopandas, and results as maps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from graphratio._utils.errors import InputError, listing
from graphratio._utils.optional import import_optional
from graphratio._utils.parameters import check_real
from graphratio._utils.typing import FloatArray, Label
from graphratio.data.validation import as_labels, nearest_name

# Longitudes and latitudes in degrees.
DEGREES = "EPSG:4326"


def libpysal_matrix(weights: Any) -> tuple[sparse.csr_array, list[Label]]:
    """Matrix and labels of spatial weights; libpysal stores a zero for an isolated node."""
    nodes = getattr(weights, "unique_ids", None)
    if nodes is None:
        nodes = getattr(weights, "id_order", None)
    if nodes is None or not hasattr(weights, "sparse"):
        raise InputError(
            f"{type(weights).__name__} has no spatial weights",
            "Pass a libpysal.graph.Graph or a libpysal.weights.W",
        )
    return sparse.csr_array(weights.sparse), list(nodes)


@dataclass(frozen=True, eq=False)
class Places:
    """Geometries of the nodes, and one point inside each.

    Attributes
    ----------
    points : ndarray of shape (n_nodes, 2)
        (latitude, longitude), or (x, y) without a coordinate reference system.
    """

    nodes: tuple[Label, ...]
    geometry: Any
    points: FloatArray
    metric: str

    @classmethod
    def of(cls, frame: Any, node: str | None) -> Places:
        """Check a GeoDataFrame."""
        geopandas = import_optional("geopandas", "geo", "reading a GeoDataFrame")
        if not isinstance(frame, geopandas.GeoDataFrame):
            raise InputError(
                f"{type(frame).__name__} is not a GeoDataFrame",
                "Pass a geopandas.GeoDataFrame, or use Graph.from_coordinates",
            )
        if not len(frame):
            raise InputError("the GeoDataFrame has no rows", "Pass one row per node")
        nodes = as_labels(_labels(frame, node))
        geometry = frame.geometry
        lost = np.flatnonzero(geometry.isna() | geometry.is_empty)
        if lost.size:
            raise InputError(
                f"nodes without a geometry: {listing([nodes[i] for i in lost])}",
                "Give them one, or leave these rows out",
            )
        # A representative point lies inside, even in a country of many islands.
        inside = geometry.representative_point()
        on_globe = geometry.crs is not None
        if on_globe:
            inside = inside.to_crs(DEGREES)
        points = np.column_stack([inside.x, inside.y])
        metric = "haversine" if on_globe else "euclidean"
        return cls(nodes, geometry, points[:, ::-1].copy() if on_globe else points, metric)

    def touching(self) -> sparse.csr_array:
        """Adjacency of the polygons that share a point of their borders."""
        library = import_optional("libpysal.graph", "geo", "a graph of neighbouring areas")
        if not self.geometry.geom_type.isin(["Polygon", "MultiPolygon"]).all():
            raise InputError(
                "contiguity needs polygons, but these geometries are "
                f"{listing(self.geometry.geom_type.unique())}",
                'Pass kind="knn" or kind="distance" for points',
            )
        plain = self.geometry.reset_index(drop=True)
        return _matrix(library.Graph.build_contiguity(plain, rook=False))

    def within(self, distance: float | None) -> sparse.csr_array:
        """Adjacency of the nodes whose centroids are at most `distance` apart."""
        library = import_optional("libpysal.graph", "geo", "a graph of near places")
        if distance is None:
            raise InputError('kind="distance" needs a distance', "Pass distance=...")
        limit = check_real(distance, "distance", low=0)
        if self.geometry.crs is not None and self.geometry.crs.is_geographic:
            raise InputError(
                "a distance in degrees differs from place to place",
                "Project the frame first: frame.to_crs(frame.estimate_utm_crs())",
            )
        plain = self.geometry.reset_index(drop=True).centroid
        return _matrix(library.Graph.build_distance_band(plain, threshold=limit, binary=True))


class Mappable:
    """A result with one row per node, which can be joined to places."""

    def to_frame(self) -> Any:
        """One row per node, with its label in the column "node"."""
        raise NotImplementedError

    def to_geodataframe(self, places: Any = None, node: str | None = None) -> Any:
        """The table of `to_frame` as a GeoDataFrame, to draw or to write as GeoJSON.

        Parameters
        ----------
        places : geopandas.GeoDataFrame or Graph, optional
            Geometries by label, or a graph with coordinates, whose nodes become points. Default:
            the graph of the fit.
        node : str, optional
            Column of the labels in `places`; default its index.

        Returns
        -------
        geopandas.GeoDataFrame, one row per node in the order of the graph
        """
        geopandas = import_optional("geopandas", "geo", "a GeoDataFrame")
        table = self.to_frame()
        table = table if hasattr(table, "iloc") else table.to_pandas()
        nodes = table["node"].tolist()
        if isinstance(places, geopandas.GeoDataFrame):
            known = Places.of(places, node)
            geometry, labels = known.geometry, known.nodes
        else:
            own = getattr(self, "graph_", getattr(self, "graph", None))
            geometry, labels = _points(geopandas, own if places is None else places)
        position = {label: i for i, label in enumerate(labels)}
        lost = [label for label in nodes if label not in position]
        if lost:
            raise InputError(
                f"{len(lost)} nodes have no place: {listing(lost)}",
                "Add them to places, with the same labels (node= names their column)",
            )
        rows = [position[label] for label in nodes]
        return geopandas.GeoDataFrame(table, geometry=geometry.iloc[rows].to_numpy()).set_crs(
            geometry.crs
        )


def _points(geopandas: Any, graph: Any) -> tuple[Any, tuple[Label, ...]]:
    """Points of the nodes of a graph, and their labels."""
    points = getattr(graph, "coordinates", None)
    if points is None or points.shape[1] != 2:
        raise InputError(
            "the graph has no coordinates in the plane or on the globe",
            "Pass places: a GeoDataFrame with the labels of the nodes in its index",
        )
    on_globe = graph.metric == "haversine"
    x, y = points.T[::-1] if on_globe else points.T
    return geopandas.GeoSeries.from_xy(x, y, crs=DEGREES if on_globe else None), graph.nodes


def _labels(frame: Any, node: str | None) -> Any:
    if node is None:
        return frame.index
    if node not in frame.columns:
        raise InputError(f"there is no column {node!r} (given as node)", nearest_name(node, frame))
    return frame[node]


def _matrix(graph: Any) -> sparse.csr_array:
    matrix = sparse.csr_array(graph.sparse, dtype=np.float64)
    matrix = sparse.csr_array(matrix.maximum(matrix.T))
    matrix.eliminate_zeros()
    matrix.sort_indices()
    return matrix
