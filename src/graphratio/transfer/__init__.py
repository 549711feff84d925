"""Importance weights in use: one reweighted model per node."""

from graphratio.transfer.nodewise import NodewiseTransfer

__all__ = ["NodewiseTransfer"]
