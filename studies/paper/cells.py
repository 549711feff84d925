"""The content of the study: cells, grids of cells, and profiles of different length."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product

import numpy as np

from studies.paper.methods import PAPER_METHODS, PLAIN

SCENARIOS = ("Ia", "Ib", "IIa", "IIb")


@dataclass(frozen=True)
class Cell:
    """One fit: a method on one data set, and how it is judged.

    Attributes
    ----------
    scenario : {"Ia", "Ib", "IIa", "IIb"}
    method : str
        A key of `METHODS`.
    n : int
        Observations in each sample of each node.
    n_nodes : int
    alpha : float in [0, 1)
        0 for the methods that estimate the plain ratio.
    seed : int
        Seed of the data set, which is the same for all methods and alphas.
    n_points : int
        Fresh points per node on which the error is measured; 10,000 in the paper.

    Examples
    --------
    >>> Cell("Ia", "POOL", n=50, n_nodes=100, alpha=0.1, seed=3).key
    'Ia_POOL_n50_N100_alpha0.1_seed3_points10000'
    """

    scenario: str
    method: str
    n: int
    n_nodes: int
    alpha: float
    seed: int
    n_points: int = 10_000

    @property
    def key(self) -> str:
        """A file name that no other cell has."""
        return (
            f"{self.scenario}_{self.method}_n{self.n}_N{self.n_nodes}"
            f"_alpha{self.alpha:g}_seed{self.seed}_points{self.n_points}"
        )


@dataclass(frozen=True)
class Grid:
    """All combinations of some values, with the seeds 0 .. seeds - 1.

    Methods that estimate the plain ratio run once per data set, with alpha 0.

    Examples
    --------
    >>> grid = Grid(scenarios=("Ia",), methods=("POOL", "KLIEP"), alphas=(0.1, 0.5), seeds=2)
    >>> [(cell.method, cell.alpha, cell.seed) for cell in grid]
    [('POOL', 0.1, 0), ('POOL', 0.1, 1), ('POOL', 0.5, 0), ('POOL', 0.5, 1),
     ('KLIEP', 0.0, 0), ('KLIEP', 0.0, 1)]
    """

    scenarios: tuple[str, ...] = SCENARIOS
    methods: tuple[str, ...] = PAPER_METHODS
    sizes: tuple[int, ...] = (50,)
    graph_sizes: tuple[int, ...] = (100,)
    alphas: tuple[float, ...] = (0.1,)
    seeds: int = 10
    n_points: int = 10_000

    def __iter__(self) -> Iterator[Cell]:
        for scenario, method, n, n_nodes in product(
            self.scenarios, self.methods, self.sizes, self.graph_sizes
        ):
            alphas = (0.0,) if method in PLAIN else self.alphas
            for alpha, seed in product(alphas, range(self.seeds)):
                yield Cell(scenario, method, n, n_nodes, alpha, seed, self.n_points)


_SIZES = (50, 100, 250, 500)
_ALPHAS = (0.01, 0.1, 0.5)

# The graph sizes of the last figure: multiples of 4, for the clusters.
_GRAPH_SIZES = (52, 100, 200, 400)


def _study(seeds: int, alpha_sizes: tuple[int, ...]) -> tuple[Grid, ...]:
    """The whole study; all alphas at `alpha_sizes` only, 0.1 at every n."""
    relative = tuple(name for name in PAPER_METHODS if name not in PLAIN)
    return (
        Grid(sizes=_SIZES, seeds=seeds),
        Grid(methods=relative, sizes=alpha_sizes, alphas=_ALPHAS, seeds=seeds),
        Grid(methods=("RULSIF-cautious",), sizes=_SIZES, seeds=seeds),
        Grid(methods=("GRULSIF", "POOL"), graph_sizes=_GRAPH_SIZES, seeds=seeds),
    )


# "standard" is the documented one. "full" is the paper's whole grid; the paper does not say how
# many draws it averages, and with so many the intervals over seeds are three times shorter.
PROFILES: Mapping[str, tuple[Grid, ...]] = {
    "quick": (
        Grid(sizes=(10, 20), graph_sizes=(12,), alphas=(0.1, 0.5), seeds=2, n_points=200),
        Grid(methods=("GRULSIF", "POOL"), sizes=(10,), graph_sizes=(12, 24), seeds=2, n_points=200),
    ),
    "standard": _study(seeds=10, alpha_sizes=(50,)),
    "full": _study(seeds=100, alpha_sizes=_SIZES),
}


def cells_of(profile: str) -> list[Cell]:
    """List every cell of a profile once: seed by seed, in a fixed random order within a seed.

    So an interrupted run has whole seeds, and the time per cell does not drift, which makes the
    estimate of the remaining time a fair one.

    Examples
    --------
    >>> [cell.seed for cell in cells_of("quick")] == [0] * 72 + [1] * 72
    True
    """
    cells = list(dict.fromkeys(cell for grid in PROFILES[profile] for cell in grid))
    shuffle = np.random.default_rng(0).permutation(len(cells))
    return sorted((cells[i] for i in shuffle), key=lambda cell: cell.seed)
