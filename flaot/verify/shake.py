"""A model whose every operation is off by a rounding: what it gives tells how well-conditioned each value is.

float32: weights are multiplied by 1 + r with |r| up to 2^-22, results of arithmetic by one factor 1 + k * 2^-23 with k up to 4 in size: the
rounding that any other order of the same sums may show. Results of float16 arithmetic get a factor that is one unit off.
For a chip that stores float16 or bfloat16: float32 inputs, weights and results are rounded to it, for the first seed all of them, for
others three results of four. A difference of that size is not a mistake of the plan.
"""

from __future__ import annotations

from collections.abc import Iterator
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
"""Operators whose result is disturbed."""
FACTORS: dict[int, tuple[float, int]] = {TensorProto.FLOAT: (2.0**-23, 5), TensorProto.FLOAT16: (2.0**-10, 2)}
"""By element type: one unit, and the number of units no factor reaches."""
FLUSHED = " without denormals"
NARROW = {
    "float16": (TensorProto.FLOAT16, 1, 0.0), f"float16{FLUSHED}": (TensorProto.FLOAT16, 1, 2.0**-14),
    "bfloat16": (TensorProto.BFLOAT16, 13, 0.0), f"bfloat16{FLUSHED}": (TensorProto.BFLOAT16, 13, 2.0**-126),
}  # fmt: skip
"""By type values are stored in: its ONNX number, the opset from which Cast knows it, and the size below which numbers become 0."""
SIZED = {"Resize", "Upsample"}
"""Operators whose inputs, but the first, say how large the result is."""
KEPT = 0.75
"""Share of the results that are rounded for seeds above 1."""


def shake(model: Any, seed: int, stored: str = "") -> None:
    """Disturbs the main graph in place; ``stored`` is a key of NARROW or empty."""
    rng = np.random.default_rng(seed)
    opset = max((o.version for o in model.opset_import if o.domain in ("", "ai.onnx")), default=1)
    if stored and opset >= NARROW[stored][1]:
        _round(model, rng, stored, KEPT if seed > 1 else 1.0)
    else:
        _disturb(model, rng)


def _disturb(model: Any, rng: np.random.Generator) -> None:
    floats = _float_values(model)
    used = {name for node in model.graph.node if node.op_type in WEIGHTED for name in list(node.input)[1:]}
    for tensor in _weights(model):
        if tensor.name in used:
            data = numpy_helper.to_array(tensor)
            noise = 1 + rng.uniform(-(2.0**-22), 2.0**-22, data.shape)
            tensor.CopyFrom(numpy_helper.from_array((data * noise).astype(np.float32), tensor.name))
    nodes = []
    for node in model.graph.node:
        nodes.append(node)
        if node.op_type in ARITHMETIC and node.domain in ("", "ai.onnx") and node.output[0] in floats:
            nodes += _disturbed(node, rng, floats[node.output[0]])
    del model.graph.node[:]
    model.graph.node.extend(nodes)


def _disturbed(node: Any, rng: np.random.Generator, dtype: int) -> list[Any]:
    """Nodes that multiply the first output by a factor close to 1 and take over its name."""
    name, (unit, limit) = node.output[0], FACTORS[dtype]
    node.output[0] = f"{name}/exact"
    factor = np.array(1 + int(rng.integers(1, limit)) * int(rng.choice([-1, 1])) * unit, helper.tensor_dtype_to_np_dtype(dtype))
    constant = helper.make_node("Constant", [], [f"{name}/factor"], value=numpy_helper.from_array(factor))
    return [constant, helper.make_node("Mul", [node.output[0], f"{name}/factor"], [name])]


def _round(model: Any, rng: np.random.Generator, stored: str, kept: float) -> None:
    """Casts every float32 input, weight and result to the type ``stored`` and back."""
    floats = _float_values(model)
    single = {name for name, kind in floats.items() if kind == TensorProto.FLOAT}
    inputs = [v.name for v in model.graph.input if v.type.tensor_type.elem_type == TensorProto.FLOAT]
    entering = [*dict.fromkeys([*inputs, *(t.name for t in _weights(model))])]
    nodes = [cast for name in entering for cast in _casts(name, f"{name}/stored", stored)]
    for node in model.graph.node:
        for i, name in enumerate(node.input):
            if name in entering and (i == 0 or node.op_type not in SIZED):
                node.input[i] = f"{name}/stored"
        made = [i for i, name in enumerate(node.output) if name in single and rng.random() < kept]
        names = [node.output[i] for i in made]
        for i in made:
            node.output[i] = f"{node.output[i]}/exact"
        nodes.append(node)
        nodes += [cast for name in names for cast in _casts(f"{name}/exact", name, stored)]
    del model.graph.node[:]
    model.graph.node.extend(nodes)


def _casts(source: str, target: str, stored: str) -> list[Any]:
    dtype, _, least = NARROW[stored]
    narrow, wide = f"{source}/narrow", f"{source}/wide" if least else target
    casts = [helper.make_node("Cast", [source], [narrow], to=dtype), helper.make_node("Cast", [narrow], [wide], to=TensorProto.FLOAT)]
    return [*casts, *_flushed(wide, target, least)] if least else casts


def _flushed(source: str, target: str, least: float) -> list[Any]:
    """Nodes that make 0 of what is smaller than ``least``; opset 7 has them all."""
    bound = numpy_helper.from_array(np.array(least, np.float32))
    return [
        helper.make_node("Constant", [], [f"{source}/least"], value=bound),
        helper.make_node("Abs", [source], [f"{source}/size"]),
        helper.make_node("Less", [f"{source}/size", f"{source}/least"], [f"{source}/small"]),
        helper.make_node("Not", [f"{source}/small"], [f"{source}/kept"]),
        helper.make_node("Cast", [f"{source}/kept"], [f"{source}/factor"], to=TensorProto.FLOAT),
        helper.make_node("Mul", [source, f"{source}/factor"], [target]),
    ]


def _weights(model: Any) -> Iterator[Any]:
    """float32 initializers inside the model file."""
    for tensor in model.graph.initializer:
        if tensor.data_type == TensorProto.FLOAT and tensor.data_location != TensorProto.EXTERNAL:
            yield tensor


def _float_values(model: Any) -> dict[str, int]:
    """float32 and float16 values by name with their element type, as far as onnx can infer them."""
    inferred = onnx.shape_inference.infer_shapes(model).graph
    typed = (*inferred.value_info, *inferred.output)
    return {v.name: v.type.tensor_type.elem_type for v in typed if v.type.tensor_type.elem_type in FACTORS}
