"""Inverse operations with constants, where the other spelling gives the same bits.

    x - k = x + (-k)         floats
    x / k = x * (1 / k)      floats, every k a power of two with a normal reciprocal
"""

from __future__ import annotations

import numpy as np

from flaot.ir.graph import Graph, Node, Patch
from flaot.ir.op import Op
from flaot.ir.ops.arithmetic import Add, Div, Mul, Sub
from flaot.rewrite import Miss, Rule
from flaot.rules.match import COMPUTABLE, operand


class Inverse(Rule):
    """Sub and Div of a constant."""

    anchors = (Sub, Div)

    def match(self, graph: Graph, node: Node) -> Patch | Miss | None:
        x, k = operand(node, 0), operand(node, 1)
        if x.is_constant or k.data is None or k.type.dtype not in COMPUTABLE:
            return None
        op: Op = Add()
        data = -k.data
        if isinstance(node.op, Div):
            if not (np.abs(np.frexp(k.data)[0]) == 0.5).all():
                return Miss("the divisor is not a power of two")
            op, data = Mul(), (1 / k.data).astype(k.data.dtype)
            if not np.isfinite(data).all() or (np.abs(data) < np.finfo(data.dtype).tiny).any():
                return Miss("the reciprocal of the divisor is not a normal number")
        patch = self.patch(graph, node)
        patch.replace(node.outputs[0], patch.node(op, [x, patch.constant(data)]))
        return patch
