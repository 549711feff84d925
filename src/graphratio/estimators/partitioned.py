"""The fit on an engine: the steps of `dictionary_based`, on partitions."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from graphratio._utils.errors import InputError
from graphratio._utils.jobs import at_most
from graphratio._utils.parameters import as_generator, check_choice, check_integer, check_real
from graphratio._utils.progress import ProgressBar
from graphratio._utils.typing import FloatArray
from graphratio.data.alignment import check_borrowing, check_graph
from graphratio.data.graph import Graph
from graphratio.distributed import EngineSettings
from graphratio.distributed.atoms import coherence_dictionary
from graphratio.distributed.conjugate import solve_conjugate
from graphratio.distributed.protocol import ordered_sum
from graphratio.distributed.scores import fold_scores, rotate_features, share_folds
from graphratio.distributed.session import Session, open_session
from graphratio.features.dictionary import DictionaryRecipe, limited
from graphratio.features.kernels import Kernel, bandwidth_grid, fill_unknown, get_kernel
from graphratio.features.nystrom import NystromMap
from graphratio.features.unobserved import no_centre
from graphratio.moments.node_moments import has_both
from graphratio.moments.second_moments import Leading
from graphratio.selection.cross_validation import (
    FEATURE_FLOOR,
    FOLD_RANK_TOLERANCE,
    SOLVE_ITERATIONS,
    SOLVE_TOLERANCE,
    Selection,
    best_candidate,
    precision_for,
)
from graphratio.selection.grids import Candidates, candidates_of
from graphratio.solvers.path import SOLVERS

if TYPE_CHECKING:
    from graphratio.estimators.dictionary_based import NystromEstimator

Work = Callable[[Any, Session, EngineSettings], None]


def fit_partitioned(
    model: NystromEstimator, samples: Any, graph: Graph | None, work: Work | None = None
) -> None:
    """Fit on the engine of the model; `work` is done on its partitions, by default `_fit`."""
    settings = check_engine(model, samples, graph)
    aligned = None
    if settings.loader is None:
        aligned = model._prepare(samples, graph, borrow=model._couples)
        graph = model.graph_
    # Partitions already work side by side, and all tasks here would wait for the same engine.
    with at_most(1), open_session(settings, aligned, check_graph(graph)) as session:
        _keep(model, session)
        (work or _fit)(model, session, settings)


def check_engine(model: NystromEstimator, samples: Any, graph: Any) -> EngineSettings:
    """The engine of a model that can run on one, with samples, or a loader and a graph.

    For fits, bounds and tests; the words of its messages suit all of them.
    """
    settings = model.engine
    if not isinstance(settings, EngineSettings):
        raise InputError(
            f"engine={settings!r} is not an engine", "Pass gr.DaskEngine(...), or None"
        )
    model._check_parameters()
    DictionaryRecipe.of(model)
    check_choice(model.solver, "solver", SOLVERS)
    check_integer(model.max_iter, "max_iter", low=1)
    if model.solver in ("direct", "cbcgd"):
        raise InputError(
            f'solver="{model.solver}" does not run on an engine',
            'Use solver="auto", or work in one process, without an engine',
        )
    if model.selection_nodes not in (None, "all") or model.max_memory is not None:
        raise InputError(
            "selection_nodes and max_memory apply only in one process, not with an engine",
            "Leave them out; each worker has its own memory",
        )
    if isinstance(model.dictionary, str) and model.dictionary in ("uniform", "kmeans", "all"):
        raise InputError(
            f"dictionary={model.dictionary!r} needs all observations in one place",
            'With an engine use "coherence", "centres" or "quasi-random", or pass the points',
        )
    if settings.loader is None:
        if samples is None:
            raise InputError(
                "there are no samples, and the engine has no loader",
                "Pass samples, or loader= to the engine",
            )
        return settings
    if samples is not None:
        raise InputError(
            "samples were given, but the loader of the engine reads them",
            "Pass None in place of the samples, or leave out loader=",
        )
    if graph is None:
        raise InputError(
            "an engine with a loader needs a graph, which names the nodes, but none was given",
            "Pass the graph; gr.Graph.empty(labels) has no edges",
        )
    return settings


def _keep(model: NystromEstimator, session: Session) -> None:
    """Set the attributes that every estimator has."""
    model.alpha_ = check_real(model.alpha, "alpha", low=0, high=1, include_low=True)
    complete = has_both(session.sizes)
    check_borrowing(complete, session.graph)
    model.nodes_ = session.graph.nodes
    model.graph_ = model.graph_learned_ = session.graph
    model.n_rounds_ = 0
    model.n_features_in_ = len(session.feature_names)
    model.feature_names_in_ = np.array(session.feature_names, dtype=object)
    model.scaling_, model.encoding_ = session.scaling, None
    model.sizes_ = session.sizes
    model.backend_ = session.backend
    model.n_selected_on_ = session.graph.n_nodes
    model.divergence_name_ = model._loss.divergence_name
    model.intercept_ = None
    model.dependence_ = model.apart_ = ""


def _fit(model: NystromEstimator, session: Session, settings: EngineSettings) -> None:
    kernel = get_kernel(model.kernel)
    rng = as_generator(model.random_state)
    widths = prepare(model, session, kernel, rng)
    candidates = Candidates(widths, *model._pairs_for(session.graph))
    if len(candidates) == 1:
        model._take(Selection(*candidates.middle))
    else:
        _select(model, session, candidates, kernel, rng)
    solve_quadratic(model, session, settings, kernel)


def prepare(
    model: NystromEstimator, session: Session, kernel: Kernel, rng: np.random.Generator
) -> FloatArray:
    """Choose the atoms, and return the candidate bandwidths."""
    fleet = session.fleet
    sigma = fill_unknown(fleet.whole(fleet.ask("medians", kernel=kernel)))
    model.dictionary_ = chosen_atoms(DictionaryRecipe.of(model), session, kernel, sigma, rng)
    model.prior_ratio_ = float(model.prior_ratio)
    return candidates_of(model.bandwidth, "bandwidth", bandwidth_grid(sigma))


def chosen_atoms(
    recipe: DictionaryRecipe,
    session: Session,
    kernel: Kernel,
    sigma: FloatArray,
    rng: np.random.Generator,
) -> FloatArray:
    """Atoms of the samples on the partitions; `sigma` (n_nodes,) are the nodes' bandwidths."""
    n_features = len(session.feature_names)
    atoms = recipe.given(n_features)
    if atoms is None and recipe.strategy == "quasi-random":
        atoms = recipe.filled(session.feature_names, session.scaling, rng)
    elif atoms is None:
        size = int(session.sizes.sum())
        atoms = coherence_dictionary(session.fleet, recipe, kernel, sigma, n_features, size)
        if not len(atoms):
            raise no_centre(recipe.group_size)
    return limited(atoms, kernel, float(np.median(sigma)), recipe.most)


