"""Chains of Reshape.

    Reshape(Reshape(x)) = Reshape(x),  Reshape to the same shape = x
    Transpose that keeps the order of all axes longer than 1 = Reshape
"""

from __future__ import annotations

from flaot.ir.graph import Graph, Node, Patch
from flaot.ir.ops.reshape import Reshape
from flaot.ir.ops.transpose import Transpose
from flaot.rewrite import Rule
from flaot.rules.match import made_by, operand


class Chain(Rule):
    """A Reshape of a Reshape, and one that changes nothing."""

    anchors = (Reshape,)

    def match(self, graph: Graph, node: Node) -> Patch | None:
        x = operand(node, 0)
        if x.type == node.outputs[0].type:
            patch = self.patch(graph, node)
            patch.replace(node.outputs[0], x)
            return patch
        inner = made_by(x, Reshape)
        if inner is None:
            return None
        patch = self.patch(graph, inner, node)
        source = operand(inner, 0)
        same = source.type == node.outputs[0].type
        patch.replace(node.outputs[0], source if same else patch.node(node.op, [source]))
        return patch


class FromTranspose(Rule):
    """A Transpose that moves no element."""

    anchors = (Transpose,)

    def match(self, graph: Graph, node: Node) -> Patch | None:
        assert isinstance(node.op, Transpose)
        x = operand(node, 0)
        long = [a for a in node.op.perm if x.type.shape[a] != 1]
        if long != sorted(long):
            return None
        patch = self.patch(graph, node)
        patch.replace(node.outputs[0], patch.node(Reshape(node.outputs[0].type.shape), [x]))
        return patch
