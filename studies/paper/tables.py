"""Summaries of a study: errors with intervals over seeds, the order of methods, divergences.

Errors of a method differ between data sets by factors rather than by amounts, and some of the
classical methods have a rare very large one; so means, intervals and comparisons over seeds are
made on the logarithm of the error. Data sets are the same for all methods, and comparisons are
paired by them.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from studies.paper.methods import METHODS

RUN = ["scenario", "method", "n_nodes", "n", "alpha", "n_points"]
_CONFIDENCE = 0.95


def run_errors(results: pd.DataFrame) -> pd.DataFrame:
    """The paper's measure: the mean over nodes of the squared errors, one row per run.

    Columns: those of `RUN`, seed, error, and `relative_error`, the error divided by the variance
    of the true ratio: 0 for the true ratio, 1 for the estimate "no change". Use it to compare
    different alphas: there the errors themselves refer to different ratios.
    """
    rows = results.assign(variance=2.0 * results["divergence_true"])
    rows.loc[rows["divergence"] != "Pearson", "variance"] = np.nan
    grouped = rows.groupby([*RUN, "seed"], sort=False)
    runs = grouped.agg(
        error=("squared_error", "mean"),
        variance=("variance", lambda values: values.mean(skipna=False)),
        seconds=("seconds", "first"),
    ).reset_index()
    runs["relative_error"] = runs["error"] / runs["variance"].where(np.isfinite(runs["variance"]))
    return runs.drop(columns="variance")


def error_table(results: pd.DataFrame) -> pd.DataFrame:
    """Errors of every method over seeds.

    Returns
    -------
    frame
        One row per scenario, method, n_nodes, n and alpha: `n_seeds`; the geometric mean over
        seeds of the error (`error`), the ends of its 95 % interval (`error_low`, `error_high`),
        the smallest and the largest error of a seed; `mean_error`, the plain mean; the same
        columns for `relative_error`; `seconds`, the median processor time of a fit.
    """
    rows = []
    for key, part in run_errors(results).groupby(RUN, sort=False):
        row = dict(zip(RUN, key, strict=True)) | {"n_seeds": len(part)}
        for name in ("error", "relative_error"):
            row[name], row[f"{name}_low"], row[f"{name}_high"] = on_logs(part[name].to_numpy())
            row |= {f"{name}_smallest": part[name].min(), f"{name}_largest": part[name].max()}
        rows.append(row | {"mean_error": part["error"].mean(), "seconds": part["seconds"].median()})
    return pd.DataFrame(rows)


def order_table(results: pd.DataFrame, alpha: float = 0.1) -> pd.DataFrame:
    """The order of methods on every scenario and n, each compared with the next better one.

    Parameters
    ----------
    results : frame
    alpha : float
        The one of the methods that estimate a relative ratio; the others have alpha = 0.

    Returns
    -------
    frame
        One row per scenario, n_nodes, n and method, best first: `rank`, `error`, `factor`
        (geometric mean over seeds of this method's error over that of the method ranked before
        it) with its 95 % interval (`factor_low`, `factor_high`), and `clear`, whether the
        interval excludes 1.
    """
    runs = run_errors(results)
    runs = runs[runs["alpha"].isin([alpha, 0.0])]
    rows = []
    for (scenario, n_nodes, n), part in runs.groupby(["scenario", "n_nodes", "n"], sort=False):
        errors = part.pivot(index="seed", columns="method", values="error").dropna()
        if errors.shape[1] < 2 or errors.empty:
            continue
        means = np.exp(np.log(errors).mean()).sort_values(kind="stable")
        before = None
        for rank, method in enumerate(means.index, start=1):
            row = {
                "scenario": scenario,
                "n_nodes": n_nodes,
                "n": n,
                "rank": rank,
                "method": method,
                "error": means[method],
                "n_seeds": len(errors),
            }
            if before is not None:
                factors = (errors[method] / errors[before]).to_numpy()
                row["factor"], row["factor_low"], row["factor_high"] = on_logs(factors)
                row["clear"] = bool(row["factor_low"] > 1.0)
            rows.append(row)
            before = method
    return pd.DataFrame(rows)


def factor_table(
    results: pd.DataFrame, method: str, baseline: str, alpha: float = 0.1
) -> pd.DataFrame:
    """How many times larger the error of a method is than that of another, on the same data.

    Parameters
    ----------
    results : frame
    method, baseline : str
    alpha : float
        The one of each of the two methods that estimates a relative ratio.

    Returns
    -------
    frame
        One row per scenario, n_nodes and n: `n_seeds`, and the geometric mean over seeds of
        error of `method` / error of `baseline` with its 95 % interval (`factor`, `factor_low`,
        `factor_high`).
    """
    runs = run_errors(results)
    key = ["scenario", "n_nodes", "n", "seed"]
    errors = [
        runs[(runs["method"] == name) & runs["alpha"].isin([alpha, 0.0])].set_index(key)["error"]
        for name in (method, baseline)
    ]
    factors = (errors[0] / errors[1]).dropna()
    rows = []
    for place, part in factors.groupby(key[:-1], sort=False):
        centre, low, high = on_logs(part.to_numpy())
        row = dict(zip(key, place, strict=False)) | {"n_seeds": len(part)}
        rows.append(row | {"factor": centre, "factor_low": low, "factor_high": high})
    return pd.DataFrame(rows)


def divergence_table(results: pd.DataFrame) -> pd.DataFrame:
    """Estimated divergences of the groups of nodes, beside the true ones.

    Returns
    -------
    frame
        One row per scenario, method, n_nodes, n, alpha and group: the true divergence,
        and over the estimates at all nodes and seeds the mean, the median, the quartiles and the
        bias (mean minus truth).
    """
    rows = []
    for key, part in results.groupby([*RUN, "group"], sort=False):
        estimated = part["divergence_estimated"]
        true = float(part["divergence_true"].iloc[0])
        rows.append(
            dict(zip([*RUN, "group"], key, strict=True))
            | {
                "divergence": part["divergence"].iloc[0],
                "true": true,
                "mean": estimated.mean(),
                "median": estimated.median(),
                "lower_quartile": estimated.quantile(0.25),
                "upper_quartile": estimated.quantile(0.75),
                "bias": estimated.mean() - true,
            }
        )
    return pd.DataFrame(rows)


def write_tables(results: pd.DataFrame, folder: Path) -> None:
    """Write errors.csv, order.csv and divergences.csv into a folder, created if need be."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, table in (
        ("errors", error_table(results)),
        ("order", order_table(results)),
        ("divergences", divergence_table(results)),
    ):
        path = folder / f"{name}.csv"
        table.to_csv(path, index=False, float_format="%.6g", lineterminator="\n")


def main_part(results: pd.DataFrame) -> pd.DataFrame:
    """The rows at the main graph size, which has the most runs.

    The other sizes serve the comparison of graph sizes.
    """
    runs = results[[*RUN, "seed"]].drop_duplicates()
    return results[results["n_nodes"] == runs["n_nodes"].value_counts().idxmax()]


def in_order(methods: Any) -> list[str]:
    """Names of methods in the order of the paper."""
    present = set(methods)
    return [name for name in METHODS if name in present]


def on_logs(values: np.ndarray) -> tuple[float, float, float]:
    """Geometric mean and its interval; the interval is NaN for a single value."""
    logs = np.log(values)
    centre = float(logs.mean())
    if len(logs) < 2:
        return math.exp(centre), math.nan, math.nan
    reach = float(
        stats.t.ppf(0.5 + _CONFIDENCE / 2, len(logs) - 1) * logs.std(ddof=1) / math.sqrt(len(logs))
    )
    return math.exp(centre), math.exp(centre - reach), math.exp(centre + reach)
