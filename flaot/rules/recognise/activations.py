"""Activations spelled out in arithmetic. x is the input, written as any tree of products.

    Silu        x * sigmoid(k x)
    Gelu        x / 2 * (1 + erf(x / sqrt 2))
    GeluTanh    x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 x^3)))
    HardSwish   x / 6 * clip(x + 3, 0, 6),  x * HardSigmoid(x; 1/6, 1/2)
    Mish        x * tanh(softplus(x))
    HardSigmoid clip(x + b, 0, h) / h  =  max(0, min(1, x / h + b / h))

A coefficient that is left over is multiplied afterwards.
"""

from __future__ import annotations

import math

import numpy as np

from flaot.ir.graph import Graph, Node, Patch, Value
from flaot.ir.op import Op
from flaot.ir.ops.activations import Erf, Gelu, GeluTanh, HardSigmoid, HardSwish, Mish, Sigmoid, Silu, Softplus, Tanh
from flaot.ir.ops.arithmetic import Add, Div, Mul
from flaot.ir.ops.clip import Clip
from flaot.rewrite import Miss, Rule
from flaot.rules.match import made_by, operand, single_use
from flaot.rules.recognise.products import Product, close, is_cube, pick, product_of, scaled, shifted

Found = tuple[Op, Value, float]
"""An op, its input, and the coefficient of the pattern."""


class _Pattern(Rule):
    anchors = (Mul, Div)

    def match(self, graph: Graph, node: Node) -> Patch | Miss | None:
        if not node.outputs[0].type.dtype.is_float:
            return None
        product = product_of(graph, node)
        found = self.find(graph, product)
        if found is None:
            return None
        op, x, coefficient = found
        if x.type != node.outputs[0].type:
            return Miss("an operand widens the result")
        rest = product.coefficient / coefficient
        patch = self.patch(graph, *reversed(product.nodes))
        y = patch.node(op, [x])
        if not math.isclose(rest, 1.0, rel_tol=1e-4):
            y = patch.node(Mul(), [y, patch.constant(np.array(rest, x.type.dtype.numpy))])
        patch.replace(node.outputs[0], y)
        return patch

    def find(self, graph: Graph, product: Product) -> Found | None:
        raise NotImplementedError


class SiluForm(_Pattern):
    """x * sigmoid(k x)."""

    def find(self, graph: Graph, product: Product) -> Found | None:
        pair = pick(product.factors, Sigmoid)
        if pair is None or not single_use(graph, pair[0].outputs[0]):
            return None
        k, x = scaled(operand(pair[0], 0))
        if x is not pair[1]:
            k, x = 1.0, operand(pair[0], 0)
        return (Silu(float(np.float32(k))), x, 1.0) if x is pair[1] else None


class GeluForm(_Pattern):
    """x (1 + f(...)) / 2 with f erf or tanh; without the half the pattern is not finished."""

    def find(self, graph: Graph, product: Product) -> Found | None:
        pair = pick(product.factors, Add)
        if pair is None or not single_use(graph, pair[0].outputs[0]):
            return None
        inner, x = shifted(pair[0].outputs[0]), pair[1]
        if inner is None or inner[0] != 1.0 or not close(product.coefficient, 0.5):
            return None
        op = _gelu(inner[1], x)
        return None if op is None else (op, x, 0.5)


def _gelu(value: Value, x: Value) -> Op | None:
    erf, tanh = made_by(value, Erf), made_by(value, Tanh)
    if erf is not None:
        k, base = scaled(operand(erf, 0))
        return Gelu() if base is x and close(k, math.sqrt(0.5)) else None
    if tanh is None:
        return None
    k, base = scaled(operand(tanh, 0))
    return GeluTanh() if close(k, math.sqrt(2 / math.pi)) and _is_gelu_sum(base, x) else None


def _is_gelu_sum(value: Value, x: Value) -> bool:
    """x + 0.044715 x^3, or x (1 + 0.044715 x^2)."""
    node = made_by(value, Add)
    if node is not None:
        for slot in (0, 1):
            k, cube = scaled(operand(node, 1 - slot))
            if node.inputs[slot] is x and close(k, 0.044715) and is_cube(cube, x):
                return True
        return False
    outer = made_by(value, Mul)
    if outer is None or x not in outer.inputs:
        return False
    inner = shifted(operand(outer, 1 if outer.inputs[0] is x else 0))
    if inner is None or inner[0] != 1.0:
        return False
    k, square = scaled(inner[1])
    node = made_by(square, Mul)
    return close(k, 0.044715) and node is not None and node.inputs[0] is x and node.inputs[1] is x


class HardSwishForm(_Pattern):
    """x clip(x + 3, 0, 6) / 6, and x * HardSigmoid(x; 1/6, 1/2)."""

    def find(self, graph: Graph, product: Product) -> Found | None:
        pair = pick(product.factors, Clip, HardSigmoid)
        if pair is None or not single_use(graph, pair[0].outputs[0]):
            return None
        node, x = pair
        if isinstance(node.op, HardSigmoid):
            fits = close(node.op.alpha, 1 / 6) and close(node.op.beta, 0.5) and node.inputs[0] is x
            return (HardSwish(), x, 1.0) if fits else None
        assert isinstance(node.op, Clip)
        inner = shifted(operand(node, 0))
        fits = (node.op.low, node.op.high) == (0.0, 6.0) and inner is not None and inner[0] == 3.0 and inner[1] is x
        return (HardSwish(), x, 1 / 6) if fits and close(product.coefficient, 1 / 6) else None


class MishForm(_Pattern):
    """x * tanh(softplus(x))."""

    def find(self, graph: Graph, product: Product) -> Found | None:
        pair = pick(product.factors, Tanh)
        if pair is None or not single_use(graph, pair[0].outputs[0]):
            return None
        inner = made_by(pair[0].inputs[0], Softplus)
        return (Mish(), pair[1], 1.0) if inner is not None and inner.inputs[0] is pair[1] else None


class HardSigmoidForm(_Pattern):
    """clip(x + b, 0, h) / h."""

    def find(self, graph: Graph, product: Product) -> Found | None:
        node = made_by(product.factors[0], Clip) if len(product.factors) == 1 else None
        if node is None or not single_use(graph, node.outputs[0]):
            return None
        assert isinstance(node.op, Clip)
        inner, high = shifted(operand(node, 0)), node.op.high
        if inner is None or node.op.low != 0.0 or not 0 < high < math.inf or not math.isclose(product.coefficient, 1 / high, rel_tol=1e-6):
            return None
        alpha, beta = float(np.float32(1 / high)), float(np.float32(inner[0] / high))
        return HardSigmoid(alpha, beta), inner[1], 1 / high
