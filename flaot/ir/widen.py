"""float16 and bfloat16 models computed in float32: a graph whose values are float32, with casts at the inputs and outputs of another type.

Where the chip stores float16 anyway, the values are as narrow as the model wants them; where it does not, they are more exact.
A model's own rounding to half precision in between is therefore not reproduced on a host.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from typing import Any

import numpy as np

from flaot.ir.graph import Graph, Value
from flaot.ir.op import Op
from flaot.ir.ops.cast import Cast
from flaot.ir.types import DType

HALVES = (DType.float16, DType.bfloat16)


def widen(graph: Graph) -> Graph:
    """The graph itself when it holds no half-precision values, else a new one; ``model_dtype`` of that is the type most of its floating
    point had, None when that is float32."""
    if not any(v.type.dtype in HALVES for v in graph.values()):
        return graph
    wide = Graph(graph.name, graph.digest)
    wide.frozen, wide.model_dtype = graph.frozen, _main_type(graph)
    held: dict[int, Value] = {}
    for value in graph.inputs:
        held[value.id] = wide.add_input(value.name, value.type)
        held[value.id].layout = value.layout
    for value in graph.inputs:
        if value.type.dtype in HALVES:
            held[value.id] = wide.add_node(Cast(DType.float32), [held[value.id]]).outputs[0]

    def of(value: Value) -> Value:
        if value.id not in held:
            assert value.data is not None
            held[value.id] = wide.add_constant(_float(value), dtype=_wider(value.type.dtype))
            held[value.id].names = value.names
        return held[value.id]

    for node in graph.nodes():
        made = wide.add_node(_op(node.op), [None if v is None else of(v) for v in node.inputs], origin=node.origin)
        for old, new in zip(node.outputs, made.outputs, strict=True):
            held[old.id], new.names = new, old.names
    for output in graph.outputs:
        value = of(output.value)
        if output.value.type.dtype in HALVES:
            origin = value.producer.origin if value.producer is not None else ()
            value = wide.add_node(Cast(output.value.type.dtype), [value], origin=origin).outputs[0]
        wide.set_output(output.name, value)
    return wide


def _main_type(graph: Graph) -> DType | None:
    count = Counter[DType]()
    for v in graph.values():
        if v.type.dtype.is_float:
            count[v.type.dtype] += v.type.elements
    main = max(count, key=lambda d: count[d])
    return main if main in HALVES else None


def _wider(dtype: DType) -> DType:
    return DType.float32 if dtype in HALVES else dtype


def _float(value: Value) -> np.ndarray:
    assert value.data is not None
    if value.type.dtype is DType.float16:
        return value.data.astype(np.float32)
    if value.type.dtype is DType.bfloat16:
        return (value.data.astype(np.uint32) << np.uint32(16)).view(np.float32)
    return value.data


def _op(op: Op) -> Op:
    """The op with half-precision element types among its attributes widened."""
    held = {f.name: getattr(op, f.name) for f in dataclasses.fields(op)}
    changed: dict[str, Any] = {n: DType.float32 for n, x in held.items() if isinstance(x, DType) and x in HALVES}
    return dataclasses.replace(op, **changed) if changed else op
