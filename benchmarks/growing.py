"""How the time of a full selection grows: nodes, observations, features, dictionary."""

from __future__ import annotations

import numpy as np

import graphratio as gr
from graphratio.datasets import make_scenario
from measure import Piece, Work, growth

SCENARIOS = ("Ia", "Ib", "IIa", "IIb")
NODES = (100, 200, 400, 800, 1600)
OBSERVATIONS = (50, 100, 200, 400, 800, 1600)
FEATURES = (2, 4, 8, 16, 32)
ATOMS = (25, 50, 100, 200, 400)


def _fit(samples, graph, **options) -> Work:
    def fit() -> None:
        # The eigenvectors of the graph are part of the work.
        graph.__dict__.pop("spectrum", None)
        gr.GRULSIF(random_state=0, **options).fit(samples, graph)

    return fit


def _scenario(name: str, n_nodes: int = 100, n: int = 50, **options) -> Work:
    drawn = make_scenario(name, n_nodes=n_nodes, n=n, random_state=1)
    return _fit(drawn.samples, drawn.graph, **options)


def _normal(n_features: int) -> Work:
    """Nodes of a ring with normal samples whose first feature moves at some."""
    rng = np.random.default_rng(0)
    reference, target = rng.normal(size=(2, 100, 50, n_features))
    target[:25, :, 0] += 1.0
    graph = gr.Graph.from_edges([(v, (v + 1) % 100) for v in range(100)])
    samples = gr.NodeSamples.from_arrays(list(reference), list(target))
    return _fit(samples, graph, dictionary="uniform", max_atoms=100)


def piece() -> Piece:
    found = Piece(
        "Growth of a full selection",
        "Full selection and final fit, best of two; the exponent is that of a power law through "
        "all sizes.",
    )
    for name in SCENARIOS:
        found.growth.append(
            growth(f"N, nodes ({name}, n = 50)", NODES, [_scenario(name, size) for size in NODES])
        )
        work = [_scenario(name, n=size) for size in OBSERVATIONS]
        found.growth.append(growth(f"n, observations ({name}, N = 100)", OBSERVATIONS, work))
    work = [_normal(size) for size in FEATURES]
    found.growth.append(growth("d, features (normal, 100 atoms, N = 100)", FEATURES, work))
    work = [_scenario("IIb", n=100, dictionary="uniform", max_atoms=size) for size in ATOMS]
    found.growth.append(growth("dictionary size (IIb, n = 100, N = 100)", ATOMS, work))
    return found
