"""GRULSIF: the paper's collaborative estimator."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from graphratio._utils.errors import Words
from graphratio._utils.parameters import as_generator, check_flag
from graphratio._utils.typing import FloatArray, RandomState
from graphratio.data.graph import Graph
from graphratio.data.samples import NodeSamples
from graphratio.estimators import persistence
from graphratio.estimators.base import all_or_nothing
from graphratio.estimators.dictionary_based import NystromEstimator
from graphratio.estimators.learned_graph import LearnedGraphMixin
from graphratio.estimators.log_ratio_fit import check_loss, fit_log_ratios, learn_graph
from graphratio.estimators.notes import data_notes
from graphratio.moments.losses import PEARSON
from graphratio.moments.objective import GraphObjective
from graphratio.selection.adaptive_search import choose_adaptive
from graphratio.selection.grids import penalty_pairs
from graphratio.selection.held_out_data import HeldOutData
from graphratio.solvers.learned_edges import Edges, adaptive_rounds
from graphratio.solvers.path import solve


class GRULSIF(LearnedGraphMixin, NystromEstimator):
    """Likelihood-ratios of all nodes of a graph, estimated together.

    The relative ratio = target / reference of node v,
    r_v = q_v / ((1 - alpha) p_v + alpha q_v), is approximated by a kernel expansion f_v. The
    f_v of all nodes minimise::

        sum_v loss_v(f_v) + graph_penalty / 4 * sum_uv W_uv ||f_u - f_v||^2
                          + ridge / 2 * sum_v ||f_v - prior_ratio||^2

    where loss_v(f) = 1/2 mean f^2 under the mixture (1 - alpha) reference + alpha target, minus
    the mean of f over the target, and ||.|| is the norm of the kernel space. The first penalty
    makes the ratios of neighbours similar. This is N times the paper's objective: its lambda is
    graph_penalty / N and its gamma is ridge / graph_penalty (`paper_penalties_`).

    Other losses estimate the logarithm of the ratio in the same way, with g_v = log f_v up to an
    intercept in place of f_v. Their ratios are positive, and shrink towards 1.

    Parameters
    ----------
    alpha : float in [0, 1), default 0.1
        Share of the target in the mixture. Ratios are bounded by 1 / alpha; at 0 they are plain.
    kernel : {"gaussian", "laplacian"}
    bandwidth, graph_penalty, ridge : float, sequence of float, or None
        A number is fixed, a sequence gives the candidates of a cross-validation, None stands for
        the candidates of the paper, in units that ignore the scale of the edge weights. With
        graph_penalty=0 every node is on its own.
    dictionary : {"coherence", "uniform", "kmeans", "all", "centres", "quasi-random"}, or array
        The points whose kernels span the ratios, given as an array of shape (n_atoms, n_features),
        or chosen: "coherence" is the paper's filter on observations, "uniform" draws observations,
        "kmeans" takes cluster centres, "all" every observation. "centres" are means of groups of
        observations, and "quasi-random" points fill `bounds`: no atom is then an observation.
    node_coherence, graph_coherence : float in (0, 1]
        Thresholds of the paper's filter, within a node and over the graph; "centres" use the
        second. With node_coherence=None it grows until there are enough atoms, as in `GraphRatio`.
    max_atoms : int, optional
        Largest size of the dictionary; atoms that the others represent best are left out first.
        Default 100 for "uniform", "kmeans" and "quasi-random", 500 for "centres".
    group_size : int, default 10
        Every one of the "centres" is the mean of at least this many observations of a node; at
        least 5.
    bounds : sequence of (low, high), one pair per feature, optional
        Where "quasi-random" points may be, in the units of the data before any scaling;
        after it in features that were standardised at each node by itself.
    prior_ratio : float, default 0
        Ratios are shrunk towards this constant: 0 as in the paper, 1 for "no change". Only with
        loss="pearson"; the others always shrink towards 1.
    cv : int, default 5
        Number of folds. With fewer than ten blocks of time every two successive blocks are held
        out together instead.
    solver : {"auto", "direct", "pcg", "cbcgd"}
        "direct" is a dense factorisation, "pcg" conjugate gradients, "cbcgd" the paper's cyclic
        block descent; "auto" chooses by size.
    tol : float, default 1e-6
        Largest relative residual of the linear system; "cbcgd" stops at this relative change. For
        other losses the norm of the gradient, relative to that at ratio 1.
    max_iter : int, default 1000
    selection_nodes : int, "all" or None
        Nodes for the cross-validation: all of them, or about that many in connected patches.
        None takes all up to 2,000 nodes and patches of 2,000 beyond.
    max_memory : int, str or None
        Most memory to use, in bytes or as text such as "4GiB"; None for no limit. The fit keeps
        less in memory if its predicted need exceeds the limit, or raises an error at once.
    n_jobs : int, optional
        Threads, as in scikit-learn: None stands for 1, -1 for all cores. The estimate is the same.
    random_state : int, numpy Generator, RandomState or None
        Seed of the folds, of random dictionaries and of patches.
    adaptive : bool, default False
        Learn the weights of the edges: fit, weaken edges whose ends behave differently, fit
        again. Held-out data choose how often, and how strongly unless `graph_penalty` is a
        number. Always solved by conjugate gradients.
    loss : {"pearson", "kl", "jensen-shannon"}
        The loss decides which divergence is estimated. "pearson" is the paper's. "kl",
        the likelihood of the target, gives the Kullback-Leibler divergence of the target from the
        mixture, at most log(1 / alpha). "jensen-shannon", the logistic loss of telling the samples
        apart with equal weights, gives a divergence of at most log 2 that does not depend on
        alpha. Both are solved by Newton's method with conjugate gradients inside, and neither
        runs on an engine.
    progress : bool, default False
        Show a progress bar during the selection.
    engine : DaskEngine, optional
        Where to run: partitions of the graph on Dask workers. Default this process.

    Attributes
    ----------
    coef_ : ndarray of shape (n_nodes, n_components_)
    divergence_ : ndarray of shape (n_nodes,)
        Divergence on the training samples; can be negative. Too high on average at unchanged nodes
        with few observations.
    divergence_name_ : str
        "Pearson", "KL" or "Jensen-Shannon".
    divergence_held_out_ : ndarray of shape (n_nodes,), or None if nothing was selected
        The same on held-out folds, with hyperparameters chosen on the other folds: not too high
        on average. NaN at nodes outside a selection on a part of the graph. For "kl", here and in
        the selection, ratios count as at most 1 / alpha, and at most 20 below alpha = 0.05.
    intercept_ : ndarray of shape (n_nodes,), or None with loss="pearson"
        Of the log-ratio. With "kl" it makes the mean ratio over the mixture 1, exactly at a node
        without neighbours, and on average over nodes that share it.
    dictionary_ : ndarray of shape (n_atoms_, n_features)
    bandwidth_, graph_penalty_, ridge_ : float
    paper_penalties_ : dict
        The penalties in the paper's letters: "lambda" and "gamma".
    cv_results_ : dict of str to ndarray, or None if nothing was selected
        One entry per candidate: bandwidth, graph_penalty, ridge, gamma (of the paper),
        mean_score, fold_0_score, ..., rank. Scores are minus the mean held-out loss, in single
        precision: exact enough to compare good candidates, not bad ones.
    solution_ : Solution
    graph_learned_ : Graph
        With the learned weights; the given graph if not adaptive.
    n_rounds_ : int
        How often edges were reweighted.
    nodes_ : tuple of labels
        In the order of the graph, as are all results.
    notes_ : list of str
        What deserves a look, in plain language.
    n_atoms_, n_components_, n_features_in_, graph_ :
        Sizes and the graph.

    Examples
    --------
    >>> import numpy as np
    >>> import graphratio as gr
    >>> rng = np.random.default_rng(0)
    >>> reference = rng.normal(size=(6, 40))
    >>> target = rng.normal(size=(6, 40)) + np.array([0, 0, 0, 1, 1, 1])[:, None]
    >>> graph = gr.Graph.from_edges([(0, 1), (1, 2), (2, 3), (3, 4), (4, 5)])
    >>> model = gr.GRULSIF(bandwidth=1.0, graph_penalty=0.06, ridge=0.006)
    >>> model = model.fit((list(reference), list(target)), graph)
    >>> bool(model.divergence_[3:].min() > model.divergence_[:3].max())
    True
    >>> model.predict([0.0, 2.0], node=5).round(1)
    array([0.8, 3.7])
    >>> model = model.set_params(loss="kl").fit((list(reference), list(target)), graph)
    >>> model.divergence_name_, model.divergence_[[0, 5]].round(1)
    ('KL', array([0.1, 0.6]))
    """

    _fitted_names = (*NystromEstimator._fitted_names, *persistence.LEARNED)
    # Set on copies that repeat a fit.
    _rounds: int | None = None

    def __init__(
        self,
        alpha: float = 0.1,
        *,
        kernel: str = "gaussian",
        bandwidth: float | Sequence[float] | None = None,
        graph_penalty: float | Sequence[float] | None = None,
        ridge: float | Sequence[float] | None = None,
        dictionary: Any = "coherence",
        node_coherence: float | None = 0.1,
        graph_coherence: float = 0.99,
        max_atoms: int | None = None,
        group_size: int = 10,
        bounds: Any = None,
        prior_ratio: float = 0.0,
        cv: int = 5,
        solver: str = "auto",
        tol: float = 1e-6,
        max_iter: int = 1000,
        selection_nodes: int | str | None = None,
        max_memory: int | str | None = None,
        n_jobs: int | None = None,
        random_state: RandomState = None,
        adaptive: bool = False,
        loss: str = "pearson",
        progress: bool = False,
        engine: Any = None,
    ) -> None:
        self.alpha = alpha
        self.kernel = kernel
        self.bandwidth = bandwidth
        self.graph_penalty = graph_penalty
        self.ridge = ridge
        self.dictionary = dictionary
        self.node_coherence = node_coherence
        self.graph_coherence = graph_coherence
        self.max_atoms = max_atoms
        self.group_size = group_size
        self.bounds = bounds
        self.prior_ratio = prior_ratio
        self.cv = cv
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.selection_nodes = selection_nodes
        self.max_memory = max_memory
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.adaptive = adaptive
        self.loss = loss
        self.progress = progress
        self.engine = engine

    def _notes(self) -> list[Words]:
        notes = [*data_notes(self.sizes_, self.graph_), *super()._notes()]
        if self.adaptive and self.engine is not None:
            notes.append("edge weights were not learned: that does not run on an engine yet")
        return notes

    @all_or_nothing
    def fit(self, samples: Any, graph: Graph | None = None) -> Self:
        """Estimate the ratios of all nodes together.

        Parameters
        ----------
        samples : NodeSamples, or a tuple (reference, target)
            None if the engine has a loader, which then reads the samples of all nodes.
        graph : Graph
            Aligned with the samples by label. None means no edges: every node on its own.
        """
        if self.engine is not None:
            if self._loss is not PEARSON:
                check_loss(self)
            # Imported on use, since only fits on an engine need it.
            from graphratio.estimators.partitioned import fit_partitioned

            fit_partitioned(self, samples, graph)
            return self
        adaptive = check_flag(self.adaptive, "adaptive")
        aligned = self._prepare(samples, graph, borrow=self._couples)
        self.graph_learned_, self.n_rounds_ = self.graph_, 0
        self._fit_on(aligned, self.graph_)
        if adaptive and self.graph_.n_edges and self.graph_penalty_:
            self._learn_edges(aligned)
        return self

    def _again(self, *, fixed: bool) -> Self:
        copy = super()._again(fixed=fixed)
        copy._rounds = self.n_rounds_ if fixed else None
        return copy

    def _choose_rounds(self, samples: NodeSamples) -> tuple[float, int]:
        """Choose the strength and the rounds of the adaptive penalty, unless they are fixed."""
        if self._rounds is not None:
            return self.graph_penalty_, self._rounds
        split = self._split(samples, self.graph_, as_generator(self.random_state))
        data = HeldOutData(split, Edges.of(self.graph_))
        choice = choose_adaptive(
            data.at(self.bandwidth_),
            self.graph_,
            self.graph_penalty_,
            self.ridge_,
            fixed=np.isscalar(self.graph_penalty),
        )
        return choice.graph_penalty, choice.n_rounds

    def _learn_edges(self, samples: NodeSamples) -> None:
        """Reweight the edges and fit again."""
        self.graph_penalty_, self.n_rounds_ = self._choose_rounds(samples)
        penalties = (self.graph_penalty_, self.ridge_)
        tol, max_iter = float(self.tol), self.max_iter
        if self._loss is not PEARSON:
            self.graph_learned_ = learn_graph(self, samples, self.n_rounds_)
            self._keep(samples, *fit_log_ratios(self, samples, self.graph_learned_, None))
            return
        psi, moments = self._moments(samples)
        path = adaptive_rounds(moments, self.graph_, *penalties, self.n_rounds_, tol, max_iter)
        self.graph_learned_ = path[-1].graph
        objective = GraphObjective.of(moments, self.graph_learned_.laplacian, *penalties)
        self.solution_ = solve(objective, self.graph_learned_, "pcg", tol, max_iter)
        self._keep(samples, psi, moments)

    @property
    def _is_quadratic(self) -> bool:
        return not self.adaptive and self._loss is PEARSON

    def _pairs_for(self, graph: Graph) -> tuple[FloatArray, FloatArray]:
        return penalty_pairs(graph, self.graph_penalty, self.ridge, scale=self._loss.curvature)
