"""Softmax and LogSoftmax along one axis, any strides."""

from __future__ import annotations

from flaot.ir.graph import Node
from flaot.ir.ops.softmax import LogSoftmax, Softmax, _Normaliser
from flaot.kernels.base import PORTABLE, Builder, CpuChip, Implementation, Kernel, Param, Storage, float32_only
from flaot.kernels.common.cuts import one_axis

SOFTMAX = Kernel("softmax_f32", params=(Param("axis"), Param("log")), variants=(*PORTABLE, "avx2", "avx512"), cuts=one_axis)


class SoftmaxWay(Implementation):
    op = _Normaliser

    def reject(self, node: Node, chip: CpuChip) -> str | None:
        return float32_only(node)

    def storage(self, node: Node) -> Storage:
        return Storage.either

    def in_place(self, node: Node) -> tuple[int, ...]:
        return (0,)

    def lower(self, node: Node, b: Builder) -> None:
        op = node.op
        assert isinstance(op, Softmax | LogSoftmax)
        x, y = b.view(node.inputs[0]), b.view(node.outputs[0])
        b.step(SOFTMAX, [x], [y], parallel=x.elements > 20_000, axis=op.axis, log=int(isinstance(op, LogSoftmax)))
