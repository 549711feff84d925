"""P-values beyond the number of permutations, from a fitted tail.

The evidence is about minus the logarithm of a p-value, so its law under permutations has a tail
that is close to exponential with rate one, or falls faster. An exponential law is fitted to the
largest permuted values. Its rate is lowered by two standard errors, and never assumed to be above
one, so that the p-value is rather too large.
"""

from __future__ import annotations

import numpy as np

from graphratio._utils.typing import FloatArray

# The largest permuted values to which the tail is fitted.
TOP_VALUES = 200


def tail_p_values(evidence: FloatArray, top: FloatArray, n_permutations: int) -> FloatArray:
    """P-values of observed evidence, shape (n_nodes,), from the `top` values of permutations.

    `top` has shape (n_nodes, TOP_VALUES), in any order.
    """
    start = top.min(axis=1)
    excess = top.mean(axis=1) - start
    rate = 1 / np.maximum(excess, np.finfo(np.float32).tiny)
    rate = np.minimum(rate, 1.0) * (1 - 2 / np.sqrt(TOP_VALUES))
    beyond = np.maximum(evidence - start, 0.0)
    return np.asarray((TOP_VALUES + 1) / (n_permutations + 1) * np.exp(-rate * beyond))
