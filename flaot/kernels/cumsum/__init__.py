"""Running sums along one axis."""

from __future__ import annotations

from flaot.ir.graph import Node
from flaot.ir.ops.cumsum import CumSum
from flaot.ir.types import DType
from flaot.kernels.base import PORTABLE, Builder, CpuChip, Implementation, Kernel, Param, Storage
from flaot.kernels.common.cuts import one_axis

CUMSUM = Kernel("cumsum", params=(Param("axis"), Param("exclusive"), Param("reverse")), variants=PORTABLE, cuts=one_axis)


class CumSumWay(Implementation):
    op = CumSum

    def reject(self, node: Node, chip: CpuChip) -> str | None:
        dtype = node.outputs[0].type.dtype
        return f"CumSum of {dtype.name}" if dtype in (DType.float16, DType.bfloat16) else None

    def storage(self, node: Node) -> Storage:
        return Storage.either

    def in_place(self, node: Node) -> tuple[int, ...]:
        return (0,)

    def lower(self, node: Node, b: Builder) -> None:
        op = node.op
        assert isinstance(op, CumSum)
        x, y = b.view(node.inputs[0]), b.view(node.outputs[0])
        b.step(
            CUMSUM, [x], [y], parallel=x.elements > 50_000, axis=op.axis, exclusive=int(op.exclusive), reverse=int(op.reverse)
        )
