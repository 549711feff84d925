"""Approximate inverses of the system, which make conjugate gradients converge in few steps."""
