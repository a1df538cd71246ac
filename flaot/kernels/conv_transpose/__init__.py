"""ConvTranspose: by the portable kernel with any strides, or as convolutions of its phases."""

from __future__ import annotations

from collections.abc import Sequence

from flaot.ir.graph import Node
from flaot.ir.ops.conv_transpose import ConvTranspose
from flaot.kernels.base import PORTABLE, Builder, CpuChip, Implementation, Kernel, Param, Storage, float32_only
from flaot.kernels.common.axes import three
from flaot.kernels.common.cuts import SPATIAL, cut, record, worth
from flaot.kernels.conv_transpose import phases
from flaot.kernels.tiling import Cut, Patch, Reach
from flaot.plan.program import Step


def cuts(step: Step) -> Sequence[Cut]:
    """A result at o takes input elements at positions o + begin - k * dilation, of which there are ``stride`` to an element."""
    p, x, w, y = record(step), step.inputs[0], step.inputs[1], step.outputs[0]
    result, bias = len(step.inputs), range(2, len(step.inputs))
    inside, outside = x.dims[1] // p["group"], w.dims[1]
    grouped = {0: Reach(1, inside, 0, inside), 1: Reach(0, inside, 0, inside), result: Reach(1, outside, 0, outside)}
    grouped |= {o: Reach(0, outside, 0, outside) for o in bias}
    spatial = []
    for axis in range(2, len(y.dims)):
        i = 3 - len(y.dims) + axis
        reach = (w.dims[axis] - 1) * p["dilations"][i]
        taken = Reach(axis, 1, reach - p["begins"][i], reach + 1, per=p["strides"][i])
        shift = (Patch("begins", "shift", i),)
        spatial.append(Cut(SPATIAL[i], y.dims[axis], {0: taken, result: Reach(axis)}, shift, multiple=p["strides"][i]))
    return worth([
        cut("batch", y.dims[0], {0: 0, result: 0}),
        Cut("groups", p["group"], grouped, (Patch("group", "length"),)),
        *([cut("channels", y.dims[1], {1: 1, result: 1, **dict.fromkeys(bias, 0)})] if p["group"] == 1 else []),
        *spatial,
    ])


CONV_TRANSPOSE = Kernel(
    "conv_transpose_f32", params=(Param("strides", count=3), Param("begins", count=3), Param("dilations", count=3), Param("group")),
    variants=PORTABLE, cuts=cuts,
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
