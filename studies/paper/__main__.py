"""Repeat the evaluation of the paper: compute, summarise, draw, write the page.

run       compute the missing cells of the study; stopped, it goes on where it was
tables    write errors.csv, order.csv and divergences.csv
figures   draw the figures as SVG and PNG
page      replace the tables of docs/reproducing-the-paper.md

The standard profile writes to studies/paper and docs; any other profile writes its tables,
figures and page into the folder of the results, below its name.
"""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from graphratio.exceptions import GraphRatioError
from studies.paper.cells import PROFILES, cells_of
from studies.paper.figures import draw_figures
from studies.paper.page import PAGE, write_page
from studies.paper.runner import RunReport, run
from studies.paper.store import load_results
from studies.paper.tables import write_tables

STEPS = ("run", "tables", "figures", "page")
# How many traces of failed cells are shown.
_SHOWN = 3


def main(arguments: Sequence[str] | None = None) -> None:
    """Do the steps in their order."""
    parser = argparse.ArgumentParser(
        "python -m studies.paper",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("steps", nargs="*", choices=("all", *STEPS), default="all")
    parser.add_argument("--profile", choices=list(PROFILES), default="standard")
    parser.add_argument("--folder", type=Path, default=Path("graphratio-study"))
    parser.add_argument("--workers", type=int, default=2, help="processes (default: 2)")
    options = parser.parse_args(arguments)
    steps = STEPS if "all" in options.steps else options.steps
    try:
        _do(steps, options.profile, options.folder, options.workers)
    except GraphRatioError as error:
        sys.exit(f"error: {error}")
    except KeyboardInterrupt:
        print(f"stopped; the same command goes on with {options.folder}", file=sys.stderr)
        sys.exit(130)


def _do(steps: Sequence[str], profile: str, folder: Path, workers: int) -> None:
    cells = cells_of(profile)
    if "run" in steps:
        _tell(run(folder, cells, workers))
    if set(steps) == {"run"}:
        return
    results = load_results(folder, cells)
    tables = docs = folder / profile
    if profile == "standard":
        tables, docs = Path(__file__).parent, PAGE.parent
    if "tables" in steps:
        write_tables(results, tables)
        print(f"tables: {tables}")
    if "figures" in steps:
        draw_figures(results, docs / PAGE.stem)
        print(f"figures: {docs / PAGE.stem}")
    if "page" in steps:
        write_page(results, profile, docs / PAGE.name)
        print(f"page: {docs / PAGE.name}")


def _tell(report: RunReport) -> None:
    print(f"{report.n_computed} cells computed, {report.n_kept} kept from before")
    for key, trace in list(report.failures.items())[:_SHOWN]:
        print(f"\n{key}\n{trace}", file=sys.stderr)
    if report.failures:
        sys.exit(f"error: {len(report.failures)} cells failed; the same command tries them again")


if __name__ == "__main__":
    # As Control-C does, `kill` ends the workers, too.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    main()
