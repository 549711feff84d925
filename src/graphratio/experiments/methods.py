"""The methods that the study compares, by the names that results and figures use."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from graphratio.estimators import GRULSIF, KLIEP, RULSIF, ULSIF, Pool
from graphratio.estimators.base import NodeRatioEstimator


@dataclass(frozen=True)
class Method:
    """One of the compared methods.

    Attributes
    ----------
    build : callable
        Makes the estimator from keyword arguments: random_state, and alpha if `relative`.
    relative : bool
        True if the method estimates the relative ratio; False if the plain one, alpha = 0.
    """

    build: Callable[..., NodeRatioEstimator]
    relative: bool

    def estimator(self, alpha: float, seed: int) -> NodeRatioEstimator:
        """A new estimator, not fitted yet."""
        settings: dict[str, Any] = {"alpha": alpha} if self.relative else {}
        return self.build(**settings, random_state=seed)


def _rulsif_of_the_paper(**settings: Any) -> RULSIF:
    return RULSIF(selection="min", **settings)


def _ulsif_of_the_paper(**settings: Any) -> ULSIF:
    return ULSIF(selection="min", **settings)


# All with the paper's own grids and rules of selection. For RULSIF and ULSIF the paper takes the
# smallest leave-one-out loss; what the library does by default comes last.
METHODS: Mapping[str, Method] = {
    "GRULSIF": Method(GRULSIF, relative=True),
    "POOL": Method(Pool, relative=True),
    "RULSIF": Method(_rulsif_of_the_paper, relative=True),
    "ULSIF": Method(_ulsif_of_the_paper, relative=False),
    "KLIEP": Method(KLIEP, relative=False),
    "RULSIF-cautious": Method(RULSIF, relative=True),
}
PAPER_METHODS = ("GRULSIF", "POOL", "RULSIF", "ULSIF", "KLIEP")
