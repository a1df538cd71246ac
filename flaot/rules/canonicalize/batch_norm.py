"""BatchNormalization with constant statistics is one multiply-add per channel

    y = a x + c,   a = scale / sqrt(variance + epsilon),   c = bias - a mean

which the product before it absorbs; alone it becomes Mul and Add. All in float64, rounded once.
"""

from __future__ import annotations

import numpy as np

from flaot.ir.graph import Graph, Node, Patch
from flaot.ir.ops.arithmetic import Add, Div, Mul, Sub
from flaot.ir.ops.batch_norm import BatchNormalization
from flaot.ir.ops.functions import Sqrt
from flaot.ir.ops.reshape import Reshape
from flaot.rewrite import Rule
from flaot.rules.canonicalize.absorb import absorb, channel_axis, product
from flaot.rules.match import COMPUTABLE, operand


class Fold(Rule):
    """1. after a product with constant weights: into the weights. 2. with constant parameters: Mul, Add.
    3. otherwise: the arithmetic of the definition."""

    anchors = (BatchNormalization,)

    def match(self, graph: Graph, node: Node) -> Patch:
        assert isinstance(node.op, BatchNormalization)
        x = operand(node, 0)
        known = all(v is not None and v.is_constant for v in node.inputs[1:]) and x.type.dtype in COMPUTABLE
        if not known:
            return self._by_definition(graph, node, node.op.epsilon)
        a, c = _multiply_add(node, node.op.epsilon)
        source = product(graph, x)
        if isinstance(source, Node) and channel_axis(source) == 1:
            patch = self.patch(graph, source, node)
            patch.replace(node.outputs[0], absorb(patch, source, a, c))
            return patch
        patch = self.patch(graph, node)
        shape = (-1, *[1] * (x.type.rank - 2))
        kind = x.type.dtype.numpy
        scaled = patch.node(Mul(), [x, patch.constant(a.astype(kind).reshape(shape))])
        patch.replace(node.outputs[0], patch.node(Add(), [scaled, patch.constant(c.astype(kind).reshape(shape))]))
        return patch

    def _by_definition(self, graph: Graph, node: Node, epsilon: float) -> Patch:
        patch = self.patch(graph, node)
        x = operand(node, 0)
        shape = (x.type.shape[1], *[1] * (x.type.rank - 2))
        scale, bias, mean, variance = (patch.node(Reshape(shape), [v]) for v in node.inputs[1:])
        small = patch.constant(np.array(epsilon, x.type.dtype.numpy))
        root = patch.node(Sqrt(), [patch.node(Add(), [variance, small])])
        normal = patch.node(Div(), [patch.node(Sub(), [x, mean]), root])
        patch.replace(node.outputs[0], patch.node(Add(), [patch.node(Mul(), [normal, scale]), bias]))
        return patch


def _multiply_add(node: Node, epsilon: float) -> tuple[np.ndarray, np.ndarray]:
    scale, bias, mean, variance = (v.data.astype(np.float64) for v in node.inputs[1:] if v is not None and v.data is not None)
    a = scale / np.sqrt(variance + epsilon)
    return a, bias - a * mean
