"""Features in single precision, where kernels of distant points are tiny."""

import numpy as np
import pytest

from graphratio.features.kernels import NEGLIGIBLE, get_kernel
from graphratio.features.nystrom import NystromMap


@pytest.mark.parametrize("kernel", ["gaussian", "laplacian"])
def test_no_number_is_too_small_for_fast_products(kernel):
    rng = np.random.default_rng(0)
    # Nodes far apart, beside a small bandwidth.
    x = rng.normal(size=(600, 2)) + 30 * rng.normal(size=(20, 2)).repeat(30, axis=0)
    features = NystromMap.build(get_kernel(kernel), x[::5], 1.0, 1e-6)
    weights = np.full(len(x), 1 / len(x))
    rotated, psi = features.principal(x, weights, 1e-6, np.float32)
    size = np.abs(psi)
    assert (size == 0).mean() > 0.5
    assert size[size > 0].min() >= NEGLIGIBLE
    np.testing.assert_allclose(psi, rotated(x), atol=1e-4)
