"""Fit a model to the data of a command, and describe the fit."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import numpy as np

from graphratio._utils.errors import InputError, enumeration, listing
from graphratio.cli.console import Screen
from graphratio.cli.inputs import Problem, split_names, warnings_as
from graphratio.cli.options import Estimator, FitOptions, PrepareOptions, Standardize
from graphratio.data.graph import Graph
from graphratio.data.node_scales import Apart, furthest, neighbours_apart
from graphratio.data.samples import NodeSamples
from graphratio.data.validation import nearest_name
from graphratio.estimators import GRULSIF, KLIEP, RULSIF, ULSIF, GraphRatio, Pool
from graphratio.estimators.base import NodeRatioEstimator

_ESTIMATORS: dict[str, type[NodeRatioEstimator]] = {
    kind.__name__.lower(): kind for kind in (GraphRatio, GRULSIF, Pool, RULSIF, ULSIF, KLIEP)
}


def fit_problem(
    problem: Problem, options: FitOptions, screen: Screen
) -> tuple[NodeRatioEstimator, list[str]]:
    """Fit the chosen estimator; return it (it predicts in original units) and notes on the fit."""
    # Nodes with one sample only need neighbours to borrow from.
    incomplete = np.flatnonzero(~problem.samples.complete)
    borrows = options.estimator in (Estimator.graphratio, Estimator.grulsif)
    if incomplete.size and not (borrows and problem.graph.n_edges):
        raise InputError(
            f"{incomplete.size} nodes have observations in one of the two samples only: "
            f"{listing([problem.samples.nodes[i] for i in incomplete])}",
            "Remove their rows, or let them borrow from neighbours: --coordinates or --edges, and "
            "--estimator graphratio",
        )
    samples, note = prepared(problem.samples, problem.graph, options)
    notes = [note]
    model = new_estimator(
        options.estimator,
        alpha=options.alpha,
        loss=options.loss.value,
        random_state=options.seed,
        progress=screen.live,
        # Shrink towards "no change": shrunk towards 0, strongly changed nodes can rank last.
        prior_ratio=1.0,
    )
    # A selection draws its own progress bar; other fits get a message.
    own_bar = "progress" in model.get_params()
    with warnings_as(notes), nullcontext() if own_bar else screen.working("Fitting"):
        model.fit(samples, problem.graph)
    return model, notes


def prepared(
    samples: NodeSamples, graph: Graph | None, options: PrepareOptions
) -> tuple[NodeSamples, str]:
    """Transform the features as requested, and describe the transform in a sentence.

    Without a graph nodes get scales of their own only on request.
    """
    features = list(samples.feature_names)
    logged = split_names(options.log, features)
    for name in logged:
        if name not in features:
            raise InputError(f"--log: there is no feature {name!r}", nearest_name(name, features))
    try:
        scaled = samples.standardized(log=logged, standardize=False)
    except InputError as error:
        raise InputError(f"--log: {error.problem}", "Leave it out of --log") from error
    log = f"the logarithm of {', '.join(logged)} was taken" if logged else ""
    asked = options.standardize
    if asked is Standardize.none:
        return scaled, log or "features were left on their own scales (--standardize none)"
    apart: list[Apart] = []
    if asked is Standardize.auto and graph is not None:
        apart = neighbours_apart(scaled, graph)
    told = _scales_in_words(samples, apart, asked, several=graph is None)
    # The level of one sample alone is not comparable with that of both.
    taken = [each.feature for each in apart] if samples.complete.all() else []
    by_node: bool | list[str] = asked is Standardize.node or taken
    scaled = samples.standardized(by_node=by_node, log=logged)
    return scaled, f"{log}; {told}" if log else told


def _scales_in_words(
    samples: NodeSamples, apart: list[Apart], asked: Standardize, *, several: bool
) -> str:
    """How the features were standardised, and why; `several` graphs are compared."""
    numeric = samples.n_features
    if samples.encoding is not None:
        numeric -= int(np.count_nonzero(samples.encoding.is_indicator))
    text = "features were standardised: mean 0 and standard deviation 1 over both samples of "
    option = " (--standardize all, node or none decides)"
    if asked is Standardize.node:
        return f"{text}each node by itself{option}"
    if several and asked is Standardize.auto:
        return f"{text}all nodes, or of each node where the comparison finds that better{option}"
    if not apart:
        return f"{text}all nodes{option}"
    why = furthest(apart).words
    if not samples.complete.all():
        return (
            f"{text}all nodes{option}; {why}, but some nodes lack one of the samples: without the "
            "rows of these the others get scales of their own"
        )
    if len(apart) == numeric:
        return f"{text}each node by itself, because {why}{option}"
    names = enumeration([each.feature for each in apart])
    return f"{text}all nodes, and {names} of each node by itself, because {why}{option}"


def new_estimator(name: Estimator, **wanted: Any) -> NodeRatioEstimator:
    """Make an estimator by its name on the command line, with the wanted parameters it has."""
    model = _ESTIMATORS[name]()
    known = model.get_params()
    model.set_params(**{key: value for key, value in wanted.items() if key in known})
    return model


def settings_of(model: NodeRatioEstimator) -> dict[str, Any]:
    """Hyperparameters of a fitted model; their median if every node has its own."""
    settings: dict[str, Any] = {}
    if hasattr(model, "alpha"):
        settings["alpha"] = model.alpha
    for name in ("bandwidth", "graph_penalty", "ridge"):
        value = getattr(model, f"{name}_", None)
        if value is not None:
            settings[name] = float(np.nanmedian(value))
    return settings
