"""Equatorial sea surface temperature: a La Nina winter against an El Nino winter."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from graphratio._utils.arrays import read_only
from graphratio._utils.errors import InputError
from graphratio._utils.optional import import_optional
from graphratio._utils.typing import BoolArray, FloatArray
from graphratio.data.graph import Graph
from graphratio.data.samples import NodeSamples
from graphratio.datasets.network import NetworkData, package_file

_PACKAGE = "iris_sample_data"
_FILE = "sample_data/ostia_monthly.nc"
_PURPOSE = "load_sea_temperature"

# First and last month of the two samples.
_LA_NINA = ("2007-10", "2008-03")
_EL_NINO = ("2009-10", "2010-03")

# Cells of a block, in latitude and longitude.
_BLOCK = (3, 4)

_FREEZING_KELVIN = 273.15
_UNITS_OF_TIME = {"seconds": 1, "minutes": 60, "hours": 3600, "days": 86400}


def load_sea_temperature() -> NetworkData:
    """Load equatorial sea surface temperatures: La Nina 2007/08 against El Nino 2009/10.

    The data are monthly means on a grid between 5 S and 5 N, all around the globe. Nodes are the
    421 blocks of 3 x 4 cells without land, labelled by their centres, such as "1N 164W". Each
    sample of a block has 72 observations, 12 cells in 6 months. The reference is October 2007 to
    March 2008, the target October 2009 to March 2010. The feature `temperature` is in degrees
    Celsius. Blocks are joined to their neighbours in the north, south, east and west, also
    across the Greenwich meridian. The extra `examples` installs the data, iris-sample-data.

    Returns
    -------
    NetworkData

    Examples
    --------
    >>> import graphratio as gr
    >>> data = gr.datasets.load_sea_temperature()
    >>> data.samples
    NodeSamples(n_nodes=421, n_features=1, n_reference=72, n_target=72)
    >>> data.graph.nodes[:3]
    ('4S 1E', '4S 5E', '4S 8E')
    """
    path = package_file(_PACKAGE, _FILE, _PURPOSE)
    with import_optional("h5py", "examples", _PURPOSE).File(path, "r") as file:
        # Shape (months, latitudes, longitudes), NaN over land.
        kelvin = _decoded(file["surface_temperature"])
        months = _months(file["time"])
        latitude, longitude = (
            np.asarray(file[name][:], dtype=np.float64).reshape(-1, size).mean(axis=1)
            for name, size in zip(("latitude", "longitude"), _BLOCK, strict=True)
        )
    ocean = np.asarray(_blocks(np.isfinite(kelvin)).all(axis=(0, 3)))
    row, column = np.nonzero(ocean)
    celsius = _blocks(kelvin - _FREEZING_KELVIN)
    # Middle of each block, west negative.
    centres = np.column_stack([latitude[row], (longitude[column] + 180) % 360 - 180])
    nodes = [_label(*centre) for centre in centres]
    samples = []
    for first, last in (_LA_NINA, _EL_NINO):
        within = (months >= np.datetime64(first)) & (months <= np.datetime64(last))
        # (blocks, months, cells) as one list of values per block.
        values = np.moveaxis(celsius[within][:, row, column], 0, 1).reshape(len(nodes), -1, 1)
        samples.append(values)
    graph = Graph.from_adjacency(_lattice(ocean), nodes=nodes)
    return NetworkData(
        samples=NodeSamples.from_arrays(
            samples[0], samples[1], nodes=nodes, feature_names=["temperature"]
        ),
        graph=replace(graph, coordinates=read_only(centres), metric="haversine"),
        names={
            node: _label(north, east, digits=1)
            for node, (north, east) in zip(nodes, centres, strict=True)
        },
        left_out=(),
        reference_name="La Nina 2007/08",
        target_name="El Nino 2009/10",
        description=(
            "Monthly sea surface temperature in degrees Celsius within 5 degrees of the equator, "
            "La Nina (October 2007 to March 2008) against El Nino (October 2009 to March 2010), "
            "in 421 blocks of the ocean."
        ),
    )


def _decoded(variable: Any) -> FloatArray:
    """Values of a packed variable in its units, NaN where it has none."""
    stored = variable[:]
    missing = np.zeros(stored.shape, dtype=bool)
    for name in ("_FillValue", "missing_value"):
        if name in variable.attrs:
            missing |= stored == np.ravel(variable.attrs[name])[0]
    scale, offset = (
        float(np.ravel(variable.attrs.get(name, default))[0])
        for name, default in (("scale_factor", 1.0), ("add_offset", 0.0))
    )
    return np.where(missing, np.nan, stored.astype(np.float64) * scale + offset)


def _months(clock: Any) -> Any:
    """Decode times whose units are such as "hours since 1970-01-01 00:00:00"."""
    words = bytes(clock.attrs["units"]).decode().split()
    if len(words) < 3 or words[0] not in _UNITS_OF_TIME or words[1] != "since":
        raise InputError(
            f"the time units {' '.join(words)!r} of {_FILE} cannot be read",
            f"Install another version of {_PACKAGE.replace('_', '-')}",
        )
    epoch = np.datetime64("T".join(words[2:4]), "s")
    seconds = np.round(clock[:] * _UNITS_OF_TIME[words[0]]).astype("timedelta64[s]")
    return (epoch + seconds).astype("datetime64[M]")


def _blocks(values: np.ndarray) -> np.ndarray:
    """Cut a grid into blocks: (months, rows, columns) to (months, rows, columns, cells)."""
    months, n_latitudes, n_longitudes = values.shape
    high, wide = _BLOCK
    rows, columns = n_latitudes // high, n_longitudes // wide
    cut = values.reshape(months, rows, high, columns, wide)
    return np.moveaxis(cut, 2, 3).reshape(months, rows, columns, high * wide)


def _label(latitude: float, longitude: float, digits: int = 0) -> str:
    """Write a place as in "2N 170W"; rounded to degrees, labels of blocks still differ."""
    north, east = "N" if latitude >= 0 else "S", "E" if longitude >= 0 else "W"
    return f"{abs(latitude):.{digits}f}{north} {abs(longitude):.{digits}f}{east}"


def _lattice(present: BoolArray) -> np.ndarray:
    """Adjacency of the present cells of a lattice that wraps around in its second direction."""
    number = np.full(present.shape, -1)
    number[present] = np.arange(present.sum())
    adjacency = np.zeros((present.sum(), present.sum()))
    east = (number, np.roll(number, -1, axis=1))
    north = (number[:-1], number[1:])
    for first, second in (east, north):
        both = (first >= 0) & (second >= 0)
        adjacency[first[both], second[both]] = 1.0
        adjacency[second[both], first[both]] = 1.0
    return adjacency
