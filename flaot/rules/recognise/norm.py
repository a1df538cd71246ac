"""Normalisations spelled out in arithmetic, over the axes from one on. m = mean(x), d = x - m, v = mean(d d) or mean(x x):

    LayerNormalization  d / sqrt(v + eps),  d * (1 / sqrt(v + eps))
    RMSNormalization    x / sqrt(v + eps),  x * (1 / sqrt(v + eps))
    with an affine part x * (g / sqrt(v + eps)) + (b - m * (g / sqrt(v + eps)))
    and afterwards      norm * g,  norm + b  with constants

Scale and bias begin as a single 1 and absent; the last two cases fill them.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from flaot.ir.graph import Graph, Node, Patch, Value
from flaot.ir.ops.arithmetic import Add, Div, Mul, Pow, Sub
from flaot.ir.ops.functions import Reciprocal, Sqrt
from flaot.ir.ops.norm import LayerNormalization, RMSNormalization
from flaot.ir.ops.reduce import ReduceMean
from flaot.ir.types import DType
from flaot.rewrite import Miss, Rule
from flaot.rules.match import made_by, number, operand, single_use, split_constant
from flaot.rules.recognise.products import shifted


@dataclasses.dataclass
class Spread:
    """sqrt(mean(of of) + epsilon) over the axes from ``axis`` on."""

    of: Value
    axis: int
    epsilon: float


def trailing_mean(value: Value | None) -> tuple[Value, int] | None:
    """x and axis of a mean of x over the axes from ``axis`` on, with dimensions kept."""
    node = made_by(value, ReduceMean)
    if node is None or not isinstance(node.op, ReduceMean):
        return None
    x, axes = operand(node, 0), node.op.axes
    if not axes or not node.op.keepdims or axes != tuple(range(axes[0], x.type.rank)):
        return None
    return x, axes[0]


def squared(value: Value) -> Value | None:
    """x of x x or x to the power of 2."""
    node = made_by(value, Mul, Pow)
    if node is None:
        return None
    a, b = operand(node, 0), operand(node, 1)
    return a if (a is b if isinstance(node.op, Mul) else number(b) == 2.0) else None


def spread(value: Value | None) -> Spread | None:
    node = made_by(value, Sqrt)
    sum = shifted(operand(node, 0)) if node is not None else None
    mean = trailing_mean(sum[1]) if sum is not None else None
    x = squared(mean[0]) if mean is not None else None
    return Spread(x, mean[1], sum[0]) if sum is not None and mean is not None and x is not None else None


def inverse(value: Value | None) -> Spread | None:
    """1 / sqrt(...)."""
    node = made_by(value, Reciprocal, Div)
    if node is None:
        return None
    if isinstance(node.op, Div):
        return spread(node.inputs[1]) if number(node.inputs[0]) == 1.0 else None
    return spread(node.inputs[0])


def centred(value: Value, axis: int) -> Value | None:
    """x of x - mean(x)."""
    node = made_by(value, Sub)
    mean = trailing_mean(node.inputs[1]) if node is not None else None
    return mean[0] if node is not None and mean is not None and mean[0] is node.inputs[0] and mean[1] == axis else None


def fits(scale: Value, x: Value) -> bool:
    """Whether a constant or run-time factor broadcasts within x."""
    dims = scale.type.shape
    return len(dims) <= x.type.rank and all(d in (1, s) for d, s in zip(dims[::-1], x.type.shape[::-1], strict=False))


class Norm(Rule):
    """d / sqrt(v + eps) or x / sqrt(v + eps)."""

    anchors = (Div, Mul)

    def match(self, graph: Graph, node: Node) -> Patch | Miss | None:
        if node.outputs[0].type.dtype is not DType.float32:
            return None
        if isinstance(node.op, Div):
            return self._build(graph, node, operand(node, 0), spread(node.inputs[1]))
        for slot in (0, 1):
            found = inverse(node.inputs[1 - slot])
            if found is not None:
                return self._build(graph, node, operand(node, slot), found)
        return None

    def _build(self, graph: Graph, node: Node, top: Value, found: Spread | None) -> Patch | Miss | None:
        if found is None:
            return None
        if found.of is not top:
            return Miss("what is divided is not what was squared")
        x = centred(top, found.axis)
        patch = self.patch(graph, node)
        one = patch.constant(np.ones(1, np.float32))
        if x is None:
            patch.replace(node.outputs[0], patch.node(RMSNormalization(found.axis, found.epsilon), [top, one]))
        else:
            patch.replace(node.outputs[0], patch.node(LayerNormalization(found.axis, found.epsilon), [x, one, None]))
        return patch


class AffineNorm(Rule):
    """x * k + (b - m * k) with k = g / sqrt(v + eps)."""

    anchors = (Add,)

    def match(self, graph: Graph, node: Node) -> Patch | Miss | None:
        for slot in (0, 1):
            scaled, rest = made_by(node.inputs[slot], Mul), made_by(node.inputs[1 - slot], Sub)
            moved = made_by(rest.inputs[1], Mul) if rest is not None else None
            if scaled is None or rest is None or moved is None:
                continue
            patch = self._match(graph, node, scaled, operand(rest, 0), moved)
            if patch is not None:
                return patch
        return None

    def _match(self, graph: Graph, node: Node, scaled: Node, bias: Value, moved: Node) -> Patch | None:
        for i in (0, 1):
            x, k = operand(scaled, i), operand(scaled, 1 - i)
            mean = next((trailing_mean(moved.inputs[1 - j]) for j in (0, 1) if moved.inputs[j] is k), None)
            factor = made_by(k, Mul)
            if mean is None or mean[0] is not x or factor is None or not bias.is_constant or not fits(bias, x):
                continue
            for j in (0, 1):
                found, gain = inverse(factor.inputs[j]), operand(factor, 1 - j)
                if found is None or found.axis != mean[1] or centred(found.of, found.axis) is not x or not fits(gain, x):
                    continue
                if gain.is_constant and node.outputs[0].type == x.type and x.type.dtype is DType.float32:
                    patch = self.patch(graph, node)
                    patch.replace(node.outputs[0], patch.node(LayerNormalization(found.axis, found.epsilon), [x, gain, bias]))
                    return patch
        return None


class ScaleIntoNorm(Rule):
    """norm * g while there is neither scale nor bias."""

    anchors = (Mul,)

    def match(self, graph: Graph, node: Node) -> Patch | Miss | None:
        pair = split_constant(node)
        norm = made_by(pair[0], LayerNormalization, RMSNormalization) if pair is not None else None
        if pair is None or norm is None or pair[0].type != node.outputs[0].type:
            return None
        if number(norm.inputs[1]) != 1.0 or any(v is not None for v in norm.inputs[2:]):
            return Miss("the normalisation already has a scale or bias")
        if not single_use(graph, pair[0]) or len(norm.outputs) != 1:
            return Miss("the normalisation is also used elsewhere")
        patch = self.patch(graph, norm, node)
        patch.replace(node.outputs[0], patch.node(norm.op, [norm.inputs[0], pair[1], *norm.inputs[2:]]))
        return patch


class BiasIntoNorm(Rule):
    """LayerNormalization + b while there is no bias."""

    anchors = (Add,)

    def match(self, graph: Graph, node: Node) -> Patch | Miss | None:
        pair = split_constant(node)
        norm = made_by(pair[0], LayerNormalization) if pair is not None else None
        if pair is None or norm is None or pair[0].type != node.outputs[0].type:
            return None
        if len(norm.inputs) > 2 and norm.inputs[2] is not None:
            return Miss("the normalisation already has a bias")
        if not single_use(graph, pair[0]) or len(norm.outputs) != 1:
            return Miss("the normalisation is also used elsewhere")
        patch = self.patch(graph, norm, node)
        patch.replace(node.outputs[0], patch.node(norm.op, [*norm.inputs[:2], pair[1]]))
        return patch