def _select(
    model: NystromEstimator,
    session: Session,
    candidates: Candidates,
    kernel: Kernel,
    rng: np.random.Generator,
) -> None:
    n_folds = check_integer(model.cv, "cv", low=2)
    share_folds(session.fleet, session.sizes, n_folds, rng)
    maps = [
        NystromMap.build(kernel, model.dictionary_, float(bandwidth), FOLD_RANK_TOLERANCE)
        for bandwidth in candidates.bandwidth
    ]
    steps = len(maps) * n_folds
    with ProgressBar(steps, "model selection", enabled=model.progress) as bar:
        scores = fold_scores(
            session.fleet,
            maps,
            session.sizes,
            session.system(*candidates.pairs),
            n_folds,
            alpha=model.alpha_,
            prior_ratio=model.prior_ratio_,
            floor=FEATURE_FLOOR,
            tol=SOLVE_TOLERANCE,
            max_iter=SOLVE_ITERATIONS,
            dtype=precision_for([session.graph]),
            advance=bar.advance,
        )
    model._take(best_candidate(candidates, scores, session.graph.n_nodes))


def solve_quadratic(
    model: NystromEstimator, session: Session, settings: EngineSettings, kernel: Kernel
) -> FloatArray:
    """Solve at the chosen hyperparameters; returns the mean second moment of the features."""
    fleet = session.fleet
    model.features_ = NystromMap.build(kernel, model.dictionary_, model.bandwidth_)
    rotation = rotate_features(
        fleet,
        model.features_,
        session.sizes,
        model.alpha_,
        model.prior_ratio_,
        floor=0.0,
        dtype=np.float64,
        folded=False,
    )
    system = session.system(np.array([model.graph_penalty_]), np.array([model.ridge_]))
    start = settings.start_for(len(model.nodes_), rotation.shape[1])
    tol = float(model.tol)
    progress = solve_conjugate(
        fleet,
        system,
        tol,
        model.max_iter,
        every=settings.checkpoint_every,
        start=None if start is None else fleet.parts(start),
    )
    # Back from the rotated features to those of the model.
    model.coef_ = fleet.solution()[:, 0] @ rotation.T
    model.solution_ = progress.solution(model.coef_, tol, **session.facts)
    metric = keep_directions(model, session, rotation)
    keep_divergences(model, session)
    return metric


def keep_divergences(model: NystromEstimator, session: Session) -> None:
    """Divergences and effect sizes of all nodes on their samples."""
    fleet = session.fleet
    parts = fleet.ask(
        "divergences",
        [{"theta": rows} for rows in fleet.parts(model.coef_)],
        features=model.features_,
        alpha=model.alpha_,
        prior_ratio=model.prior_ratio_,
    )
    model.divergence_ = fleet.whole(parts)
    model.effect_size_ = fleet.whole(fleet.ask("effect_sizes"))


def keep_directions(model: NystromEstimator, session: Session, rotation: FloatArray) -> FloatArray:
    """Keep how far the data of each node reach, see `borrowing`; returns the mean moment."""
    fleet, sizes = session.fleet, session.sizes
    second, features = ordered_sum(fleet.ask("feature_sums"))
    n_complete = max(int(has_both(sizes).sum()), 1)
    # The moments on the partitions are in rotated features, so the directions are too.
    mean = second / n_complete
    leading = Leading.of(mean, features @ rotation / sizes.sum())
    model.direction_weights_ = leading.weights
    model.direction_moments_ = fleet.whole(fleet.ask("direction_moments", leading=leading))
    model.__dict__.pop("_reach", None)
    return np.asarray(rotation @ mean @ rotation.T)
