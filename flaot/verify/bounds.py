"""How far each value of a model may be from the reference, from the tolerances its ops declare and from the types values are stored in.

**float32.** Rounding errors of float32 sums grow like the square root of the number of terms, and those of successive ops add up alike: a
value's accumulated length is its op's own length plus the largest of its inputs'. The bound is the ops' largest rtol and atol, the latter
times ``max(1, sqrt(length) / 16)``: with the usual atol of 1e-5 that is five standard deviations of such a sum at any length. Downstream of
a bounded function (Sigmoid, Softmax) the scale is at least its natural range, as its error near 0 is that of the whole range.

**float16 and bfloat16.** A value stored in a half type is off by up to eps / 2 of itself, eps being the spacing at 1 (2^-10 and 2^-7). A
layer whose inputs are off by independent parts hands on the same relative error and adds its own, so squares add up: the inputs' noise,
eps^2 for the op's result, eps^2 for constants it reads as weights, and eps^2 for each term of a sum kept in float16. Ops that only pick or
move elements add none. The noise of a float16 model's reference, which rounds every result too, counts beside that of the plan.
The bound grows by ``SPREAD * sqrt(noise)`` of the tensor's largest magnitude. Measured on 28 real models with every result rounded, in
both types, the largest error of any value of a model is 0.3 to 4.4 times ``sqrt(noise)``, 0.9 in the median, and that of outputs at most
2.5; three models go beyond, up to 73 times, by logarithms of almost nothing and by cancellation. What exceeds the bound is judged by how
far a reference with rounded values moves (:mod:`flaot.verify.shake`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from flaot.ir.graph import Graph, Node, Value
from flaot.ir.op import Op
from flaot.ir.ops.elementwise import _Elementwise
from flaot.ir.ops.pool import MaxPool
from flaot.ir.ops.reduce import ReduceMax, ReduceMin
from flaot.ir.ops.reshape import Reshape
from flaot.ir.ops.transpose import _Movement
from flaot.ir.types import DType
from flaot.kernels.base import KERNELS
from flaot.kernels.base import load_all as load_kernels
from flaot.plan.fields import CHIP_FLUSH, Section, kernel_id
from flaot.plan.program import Space
from flaot.plan.read import Plan

EPS = {DType.float16: 2.0**-10, DType.bfloat16: 2.0**-7}
"""Spacing of the numbers from 1 on."""
SPREAD = 2.0
"""Largest error of a tensor in units of its noise."""
PICKING = frozenset({"relu", "max", "min", "clip", "where", "neg", "abs", "sign"})
"""Element-wise instructions whose results are representable when their inputs are."""


@dataclass(frozen=True)
class Bound:
    """Relative and absolute part; the absolute one is multiplied by the tensor's largest magnitude, at least ``magnitude``."""

    rtol: float = 1e-4
    atol: float = 1e-5
    magnitude: float = 0.0


@dataclass(frozen=True)
class Precision:
    """What chips of a plan compute in: the least exact type they store float32 values in (None: float32), whether they keep sums in
    float16, and whether denormals become 0."""

    stored: DType | None = None
    half_sums: bool = False
    flush: bool = False


@dataclass(frozen=True)
class _Grown:
    """Largest tolerances on the way to a value, and the accumulated length and noise."""

    rtol: float = 0.0
    atol: float = 0.0
    length: int = 0
    magnitude: float = 0.0
    noise: float = 0.0

    def joined(self, other: _Grown) -> _Grown:
        return _Grown(
            max(self.rtol, other.rtol), max(self.atol, other.atol), max(self.length, other.length),
            max(self.magnitude, other.magnitude), max(self.noise, other.noise),
        )  # fmt: skip

    @property
    def bound(self) -> Bound:
        atol = self.atol * max(1.0, math.sqrt(self.length) / 16) + SPREAD * math.sqrt(self.noise)
        return Bound(self.rtol, atol, self.magnitude)


def bounds_of(graph: Graph, precision: Precision | None = None) -> dict[str, Bound]:
    """Bounds of all values of a graph by their ONNX names, graph outputs included."""
    precision = precision if precision is not None else Precision()
    entering = _Grown(noise=_square(precision.stored))
    grown = {v.id: entering for v in graph.inputs if v.type.dtype is DType.float32}
    named: dict[str, Bound] = {}

    def name(value: Value) -> None:
        for text in value.names:
            named[text] = grown.get(value.id, _Grown()).bound

    for node in graph.nodes():
        before = _Grown()
        for v in node.inputs:
            if v is not None and v.id in grown:
                before = before.joined(grown[v.id])
        t = node.op.tolerance(node.input_types)
        noise = before.noise + _noise(node, t.length, precision, graph.model_dtype)
        after = before.joined(_Grown(t.rtol, t.atol, before.length + t.length, t.magnitude, noise))
        for v in node.outputs:
            grown[v.id] = after
            name(v)
    for output in graph.outputs:
        named[output.name] = grown.get(output.value.id, _Grown()).bound
    return named


def _noise(node: Node, length: int, precision: Precision, model: DType | None) -> float:
    """What a node adds to the noise of its inputs."""
    if _picks(node.op):
        return 0.0
    own = next((_square(v.type.dtype) for v in node.outputs if v.type.dtype in EPS), _square(model))
    weights = any(v is not None and v.is_constant and v.type.dtype is DType.float32 and v.type.elements > 1 for v in node.inputs)
    sums = length * _square(DType.float16) if precision.half_sums and length > 1 else 0.0
    return own + _square(precision.stored) * (1 + weights) + sums


def _square(dtype: DType | None) -> float:
    return EPS[dtype] ** 2 if dtype is not None else 0.0


def _picks(op: Op) -> bool:
    moves = isinstance(op, _Movement | Reshape | MaxPool | ReduceMax | ReduceMin)
    return moves or (isinstance(op, _Elementwise) and op.code in PICKING)


def precision_of(plan: Plan) -> Precision:
    """How exactly the chips of a plan compute."""
    load_kernels()
    tensors = plan.section(Section.tensors)
    held = set(tensors["dtype"][tensors["space"] == Space.device].tolist())
    stored = next((d for d in (DType.bfloat16, DType.float16) if int(d) in held), None)
    sums = {kernel_id(k.name, "half") for k in KERNELS.values() if "half" in k.variants}
    flush = bool((plan.section(Section.chips)["flags"] & CHIP_FLUSH).any())
    return Precision(stored, stored is not None and not sums.isdisjoint(plan.section(Section.steps)["kernel"].tolist()), flush)


def bounds_of_model(model: Any, shapes: Mapping[str, tuple[int, ...]], precision: Precision | None = None) -> dict[str, Bound]:
    """The same for a model file read with these input shapes. Raises what reading raises."""
    from flaot.frontend import read
    from flaot.ir import op as ops
    from flaot.ir.widen import widen
    from flaot.schedule.evaluate import evaluate

    ops.load_all()
    load_kernels()
    return bounds_of(widen(read(model, shapes=shapes, evaluate=evaluate)), precision)
