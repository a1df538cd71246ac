"""ArgMax, ArgMin and TopK along one axis, any strides."""

from __future__ import annotations

from flaot.ir.graph import Node
from flaot.ir.ops.arg import ArgMin, TopK, _Arg
from flaot.ir.types import DType
from flaot.kernels.base import Builder, CpuChip, Implementation, Kernel, Param
from flaot.kernels.common.cuts import one_axis
from flaot.kernels.reduce import keepdims

DTYPES = (DType.float32, DType.float64, DType.int32, DType.int64, DType.int8, DType.uint8)
ARG = Kernel("arg", params=(Param("axis"), Param("min"), Param("last")), cuts=one_axis)
TOPK = Kernel("topk", params=(Param("axis"), Param("smallest")), cuts=one_axis)


def refuse(node: Node) -> str | None:
    assert node.inputs[0] is not None
    dtype = node.inputs[0].type.dtype
    return None if dtype in DTYPES else f"{node.op.name} of {dtype.name}; the CPU kernels take {', '.join(d.name for d in DTYPES)}"


class Arg(Implementation):
    op = _Arg

    def reject(self, node: Node, chip: CpuChip) -> str | None:
        return refuse(node)

    def lower(self, node: Node, b: Builder) -> None:
        op = node.op
        assert isinstance(op, _Arg)
        x, y = b.view(node.inputs[0]), b.view(node.outputs[0])
        y = y if op.keepdims else keepdims(y, (op.axis,), len(x.dims))
        b.step(ARG, [x], [y], parallel=x.elements > 50_000, axis=op.axis, min=int(isinstance(op, ArgMin)), last=int(op.last))


class Top(Implementation):
    op = TopK

    def reject(self, node: Node, chip: CpuChip) -> str | None:
        return refuse(node)

    def lower(self, node: Node, b: Builder) -> None:
        op = node.op
        assert isinstance(op, TopK)
        x = b.view(node.inputs[0])
        outputs = [b.view(v) for v in node.outputs]
        b.step(TOPK, [x], outputs, parallel=x.elements > 20_000, axis=op.axis, smallest=int(not op.largest))
