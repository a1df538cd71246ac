"""RoiAlign, any strides."""

from __future__ import annotations

from collections.abc import Sequence

from flaot.ir.graph import Node
from flaot.ir.ops.roi_align import RoiAlign
from flaot.kernels.base import Builder, CpuChip, Implementation, Kernel, Param, Storage, float32_only
from flaot.kernels.common.cuts import cut, worth
from flaot.kernels.tiling import Cut
from flaot.plan.program import Step


def cuts(step: Step) -> Sequence[Cut]:
    regions, channels = step.outputs[0].dims[:2]
    return worth([cut("channels", channels, {0: 1, 3: 1}), cut("regions", regions, {1: 0, 2: 0, 3: 0})])


ROI_ALIGN = Kernel(
    "roi_align_f32", params=(Param("sampling"), Param("scale", "f32"), Param("half_pixel"), Param("maximum")), cuts=cuts
)


class RoiAlignWay(Implementation):
    op = RoiAlign

    def reject(self, node: Node, chip: CpuChip) -> str | None:
        return float32_only(node)

    def storage(self, node: Node) -> Storage:
        return Storage.either

    def lower(self, node: Node, b: Builder) -> None:
        op = node.op
        assert isinstance(op, RoiAlign)
        b.step(
            ROI_ALIGN, [b.view(v) for v in node.inputs], [b.view(node.outputs[0])], parallel=node.outputs[0].type.elements > 5_000,
            sampling=op.sampling, scale=op.scale, half_pixel=int(op.half_pixel), maximum=int(op.maximum),
        )
