"""Two-sample tests at every node of a graph."""

from __future__ import annotations

from typing import Any

import numpy as np

from graphratio._utils.errors import DataWarning, warn_caller
from graphratio._utils.jobs import across_jobs
from graphratio._utils.parameters import as_generator, check_choice, check_real
from graphratio._utils.typing import RandomState
from graphratio.data.alignment import align, as_graph, as_samples, warn_of_scales
from graphratio.data.graph import Graph
from graphratio.data.node_correlation import (
    check_stamps,
    cross_correlation,
    mixed_times,
    with_positions_as_times,
)
from graphratio.estimators.contract import check_estimator
from graphratio.testing.multiplicity import check_correction
from graphratio.testing.result import TwoSampleResult
from graphratio.testing.ways_to_test import (
    TwoSampleQuestion,
    all_at_once,
    at_shared_times,
    by_halves,
    each_node,
)
from graphratio.testing.wording import correlation_note

NULLS = ("node", "global")


@across_jobs
def two_sample_test(
    samples: Any,
    graph: Graph | None = None,
    estimator: Any = None,
    *,
    null: str = "node",
    correction: str | None = "fwer",
    level: float = 0.05,
    n_permutations: int | None = None,
    n_jobs: int | None = None,
    random_state: RandomState = None,
    progress: bool = False,
) -> TwoSampleResult:
    """Test at every node of a graph whether its two samples have the same law.

    Neighbours help: their ratios tell the test of a node which kind of change to look for. The
    test is valid without their help. Under null="node" the labels reference and target of one
    node are permuted while everything else stays fixed, so the p-value of an unchanged node is
    valid whatever happened around it. The bandwidth, the dictionary, the penalties and the
    neighbours' prediction are learned from pooled samples without labels, or from other nodes.
    The node's own evidence counts as well, so that a node that changed alone is found.

    Parameters
    ----------
    samples : NodeSamples, a tuple (reference, target), or None
        None if the estimator has an engine with a loader, which then reads the samples. Their
        `blocks` are permuted as a whole, for observations that depend on each other. With
        null="global" and times, all observations of one time, or of one block of time, are
        permuted together, so the test stays valid for correlated nodes; every time must then
        belong to one of the two samples.
    graph : Graph, optional
        Aligned with the samples by label. Default: no edges.
    estimator : estimator, optional
        Any estimator of the library; only its parameters are used, not its fit. GRULSIF
        (not adaptive) and Pool give the kernel, bandwidth, penalties, dictionary and folds.
        Numbers are used as they are; None and sequences stand for candidates to select from.
        Their alpha and prior_ratio are not used: the test compares the target with the pooled
        sample and shrinks towards "no change". All other estimators are fitted on one half of
        every sample, and their ratio is tested on the other half, which costs power. Default: a
        Gaussian kernel of 0.7 times the median distance within nodes, and penalties selected by
        cross-validation. With an engine (`GraphRatio` and `GRULSIF`) and null="node" the test runs
        on it, and every partition tests its own nodes; the result has no `samples` if they come
        from a loader.
    null : {"node", "global"}
        "node": this node did not change, whatever the others did. "global": nothing changed
        anywhere; `global_p_value` is the answer. The columns for single nodes are then
        exploratory, since an unchanged node next to changed ones may stand out because of
        them. With "global" nothing is selected: the middle of each list of candidates is used.
    correction : {"fwer", "fdr", "fdr-by"} or None
        Correction over nodes. "fwer": Holm, for the probability of any false rejection; if nodes
        are correlated, a step-down comparison with the largest of all nodes. "fdr":
        Benjamini-Hochberg, for the expected share of false rejections, "fdr-by":
        Benjamini-Yekutieli, for the same under any dependence. With null="global" "fwer"
        compares each node with the largest of all nodes in every permutation.
    level : float, default 0.05
    n_permutations : int, optional
        Default: enough for the correction. With a correction and null="node" this is 10 N / level,
        at most 199,999; otherwise 10 / level; always at least 999. Too few for any rejection is an
        error.
    n_jobs : int, optional
        Threads, as in scikit-learn: None stands for 1, -1 for all cores. The result is the same.
    random_state : int, numpy Generator, RandomState or None
        Seed of the permutations, the groups and the folds.
    progress : bool, default False

    Returns
    -------
    TwoSampleResult

    Warns
    -----
    DataWarning
        With an estimator that is tested on halves, if the correlation between neighbouring nodes
        exceeds 0.2. Observations are matched by time, or by their position in the sample.

    Notes
    -----
    Five statistics are computed on the same permutations. Two use the neighbours: "predicted", the
    mean at the node of the ratio that they predict, and "coupled", the norm of the ratio fitted
    with their help. Three use the node alone: "energy", the energy distance, best for shifts;
    "shape", a whitened kernel distance, for changes of shape; "spread", the ranks of the distances
    from the centre. Each is brought to a standard normal scale by its moments under permutations.
    The smallest of their p-values on that scale, each divided by its share of the level, is the
    evidence. It is ranked among the evidence of the permuted data sets.

    The two statistics that use the neighbours get between 5 and 90 % of the level: more if the
    predicted ratio varies more over the pooled sample of the node, whatever its labels are. Of
    this share "predicted" gets 0.7 and "coupled" 0.3; of the rest "energy" gets 0.45, "shape" 0.35
    and "spread" 0.2.

    Where nodes are correlated at the same times, both sources are tested separately, at half the
    level each. Own evidence is permuted for all nodes together, and compared with the largest of
    the nodes (step-down), which is exact for the family-wise error if every node has every time.
    The neighbours' prediction is learned at four fifths of the times and tested at the rest, five
    times over; this is approximate.

    Nodes are checked after 1,999, 19,999, ... permutations. A node is finished as soon as 100 data
    sets are as extreme as the observed one; under a false discovery rate also if the nodes that are
    left support each other. By default there are at most 199,999 permutations. Where the
    correction needs smaller p-values, they come from an exponential tail fitted to the largest
    permuted values, and are marked as `extrapolated`.

    A node with few observations has few distinct splits, and its p-value cannot be smaller
    than one over their number. A note names the nodes that cannot be rejected for this reason.

    Examples
    --------
    >>> import numpy as np
    >>> import graphratio as gr
    >>> rng = np.random.default_rng(0)
    >>> reference = list(rng.normal(size=(8, 40)))
    >>> target = list(rng.normal(size=(8, 40)) + np.repeat([0.0, 1.5], 4)[:, None])
    >>> graph = gr.Graph.from_edges([(i, i + 1) for i in range(7)])
    >>> result = gr.two_sample_test((reference, target), graph, random_state=0)
    >>> result.to_frame()["rejected"].tolist()
    [False, False, False, False, True, True, True, True]
    >>> [(region.nodes, region.changed_at_least) for region in result.regions()]
    [((4, 5, 6, 7), 4)]
    """
    null = check_choice(null, "null", NULLS)
    correction = check_correction(correction)
    level = check_real(level, "level", low=0, high=1)
    rng = as_generator(random_state)
    if null == "node" and getattr(estimator, "engine", None) is not None:
        # Imported on use, since only tests on an engine need it.
        from graphratio.testing.partitioned_test import EngineQuestion, node_test_on_engine

        seeded = check_estimator(estimator, rng)
        question = EngineQuestion(seeded, correction, level, n_permutations, rng, progress)
        return node_test_on_engine(question, samples, graph)
    given = as_samples(samples)
    graph = as_graph(graph, given)
    aligned = align(given, graph).exchangeable()
    warn_of_scales(aligned)
    chosen = None if estimator is None else check_estimator(estimator, rng)
    # Pairs of nodes are always drawn in the same way, so that they do not depend on the seed.
    pairs = np.random.default_rng(0)
    correlation = cross_correlation(aligned, graph, pairs) if null == "node" else None
    halves = chosen is not None and not chosen._is_quadratic
    correlated = correlation is not None and correlation.is_high
    if correlated and halves:
        warn_caller(correlation_note(correlation)[0], DataWarning)
    timed = aligned.time is not None
    cross_fits = correlated and not halves
    used = aligned
    if cross_fits and not timed:
        used = with_positions_as_times(aligned).exchangeable()
    joint = null == "global" and timed
    if joint:
        check_stamps(used)
    shared = joint or (cross_fits and not mixed_times(used).size)
    if shared:
        used = used.jointly_blocked()
    # For the family-wise error own evidence of all nodes is permuted together.
    joint |= shared and correction == "fwer"
    test = TwoSampleQuestion(
        used, graph, chosen, null, correction, level, shared, joint, rng, progress
    )
    if halves:
        done = by_halves(test, n_permutations)
    elif null == "global":
        done = all_at_once(test, n_permutations)
    elif cross_fits:
        done = at_shared_times(test, n_permutations)
    else:
        done = each_node(test, n_permutations)
    return done.result(
        level,
        nodes=aligned.nodes,
        graph=graph,
        null=null,
        correction=correction,
        blocks=used.blocks,
        joint=joint,
        halves=halves,
        cross_fitted=cross_fits,
        timed=timed,
        samples=aligned,
        correlation=correlation,
        backend=aligned.backend,
    )
