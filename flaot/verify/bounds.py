"""How far each value of a model may be from the reference, from the tolerances its ops declare.

Rounding errors of float32 sums grow like the square root of the number of terms, and those of successive ops add up alike: a value's
accumulated length is its op's own length plus the largest of its inputs'. The bound is the ops' largest rtol and atol, the latter times
``max(1, sqrt(length) / 16)``: with the usual atol of 1e-5 that is five standard deviations of such a sum at any length. Downstream of
a bounded function (Sigmoid, Softmax) the scale is at least its natural range, as its error near 0 is that of the whole range.

A chip that stores values in float16 or bfloat16 rounds every result once, by up to eps / 2 of it, eps being the spacing at 1. Independent
roundings add up like the square root of their number, so after r of them on the way to a value the bound grows by ``4 eps sqrt(r)`` of
the tensor's largest magnitude, and by ``4 eps`` of the value itself. Measured on the real models the largest error is 0.1 to 2.4 times
``eps sqrt(r)``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from flaot.ir.graph import Graph, Value
from flaot.ir.ops.reshape import Reshape
from flaot.ir.ops.transpose import _Movement
from flaot.ir.types import DType
from flaot.plan.fields import Section
from flaot.plan.program import Space
from flaot.plan.read import Plan

HALF_EPS = {"float16": 2.0**-10, "bfloat16": 2.0**-7}
SPREAD = 4.0
"""Standard deviations of rounding errors, about, that the bound of a narrow type allows."""


@dataclass(frozen=True)
class Bound:
    """Relative and absolute part; the absolute one is multiplied by the tensor's largest magnitude, at least ``magnitude``."""

    rtol: float = 1e-4
    atol: float = 1e-5
    magnitude: float = 0.0


@dataclass(frozen=True)
class _Grown:
    """Largest tolerances on the way to a value, and the accumulated length."""

    rtol: float = 0.0
    atol: float = 0.0
    length: int = 0
    magnitude: float = 0.0
    roundings: int = 0

    def joined(self, other: _Grown) -> _Grown:
        pairs = ((self.rtol, other.rtol), (self.atol, other.atol), (self.magnitude, other.magnitude))
        rtol, atol, magnitude = (max(p) for p in pairs)
        return _Grown(rtol, atol, max(self.length, other.length), magnitude, max(self.roundings, other.roundings))

    def bound(self, eps: float) -> Bound:
        narrow = SPREAD * eps * math.sqrt(max(self.roundings, 1))
        return Bound(self.rtol + SPREAD * eps, self.atol * max(1.0, math.sqrt(self.length) / 16) + narrow, self.magnitude)


def bounds_of(graph: Graph, stored: DType | None = None) -> dict[str, Bound]:
    """Bounds of all values of a graph by their ONNX names, graph outputs included; ``stored`` is the least exact type a chip stores
    float32 values in (None: float32)."""
    grown: dict[int, _Grown] = {}
    named: dict[str, Bound] = {}
    precision = HALF_EPS[stored.name] if stored is not None else 0.0

    def name(value: Value) -> None:
        for text in value.names:
            named[text] = grown.get(value.id, _Grown()).bound(precision)

    for node in graph.nodes():
        before = _Grown()
        for v in node.inputs:
            if v is not None and v.id in grown:
                before = before.joined(grown[v.id])
        t = node.op.tolerance(node.input_types)
        rounded = before.roundings + (not isinstance(node.op, _Movement | Reshape))
        after = before.joined(_Grown(t.rtol, t.atol, before.length + t.length, t.magnitude, rounded))
        for v in node.outputs:
            eps = HALF_EPS.get(v.type.dtype.name, 0.0)
            grown[v.id] = after.joined(_Grown(4 * eps, eps, 0)) if eps else after
            name(v)
    for output in graph.outputs:
        named[output.name] = grown.get(output.value.id, _Grown()).bound(precision)
    return named


def stored_in(plan: Plan) -> DType | None:
    """The least exact type in which the chips of a plan store floating point; None when that is float32, or there is no chip."""
    tensors = plan.section(Section.tensors)
    held = set(tensors["dtype"][tensors["space"] == Space.device].tolist())
    return next((d for d in (DType.bfloat16, DType.float16) if int(d) in held), None)


def bounds_of_model(model: Any, shapes: Mapping[str, tuple[int, ...]], stored: DType | None = None) -> dict[str, Bound]:
    """The same for a model file read with these input shapes. Raises what reading raises."""
    from flaot.frontend import read
    from flaot.ir import op as ops
    from flaot.ir.widen import widen
    from flaot.kernels.base import load_all
    from flaot.schedule.evaluate import evaluate

    ops.load_all()
    load_all()
    return bounds_of(widen(read(model, shapes=shapes, evaluate=evaluate)), stored)
