"""Nodes that were observed at the same times and are correlated.

A fluctuation that neighbours share looks like a change that they confirm, if the direction is
learned at the times at which it is tested. So the two sources of evidence are kept apart.

Own evidence: what all nodes observed at one time is exchanged together. Each node is compared
with the largest evidence of all nodes that are no more extreme than itself (the step-down
procedure of Westfall and Young). If all nodes have all times, the family-wise error is exact under
any correlation. Nodes that lack many times are permuted by themselves, with their part of the
level.

The neighbours' prediction: the times are cut into five folds. The prediction for a fold is learned
at the other times, and the labels of the node are exchanged within folds. With a half instead of
folds this would be exact; with folds the test of one fold and the prediction for another share
times, and false alarms were measured to be at the level.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from graphratio._utils.progress import ProgressBar
from graphratio._utils.typing import BoolArray, FloatArray, IntArray
from graphratio.moments.node_moments import segment_indicator
from graphratio.testing.global_null import label_source
from graphratio.testing.node_null import KEPT_ROWS, Make, NodeTests, node_evidence, reached
from graphratio.testing.permutations import PermutationPlan, Units, chunks
from graphratio.testing.pooled import PooledFeatures
from graphratio.testing.predictions import predicted_ratios
from graphratio.testing.statistics import Columns, PermutedMeans

N_TIME_FOLDS = 5

# Share of the level for own evidence; the neighbours' prediction gets the rest.
OWN_SHARE_OF_LEVEL = 0.5

# Nodes with at least this share of all times are permuted together.
MOST_TIMES = 0.8


def seen_throughout(plan: PermutationPlan) -> BoolArray:
    """Nodes that were observed at most of the times of both samples, shape (n_nodes,).

    Only these are permuted together with the others: a node that lacks many times of one sample
    would be compared with data sets in which that sample is of another size.
    """
    n_nodes = plan.graph.n_nodes
    own, all_times = plan.units.by_sample(n_nodes), plan.units.by_sample(n_nodes, joint=True)
    most = (own >= MOST_TIMES * all_times).all(axis=1)
    return np.asarray(most & plan.pooled.complete)


def permute_times(
    plan: PermutationPlan, nodes: IntArray, bar: ProgressBar
) -> tuple[NodeTests, FloatArray]:
    """Own evidence of some nodes, all permuted together.

    Returns the tests of every node by itself, and p-values corrected over nodes, (n_nodes,).
    """
    make = node_evidence(plan, None)
    parts = [(batch, make(batch)) for batch in plan.batches(nodes, KEPT_ROWS)]
    n_sets = plan.n_permutations + 1
    outcome = NodeTests.blank(plan.graph.n_nodes, len(parts[0][1].ends))
    found = np.empty((plan.graph.n_nodes, n_sets), dtype=np.float32)
    extreme = np.ones_like(outcome.p_values)
    for batch, means in parts:
        evidence, scores = means.observed()
        outcome.evidence[batch], outcome.scores[:, batch] = evidence, scores.T
        found[batch, 0] = evidence
    draw = label_source(plan, joint=True)
    for part in chunks(plan.n_permutations, plan.units.node.size, least=16):
        size = part.stop - part.start
        labels = draw.next(size) > 0
        for batch, means in parts:
            own = plan.first_unit[batch][:, np.newaxis] + np.arange(plan.n_units[batch[0]])
            for begin in range(0, len(batch), step := means.step(size)):
                some = slice(begin, begin + step)
                chosen = np.ascontiguousarray(labels[:, own[some]].transpose(1, 0, 2))
                values, scores = means.part(some).evaluate(chosen)
                found[batch[some], part.start + 1 : part.stop + 1] = values
                observed = outcome.scores[:, batch[some]].T[:, np.newaxis]
                extreme[:, batch[some]] += reached(scores, observed).sum(axis=1).T
        bar.advance(size)
    outcome.p_value[nodes] = reached(found[nodes], found[nodes, :1]).mean(axis=1)
    outcome.p_values[:, nodes] = extreme[:, nodes] / n_sets
    outcome.n_permutations[nodes] = plan.n_permutations
    adjusted = np.ones(plan.graph.n_nodes)
    adjusted[nodes] = step_down(found[nodes])
    return outcome, adjusted


def step_down(evidence: FloatArray) -> FloatArray:
    """P-values corrected over nodes, shape (n_nodes,), from data sets, the observed one first.

    `evidence` has shape (n_nodes, n_sets). Each node is compared with the largest of the nodes
    whose observed evidence is at most its own, and no node has a smaller p-value than a node with
    more evidence.

    Examples
    --------
    >>> step_down(np.array([[3.0, 1.0, 2.0, 0.0], [1.0, 2.0, 0.0, 0.0]]))
    array([0.25, 0.5 ])
    """
    order = np.argsort(evidence[:, 0], kind="stable")
    largest = np.maximum.accumulate(evidence[order], axis=0)
    share = reached(largest, evidence[order, :1]).mean(axis=1)
    adjusted = np.empty(len(order))
    adjusted[order] = np.maximum.accumulate(share[::-1])[::-1]
    return adjusted


def cross_fitted(
    plan: PermutationPlan,
    features: PooledFeatures,
    penalties: tuple[float, float],
    groups: IntArray,
) -> tuple[PermutationPlan, Make]:
    """The neighbours' prediction, learned at other times than those at which it is tested.

    Returns a plan that exchanges units within folds of time, and a function that sets up its
    statistic.
    """
    fold_of_code = _time_folds(plan.units, plan.rng)
    stratified = _ordered_by_fold(plan, fold_of_code)
    nodes = np.flatnonzero(plan.pooled.complete)
    node = plan.pooled.samples.node_index
    row_fold = np.full(len(node), -1)
    moves = plan.units.of_row >= 0
    row_fold[moves] = fold_of_code[plan.units.code[plan.units.of_row[moves]]]
    table = np.tile(penalties, (int(groups.max()) + 1, 1))
    score = np.zeros(len(node))
    for fold in range(N_TIME_FOLDS):
        inside = row_fold == fold
        first = _first_moments(features, plan, ~inside)
        witness = predicted_ratios(nodes, features, plan, groups, table, first)
        score[inside] = np.einsum("im,im->i", features.psi[inside], witness[node[inside]])

    def make(batch: IntArray) -> PermutedMeans:
        column = Columns(score[plan.rows(batch)][:, :, np.newaxis], linear=True)
        return PermutedMeans.of(stratified, batch, [column], np.ones((len(batch), 1)))

    return stratified, make


def _time_folds(units: Units, rng: np.random.Generator) -> IntArray:
    """Fold of every code, random within each sample, shape (n_codes,)."""
    codes, first = np.unique(units.code, return_index=True)
    folds = np.full(int(codes.max()) + 1, -1)
    for side in (False, True):
        own = rng.permutation(codes[units.is_target[first] == side])
        folds[own] = np.arange(own.size) % N_TIME_FOLDS
    return folds


def _ordered_by_fold(plan: PermutationPlan, fold_of_code: IntArray) -> PermutationPlan:
    units = plan.units
    stratum = fold_of_code[units.code]
    order = np.lexsort((np.arange(stratum.size), stratum, units.node))
    place = np.empty_like(order)
    place[order] = np.arange(order.size)
    of_row = np.where(units.of_row >= 0, place[units.of_row], -1)
    moved = Units(of_row, units.node[order], units.is_target[order], units.code[order])
    return replace(plan, units=moved, stratum=stratum[order])


def _first_moments(
    features: PooledFeatures, plan: PermutationPlan, known: np.ndarray
) -> FloatArray:
    """First moments b of the rows that are known, shape (n_nodes, m)."""
    pooled = plan.pooled
    indicator = segment_indicator(pooled.sizes, features.psi.dtype)

    def mean(rows: np.ndarray) -> FloatArray:
        count = np.maximum(indicator @ rows.astype(float), 1)
        return np.asarray((indicator @ (features.psi * rows[:, np.newaxis])) / count[:, np.newaxis])

    b = mean(known & pooled.is_target) - mean(known)
    return np.asarray(b * pooled.complete[:, np.newaxis])
