"""Make src/graphratio/plotting/outlines.json: land, borders and states behind maps.

The data are those of Natural Earth (land and borders, public domain) and of the United States
Census Bureau (states, public domain), as they come in the npm packages world-atlas and us-atlas:

    npm pack world-atlas us-atlas
    for name in *.tgz; do mkdir "${name%.tgz}"; tar xzf "$name" -C "${name%.tgz}"; done
    python tools/outlines.py world-atlas-*/package us-atlas-*/package

Lines are simplified to a tenth of a degree, which is a few pixels on a map of a country. Numbers
are in units of `STEP` degrees; within a line each is the difference to the one before.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

TARGET = Path(__file__).parents[1] / "src" / "graphratio" / "plotting" / "outlines.json"
STEP = 0.02
# Largest distance between a line and its simplified form, in degrees.
TOLERANCE = {"land": 0.06, "borders": 0.06, "states": 0.04}
# Islands with a smaller box than this, in square degrees, are left out.
SMALLEST = 0.05
Line = np.ndarray


def arcs_of(topology: dict[str, Any]) -> list[Line]:
    """All arcs in degrees, shape (n_points, 2)."""
    scale, origin = (np.array(topology["transform"][key]) for key in ("scale", "translate"))
    return [np.cumsum(arc, axis=0) * scale + origin for arc in topology["arcs"]]


def rings(geometry: dict[str, Any]) -> Iterator[list[int]]:
    """The rings of a geometry, each as a list of arcs; negative ones run backwards."""
    if geometry["type"] == "GeometryCollection":
        for part in geometry["geometries"]:
            yield from rings(part)
    elif geometry["type"] == "Polygon":
        yield from geometry["arcs"]
    elif geometry["type"] == "MultiPolygon":
        for polygon in geometry["arcs"]:
            yield from polygon


def joined(arcs: list[Line], ring: list[int]) -> Line:
    """The points of a ring."""
    parts = [arcs[i] if i >= 0 else arcs[~i][::-1] for i in ring]
    return np.concatenate([parts[0], *(part[1:] for part in parts[1:])])


def shared(topology: dict[str, Any], name: str) -> list[Line]:
    """The arcs that two areas of an object share."""
    count: Counter[int] = Counter()
    for area in topology["objects"][name]["geometries"]:
        count.update({i if i >= 0 else ~i for ring in rings(area) for i in ring})
    arcs = arcs_of(topology)
    return [arcs[i] for i, times in sorted(count.items()) if times > 1]


def simplified(line: Line, tolerance: float) -> Line:
    """Leave out points as long as no one moves by more than `tolerance` (Douglas and Peucker)."""
    keep = np.zeros(len(line), dtype=bool)
    keep[[0, -1]] = True
    closed = bool((line[0] == line[-1]).all())
    stack = [(0, len(line) - 1)]
    if closed and len(line) > 3:
        far = int(np.argmax(np.linalg.norm(line - line[0], axis=1)))
        keep[far] = True
        stack = [(0, far), (far, len(line) - 1)]
    while stack:
        first, last = stack.pop()
        if last - first < 2:
            continue
        along = line[last] - line[first]
        inner = line[first + 1 : last] - line[first]
        length = float(np.linalg.norm(along))
        cross = along[0] * inner[:, 1] - along[1] * inner[:, 0]
        distance = np.abs(cross) / length if length > 0 else np.linalg.norm(inner, axis=1)
        worst = int(np.argmax(distance))
        if distance[worst] > tolerance:
            middle = first + 1 + worst
            keep[middle] = True
            stack += [(first, middle), (middle, last)]
    return line[keep]


def coded(line: Line) -> list[int]:
    """Longitude and latitude in turn, as differences in units of `STEP`."""
    points = np.rint(line / STEP).astype(int)
    moves = np.any(np.diff(points, axis=0) != 0, axis=1)
    points = points[np.concatenate([[True], moves])]
    return np.concatenate([points[:1], np.diff(points, axis=0)]).ravel().tolist()


def main(world: Path, states: Path) -> None:
    """Read the two packages and write the file."""
    land = json.loads((world / "land-50m.json").read_text())
    countries = json.loads((world / "countries-50m.json").read_text())
    of_states = json.loads((states / "states-10m.json").read_text())
    arcs = arcs_of(land)
    coast = [joined(arcs, ring) for ring in rings(land["objects"]["land"])]
    lines = {
        "land": [line for line in coast if np.ptp(line, axis=0).prod() >= SMALLEST],
        "borders": shared(countries, "countries"),
        "states": shared(of_states, "states"),
    }
    content: dict[str, Any] = {"step": STEP}
    for name, parts in lines.items():
        short = [coded(simplified(line, TOLERANCE[name])) for line in parts]
        least = 8 if name == "land" else 4
        content[name] = [line for line in short if len(line) >= least]
    TARGET.write_text(json.dumps(content, separators=(",", ":")) + "\n")
    print(f"{TARGET.name}: {TARGET.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
