"""GridSample, any strides."""

from __future__ import annotations

import enum
from collections.abc import Sequence

from flaot.ir.graph import Node
from flaot.ir.ops.grid_sample import GridSample
from flaot.kernels.base import Builder, CpuChip, Implementation, Kernel, Param, Storage, float32_only
from flaot.kernels.common.cuts import SPATIAL, cut, worth
from flaot.kernels.tiling import Cut
from flaot.plan.program import Step


class Mode(enum.IntEnum):
    nearest = 0
    linear = 1
    cubic = 2


class Padding(enum.IntEnum):
    zeros = 0
    border = 1
    reflection = 2


def cuts(step: Step) -> Sequence[Cut]:
    """Along spatial axes the image stays whole: where the grid points is not known."""
    y = step.outputs[0].dims
    spatial = [cut(SPATIAL[3 - len(y) + a], y[a], {1: a - 1, 2: a}) for a in range(2, len(y))]
    return worth([cut("batch", y[0], {0: 0, 1: 0, 2: 0}), *spatial, cut("channels", y[1], {0: 1, 2: 1})])


GRID_SAMPLE = Kernel(
    "grid_sample_f32", params=(Param("mode"), Param("padding"), Param("align_corners")),
    enums={"grid": Mode, "outside": Padding}, cuts=cuts,
)


class GridSampleWay(Implementation):
    op = GridSample

    def reject(self, node: Node, chip: CpuChip) -> str | None:
        return float32_only(node)

    def storage(self, node: Node) -> Storage:
        return Storage.either

    def input_storage(self, node: Node, slot: int) -> Storage:
        return Storage.either if slot == 0 else Storage.plain

    def lower(self, node: Node, b: Builder) -> None:
        op = node.op
        assert isinstance(op, GridSample)
        y = b.view(node.outputs[0])
        b.step(
            GRID_SAMPLE, [b.view(node.inputs[0]), b.view(node.inputs[1])], [y], parallel=y.elements > 20_000,
            mode=Mode[op.mode], padding=Padding[op.padding], align_corners=int(op.align_corners),
        )
