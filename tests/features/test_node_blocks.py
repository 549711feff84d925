import numpy as np
from numpy.testing import assert_array_equal

from graphratio.data.samples import NodeSamples
from graphratio.features.kernels import get_kernel
from graphratio.features.node_blocks import batched_distances, node_blocks


def test_distances_of_both_kernels():
    x, y = np.zeros((1, 1, 1)), np.array([[[1.0], [3.0]]])
    assert_array_equal(batched_distances(x, y, get_kernel("gaussian")), [[[1.0, 9.0]]])
    assert_array_equal(batched_distances(x, y, get_kernel("laplacian")), [[[1.0, 3.0]]])


def test_nodes_of_one_size_share_a_rectangle():
    samples = NodeSamples.from_arrays([[0.0, 1.0], [5.0]], [[0.0], [5.0]])
    centres, counts = np.array([[[0.0]], [[5.0]]]), np.array([1, 1])
    found = list(node_blocks(samples, centres, counts, get_kernel("gaussian")))
    assert [block.nodes.tolist() for block in found] == [[1], [0]]
    assert [block.reference_distances.ravel().tolist() for block in found] == [[0.0], [0.0, 1.0]]
