"""What the study consists of: cells, grids of cells, and profiles of different length."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import product

import numpy as np

from graphratio._utils.exceptions import InputError, listing
from graphratio._utils.parameters import check_choice, check_integer, check_real
from graphratio.datasets.behaviours import BEHAVIOURS
from graphratio.experiments.methods import METHODS, PAPER_METHODS

SCENARIOS = tuple(BEHAVIOURS)


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
        Of the data set, which is the same for all methods and alphas.
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
        """Name of the cell, different for different cells, fit for a file name."""
        return (
            f"{self.scenario}_{self.method}_n{self.n}_N{self.n_nodes}"
            f"_alpha{self.alpha:g}_seed{self.seed}_points{self.n_points}"
        )


@dataclass(frozen=True)
class Grid:
    """All combinations of some values.

    Methods that estimate the plain ratio are run once per data set, with alpha 0, whatever
    `alphas` holds.

    Parameters
    ----------
    scenarios, methods : sequence of str
    sizes : sequence of int
        Observations in each sample of each node, n.
    graph_sizes : sequence of int
        Numbers of nodes, N.
    alphas : sequence of float in (0, 1)
    seeds : int
        The seeds are 0 .. seeds - 1.
    n_points : int, default 10_000
        Fresh points per node.

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

    def __post_init__(self) -> None:
        for name in self.scenarios:
            check_choice(name, "scenario", SCENARIOS)
        for name in self.methods:
            check_choice(name, "method", list(METHODS))
        for size in self.sizes:
            check_integer(size, "n", low=2)
        for size in self.graph_sizes:
            check_integer(size, "n_nodes", low=8)
        for alpha in self.alphas:
            check_real(alpha, "alpha", low=0, high=1)
        check_integer(self.seeds, "seeds", low=1)
        check_integer(self.n_points, "n_points", low=1)
        unequal = [size for size in self.graph_sizes if size % 4]
        clustered = [name for name in self.scenarios if name in ("Ia", "Ib")]
        if unequal and clustered:
            raise InputError(
                f"scenarios {listing(clustered)} have four equal clusters, "
                f"but n_nodes is {listing(unequal)}",
                "Use multiples of 4",
            )

    def __iter__(self) -> Iterator[Cell]:
        for scenario, method, n, n_nodes in product(
            self.scenarios, self.methods, self.sizes, self.graph_sizes
        ):
            alphas = self.alphas if METHODS[method].relative else (0.0,)
            for alpha, seed in product(alphas, range(self.seeds)):
                yield Cell(scenario, method, n, n_nodes, alpha, seed, self.n_points)


_SIZES = (50, 100, 250, 500)
_ALPHAS = (0.01, 0.1, 0.5)

# The graph sizes of the last figure: multiples of 4, for the clusters.
_GRAPH_SIZES = (52, 100, 200, 400)


def _study(seeds: int, alpha_sizes: tuple[int, ...]) -> tuple[Grid, ...]:
    """The whole study; all alphas at `alpha_sizes` only, 0.1 at every n."""
    relative = tuple(name for name in PAPER_METHODS if METHODS[name].relative)
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
        Grid(sizes=(20, 40), graph_sizes=(16,), alphas=(0.1, 0.5), seeds=2, n_points=500),
        Grid(methods=("GRULSIF", "POOL"), sizes=(20,), graph_sizes=(16, 32), seeds=2, n_points=500),
    ),
    "standard": _study(seeds=10, alpha_sizes=(50,)),
    "full": _study(seeds=100, alpha_sizes=_SIZES),
}


def ordered(grids: Iterable[Iterable[Cell]]) -> list[Cell]:
    """Every cell once, seed by seed, and within a seed in a fixed random order.

    So an interrupted run has whole seeds, and the time per cell does not drift, which makes the
    remaining time that is shown a fair one.

    Examples
    --------
    >>> grid = Grid(methods=("POOL",), seeds=2)
    >>> [cell.seed for cell in ordered([grid, grid])]
    [0, 0, 0, 0, 1, 1, 1, 1]
    """
    cells = list(dict.fromkeys(cell for grid in grids for cell in grid))
    shuffle = np.random.default_rng(0).permutation(len(cells))
    return sorted((cells[i] for i in shuffle), key=lambda cell: cell.seed)
