"""Relu, Clip, Min and Max with numbers are clamps, and a clamp of a clamp is one clamp.

    clamp(x; l, h) = min(max(x, l), h),  NaN stays NaN,  Relu = clamp(0, inf)
    clamp(clamp(x; l, h); l', h') = clamp(x; L, H),  L = clamp(min(l, h); l', h'),  H = clamp(h; l', h')

exact in every case, crossed bounds included (then l' > h' gives the constant h', and L = H). Max(x, k) = clamp(k, inf).
"""

from __future__ import annotations

import math

from flaot.ir.graph import Graph, Node, Patch
from flaot.ir.ops.activations import Relu
from flaot.ir.ops.arithmetic import Max, Min
from flaot.ir.ops.clip import Clip
from flaot.ir.types import DType
from flaot.rewrite import Miss, Rule
from flaot.rules.match import made_by, number, operand, single_use, split_constant

FLOATS = (DType.float32, DType.float16)


def bounds(node: Node) -> tuple[float, float] | None:
    """Bounds of a Relu or Clip."""
    if type(node.op) is Relu and node.outputs[0].type.dtype in FLOATS:
        return 0.0, math.inf
    return (node.op.low, node.op.high) if isinstance(node.op, Clip) else None


def clamp(x: float, low: float, high: float) -> float:
    return min(max(x, low), high)


def clamp_op(low: float, high: float) -> Relu | Clip:
    """The one spelling of a clamp."""
    return Relu() if (low, high) == (0.0, math.inf) else Clip(low, high)


class Twice(Rule):
    """A clamp whose input is a clamp used only here."""

    anchors = (Relu, Clip)

    def match(self, graph: Graph, node: Node) -> Patch | Miss | None:
        inner = made_by(node.inputs[0], Relu, Clip)
        first, second = bounds(inner) if inner is not None else None, bounds(node)
        if inner is None or first is None or second is None:
            return None
        if any(math.isnan(b) for b in (*first, *second)):
            return Miss("a bound is NaN")
        if not single_use(graph, inner.outputs[0]):
            return Miss(f"the result of {inner.where} is also used elsewhere")
        low, high = clamp(min(first), *second), clamp(first[1], *second)
        patch = self.patch(graph, inner, node)
        patch.replace(node.outputs[0], patch.node(clamp_op(low, high), [inner.inputs[0]]))
        return patch


class Spelling(Rule):
    """Clip(0, inf) is Relu; Min and Max with one number are Clip."""

    anchors = (Clip, Min, Max)

    def match(self, graph: Graph, node: Node) -> Patch | Miss | None:
        if isinstance(node.op, Clip):
            x, limits = operand(node, 0), (node.op.low, node.op.high)
            if limits != (0.0, math.inf):
                return None
        else:
            pair = split_constant(node)
            k = number(pair[1]) if pair is not None else None
            if pair is None or k is None or math.isnan(k) or pair[0].type.dtype not in FLOATS:
                return None
            x, limits = pair[0], (k, math.inf) if isinstance(node.op, Max) else (-math.inf, k)
            if x.type != node.outputs[0].type:
                return Miss("the number widens the result")
        patch = self.patch(graph, node)
        patch.replace(node.outputs[0], patch.node(clamp_op(*limits), [x]))
        return patch
