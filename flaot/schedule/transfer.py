"""How a Transfer is done: one step that moves the bytes of a tensor between the host's memory and a chip's."""

from __future__ import annotations

from flaot.ir.graph import Node
from flaot.ir.ops.transfer import Transfer
from flaot.kernels.base import Builder, Implementation, Storage


class TransferWay(Implementation):
    op = Transfer

    def storage(self, node: Node) -> Storage:
        return Storage.either

    def lower(self, node: Node, b: Builder) -> None:
        b.transfer(b.view(node.inputs[0]), b.view(node.outputs[0]))
