"""Recast: the same numbers stored in another float type, rounded as the chip does."""

from __future__ import annotations

from flaot.ir.graph import HOST, Node
from flaot.ir.ops.transfer import Recast
from flaot.ir.types import Rounding
from flaot.kernels.base import Builder, Implementation, Kernel, Param, Storage
from flaot.kernels.common.strides import collapse

RECAST = Kernel("recast", params=(Param("rounding"), Param("flush")), enums={"rounding": Rounding})
"""``flush`` is 1 where results below the smallest normal number become zero."""
PARALLEL = 50_000
"""Elements from which splitting over threads pays."""


class RecastWay(Implementation):
    op = Recast

    def storage(self, node: Node) -> Storage:
        return Storage.any

    def lower(self, node: Node, b: Builder) -> None:
        source, target = b.view(node.inputs[0]), b.view(node.outputs[0])
        if source.dtype is target.dtype or node.place != HOST:  # a chip computes on widened operands
            b.copy(source, target)
            return
        x, y = collapse([source, target])
        b.step(RECAST, [x], [y], parallel=y.elements > PARALLEL, rounding=int(b.chip.rounding), flush=int(b.chip.flush_denormals))
