"""Random convolutions and their reference: onnxruntime running the expansion of FusedConv."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto, helper

from flaot.ir.ops.conv import Act, FusedConv

BOUNDS = {Act.clamp: (0.0, 0.7), Act.hard_sigmoid: (0.2, 0.5), Act.leaky_relu: (0.1, 0.0)}


@dataclass(frozen=True)
class Case:
    """One convolution; ``inputs`` are those of FusedConv."""

    op: FusedConv
    inputs: tuple[np.ndarray | None, ...]

    def __str__(self) -> str:
        return f"{self.op} of {[None if a is None else a.shape for a in self.inputs]}"


def case(
    rng: np.random.Generator, x: tuple[int, ...], w: tuple[int, ...], op: FusedConv, bias: bool = True, residual: bool = False
) -> Case:
    """A case with normal data; ``op`` without alpha and beta."""
    alpha, beta = BOUNDS.get(op.act, (0.0, 0.0))
    op = FusedConv(op.strides, op.pads, op.dilations, op.group, op.act, alpha, beta)
    fan = int(np.prod(w[1:]))
    data: list[np.ndarray | None] = [normal(rng, x), normal(rng, w) * np.float32(fan**-0.5), normal(rng, w[:1]) if bias else None]
    slope = normal(rng, w[:1]) if op.act is Act.prelu else None
    out = FusedConv(op.strides, op.pads, op.dilations, op.group).infer([_type(a) for a in (*data, None, None)])[0].shape
    data += [normal(rng, out) if residual else None, slope]
    return Case(op, tuple(data))


def normal(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    return rng.standard_normal(shape, dtype=np.float32)


def _type(array: np.ndarray | None):  # type: ignore[no-untyped-def]
    from flaot.ir.types import DType, TensorType

    return None if array is None else TensorType(DType.float32, array.shape)


def random_case(rng: np.random.Generator, ranks: tuple[int, ...] = (1, 2, 2, 2, 3), acts: tuple[Act, ...] = tuple(Act)) -> Case:
    """Any kernel 1..7, stride, pad, dilation, group, odd size; small enough to be quick."""
    n = int(rng.choice(ranks))
    kernel = tuple(int(k) for k in rng.choice([1, 1, 2, 3, 3, 3, 5, 7], n)) if n < 3 else tuple(int(k) for k in rng.integers(1, 4, n))
    if rng.random() < 0.5:
        kernel = kernel[:1] * n
    group, per_in, per_out = (int(v) for v in (rng.choice([1, 1, 1, 2, 3]), rng.integers(1, 40), rng.integers(1, 70)))
    if rng.random() < 0.25:
        group, per_in, per_out = int(rng.integers(1, 80)), 1, int(rng.choice([1, 1, 2]))
    dilations = tuple(int(v) for v in rng.choice([1, 1, 1, 2, 3], n))
    strides = tuple(int(v) for v in rng.choice([1, 1, 2, 3], n))
    pads = tuple(int(v) for v in rng.integers(0, 4, 2 * n)) if rng.random() < 0.7 else (0,) * 2 * n
    sizes = [int(rng.integers(1, 24 if n < 3 else 8)) for _ in range(n)]
    for i in range(n):
        sizes[i] = max(sizes[i], (kernel[i] - 1) * dilations[i] + 1 - pads[i] - pads[n + i], 1)
    op = FusedConv(strides, pads, dilations, group, acts[int(rng.integers(len(acts)))])
    batch = int(rng.choice([1, 1, 2]))
    return case(
        rng, (batch, group * per_in, *sizes), (group * per_out, per_in, *kernel), op, rng.random() < 0.8, rng.random() < 0.3
    )


def reference(c: Case) -> np.ndarray:
    """onnxruntime's result of the expansion."""
    names = [n if a is not None else "" for n, a in zip("xwb", c.inputs[:3], strict=True)]
    op, nodes, last = c.op, [], "conv"
    nodes.append(helper.make_node(
        "Conv", names, [last], strides=op.strides, pads=op.pads, dilations=op.dilations, group=op.group
    ))
    if c.inputs[3] is not None:
        nodes.append(helper.make_node("Add", [last, "r"], ["sum"]))
        last = "sum"
    nodes += _activation(op, last)
    slope = c.inputs[4]
    given = dict(zip("xwbr", c.inputs[:4], strict=True))
    if slope is not None:
        given["slope"] = slope.reshape(-1, *[1] * len(op.strides))
    given |= {"lo": np.float32(op.alpha), "hi": np.float32(op.beta)} if op.act is Act.clamp else {}
    arrays = {k: np.asarray(v) for k, v in given.items() if v is not None}
    graph = helper.make_graph(
        nodes, "g", [helper.make_tensor_value_info(k, TensorProto.FLOAT, v.shape) for k, v in arrays.items()],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    result: np.ndarray = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"]).run(None, arrays)[0]
    return result


def _activation(op: FusedConv, v: str) -> list[onnx.NodeProto]:
    def node(op_type: str, inputs: list[str], **attributes: float) -> list[onnx.NodeProto]:
        return [helper.make_node(op_type, inputs, ["y"], **attributes)]

    match op.act:
        case Act.clamp:
            return node("Clip", [v, "lo", "hi"])
        case Act.silu:
            return [helper.make_node("Sigmoid", [v], ["s"]), *node("Mul", [v, "s"])]
        case Act.hard_sigmoid:
            return node("HardSigmoid", [v], alpha=op.alpha, beta=op.beta)
        case Act.leaky_relu:
            return node("LeakyRelu", [v], alpha=op.alpha)
        case Act.prelu:
            return node("PRelu", [v, "slope"])
    name = {Act.none: "Identity", Act.sigmoid: "Sigmoid", Act.hard_swish: "HardSwish", Act.tanh: "Tanh", Act.gelu: "Gelu"}[op.act]
    return node(name, [v])
