"""The methods that the study compares, under the names that results and figures use."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import graphratio as gr

# All use the paper's own grids and rules of selection. For RULSIF and ULSIF the paper takes the
# smallest leave-one-out loss; the last method uses the library's default rule instead.
METHODS: Mapping[str, Callable[..., Any]] = {
    "GRULSIF": gr.GRULSIF,
    "POOL": gr.Pool,
    "RULSIF": partial(gr.RULSIF, selection="min"),
    "ULSIF": partial(gr.ULSIF, selection="min"),
    "KLIEP": gr.KLIEP,
    "RULSIF-cautious": gr.RULSIF,
}
PAPER_METHODS = ("GRULSIF", "POOL", "RULSIF", "ULSIF", "KLIEP")
# They estimate the plain ratio, which has alpha 0.
PLAIN = ("ULSIF", "KLIEP")


def make_estimator(method: str, alpha: float, seed: int) -> Any:
    """Make an estimator that is not fitted yet."""
    settings = {} if method in PLAIN else {"alpha": alpha}
    return METHODS[method](**settings, random_state=seed)
