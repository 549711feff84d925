"""What to conclude from ratios, and what to do with them."""

from graphratio.inference.transfer import NodewiseTransfer

__all__ = ["NodewiseTransfer"]
