"""The four synthetic scenarios of the paper, with their exact likelihood-ratios."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from graphratio._utils.arrays import read_only
from graphratio._utils.errors import InputError
from graphratio._utils.html import graph_html, samples_html, titled
from graphratio._utils.parameters import as_generator, check_choice, check_integer, check_real
from graphratio._utils.typing import BoolArray, FloatArray, Label, RandomState
from graphratio.data.graph import Graph
from graphratio.data.samples import NodeSamples
from graphratio.data.validation import as_observations
from graphratio.datasets.behaviours import BEHAVIOURS, Behaviour
from graphratio.datasets.laws import Law
from graphratio.datasets.random_graphs import EGO, GroupArray, clustered, with_ego_network


@dataclass(frozen=True, eq=False, repr=False)
class Scenario:
    """Samples on a graph whose ratios and divergences are known exactly.

    Build one with `make_scenario`.

    Attributes
    ----------
    name : {"Ia", "Ib", "IIa", "IIb"}
    samples : NodeSamples
    graph : Graph
    groups : ndarray of str, shape (n_nodes,)
        Group of each node: "C1" to "C4", or "C(u)" and "complement".
    changed : ndarray of bool, shape (n_nodes,)
        True where the target law differs from the reference law.
    behaviours : mapping of group to its two laws

    Examples
    --------
    >>> from graphratio.datasets import make_scenario
    >>> scenario = make_scenario("Ia", n_nodes=20, n=50, random_state=0)
    >>> scenario
    Scenario('Ia', n_nodes=20, n_features=1, n_changed=10)
    >>> scenario.true_ratio([[0.0], [2.0]], node=0, alpha=0.1).round(3)
    array([0.744, 0.   ])
    """

    name: str
    samples: NodeSamples
    graph: Graph
    groups: GroupArray
    changed: BoolArray
    behaviours: Mapping[str, Behaviour]

    def true_ratio(self, x: Any, node: Label, alpha: float) -> FloatArray:
        """Exact relative ratio = target / ((1 - alpha) reference + alpha target) at a node.

        Parameters
        ----------
        x : array of shape (n_points, n_features), or 1-D for one feature
        node : label
        alpha : float in [0, 1)

        Returns
        -------
        ndarray of shape (n_points,)
            In [0, 1 / alpha]; exact also in the tails, where both densities underflow.

        Examples
        --------
        >>> from graphratio.datasets import make_scenario
        >>> shifted = make_scenario("Ia", n_nodes=8, random_state=0)
        >>> shifted.true_ratio([-40.0, 0.5, 40.0], node=7, alpha=0.1).round(6)
        array([ 0.,  1., 10.])
        """
        points = as_observations(x, "x")
        if points.shape[1] != self.samples.n_features or not np.isfinite(points).all():
            raise InputError(
                f"x of shape {np.shape(x)} cannot be points of scenario {self.name}",
                f"Pass finite values of shape (n_points, {self.samples.n_features})",
            )
        return self._behaviour(node).ratio(points, _check_alpha(alpha))

    def true_divergence(self, alpha: float) -> FloatArray:
        """Exact Pearson divergence at every node: half the mean of (ratio - 1)^2.

        The mean is over the mixture (1 - alpha) reference + alpha target, alpha in [0, 1).
        Gauss-Legendre quadrature computes it with an error of at most 1e-6 (relative for values
        above 1). In scenario IIa the third coordinate is independent of the other two and the
        same in both laws, so it cancels and the integral is over two dimensions.

        Returns
        -------
        ndarray of shape (n_nodes,)
            Infinite at alpha = 0 where the change removes a correlation (Ib in C3, IIa).

        Examples
        --------
        >>> from graphratio.datasets import make_scenario
        >>> make_scenario("Ia", n_nodes=8, random_state=0).true_divergence(alpha=0.1).round(4)
        array([0.1261, 0.1261, 0.    , 0.    , 0.    , 0.    , 0.4674, 0.4674])
        """
        return self._divergence("pearson", _check_alpha(alpha))

    def true_kl_divergence(self, alpha: float = 0.0) -> FloatArray:
        """Exact Kullback-Leibler divergence of the target from the mixture at every node.

        It is the mean over the target of the logarithm of the relative ratio. At alpha = 0 it is
        KL(target || reference), which `KLIEP` estimates too.

        Returns
        -------
        ndarray of shape (n_nodes,)

        Examples
        --------
        >>> from graphratio.datasets import make_scenario
        >>> make_scenario("Ia", n_nodes=8, random_state=0).true_kl_divergence().round(4)
        array([0.1765, 0.1765, 0.    , 0.    , 0.    , 0.    , 0.5   , 0.5   ])
        """
        return self._divergence("kl", _check_alpha(alpha))

    def true_jensen_shannon_divergence(self) -> FloatArray:
        """Exact Jensen-Shannon divergence between reference and target at every node.

        Returns
        -------
        ndarray of shape (n_nodes,)
            Between 0 and log 2.

        Examples
        --------
        >>> from graphratio.datasets import make_scenario
        >>> scenario = make_scenario("Ia", n_nodes=8, random_state=0)
        >>> scenario.true_jensen_shannon_divergence().round(4)
        array([0.0494, 0.0494, 0.    , 0.    , 0.    , 0.    , 0.1114, 0.1114])
        """
        return self._divergence("jensen-shannon", 0.0)

    def _divergence(self, name: str, alpha: float) -> FloatArray:
        laws = (self.behaviours[str(group)] for group in self.groups)
        return np.array([each.divergence(name, alpha) for each in laws])

    def sample_reference(
        self, node: Label, size: int, random_state: RandomState = None
    ) -> FloatArray:
        """Fresh points from the reference law of a node, shape (size, n_features).

        Examples
        --------
        >>> from graphratio.datasets import make_scenario
        >>> scenario = make_scenario("Ib", n_nodes=8, random_state=0)
        >>> scenario.sample_reference(node=0, size=3, random_state=1).shape
        (3, 2)
        """
        size = check_integer(size, "size", low=0)
        return self._behaviour(node).reference.sample(size, as_generator(random_state))

    def sample_target(self, node: Label, size: int, random_state: RandomState = None) -> FloatArray:
        """Fresh points from the target law of a node, shape (size, n_features).

        Examples
        --------
        >>> from graphratio.datasets import make_scenario
        >>> scenario = make_scenario("Ib", n_nodes=8, random_state=0)
        >>> scenario.sample_target(node=0, size=3, random_state=1).shape
        (3, 2)
        """
        size = check_integer(size, "size", low=0)
        return self._behaviour(node).target.sample(size, as_generator(random_state))

    def sample_mixture(
        self, node: Label, size: int, alpha: float, random_state: RandomState = None
    ) -> FloatArray:
        """Fresh points from (1 - alpha) reference + alpha target, shape (size, n_features).

        Examples
        --------
        >>> from graphratio.datasets import make_scenario
        >>> scenario = make_scenario("IIa", n_nodes=8, random_state=0)
        >>> scenario.sample_mixture(node=0, size=3, alpha=0.1, random_state=1).shape
        (3, 3)
        """
        size = check_integer(size, "size", low=0)
        rng = as_generator(random_state)
        return self._behaviour(node).sample_mixture(size, _check_alpha(alpha), rng)

    def mean_squared_error(
        self,
        predict: Callable[[FloatArray, Label], Any],
        alpha: float,
        n_points: int = 10_000,
        random_state: RandomState = None,
    ) -> FloatArray:
        """Mean squared error of estimated ratios on fresh points, at every node.

        The paper compares methods by this error: the mean of (estimate - exact ratio)^2 over
        points from (1 - alpha) reference + alpha target.

        Parameters
        ----------
        predict : callable
            Called as predict(x, node) with x of shape (n_points, n_features); returns the
            estimated ratios, shape (n_points,).
        alpha : float in [0, 1)
            The alpha of the estimated ratio.
        n_points : int, default 10_000
            Fresh points per node, drawn independently for each.
        random_state : int, Generator, RandomState or None

        Returns
        -------
        ndarray of shape (n_nodes,)

        Examples
        --------
        >>> import numpy as np
        >>> from graphratio.datasets import make_scenario
        >>> scenario = make_scenario("Ia", n_nodes=8, random_state=0)
        >>> error = scenario.mean_squared_error(
        ...     lambda x, node: np.ones(len(x)), alpha=0.1, random_state=0
        ... )
        >>> error[[2, 7]].round(1)
        array([0. , 0.9])
        """
        alpha = _check_alpha(alpha)
        n_points = check_integer(n_points, "n_points", low=1)
        generators = as_generator(random_state).spawn(self.graph.n_nodes)
        errors = np.empty(self.graph.n_nodes)
        for position, (node, rng) in enumerate(zip(self.graph.nodes, generators, strict=True)):
            behaviour = self.behaviours[str(self.groups[position])]
            points = behaviour.sample_mixture(n_points, alpha, rng)
            estimate = np.asarray(predict(points, node))
            if estimate.shape != (n_points,):
                raise InputError(
                    f"predict returned an array of shape {estimate.shape} for {n_points} points",
                    "Return one ratio for each point, shape (n_points,)",
                )
            errors[position] = np.mean((estimate - behaviour.ratio(points, alpha)) ** 2)
        return errors

    def _behaviour(self, node: Label) -> Behaviour:
        return self.behaviours[str(self.groups[self.graph.position(node)])]

    def __repr__(self) -> str:
        return (
            f"Scenario({self.name!r}, n_nodes={self.graph.n_nodes}, "
            f"n_features={self.samples.n_features}, n_changed={int(self.changed.sum())})"
        )

    def _repr_html_(self) -> str:
        """Table for notebooks."""
        return titled(
            f"scenario {self.name}: {int(self.changed.sum())} of {self.graph.n_nodes} nodes change",
            samples_html(self.samples),
            graph_html(self.graph),
        )


def make_scenario(
    name: str,
    n_nodes: int = 100,
    n: int = 50,
    random_state: RandomState = None,
    *,
    n_target: int | None = None,
) -> Scenario:
    """Draw one instance of a synthetic scenario of the paper.

    ======  ===  ================  ==================================================
    name    R^d  graph             change from reference to target
    ======  ===  ================  ==================================================
    "Ia"    1    4 equal clusters  C1: N(0, 1) to a uniform law of the same mean and
                                   variance; C4: N(0, 1) to N(1, 1)
    "Ib"    2    4 equal clusters  C3: correlation 4/5 to 0; C4: mean (0, 0) to (1, 1)
    "IIa"   3    growing, 2 edges  C(u): correlation 4/5 of x0 and x1 to 0
    "IIb"   2    growing, 2 edges  C(u): N(0, 10 I) to a mixture of five N(., 5 I)
    ======  ===  ================  ==================================================

    The clusters are blocks of a stochastic block model with edge probability 0.5 inside and
    0.01 between. The growing graph starts from a star on 5 nodes, and each new node is joined
    to 2 earlier ones in proportion to their degrees. C(u) contains the nodes within two steps
    of a node u that is drawn in proportion to its degree; its size varies a lot.

    Parameters
    ----------
    name : {"Ia", "Ib", "IIa", "IIb"}
    n_nodes : int, default 100
        At least 8; a multiple of 4 for "Ia" and "Ib".
    n : int, default 50
        Observations in each sample of each node.
    random_state : int, Generator, RandomState or None
        The same seed gives the same graph and groups for every `n`.
    n_target : int, optional
        Observations in each target sample; default `n`.

    Returns
    -------
    Scenario

    Examples
    --------
    >>> from graphratio.datasets import make_scenario
    >>> scenario = make_scenario("IIb", n_nodes=30, n=10, random_state=0)
    >>> scenario.samples
    NodeSamples(n_nodes=30, n_features=2, n_reference=10, n_target=10)
    """
    name = check_choice(name, "name", list(BEHAVIOURS))
    n_nodes = check_integer(n_nodes, "n_nodes", low=8)
    n = check_integer(n, "n", low=1)
    n_target = n if n_target is None else check_integer(n_target, "n_target", low=1)
    graph_rng, group_rng, reference_rng, target_rng = as_generator(random_state).spawn(4)

    behaviours = BEHAVIOURS[name]
    if EGO in behaviours:
        adjacency, groups = with_ego_network(n_nodes, graph_rng, group_rng)
    else:
        adjacency, groups = clustered(n_nodes, graph_rng)
    changed = [group for group, laws in behaviours.items() if laws.changes]
    reference = {group: laws.reference for group, laws in behaviours.items()}
    target = {group: laws.target for group, laws in behaviours.items()}
    values = _draw(reference, groups, n, reference_rng), _draw(target, groups, n_target, target_rng)
    return Scenario(
        name=name,
        samples=NodeSamples.from_arrays(*values),
        graph=Graph.from_adjacency(adjacency),
        groups=read_only(groups),
        changed=read_only(np.isin(groups, changed)),
        behaviours=behaviours,
    )


def _draw(
    laws: Mapping[str, Law], groups: GroupArray, n: int, rng: np.random.Generator
) -> FloatArray:
    """Samples of all nodes, shape (n_nodes, n, n_features): one draw for each group."""
    n_features = next(iter(laws.values())).n_features
    values = np.empty((len(groups), n, n_features))
    for group, law in laws.items():
        members = np.flatnonzero(groups == group)
        points = law.sample(len(members) * n, rng)
        values[members] = points.reshape(len(members), n, n_features)
    return values


def _check_alpha(alpha: float) -> float:
    return check_real(alpha, "alpha", low=0.0, high=1.0, include_low=True)
