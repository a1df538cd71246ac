"""ConvTranspose: by the portable kernel with any strides, or as convolutions of its phases."""

from __future__ import annotations

from flaot.ir.graph import Node
from flaot.ir.ops.conv_transpose import ConvTranspose
from flaot.kernels.base import PORTABLE, Builder, CpuChip, Implementation, Kernel, Param, Storage, float32_only
from flaot.kernels.common.axes import three
from flaot.kernels.conv_transpose import phases

CONV_TRANSPOSE = Kernel(
    "conv_transpose_f32", params=(Param("strides", count=3), Param("begins", count=3), Param("dilations", count=3), Param("group")),
    variants=PORTABLE,
)


class PlainWay(Implementation):
    op = ConvTranspose

    def reject(self, node: Node, chip: CpuChip) -> str | None:
        return float32_only(node)

    def storage(self, node: Node) -> Storage:
        return Storage.either

    def cost(self, node: Node, chip: CpuChip) -> float:
        return node.op.cost(node.input_types, node.output_types).flops / 2

    def lower(self, node: Node, b: Builder) -> None:
        op = node.op
        assert isinstance(op, ConvTranspose)
        y = b.view(node.outputs[0])
        b.step(
            CONV_TRANSPOSE, [b.view(v) for v in node.inputs if v is not None], [y],
            parallel=op.cost(node.input_types, node.output_types).flops > 500_000,
            strides=three(op.strides, 1), begins=three(op.begins, 0), dilations=three(op.dilations, 1), group=op.group,
        )


__all__ = ["CONV_TRANSPOSE", "PlainWay", "phases"]
