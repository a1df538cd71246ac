"""Questions rules ask about values, each answered without changing anything."""

from __future__ import annotations

import numpy as np

from flaot.ir.graph import Graph, Node, Value
from flaot.ir.op import Op
from flaot.ir.types import DType

COMPUTABLE = (DType.float32, DType.float64, DType.float16)
"""Float types whose constants numpy can compute with."""


def single_use(graph: Graph, value: Value) -> bool:
    """Whether exactly one node input reads the value and no graph output shows it."""
    return graph.uses(value) == 1 and not graph.is_output(value)


def made_by(value: Value | None, *ops: type[Op]) -> Node | None:
    """The producer, if it is exactly one of these ops (not a subclass)."""
    node = value.producer if value is not None else None
    return node if node is not None and type(node.op) in ops else None


def operand(node: Node, slot: int) -> Value:
    """An input that the op requires."""
    value = node.inputs[slot]
    assert value is not None
    return value


def number(value: Value | None) -> float | None:
    """The content of a constant of one element."""
    if value is None or value.data is None or value.data.size != 1 or value.type.dtype is DType.bfloat16:
        return None
    return float(value.data.reshape(-1)[0])


def split_constant(node: Node) -> tuple[Value, Value] | None:
    """The run-time operand and the constant operand of a commutative op with one of each."""
    a, b = operand(node, 0), operand(node, 1)
    if a.is_constant == b.is_constant:
        return None
    return (b, a) if a.is_constant else (a, b)


def per_axis(constant: Value, shape: tuple[int, ...], axis: int) -> np.ndarray | None:
    """The constant as float64 numbers along one axis of ``shape``, where it broadcasts over all others."""
    data = constant.data
    if data is None or constant.type.dtype not in COMPUTABLE or data.ndim > len(shape):
        return None
    dims = (1,) * (len(shape) - data.ndim) + data.shape
    if any(d != 1 for i, d in enumerate(dims) if i != axis) or dims[axis] not in (1, shape[axis]):
        return None
    return np.broadcast_to(data.reshape(-1).astype(np.float64), (shape[axis],))
