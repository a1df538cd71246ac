"""Constants added to or multiplied with the result of a product go into its weights.

    (W x + b) * k  =  (k W) x + k b            k one number or one per output channel
    (W x + b) / k  =  (W / k) x + b / k
    (W x + b) + k  =  W x + (b + k)
    (W x + b) - k  =  W x + (b - k),   k - (W x + b)  =  (-W) x + (k - b)

The constant must not widen the result, and the weights must be constant and their product used only here.
"""

from __future__ import annotations

import numpy as np

from flaot.ir.graph import Graph, Node, Patch, Value
from flaot.ir.ops.arithmetic import Add, Div, Mul, Sub
from flaot.ir.ops.matmul import Gemm, MatMul
from flaot.rewrite import Miss, Rule
from flaot.rules.canonicalize.absorb import absorb, channel_axis, linear, product
from flaot.rules.match import made_by, operand, per_axis, single_use


class IntoWeights(Rule):
    """The four forms above."""

    anchors = (Add, Sub, Mul, Div)

    def match(self, graph: Graph, node: Node) -> Patch | Miss | None:
        slot = 0 if operand(node, 1).is_constant else 1
        result, constant = operand(node, slot), operand(node, 1 - slot)
        if not constant.is_constant or (slot == 1 and type(node.op) is Div):
            return None
        source = product(graph, result)
        if not isinstance(source, Node):
            return source
        if result.type != node.outputs[0].type:
            return Miss("the constant widens the result")
        k = per_axis(constant, result.type.shape, channel_axis(source))
        if k is None:
            return Miss(f"the constant of shape {list(constant.type.shape)} is not one number per output channel")
        scale, shift = _scale_and_shift(node, slot, k)
        if not (np.isfinite(scale).all() and np.isfinite(shift).all()):
            return Miss("the constant is not finite")
        patch = self.patch(graph, source, node)
        patch.replace(node.outputs[0], absorb(patch, source, scale, shift))
        return patch


def _scale_and_shift(node: Node, slot: int, k: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    one, zero = np.ones_like(k), np.zeros_like(k)
    with np.errstate(divide="ignore", invalid="ignore"):
        if isinstance(node.op, Mul):
            return k, zero
        if isinstance(node.op, Div):
            return 1 / k, zero
    if isinstance(node.op, Add):
        return one, k
    return (one, -k) if slot == 0 else (-one, k)


class BiasIntoGemm(Rule):
    """A B + c with run-time operands is one Gemm, where c has one number per column (or, for matrices, fits a Gemm's C)."""

    anchors = (Add,)

    def match(self, graph: Graph, node: Node) -> Patch | Miss | None:
        for slot in (0, 1):
            source = made_by(node.inputs[slot], MatMul)
            if source is not None:
                return self._bias(graph, node, source, operand(node, 1 - slot))
        return None

    def _bias(self, graph: Graph, node: Node, source: Node, bias: Value) -> Patch | Miss | None:
        result, weights = source.outputs[0], operand(source, 1)
        if weights.type.rank != 2:
            return Miss("the right operand is a stack of matrices")
        if not single_use(graph, result):
            return Miss(f"the result of {source.where} is also used elsewhere")
        if bias.type.shape != (weights.type.shape[1],) or result.type != node.outputs[0].type:
            return Miss(f"shape {list(bias.type.shape)} is not one number per column")
        patch = self.patch(graph, source, node)
        patch.replace(node.outputs[0], linear(patch, operand(source, 0), weights, bias))
        return patch


class BiasOfGemm(Rule):
    """Gemm(A, B) + c is Gemm(A, B, c)."""

    anchors = (Add,)

    def match(self, graph: Graph, node: Node) -> Patch | Miss | None:
        for slot in (0, 1):
            source, bias = made_by(node.inputs[slot], Gemm), operand(node, 1 - slot)
            if source is None or len(source.inputs) != 2 or bias.type.rank > 2:
                continue
            if source.outputs[0].type != node.outputs[0].type or not single_use(graph, source.outputs[0]):
                return Miss(f"the result of {source.where} is widened or also used elsewhere")
            patch = self.patch(graph, source, node)
            patch.replace(node.outputs[0], patch.node(source.op, [*source.inputs, bias]))
            return patch
        return None
