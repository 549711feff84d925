"""Time of `GRULSIF()` with everything selected, beside the products that cannot be avoided.

The work that no implementation of the paper's model selection can avoid is to form the Gram
matrices of the features: for each of five bandwidths, the second moments of all observations.
They are timed in the same run, on the same features, as plain matrix products.
"""

from __future__ import annotations

import numpy as np

import graphratio as gr
from graphratio.datasets import Scenario, make_scenario
from graphratio.features.kernels import bandwidth_grid, get_kernel, median_bandwidths
from graphratio.features.nystrom import NystromMap
from measure import Cost, Piece, Work, ratio_interval, side_by_side

CASES = [("Ia", 50), ("Ib", 50), ("IIa", 50), ("IIb", 50), ("IIb", 250)]


def fit(scenario: Scenario) -> gr.GRULSIF:
    """Full selection and final fit; the graph's eigenvectors are part of the work."""
    scenario.graph.__dict__.pop("spectrum", None)
    return gr.GRULSIF(random_state=0).fit(scenario.samples, scenario.graph)


def gram_products(scenario: Scenario, model: gr.GRULSIF) -> Work:
    """The second moments of all observations, for the five bandwidths."""
    kernel = get_kernel("gaussian")
    values = scenario.samples.values
    stacks = []
    for bandwidth in bandwidth_grid(median_bandwidths(scenario.samples, kernel)):
        features = NystromMap.build(kernel, model.dictionary_, float(bandwidth))
        psi = features(values).reshape(2 * scenario.graph.n_nodes, -1, features.n_components)
        stacks.append((np.ascontiguousarray(psi.transpose(0, 2, 1)), psi))
    return lambda: [left @ right for left, right in stacks]


def piece(rounds: int = 7) -> Piece:
    found = Piece(
        "Full selection beside the products that cannot be avoided",
        "500 fits on 100 nodes; `times` is the selection over the bare Gram products of the same "
        "features.",
    )
    for name, n in CASES:
        scenario = make_scenario(name, n=n, random_state=1)
        model = fit(scenario)
        bare = gram_products(scenario, model)
        seconds = side_by_side({"whole": lambda s=scenario: fit(s), "bare": bare}, rounds)
        found.costs.append(
            Cost(
                f"selection and fit, {name}, n = {n}",
                *(float(f(seconds["whole"])) for f in (np.median, np.min, np.max)),
                "s",
            )
        )
        ratio = ratio_interval(seconds["whole"], seconds["bare"])
        found.costs.append(Cost(f"over its Gram products, {name}, n = {n}", *ratio, "times"))
    return found
