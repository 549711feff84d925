"""How the model was fitted: hyperparameters in words, selection, solver and warnings."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from graphratio.data.samples import NodeSamples
from graphratio.estimators.base import NodeRatioEstimator
from graphratio.report.selection_charts import selection_charts
from graphratio.report.words import count, enumeration, number, sentence

FEW_AT_A_NODE = 20


@dataclass(frozen=True)
class Fitting:
    """Content of the section: settings as name, value and meaning, and how the data were prepared.

    `checks` are what deserves a look in the data themselves. `selection` has the charts of the
    cross-validation, none if nothing was selected.
    """

    settings: list[tuple[str, str, str]]
    selection: list[dict[str, Any]]
    warnings: list[str]
    data_notes: list[str]
    checks: list[str]


def describe_fit(
    model: NodeRatioEstimator, samples: NodeSamples, names: list[str], notes: Iterable[str]
) -> Fitting:
    """Describe the fit of a model to samples in its order; `notes` are about their preparation."""
    # Warnings count small samples, and transformed features have the same scale.
    known = ("few",) if model.scaling_ is None else ("few", "scales")
    return Fitting(
        settings=_settings(model),
        selection=selection_charts(model),
        warnings=_warnings(model, samples, names),
        data_notes=[sentence(note) for note in notes],
        checks=[sentence(text) for text in samples.check().sentences(without=known)],
    )


def _settings(model: NodeRatioEstimator) -> list[tuple[str, str, str]]:
    fitted: Any = model
    graph, solution = model.graph_, fitted.solution_
    chosen = "selected" if fitted.cv_results_ is not None else "given"
    rows = {"estimator": (type(model).__name__, _estimator_in_words(model))}
    if hasattr(model, "alpha"):
        rows["alpha"] = (
            number(fitted.alpha),
            (
                "this share of the target is mixed into the reference, so that no ratio exceeds "
                f"{number(1 / fitted.alpha)}"
                if fitted.alpha > 0
                else "the plain ratio, which has no upper bound"
            ),
        )
    rows["graph"] = (
        f"{count(graph.n_edges, 'edge')}, {count(graph.n_components, 'component')}",
        f"{number(float(graph.n_neighbors.mean()))} neighbours on average",
    )
    scaled = ", after the features were transformed" if model.scaling_ is not None else ""
    rows[f"bandwidth ({chosen})"] = (
        _spread_of(fitted.bandwidth_),
        f"width of the {fitted.kernel} kernels{scaled}: larger gives smoother ratios",
    )
    if hasattr(model, "graph_penalty_") and graph.n_edges:
        rows[f"graph penalty ({chosen})"] = (
            number(fitted.graph_penalty_),
            "larger makes the ratios of neighbours more alike",
        )
    rows[f"ridge ({chosen})"] = (
        _spread_of(fitted.ridge_),
        "larger makes every single ratio smoother and flatter",
    )
    if hasattr(model, "profiles_"):
        rows[f"profiles ({chosen})"] = (
            f"{fitted.n_profiles_:,}",
            "the ratio of every node is a mixture of these",
        )
    rows |= _dictionary(fitted)
    steps = f" after {count(solution.n_iter, 'iteration')}" if solution.n_iter else ""
    rows["solver"] = (
        "converged" if solution.converged else "did not converge",
        f"{solution.describe()}{steps}, relative residual {solution.residual:.1g}",
    )
    return [(name, *row) for name, row in rows.items()]


def _estimator_in_words(model: NodeRatioEstimator) -> str:
    if hasattr(model, "profiles_"):
        return "all nodes together, looking for kinds of change that they share" + (
            "; neighbours count where they change alike" if model.graph_.n_edges else ""
        )
    if model._couples:
        if model.graph_.n_edges:
            return "all nodes together; neighbours in the graph are assumed to change alike"
        return "there are no edges, so every node by itself"
    if hasattr(model, "graph_penalty_"):
        return "every node by itself, with common kernels and penalties"
    return "every node by itself; the graph is only drawn"


def _dictionary(fitted: Any) -> dict[str, tuple[str, str]]:
    if not hasattr(fitted, "dictionary_"):
        per_node = f"{_spread_of(fitted.n_centers_)} at each node"
        return {"centres": (per_node, "target observations whose kernels make up the ratio")}
    used = f"{fitted.n_components_:,} of their combinations are distinct enough to be used"
    return {
        "dictionary": (
            count(fitted.n_atoms_, "observation"),
            f"their kernels make up the ratios of all nodes; {used}",
        )
    }


def _spread_of(value: Any) -> str:
    """One number, or the median and range of those of all nodes."""
    values = np.atleast_1d(np.asarray(value, dtype=np.float64))
    low, middle, high = (number(float(np.quantile(values, q))) for q in (0, 0.5, 1))
    return low if low == high else f"{middle} ({low} to {high})"


def _warnings(model: NodeRatioEstimator, samples: NodeSamples, names: list[str]) -> list[str]:
    solution: Any = getattr(model, "solution_", None)
    found = [sentence(note) for note in model.notes_]
    if solution is not None and not solution.converged:
        found.insert(
            0,
            "The solver stopped before it reached its tolerance, so the estimates are less exact "
            "than requested: raise max_iter.",
        )
    smallest = np.minimum(samples.n_reference, samples.n_target)
    few = np.flatnonzero((smallest < FEW_AT_A_NODE) & samples.complete)
    if few.size:
        few = few[np.argsort(smallest[few], kind="stable")]
        listed = enumeration([f"{names[i]} ({smallest[i]})" for i in few])
        found.append(
            f"{count(int(few.size), 'node')} with fewer than {FEW_AT_A_NODE} observations in "
            f"one of the samples; read their results with care: {listed}."
        )
    return found
