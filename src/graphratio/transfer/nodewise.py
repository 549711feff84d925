"""One reweighted scikit-learn model per node, from labelled reference to unlabelled target."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from typing import Any, Self

import numpy as np
from scipy import stats
from sklearn import config_context
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone, is_classifier
from sklearn.dummy import DummyClassifier
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from graphratio._utils.arrays import read_only
from graphratio._utils.errors import DataWarning, InputError, listing, warn_caller
from graphratio._utils.jobs import n_tasks
from graphratio._utils.parameters import as_generator, check_integer, check_real
from graphratio._utils.typing import BoolArray, FloatArray, IntArray, Label, RandomState
from graphratio.data.alignment import as_samples
from graphratio.data.graph import Graph
from graphratio.data.samples import NodeSamples
from graphratio.estimators import GraphRatio
from graphratio.estimators.base import all_or_nothing
from graphratio.estimators.contract import check_estimator
from graphratio.estimators.new_points import scaled_points
from graphratio.estimators.weights import ImportanceWeights
from graphratio.evaluation.pieces import Answered, IndependentPieces
from graphratio.moments.folds import divide
from graphratio.transfer.labelled import (
    by_label,
    checked_labels,
    pointwise_errors,
    read_labels,
    unset_seeds,
    weight_parameter,
)
from graphratio.transfer.safeguards import NodePowers, lacks_overlap, overlap_of
from graphratio.transfer.shift import shift_p_values
from graphratio.transfer.transfer_evidence import TransferEvidence
from graphratio.transfer.trials import WeightTrial
from graphratio.transfer.weight_powers import blended, read_powers, sharpened


class NodewiseTransfer(Answered, MetaEstimatorMixin, BaseEstimator):
    """A model for the target of every node, trained on its labelled reference observations.

    Each node gets a copy of `predictor`, fitted to its reference observations with importance
    weights. Weights are used only where they should help:

    1. Evidence. A node is reweighted only if held-out observations show that its target differs
       from its reference: a test per node, with the false discovery rate over nodes at `level`.
    2. Own samples. The weights are the geometric mean of two: those of the joint ratio, which is
       closer to the true one, and those of a ratio of the node alone (RULSIF), which balance
       chance differences between the weighted and the target observations.
    3. Strength. The weights are raised to one power for all nodes: 1.25, since estimated ratios
       are shrunk, or 2 or 3 if that lowers the cross-validated error on target observations by
       two standard errors over nodes. The nearest labelled reference observation represents each
       target observation.
    4. Safeguards. A node keeps equal weights without overlap: if the nearest neighbours of its
       target observations are hardly ever reference observations, or more than half of the
       target is uncovered by the ratio. Elsewhere the power is lowered until the
       importance-weighted held-out loss over nodes is lower than without weights by half a
       standard error; if no power reaches this, no node is reweighted. Then a node keeps equal
       weights if its own held-out loss is larger by more than one standard error, and gets
       flatter ones if too few observations would be effective. `evidence_` has the reasons per
       node.

    Parameters
    ----------
    predictor : scikit-learn classifier or regressor
        Must take ``sample_weight``; pipelines hand it to their last step.
    estimator : estimator, optional
        Any estimator of the library; gives the weights. Default `GraphRatio()`.
    relative : bool, default True
        Weights by the relative ratio, or with False by the plain one.
    level : float in (0, 1], default 0.1
        Accepted share of unchanged nodes among the reweighted; 1 reweights every node.
    own_share : float in [0, 1], default 0.5
        Exponent of the weights of the node alone, if all nodes share features; 0 ignores them.
    sharpness : float >= 0, sequence of float, or None
        The power: a number is used as it is at every node with a shift, without safeguards; a
        sequence gives the candidates.
    cv : int, default 5
        Number of folds of the evidence and of the strength.
    n_jobs : int, optional
        Threads, as in scikit-learn: None stands for 1, -1 for all cores. The result is the same.
    random_state : int, numpy Generator, RandomState or None
        Seed of folds, default estimator, and predictors whose `random_state` is None.

    Attributes
    ----------
    models_ : dict of label to fitted model
        Nodes without reference observations share one model, fitted to those of all nodes.
        Where the reference has a single class, the model is a constant.
    weights_ : ImportanceWeights
        The weights that were used; all 1 at nodes that were not reweighted.
    is_reweighted_ : ndarray of bool, shape (n_nodes,)
        Nodes with fewer than 5 reference or target observations follow the majority of their
        neighbours, by edge weight.
    evidence_ : TransferEvidence
        Per node: overlap, effective sample size, held-out losses, power, verdict and reason;
        `describe(node)` makes a sentence of them.
    answerable, answerable_nodes, n_pieces, blocks
        As in `DivergenceBounds`: nodes with enough independent pieces to test for a shift.
    p_values_ : ndarray of shape (n_nodes,)
        P-values of the evidence, before the correction; NaN where there were too few
        observations, or too few blocks of observations that depend on each other.
    sharpness_, estimator_, n_features_in_ :
        The power after the safeguard over all nodes, the fitted estimator, the number of
        features.
    nodes_, classes_ :
        Labels in the order of the graph; classes of all nodes, for classifiers only.

    Examples
    --------
    >>> import numpy as np
    >>> import graphratio as gr
    >>> from sklearn.linear_model import LinearRegression
    >>> rng = np.random.default_rng(0)
    >>> reference = rng.normal(size=(6, 50, 1))
    >>> target = rng.normal(size=(6, 50, 1)) + np.array([0, 0, 0, 1, 1, 1])[:, None, None]
    >>> graph = gr.Graph.from_edges([(0, 1), (1, 2), (2, 3), (3, 4), (4, 5)])
    >>> model = gr.NodewiseTransfer(LinearRegression(), random_state=0)
    >>> model = model.fit((reference, target), reference[:, :, 0] ** 2, graph)
    >>> model.is_reweighted_
    array([False, False, False,  True,  True,  True])
    >>> model.predict([[1.0]], node=5).shape
    (1,)
    """

    def __init__(
        self,
        predictor: Any,
        estimator: Any = None,
        *,
        relative: bool = True,
        level: float = 0.1,
        own_share: float = 0.5,
        sharpness: Any = None,
        cv: int = 5,
        n_jobs: int | None = None,
        random_state: RandomState = None,
    ) -> None:
        self.predictor = predictor
        self.estimator = estimator
        self.relative = relative
        self.level = level
        self.own_share = own_share
        self.sharpness = sharpness
        self.cv = cv
        self.n_jobs = n_jobs
        self.random_state = random_state

    @all_or_nothing
    def fit(self, samples: Any, y: Any, graph: Graph | None = None) -> Self:
        """Fit the ratio, decide where and how strongly to reweight, and fit all models.

        Parameters
        ----------
        samples : NodeSamples, or a tuple (reference, target)
        y : dict of label to sequence, or a list or array with one sequence per node
            Labels of the reference observations, in their order.
        graph : Graph, optional
            None means no edges.
        """
        level = check_real(self.level, "level", low=0, high=1, include_high=True)
        share = check_real(
            self.own_share, "own_share", low=0, high=1, include_low=True, include_high=True
        )
        n_folds = check_integer(self.cv, "cv", low=2)
        powers = read_powers(self.sharpness)
        self._weight_name = weight_parameter(self.predictor)
        self._unset_seeds = [] if self.random_state is None else unset_seeds(self.predictor)
        rng = as_generator(self.random_state)
        read = as_samples(samples)
        self.estimator_ = clone(check_estimator(self.estimator, rng, GraphRatio)).fit(read, graph)
        self.nodes_, self.n_features_in_ = self.estimator_.nodes_, self.estimator_.n_features_in_
        aligned = self.estimator_._align(read)
        labels = read_labels(y, read, self.nodes_, numeric=not is_classifier(self.predictor))
        if is_classifier(self.predictor):
            self.classes_ = np.unique(np.concatenate(labels))
        # Only the final weights warn.
        weights = self.estimator_._weights(aligned, relative=self.relative)
        # No evidence is needed if every node is to be reweighted.
        self.p_values_ = (
            shift_p_values(self.estimator_, aligned, self.estimator_.graph_, n_folds, rng)
            if level < 1
            else np.full(len(self.nodes_), np.nan)
        )
        # A node without reference observations has nothing to weight.
        chosen = _reweighted(self.p_values_, level, self.estimator_.graph_) & (
            aligned.n_reference > 0
        )
        if hasattr(self.estimator_, "dictionary_"):
            weights = blended(weights, aligned, chosen, self.estimator_.alpha_, share, rng)
        # Checks of scikit-learn change the filters of warnings for a moment. These belong to the
        # process, so one of several threads may leave its own behind.
        filters = warnings.catch_warnings() if n_tasks() > 1 else nullcontext()
        # Thousands of small fits on observations and labels that were checked above.
        with config_context(assume_finite=True), filters:
            self._weigh(aligned, labels, weights, chosen, powers, n_folds, rng)
        self._fit_models(aligned, labels, rng)
        # A given power is used even without overlap, so the weights themselves may be doubtful.
        (self.weights_ if "given" in self.evidence_.reason else self.evidence_).warn()
        return self

    def predict(self, x: Any, node: Label | None = None) -> Any:
        """Predict the response of target observations.

        Parameters
        ----------
        x : array of shape (n_points, n_features) with `node`; else NodeSamples, dict or list
            Without `node` the observations of every node: a dict by label, a list in the order
            of `nodes_`, or NodeSamples; only the target samples of these are used.
        node : label, optional

        Returns
        -------
        ndarray of shape (n_points,), or a dict of them by label
        """
        return self._apply("predict", x, node)

    @available_if(lambda self: hasattr(self.predictor, "predict_proba"))  # type: ignore[untyped-decorator]
    def predict_proba(self, x: Any, node: Label | None = None) -> Any:
        """Probabilities of `classes_`, shape (n_points, n_classes); input as in `predict`."""
        return self._apply("predict_proba", x, node)

    def score(self, x: Any, y: Any, node: Label | None = None) -> float:
        """Score of the models, R^2 or accuracy; without `node` the mean over nodes.

        Parameters
        ----------
        x, y : labelled target observations, as in `predict` and in `fit`
        node : label, optional

        Returns
        -------
        float
        """
        check_is_fitted(self, "models_")
        if node is not None:
            points, model = scaled_points(self.estimator_, x, node), self._model(node)
            numeric = not is_classifier(self.predictor)
            return float(
                model.score(points, checked_labels(y, node, len(points), numeric, "target"))
            )
        parts, y = self._by_node(x), by_label(y, self.nodes_, "y")
        if lacking := [label for label in parts if label not in y]:
            raise InputError(
                f"y has no labels for the nodes {listing(lacking)}",
                "Give the labels of every node in x",
            )
        scores = [self.score(own, y[label], label) for label, own in parts.items() if len(own)]
        if not scores:
            raise InputError("x has no observations to score", "Pass target observations")
        return float(np.mean(scores))

    @property
    def pieces(self) -> IndependentPieces:  # type: ignore[override]
        """Independent pieces of the samples, by which nodes were tested."""
        check_is_fitted(self, "models_")
        return self.evidence_.pieces

    def to_frame(self) -> Any:
        """One row per node: sizes, evidence, verdict and reason; see `evidence_`."""
        check_is_fitted(self, "models_")
        return self.evidence_.to_frame()

    def _weigh(
        self,
        samples: NodeSamples,
        labels: list[np.ndarray],
        weights: ImportanceWeights,
        chosen: BoolArray,
        candidates: list[float],
        n_folds: int,
        rng: np.random.Generator,
    ) -> None:
        """Choose the power of every node, and set the weights and their evidence."""
        block = IndependentPieces.of(samples).of_row
        division = None if block is None else divide(samples, n_folds, rng)
        own = [weights[node] for node in self.nodes_]
        overlap, trials = np.full(len(own), np.nan), {}
        error = partial(pointwise_errors, self.predictor)
        for v in np.flatnonzero(chosen):
            own_rows = slice(samples.offsets[2 * v], samples.offsets[2 * v + 2])
            n, sizes, node = len(labels[v]), samples.sizes[v], self.nodes_[v]
            folds = np.concatenate([rng.permutation(np.arange(size) % n_folds) for size in sizes])
            piece: IntArray = np.arange(n)
            if division is not None and block is not None:
                folds, piece = division.folds[own_rows], block[own_rows][:n]
            data = samples.reference(node), labels[v], samples.target(node)
            overlap[v] = overlap_of(data[0], data[2], folds[n:], rng)
            if len(candidates) > 1 and n >= n_folds and len(np.unique(folds[:n])) > 1:
                trials[int(v)] = WeightTrial(self._fit_one, error, *data, own[v], folds[:n], piece)
        missing = lacks_overlap(overlap, weights.uncovered_share)
        found = (
            NodePowers.given(chosen, candidates[0])
            if len(candidates) == 1
            else NodePowers.safe(chosen, missing, own, trials, candidates)
        )
        used = [sharpened(w, power) for w, power in zip(own, found.power, strict=True)]
        self.sharpness_, self.is_reweighted_ = found.common, found.power > 0
        self.weights_ = replace(weights, sample_weight=read_only(np.concatenate(used)))
        self.evidence_ = TransferEvidence.of(
            samples, self.p_values_, weights, overlap, found, trials
        )

    def _fit_models(
        self, samples: NodeSamples, labels: list[np.ndarray], rng: np.random.Generator
    ) -> None:
        self.models_: dict[Label, Any] = {
            node: self._fit_one(samples.reference(node), y, self.weights_[node], rng=rng)
            for node, y in zip(self.nodes_, labels, strict=True)
            if len(y)
        }
        constant = [v for v, m in self.models_.items() if isinstance(m, DummyClassifier)]
        if constant and is_classifier(self.predictor):
            warn_caller(
                "these nodes have a single class in the reference, which is always predicted: "
                f"{listing(constant)}",
                DataWarning,
            )
        lacking = [node for node in self.nodes_ if node not in self.models_]
        if lacking:
            pooled = self._fit_one(
                samples.values[~samples.is_target],
                np.concatenate([y for y in labels if len(y)]),
                self.weights_.sample_weight,
                rng=rng,
            )
            self.models_ = {node: self.models_.get(node, pooled) for node in self.nodes_}

    def _fit_one(
        self, x: FloatArray, y: Any, weights: FloatArray, rng: np.random.Generator | None = None
    ) -> Any:
        if is_classifier(self.predictor) and len(np.unique(y)) == 1:
            return DummyClassifier(strategy="most_frequent").fit(x, y)
        model = clone(self.predictor)
        if self._unset_seeds:
            seed = 0 if rng is None else int(rng.integers(2**31))
            model.set_params(**dict.fromkeys(self._unset_seeds, seed))
        return model.fit(x, y, **{self._weight_name: weights})

    def _model(self, node: Label) -> Any:
        return self.models_[self.nodes_[self.estimator_.graph_.position(node)]]

    def _apply(self, method: str, x: Any, node: Label | None) -> Any:
        check_is_fitted(self, "models_")
        if node is None:
            return {own: self._apply(method, part, own) for own, part in self._by_node(x).items()}
        points, model = scaled_points(self.estimator_, x, node), self._model(node)
        if not len(points):
            return np.empty((0, len(self.classes_)) if method == "predict_proba" else (0,))
        found = getattr(model, method)(points)
        if method == "predict":
            return found
        # A node may not have seen every class.
        spread = np.zeros((len(points), len(self.classes_)))
        spread[:, np.searchsorted(self.classes_, model.classes_)] = found
        return spread

    def _by_node(self, x: Any) -> dict[Label, Any]:
        if isinstance(x, NodeSamples):
            own = x.aligned(self.nodes_)
            if own.scaling is not None:
                raise InputError(
                    "the samples are standardised already",
                    "Pass them as they were before standardized(); the model rescales them",
                )
            return {node: own.target(node) for node in self.nodes_}
        if isinstance(x, Mapping | list) or np.ndim(x) == 3:
            return by_label(x, self.nodes_, "x")
        raise InputError(
            "it is not clear which node's model is meant", "Pass node=, or a dict of arrays by node"
        )


def _reweighted(p_values: FloatArray, level: float, graph: Graph) -> BoolArray:
    """Nodes to reweight: by their evidence, or by their neighbours if they were not tested."""
    if level == 1:
        return np.ones(len(p_values), dtype=bool)
    tested = ~np.isnan(p_values)
    chosen = np.zeros(len(p_values), dtype=bool)
    if tested.any():
        chosen[tested] = stats.false_discovery_control(p_values[tested]) <= level
    for_it, asked = graph.adjacency @ chosen.astype(float), graph.adjacency @ tested.astype(float)
    chosen[~tested] = (for_it > 0.5 * asked)[~tested]
    return chosen
