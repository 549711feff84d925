"""`make bench`: measure everything, store it, and make the page of it.

    python benchmarks/run.py                     all pieces, some minutes
    python benchmarks/run.py --only growth       one piece; the others stay as they are stored
    python benchmarks/run.py --check             measure, and compare with what is stored

Run with one thread: OMP_NUM_THREADS=1.
"""

from __future__ import annotations

import argparse
import importlib
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_limits

from dask_engine import growth_table, overhead_table
from measure import machine
from page import page
from regression import regressions
from scale import tables

HERE = Path(__file__).parent
RESULTS = HERE / "results.json"
PAGE = HERE.parent / "docs" / "benchmarks.md"
# Pieces by the module that measures them, in the order of the page.
PIECES = {
    "selection": "selection",
    "by-hand": "by_hand",
    "cbcgd": "algorithms",
    "densratio": "classical",
    "ruptures": "single_series",
    "skchange": "change_panels",
    "growth": "growing",
    "tests": "node_tests",
    "jobs": "jobs",
    "costs": "costs",
}


def measured(names: list[str], keep: Callable[[str, Any], None]) -> dict[str, Any]:
    """Results of some pieces; each is also passed on at once, as all of them take a while."""
    pieces = {}
    with threadpool_limits(1):
        for name in names:
            began = time.perf_counter()
            pieces[name] = importlib.import_module(PIECES[name]).piece().to_json()
            print(f"{name}: measured in {time.perf_counter() - began:.0f} s", flush=True)
            keep(name, pieces[name])
        return {"machine": machine(), "pieces": pieces}


def elsewhere() -> str:
    """Stored tables of the benchmarks that take longer or need workers."""
    scale, dask = (json.loads((HERE / f"{name}.json").read_text()) for name in ("scale", "dask"))
    parts = {
        "Large graphs, stored by `make bench-scale`": tables(scale),
        "What the Dask engine adds, stored by `make bench-dask`": overhead_table(dask["overhead"]),
        "Growth of its iterations, stored by `make bench-dask`": growth_table(dask["growth"]),
    }
    return "\n".join(f"## {title}\n\n{table}" for title, table in parts.items())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", choices=PIECES, default=list(PIECES))
    parser.add_argument("--check", action="store_true", help="compare, and store nothing")
    options = parser.parse_args()
    stored = json.loads(RESULTS.read_text()) if RESULTS.exists() else {"pieces": {}}
    together = dict(stored["pieces"])

    def keep(name: str, piece: Any) -> None:
        together[name] = piece
        if not options.check:
            ordered = {known: together[known] for known in PIECES if known in together}
            RESULTS.write_text(
                json.dumps({"machine": machine(), "pieces": ordered}, indent=1) + "\n"
            )

    fresh = measured(options.only, keep)
    print(page(fresh))
    print(elsewhere())
    worse = regressions(stored, fresh)
    for line in worse:
        print(f"worse than stored: {line}")
    if options.check:
        return int(bool(worse))
    PAGE.write_text(page(json.loads(RESULTS.read_text())))
    print(f"stored in {RESULTS.name}; the page: docs/{PAGE.name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
