"""Array aliases and protocols shared by all layers."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

FloatArray: TypeAlias = NDArray[np.floating[Any]]
"""Real values; float64 unless a docstring says otherwise."""

IntArray: TypeAlias = NDArray[np.integer[Any]]
BoolArray: TypeAlias = NDArray[np.bool_]

Label: TypeAlias = Hashable
"""The label of a node: usually a string or an integer."""

RandomState: TypeAlias = int | np.random.Generator | np.random.RandomState | None
"""A seed, a generator, or None for fresh entropy."""
