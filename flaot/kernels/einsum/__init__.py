"""Einsum by strides: every operand becomes a view over all labels, diagonals and broadcasts included."""

from __future__ import annotations

from flaot.ir.graph import Node
from flaot.ir.ops.einsum import Einsum
from flaot.ir.types import MAX_RANK, DType
from flaot.kernels.base import PORTABLE, Builder, CpuChip, Implementation, Kernel
from flaot.kernels.common.cuts import every_axis
from flaot.plan.program import View

CONTRACT = Kernel("contract", variants=PORTABLE, cuts=every_axis)
"""Inputs over all labels, the output's first; output over its own labels."""

DTYPES = (DType.float32, DType.float64, DType.int32, DType.int64)


class EinsumWay(Implementation):
    op = Einsum

    def reject(self, node: Node, chip: CpuChip) -> str | None:
        op, dtype = node.op, node.outputs[0].type.dtype
        assert isinstance(op, Einsum)
        if dtype not in DTYPES:
            return f"Einsum of {dtype.name}; the CPU kernels take {', '.join(d.name for d in DTYPES)}"
        labels = len(op.output + op.summed)
        return None if labels <= MAX_RANK else f"Einsum over {labels} labels; at most {MAX_RANK} are supported"

    def cost(self, node: Node, chip: CpuChip) -> float:
        return node.op.cost(node.input_types, node.output_types).flops / 2

    def axes(self, node: Node) -> int:
        assert isinstance(node.op, Einsum)
        return len(node.op.output + node.op.summed)

    def lower(self, node: Node, b: Builder) -> None:
        op, y = node.op, b.view(node.outputs[0])
        assert isinstance(op, Einsum)
        order, sizes = op.output + op.summed, op.sizes(node.input_types)
        views = [over(b.view(v), labels, order, sizes) for v, labels in zip(node.inputs, op.operands, strict=True)]
        b.step(CONTRACT, views, [y], parallel=op.cost(node.input_types, node.output_types).flops > 200_000)


def over(x: View, labels: str, order: str, sizes: dict[str, int]) -> View:
    """The view of ``x`` over all labels: stride 0 where it lacks one, the sum of strides where it repeats one."""
    strides = dict.fromkeys(order, 0)
    for label, size, stride in zip(labels, x.dims, x.strides, strict=True):
        strides[label] += stride if size != 1 else 0
    return View(x.buffer, x.dtype, tuple(sizes[c] for c in order), tuple(strides[c] for c in order), x.offset)
