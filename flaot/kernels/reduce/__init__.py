"""Reductions over any axes of any strided tensor. The kernel's output has size 1 on reduced axes."""

from __future__ import annotations

from collections.abc import Sequence

from flaot.ir.graph import Node
from flaot.ir.ops.reduce import KINDS, ReduceLogSumExp, ReduceMax, ReduceMin, _Reduce
from flaot.ir.types import DType
from flaot.kernels.base import PORTABLE, Builder, CpuChip, Implementation, Kernel, Param, Storage
from flaot.kernels.common.cuts import shared
from flaot.kernels.tiling import Cut
from flaot.plan.program import Step, View


def cuts(step: Step) -> Sequence[Cut]:
    x, y = step.inputs[0], step.outputs[0]
    return shared(step, [a for a, d in enumerate(y.dims) if d != x.dims[a]])


REDUCE = Kernel("reduce", params=(Param("kind"),), variants=(*PORTABLE, "avx2", "avx512"), cuts=cuts)
DTYPES = (DType.float32, DType.float64, DType.int32, DType.int64, DType.uint32, DType.uint64, DType.int8, DType.uint8)


def keepdims(view: View, axes: tuple[int, ...], rank: int) -> View:
    """A view without the reduced axes given them back with size 1."""
    dims, strides = list(view.dims), list(view.strides)
    for a in range(rank):
        if a in axes:
            dims.insert(a, 1)
            strides.insert(a, 0)
    return View(view.buffer, view.dtype, tuple(dims), tuple(strides), view.offset)


class Reduction(Implementation):
    op = _Reduce

    def reject(self, node: Node, chip: CpuChip) -> str | None:
        dtype = node.outputs[0].type.dtype
        if isinstance(node.op, ReduceLogSumExp) and not dtype.is_float:
            return f"ReduceLogSumExp of {dtype.name}; the CPU kernel takes floats"
        if dtype in DTYPES or (dtype is DType.bool and isinstance(node.op, ReduceMax | ReduceMin)):
            return None
        return f"{node.op.name} of {dtype.name}; the CPU kernels take {', '.join(d.name for d in DTYPES)}"

    def storage(self, node: Node) -> Storage:
        op = node.op
        assert isinstance(op, _Reduce)
        return Storage.either if op.keepdims else Storage.plain

    def lower(self, node: Node, b: Builder) -> None:
        op = node.op
        assert isinstance(op, _Reduce)
        x, y = b.view(node.inputs[0]), b.view(node.outputs[0])
        y = y if op.keepdims else keepdims(y, op.axes, len(x.dims))
        b.step(REDUCE, [x], [y], parallel=x.elements > 50_000 and y.elements > 1, kind=KINDS.index(type(op)))
