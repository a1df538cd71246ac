"""LRN, any strides."""

from __future__ import annotations

from collections.abc import Sequence

from flaot.ir.graph import Node
from flaot.ir.ops.lrn import LRN
from flaot.kernels.base import PORTABLE, Builder, CpuChip, Implementation, Kernel, Param, Storage, float32_only
from flaot.kernels.common.cuts import shared
from flaot.kernels.tiling import Cut
from flaot.plan.program import Step


def cuts(step: Step) -> Sequence[Cut]:
    """Not along channels: a call writes every channel it reads."""
    return shared(step, (1,))


LRN_F32 = Kernel(
    "lrn_f32", params=(Param("size"), Param("alpha", "f32"), Param("beta", "f32"), Param("bias", "f32")), variants=PORTABLE,
    cuts=cuts,
)


class LrnWay(Implementation):
    op = LRN

    def reject(self, node: Node, chip: CpuChip) -> str | None:
        return float32_only(node)

    def storage(self, node: Node) -> Storage:
        return Storage.either

    def lower(self, node: Node, b: Builder) -> None:
        op = node.op
        assert isinstance(op, LRN)
        x, y = b.view(node.inputs[0]), b.view(node.outputs[0])
        b.step(LRN_F32, [x], [y], parallel=x.elements > 20_000, size=op.size, alpha=op.alpha, beta=op.beta, bias=op.bias)
