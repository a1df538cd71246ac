"""Conv by the portable kernel: any rank, any strides, weights as the model has them."""

from __future__ import annotations

import math
from collections.abc import Sequence

from flaot.ir.graph import Node
from flaot.ir.ops.conv import Act, Conv
from flaot.kernels.base import PORTABLE, Builder, CpuChip, Implementation, Kernel, Param, float32_only
from flaot.kernels.common.axes import three
from flaot.kernels.common.cuts import convolution, record
from flaot.kernels.conv.parts import EPILOGUE, RATE, epilogue
from flaot.kernels.tiling import Cut
from flaot.plan.program import Step


def cuts(step: Step) -> Sequence[Cut]:
    p, count = record(step), len(step.inputs)
    images = [2 + p["bias"]] if p["residual"] else []
    vectors = [*([2] if p["bias"] else []), *([count - 1] if p["act"] == Act.prelu else [])]
    return convolution(step, vectors, [*images, count])


CONV = Kernel(
    "conv_f32",
    params=(Param("strides", count=3), Param("pads", count=3), Param("dilations", count=3), Param("group"), Param("bias"), *EPILOGUE),
    variants=PORTABLE,
    enums={"act": Act},
    cuts=cuts,
)
"""Inputs x, w, then as flagged bias and residual, then slope when act is prelu. Arrays hold the last n entries for n spatial axes."""

OFFSETS_PER_TAP = 17 * 8
"""Bytes of scratch the kernel takes per kernel tap."""

FEW = 4.0
"""Factor on operations when a group has fewer output channels than the kernel computes together."""


class PlainWay(Implementation):
    op = Conv

    def reject(self, node: Node, chip: CpuChip) -> str | None:
        return float32_only(node)

    def cost(self, node: Node, chip: CpuChip) -> float:
        op = node.op
        assert isinstance(op, Conv)
        few = FEW if node.outputs[0].type.shape[1] // op.group < 4 else 1.0
        return op.cost(node.input_types, node.output_types).flops * few / RATE["generic"]

    def in_place(self, node: Node) -> tuple[int, ...]:
        return (3,)

    def lower(self, node: Node, b: Builder) -> None:
        op, w = node.op, node.inputs[1]
        assert isinstance(op, Conv) and w is not None
        n = len(op.strides)
        b.step(
            CONV, [b.view(v) for v in node.inputs if v is not None], [b.view(node.outputs[0])],
            scratch=math.prod(w.type.shape[2:]) * OFFSETS_PER_TAP,
            parallel=op.cost(node.input_types, node.output_types).flops > 500_000,
            strides=three(op.strides, 1), pads=three(op.pads[:n], 0), dilations=three(op.dilations, 1), group=op.group,
            bias=int(len(node.inputs) > 2 and node.inputs[2] is not None), **epilogue(node),
        )
