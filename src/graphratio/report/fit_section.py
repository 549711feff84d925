"""How the model was fitted: hyperparameters in words, selection, solver and warnings."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from graphratio._utils.errors import Argument, Spelling, Words, enumeration, spelled
from graphratio.data.checks import checks_before
from graphratio.estimators.base import NodeRatioEstimator
from graphratio.estimators.notes import ceiling_notes, levels_note
from graphratio.report.graph_section import graph_notes
from graphratio.report.node_table import Subject
from graphratio.report.selection_charts import selection_charts
from graphratio.report.words import count, number, sentence

FEW_AT_A_NODE = 20

# What the atoms of a dictionary are.
_ATOMS = {
    "coherence": "observation",
    "uniform": "observation",
    "all": "observation",
    "kmeans": "cluster centre",
    "centres": "group centre",
    "quasi-random": "quasi-random point",
}


def describe_fit(
    subject: Subject,
    notes: Iterable[str],
    spelling: Spelling = str,
    noun: tuple[str, str] = ("node", "nodes"),
) -> dict[str, Any]:
    """Describe the fit; `notes` are about the preparation of the samples.

    `settings` are names, values and meanings. `warnings` are about the fit, `ceiling` is about the
    divergences in the table, and `checks` and `few` are about the data.
    """
    model, samples = subject.model, subject.samples
    # The page counts small samples itself, and transformed features have the same scale.
    known = ("few",) if model.scaling_ is None else ("few", "scales")
    near = [subject.names[i] for i in np.flatnonzero(model._near_ceiling)]
    ceiling = [spelled(note, spelling) for note in ceiling_notes(near, model.divergence_ceiling_)]
    checks = checks_before(samples, model.scaling_).sentences(spelling, without=known)
    return {
        "settings": _settings(model),
        "selection": selection_charts(model),
        "warnings": _warnings(model, spelling),
        "data_notes": [sentence(note) for note in notes],
        "ceiling": [sentence(note) for note in ceiling],
        "checks": [sentence(text) for text in checks],
        "few": _few(subject, noun),
    }


def _settings(model: Any) -> list[tuple[str, str, str]]:
    graph, solution = model.graph_, model.solution_
    chosen = "selected" if model.cv_results_ is not None else "given"
    rows = {"estimator": (type(model).__name__, _estimator_in_words(model))}
    if hasattr(model, "alpha"):
        meaning = "the plain ratio, which has no upper bound"
        if model.alpha > 0:
            meaning = (
                "this share of the target is mixed into the reference, so that no ratio exceeds "
                f"{number(1 / model.alpha)}"
            )
        rows["alpha"] = number(model.alpha), meaning
    rows["graph"] = (
        f"{count(graph.n_edges, 'edge')}, {count(graph.n_components, 'component')}",
        f"{number(float(graph.n_neighbors.mean()))} neighbours on average",
    )
    scaled = ", after the features were transformed" if model.scaling_ is not None else ""
    width = f"width of the {model.kernel} kernels{scaled}: larger gives smoother ratios"
    rows[f"bandwidth ({chosen})"] = _spread_of(model.bandwidth_), width
    if hasattr(model, "graph_penalty_") and graph.n_edges:
        rows[f"graph penalty ({chosen})"] = (
            number(model.graph_penalty_),
            "larger makes the ratios of neighbours more alike",
        )
    rows[f"ridge ({chosen})"] = (
        _spread_of(model.ridge_),
        "larger makes every single ratio smoother and flatter",
    )
    if getattr(model, "shared_", False):
        rows[f"profiles ({chosen})"] = (
            f"{model.n_profiles_:,}",
            "the ratio of every node is a mixture of these",
        )
    if hasattr(model, "dictionary_"):
        used = f"{model.n_components_:,} of their combinations are distinct enough to use"
        rows["dictionary"] = (
            count(model.n_atoms_, _ATOMS.get(str(model.dictionary), "point")),
            f"their kernels make up the ratios of all nodes; {used}",
        )
    else:
        rows["centres"] = (
            f"{_spread_of(model.n_centers_)} at each node",
            "target observations whose kernels make up the ratio",
        )
    steps = f" after {count(solution.n_iter, 'iteration')}" if solution.n_iter else ""
    rows["solver"] = (
        "converged" if solution.converged else "did not converge",
        f"{solution.describe()}{steps}, relative residual {solution.residual:.1g}",
    )
    return [(name, *row) for name, row in rows.items()]


def _estimator_in_words(model: NodeRatioEstimator) -> str:
    edges = model.graph_.n_edges > 0
    if hasattr(model, "profiles_"):
        together = "all nodes together, looking for kinds of change that they share"
        return f"{together}; neighbours count where they change alike" if edges else together
    if model._couples and not edges:
        return "every node by itself, because there are no edges"
    if model._couples:
        return "all nodes together; neighbours in the graph are assumed to change alike"
    if hasattr(model, "graph_penalty_"):
        return "every node by itself, with common kernels and penalties"
    return "every node by itself; the graph is only drawn"


def _spread_of(value: Any) -> str:
    """One number, or the median and range of those of all nodes."""
    values = np.atleast_1d(np.asarray(value, dtype=np.float64))
    low, middle, high = (number(float(np.quantile(values, q))) for q in (0, 0.5, 1))
    return low if low == high else f"{middle} ({low} to {high})"


def _warnings(model: Any, spelling: Spelling) -> list[str]:
    """Notes on the fit, without those on the graph and on the ceiling of the divergence."""
    found: list[Words] = []
    solution: Any = getattr(model, "solution_", None)
    if solution is not None and not solution.converged:
        found.append(
            (
                "The solver stopped before it reached its tolerance, so the estimates are less "
                "exact than requested: raise ",
                Argument("max_iter"),
            )
        )
    elsewhere = graph_notes(model)
    found += [note for note in model._notes() if note not in elsewhere]
    found += [model.dependence_] if model.dependence_ else []
    found += [levels_note(model.apart_)] if model.apart_ else []
    return [sentence(spelled(note, spelling)) for note in found]


def _few(subject: Subject, noun: tuple[str, str]) -> str:
    """A sentence about nodes with few observations; empty if there are none."""
    samples = subject.samples
    # An empty sample is not a small one; the page says so elsewhere.
    smallest = np.where(samples.sizes > 0, samples.sizes, FEW_AT_A_NODE).min(axis=1)
    few = np.flatnonzero(smallest < FEW_AT_A_NODE)
    if not few.size:
        return ""
    few = few[np.argsort(smallest[few], kind="stable")]
    listed = enumeration([f"{subject.names[i]} ({smallest[i]})" for i in few])
    every = few.size == samples.n_nodes > 1
    verb = "has" if few.size == 1 else "have"
    which = f"All {noun[1]}" if every else f"{few.size:,} {noun[few.size != 1]}"
    whose = f"results of single {noun[1]}" if every else "the results there"
    return (
        f"{which} {verb} fewer than {FEW_AT_A_NODE} observations in one of the samples; read "
        f"{whose} with care{'' if every else f': {listed}'}."
    )
