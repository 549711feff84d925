"""The page docs/reproducing-the-paper.md from the results of a study.

The prose of the page is written by hand. Every table in it stands between two comments and is
replaced by one made from the results.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from studies.paper.cells import SCENARIOS, cells_of
from studies.paper.methods import METHODS, PAPER_METHODS
from studies.paper.tables import (
    divergence_table,
    error_table,
    factor_table,
    main_part,
    order_table,
)
from studies.paper.theory_curve import graph_size_part, theory_curve

PAGE = Path(__file__).parents[2] / "docs" / "reproducing-the-paper.md"
ALPHA = 0.1


def study_facts(results: pd.DataFrame, profile: str) -> str:
    """How much was run."""
    key = ["scenario", "method", "n_nodes", "n", "alpha", "n_points", "seed"]
    runs = results.drop_duplicates(key)
    seeds = runs.groupby(key[:-1])["seed"].nunique()
    range_of_seeds = (
        f"{seeds.min()}" if seeds.min() == seeds.max() else f"{seeds.min()} to {seeds.max()}"
    )
    return (
        f"{len(runs):,} of the {len(cells_of(profile)):,} fits of the {profile} profile, "
        f"{range_of_seeds} seeds per setting, {len(results):,} rows (one per node and fit); "
        f"processor time of the fits alone {runs['seconds'].sum() / 3600:.1f} h. "
        f"Solvers that did not converge: {int((~runs['converged']).sum())}."
    )


def errors(results: pd.DataFrame) -> str:
    """Errors of all methods at alpha = 0.1, or 0 for the plain ratio."""
    table = error_table(_main(results))
    rows = []
    for scenario, n in _places(table):
        here = table[(table["scenario"] == scenario) & (table["n"] == n)].set_index("method")
        rows.append([scenario, n, *(_error_at(here, name) for name in METHODS)])
    return _markdown(["scenario", "n", *METHODS], rows)


def order(results: pd.DataFrame) -> str:
    """The methods from best to worst."""
    part = _main(results)
    table = order_table(part[part["method"] != "RULSIF-cautious"])
    rows = []
    for scenario, n in _places(table):
        here = table[(table["scenario"] == scenario) & (table["n"] == n)].sort_values("rank")
        text = here["method"].iloc[0]
        for row in here.iloc[1:].itertuples():
            sign = "<" if row.clear else "≈"
            factor = _interval(row.factor, row.factor_low, row.factor_high)
            text += f" {sign} {row.method} {factor}"
        rows.append([scenario, n, text])
    return _markdown(
        ["scenario", "n", "order, each with its error over that of the one before"], rows
    )


def against_pool(results: pd.DataFrame) -> str:
    """Errors of the classical methods as multiples of POOL's."""
    return _factors(results, ["RULSIF", "RULSIF-cautious", "ULSIF", "KLIEP"], "POOL")


def gain_of_the_graph(results: pd.DataFrame) -> str:
    """Error of POOL as a multiple of GRULSIF's, by n and alpha."""
    alphas = sorted(set(results["alpha"]) - {0.0})
    part = main_part(results)
    tables = {alpha: factor_table(part, "POOL", "GRULSIF", alpha) for alpha in alphas}
    rows = [
        [scenario, n, *(_factor_at(tables[alpha], scenario, n) for alpha in alphas)]
        for scenario, n in _places(tables[ALPHA])
    ]
    return _markdown(["scenario", "n", *(f"alpha {alpha:g}" for alpha in alphas)], rows)


def relative_errors(results: pd.DataFrame) -> str:
    """Errors as shares of the variance of the ratio, by alpha."""
    table = error_table(main_part(results))
    table = table[table["method"].isin(["GRULSIF", "POOL"])]
    columns = [(m, a) for m in ("GRULSIF", "POOL") for a in sorted(set(table["alpha"]))]
    values = table.set_index(["scenario", "n", "method", "alpha"])["relative_error"]
    rows = [
        [scenario, n, *(_number(values.get((scenario, n, *column), np.nan)) for column in columns)]
        for scenario, n in _places(table)
    ]
    return _markdown(["scenario", "n", *(f"{m}, {a:g}" for m, a in columns)], rows)


def unchanged(results: pd.DataFrame) -> str:
    """Mean estimated divergence where nothing changed, and so where it should be 0."""
    part = _main(results)
    table = divergence_table(part[~part["changed"]])
    weights = part[~part["changed"]].groupby(["scenario", "method", "n", "group"]).size()
    rows = []
    for scenario, n in _places(table):
        cells = []
        for method in PAPER_METHODS:
            here = table[
                (table["scenario"] == scenario) & (table["n"] == n) & (table["method"] == method)
            ]
            counts = [weights[(scenario, method, n, group)] for group in here["group"]]
            cells.append(f"{np.average(here['mean'], weights=counts):.3g}" if counts else "-")
        rows.append([scenario, n, *cells])
    return _markdown(["scenario", "n", *PAPER_METHODS], rows)


