"""Models of float16 and bfloat16 as float32 graphs that remember what they were.

Every value becomes float32, exactly: constants are converted, ops compute in float32, and a Cast stands where an input or an output of the
model keeps its type. What the model casts from a half type to float32 and back needs no node any more: a rounding that only a Cast to
float16 made (and its overflow) is gone with it. A chip that computes in a half type chooses so for itself, when nodes get their place.
"""

from __future__ import annotations

import dataclasses
from collections import Counter

import numpy as np

from flaot.errors import ModelError
from flaot.ir.graph import Graph, Node, Value
from flaot.ir.op import Op, OpTypeError
from flaot.ir.ops.cast import Cast
from flaot.ir.types import DType

HALVES = (DType.float16, DType.bfloat16)


def widen(graph: Graph) -> Graph:
    """Makes every float16 and bfloat16 value of a graph just read float32, and sets ``model_dtype``: the half type that most of the float
    elements computed by nodes had, None when that is another type. Returns the graph.

    Raises ModelError for a node that takes half types but not float32.
    """
    if not any(v.type.dtype in HALVES for v in graph.values()):
        return graph
    graph.model_dtype = _main_type(graph)
    nodes = graph.nodes()
    shown = [(o, o.value.type.dtype) for o in graph.outputs if o.value.type.dtype in HALVES and o.value not in graph.inputs]
    for value in list(graph.values()):
        if value.data is not None and value.type.dtype in HALVES:
            value.data, value.type = widened(value.data, value.type.dtype), value.type.with_dtype(DType.float32)
    for value in graph.inputs:
        if value.type.dtype in HALVES and graph.consumers(value):
            _widen_input(graph, value)
    for node in nodes:
        _widen_node(graph, node)
    narrow: dict[tuple[int, DType], Value] = {}
    for output, dtype in shown:
        key = (output.value.id, dtype)
        if key not in narrow:
            narrow[key] = graph.add_node(Cast(dtype), [output.value], origin=_origin(output.value)).outputs[0]
        output.value = narrow[key]
    return graph


def widened(data: np.ndarray, dtype: DType) -> np.ndarray:
    """float16 numbers, or the bits of bfloat16 ones, as float32."""
    if dtype is DType.bfloat16:
        return (data.astype(np.uint32) << np.uint32(16)).view(np.float32)
    return data.astype(np.float32)


def _main_type(graph: Graph) -> DType | None:
    made = Counter({dtype: 0 for dtype in HALVES})
    for node in graph.nodes():
        for value in node.outputs:
            if value.type.dtype.is_float:
                made[value.type.dtype] += value.type.elements
    dtype, most = max(((d, made[d]) for d in HALVES), key=lambda entry: entry[1])
    return dtype if 2 * most > made.total() else None


def _widen_input(graph: Graph, value: Value) -> None:
    readers = graph.consumers(value)
    wide = graph.add_node(Cast(DType.float32), [value], origin=(value.name,)).outputs[0]
    for node, slot in readers:
        graph.set_input(node, slot, wide)


def _widen_node(graph: Graph, node: Node) -> None:
    op, source = _widened_op(node.op), node.inputs[0] if node.inputs else None
    if isinstance(op, Cast) and source is not None and op.to is source.type.dtype:
        graph.replace(node.outputs[0], source)
        graph.remove(node)
        return
    try:
        types = op.infer(node.input_types)
    except OpTypeError as e:
        raise ModelError(f"{e} (float16 and bfloat16 are computed in float32)", where=node.where) from None
    node.op = op
    for value, type in zip(node.outputs, types, strict=True):
        value.type = type


def _widened_op(op: Op) -> Op:
    """The op with half types among its attributes replaced by float32."""
    halves = [f.name for f in dataclasses.fields(op) if getattr(op, f.name) in HALVES and isinstance(getattr(op, f.name), DType)]
    return dataclasses.replace(op, **dict.fromkeys(halves, DType.float32)) if halves else op


def _origin(value: Value) -> tuple[str, ...]:
    return value.producer.origin if value.producer is not None else ()
