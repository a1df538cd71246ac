"""Two small models whose plans are small enough to try every bit: one of convolutions, one of sequences."""

from __future__ import annotations

import numpy as np
from onnx import ModelProto, TensorProto, helper, numpy_helper


def _model(nodes: list, inputs: list, outputs: list, **weights: np.ndarray) -> ModelProto:
    initializers = [numpy_helper.from_array(w, name) for name, w in weights.items()]
    graph = helper.make_graph(nodes, "small", inputs, outputs, initializers)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def convolutions(size: int = 8) -> ModelProto:
    """Convolution, depthwise convolution with a residual, pooling, a concatenation of slices, a classifier."""
    rng = np.random.default_rng(1)

    def draw(*shape: int) -> np.ndarray:
        return rng.standard_normal(shape).astype(np.float32)

    node = helper.make_node
    nodes = [
        node("Conv", ["x", "w1", "b1"], ["a"], pads=[1, 1, 1, 1], strides=[2, 2]),
        node("Relu", ["a"], ["b"]),
        node("Conv", ["b", "w2"], ["c"], pads=[1, 1, 1, 1], group=4),
        node("Add", ["b", "c"], ["d"]),
        node("MaxPool", ["d"], ["e"], kernel_shape=[2, 2], strides=[2, 2]),
        node("AveragePool", ["d"], ["f"], kernel_shape=[2, 2], strides=[2, 2]),
        node("Concat", ["e", "f"], ["g"], axis=1),
        node("GlobalAveragePool", ["g"], ["h"]),
        node("Flatten", ["h"], ["i"]),
        node("Gemm", ["i", "w3", "b3"], ["j"]),
        node("LogSoftmax", ["j"], ["y"], axis=1),
    ]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 2, size, size])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 3])
    return _model(nodes, [x], [y], w1=draw(4, 2, 3, 3), b1=draw(4), w2=draw(4, 1, 3, 3), w3=draw(8, 3), b3=draw(3))


def sequences() -> ModelProto:
    """Embedding by index, a GRU, attention-like products, a normalisation, the best class."""
    rng = np.random.default_rng(2)

    def draw(*shape: int) -> np.ndarray:
        return rng.standard_normal(shape).astype(np.float32)

    node = helper.make_node
    nodes = [
        node("Gather", ["table", "ids"], ["a"], axis=0),
        node("GRU", ["a", "w", "r"], ["b", "last"], hidden_size=3),
        node("Squeeze", ["b", "one"], ["c"]),
        node("Transpose", ["c"], ["d"], perm=[1, 0, 2]),
        node("Transpose", ["d"], ["e"], perm=[0, 2, 1]),
        node("MatMul", ["d", "e"], ["f"]),
        node("Softmax", ["f"], ["g"], axis=-1),
        node("MatMul", ["g", "d"], ["h"]),
        node("LayerNormalization", ["h", "scale"], ["i"], axis=-1),
        node("ArgMax", ["i"], ["y"], axis=2, keepdims=0),
    ]
    ids = helper.make_tensor_value_info("ids", TensorProto.INT64, [4, 1])
    y = helper.make_tensor_value_info("y", TensorProto.INT64, [1, 4])
    last = helper.make_tensor_value_info("last", TensorProto.FLOAT, [1, 1, 3])
    weights = {"table": draw(5, 2), "w": draw(1, 9, 2), "r": draw(1, 9, 3), "scale": draw(3), "one": np.array([1])}
    return _model(nodes, [ids], [y, last], **weights)
