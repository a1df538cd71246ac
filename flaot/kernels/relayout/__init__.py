"""Relayout is a strided copy between two storage orders."""

from __future__ import annotations

from flaot.ir.graph import Node
from flaot.ir.ops.relayout import Relayout
from flaot.kernels.base import Builder, Implementation, Storage


class RelayoutWay(Implementation):
    op = Relayout

    def storage(self, node: Node) -> Storage:
        return Storage.any

    def lower(self, node: Node, b: Builder) -> None:
        source, target = node.inputs[0], node.outputs[0]
        assert source is not None
        b.copy(b.view(source), b.view(target))
