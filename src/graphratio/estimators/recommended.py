"""The preset to start with."""

from __future__ import annotations

from typing import Any

from graphratio._utils.typing import RandomState
from graphratio.estimators.profile import ProfileGRULSIF


def recommended(
    alpha: float = 0.1, random_state: RandomState = None, **overrides: Any
) -> ProfileGRULSIF:
    """Return the estimator that did best in the studies, ready to fit.

    It is a `ProfileGRULSIF` with adaptive edges that chooses everything else on held-out data.
    The other estimators keep the defaults of the paper.

    Parameters
    ----------
    alpha : float in [0, 1), default 0.1
    random_state : int, numpy Generator, RandomState or None
    **overrides
        Any other parameter of `ProfileGRULSIF`.

    Examples
    --------
    >>> import graphratio as gr
    >>> gr.recommended(random_state=0)
    ProfileGRULSIF(adaptive=True, random_state=0)
    """
    return ProfileGRULSIF(**{"adaptive": True, **overrides}, alpha=alpha, random_state=random_state)
