"""A model whose every operation is off by a few units in the last place: what it gives tells how well-conditioned each value is.

Weights are multiplied by 1 + r with |r| up to 2^-22, results of float32 arithmetic by one factor 1 + k * 2^-23 with k up to 4 in size:
the rounding that any other order of the same sums may show. A difference of that size is not a mistake of the plan.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

WEIGHTED = {"Conv", "ConvTranspose", "Gemm", "MatMul", "LSTM", "GRU", "RNN", "BatchNormalization"}
"""Operators whose constant inputs are numbers to compute with, never sizes."""
ARITHMETIC = WEIGHTED - {"LSTM", "GRU", "RNN"} | {
    "Add", "Sub", "Mul", "Div", "Pow", "Sqrt", "Exp", "Log", "Tanh", "Sigmoid", "Erf", "Softmax", "ReduceSum", "ReduceMean",
    "ReduceL2", "ReduceSumSquare", "AveragePool", "GlobalAveragePool", "LayerNormalization", "InstanceNormalization", "Sum", "Mean",
}  # fmt: skip
"""Operators whose float32 result is disturbed."""


def shake(model: Any, seed: int) -> None:
    """Disturbs the main graph in place."""
    rng = np.random.default_rng(seed)
    floats = _float_values(model)
    used = {name for node in model.graph.node if node.op_type in WEIGHTED for name in list(node.input)[1:]}
    for tensor in model.graph.initializer:
        if tensor.name in used and tensor.data_type == TensorProto.FLOAT and tensor.data_location != TensorProto.EXTERNAL:
            data = numpy_helper.to_array(tensor)
            noise = 1 + rng.uniform(-(2.0**-22), 2.0**-22, data.shape)
            tensor.CopyFrom(numpy_helper.from_array((data * noise).astype(np.float32), tensor.name))
    nodes = []
    for node in model.graph.node:
        nodes.append(node)
        if node.op_type in ARITHMETIC and node.domain in ("", "ai.onnx") and node.output[0] in floats:
            nodes += _disturbed(node, rng)
    del model.graph.node[:]
    model.graph.node.extend(nodes)


def _disturbed(node: Any, rng: np.random.Generator) -> list[Any]:
    """Nodes that multiply the first output by a factor close to 1 and take over its name."""
    name = node.output[0]
    node.output[0] = f"{name}/exact"
    factor = np.array(1 + int(rng.integers(1, 5)) * int(rng.choice([-1, 1])) * 2.0**-23, np.float32)
    constant = helper.make_node("Constant", [], [f"{name}/factor"], value=numpy_helper.from_array(factor))
    return [constant, helper.make_node("Mul", [node.output[0], f"{name}/factor"], [name])]


def _float_values(model: Any) -> set[str]:
    """Names of float32 values, as far as onnx can infer them."""
    inferred = onnx.shape_inference.infer_shapes(model).graph
    typed = (*inferred.value_info, *inferred.output)
    return {v.name for v in typed if v.type.tensor_type.elem_type == TensorProto.FLOAT}
