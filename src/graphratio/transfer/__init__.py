"""Importance weights in use: one reweighted model per node."""

from graphratio.transfer.nodewise import NodewiseTransfer
from graphratio.transfer.transfer_evidence import TransferEvidence

__all__ = ["NodewiseTransfer", "TransferEvidence"]