def changed(results: pd.DataFrame) -> str:
    """Median estimated divergence of the groups that changed, beside the true one."""
    part = _main(results)
    table = divergence_table(part[part["changed"] & (part["method"] != "RULSIF-cautious")])
    rows = []
    for scenario in SCENARIOS:
        for group in sorted(set(table.loc[table["scenario"] == scenario, "group"])):
            here = table[(table["scenario"] == scenario) & (table["group"] == group)]
            for n in sorted(set(here["n"])):
                at = here[here["n"] == n].set_index("method")
                rows.append(
                    [scenario, group, n]
                    + [
                        f"{at.loc[m, 'median']:.3g} ({at.loc[m, 'true']:.3g})"
                        if m in at.index
                        else "-"
                        for m in PAPER_METHODS
                    ]
                )
    return _markdown(["scenario", "group", "n", *PAPER_METHODS], rows)


def graph_sizes(results: pd.DataFrame) -> str:
    """Error and Theorem 1 by the number of nodes."""
    curve = theory_curve(results)
    table = error_table(graph_size_part(results))
    rows = []
    for scenario in SCENARIOS:
        for n_nodes in sorted(set(curve.loc[curve["scenario"] == scenario, "n_nodes"])):
            here = curve[(curve["scenario"] == scenario) & (curve["n_nodes"] == n_nodes)]
            at = table[(table["scenario"] == scenario) & (table["n_nodes"] == n_nodes)]
            at = at.set_index("method")
            shown = [_error_at(at, name) for name in ("GRULSIF", "POOL")]
            means = {
                c: np.exp(np.log(here[c]).mean()) for c in ("bound", "smoothness", "graph_factor")
            }
            rows.append(
                [scenario, n_nodes, *shown, f"{means['bound']:.3g}", f"{means['smoothness']:.3g}",
                 f"{means['graph_factor']:.3g}", f"{here['power'].iloc[0]:.2f}",
                 f"{here['decay'].iloc[0]:.2f}"]
            )  # fmt: skip
    header = ["scenario", "N", "GRULSIF", "POOL", "right-hand side", "Lambda", "graph factor"]
    return _markdown([*header, "power of N", "decay"], rows)


def times(results: pd.DataFrame) -> str:
    """Median processor time of a fit with its selection, in seconds."""
    table = error_table(_main(results))
    values = table.groupby(["n", "method"])["seconds"].median()
    rows = [
        [n, *(_number(values.get((n, method), np.nan)) for method in METHODS)]
        for n in sorted(set(table["n"]))
    ]
    return _markdown(["n", *METHODS], rows)


BLOCKS: dict[str, Callable[[pd.DataFrame], str]] = {
    "errors": errors,
    "order": order,
    "against-pool": against_pool,
    "graph": gain_of_the_graph,
    "relative-errors": relative_errors,
    "unchanged": unchanged,
    "changed": changed,
    "graph-sizes": graph_sizes,
    "times": times,
}


def filled(page: str, results: Any, profile: str) -> str:
    """Replace every table of the page."""
    for name, make in {"study": partial(study_facts, profile=profile), **BLOCKS}.items():
        pattern = rf"(<!-- {name} -->\n).*?(<!-- end -->)"
        if not re.search(pattern, page, re.DOTALL):
            raise ValueError(f"the page has no place for the table {name!r}")
        block = make(results)
        page = re.sub(
            pattern, lambda found, b=block: f"{found[1]}{b}\n{found[2]}", page, flags=re.DOTALL
        )
    return page


def _main(results: pd.DataFrame) -> pd.DataFrame:
    """The rows at the main graph size and alpha = 0.1, or 0 for the plain ratio."""
    part = main_part(results)
    return part[part["alpha"].isin([ALPHA, 0.0])]


def _places(table: pd.DataFrame) -> list[tuple[str, int]]:
    present = set(zip(table["scenario"], table["n"], strict=True))
    return [(s, n) for s in SCENARIOS for n in sorted(set(table["n"])) if (s, n) in present]


def _factors(results: pd.DataFrame, methods: list[str], baseline: str) -> str:
    part = _main(results)
    tables = {name: factor_table(part, name, baseline) for name in methods}
    places = _places(error_table(part))
    rows = [[s, n, *(_factor_at(tables[name], s, n) for name in methods)] for s, n in places]
    return _markdown(["scenario", "n", *methods], rows)


def _error_at(by_method: pd.DataFrame, method: str) -> str:
    if method not in by_method.index:
        return "-"
    row = by_method.loc[method]
    return _interval(row["error"], row["error_low"], row["error_high"])


def _factor_at(table: pd.DataFrame, scenario: str, n: int) -> str:
    if not len(table):
        return "-"
    here = table[(table["scenario"] == scenario) & (table["n"] == n)]
    if not len(here):
        return "-"
    row = here.iloc[0]
    return _interval(row["factor"], row["factor_low"], row["factor_high"])


def _interval(centre: float, low: float, high: float) -> str:
    if np.isnan(low):
        return _number(centre)
    return f"{_number(centre)} ({_number(low)}, {_number(high)})"


def _number(value: float) -> str:
    """Three digits; an exponent only for very large and very small ones."""
    if np.isnan(value):
        return "-"
    if 1e3 <= value < 1e5:
        return f"{value:.0f}"
    return f"{value:.3g}"


def _markdown(header: Iterable[str], rows: Iterable[Iterable[Any]]) -> str:
    header = list(header)
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    lines += ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows]
    return "\n".join(lines)


def write_page(results: pd.DataFrame, profile: str, path: Path) -> None:
    """Write the page with its tables replaced."""
    text = filled(PAGE.read_text(encoding="utf-8"), results, profile)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
