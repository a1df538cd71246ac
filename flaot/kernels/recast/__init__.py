"""Recast: the same numbers stored in another float type, rounded as the chip does."""

from __future__ import annotations

from collections.abc import Sequence

from flaot.ir.graph import HOST, Node
from flaot.ir.ops.cast import Cast
from flaot.ir.ops.transfer import Recast
from flaot.ir.types import DType, Rounding
from flaot.kernels.base import Builder, CpuChip, Implementation, Kernel, Param, Storage
from flaot.kernels.common.cuts import every_axis
from flaot.kernels.common.strides import collapse
from flaot.plan.program import View

RECAST = Kernel("recast", params=(Param("rounding"), Param("flush")), enums={"rounding": Rounding}, cuts=every_axis, moves=True)
"""``flush`` is 1 where results below the smallest normal number become zero."""
FLOATS = (DType.float16, DType.bfloat16, DType.float32)
PARALLEL = 50_000
"""Elements from which splitting over threads pays."""


class NarrowCastWay(Implementation):
    """A Cast between floating-point types on a chip that stores both alike, which is no work."""

    op = Cast

    def reject(self, node: Node, chip: CpuChip) -> str | None:
        floats = all(v is not None and v.type.dtype in FLOATS for v in (*node.inputs, *node.outputs))
        return None if floats and node.place != HOST else "it is a cast between element types that are stored differently"

    def storage(self, node: Node) -> Storage:
        return Storage.either

    def cost(self, node: Node, chip: CpuChip) -> float:
        return 0.0

    def alias(self, node: Node, inputs: Sequence[View | None]) -> Sequence[View] | None:
        x, y = inputs[0], node.outputs[0].stored_type.dtype
        return [x] if x is not None and x.dtype is y else None

    def lower(self, node: Node, b: Builder) -> None:
        b.copy(b.view(node.inputs[0]), b.view(node.outputs[0]))


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
