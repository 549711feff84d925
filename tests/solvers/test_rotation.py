import numpy as np
from numpy.testing import assert_allclose

from graphratio.solvers.rotation import principal, readable


def test_every_node_uses_one_of_two_kinds_after_turning():
    mixed = np.array([[1.0, 1.1], [2.0, 2.1], [1.0, -1.1]])
    profiles, turned = readable(np.eye(2), mixed)
    assert (np.abs(turned).min(axis=1) < 0.15).all()
    assert_allclose(turned @ profiles.T, mixed, rtol=1e-12)


def test_principal_profiles_give_the_coefficients_back():
    theta = np.array([[1.0, 0.0], [2.0, 0.0], [0.0, 0.5]])
    profiles, coordinates = principal(theta, np.diag([4.0, 1.0]))
    assert_allclose(coordinates @ profiles.T, theta, rtol=1e-12, atol=1e-12)
