"""Attention in one step per head and query, any strides."""

from __future__ import annotations

from collections.abc import Sequence

from flaot.ir.graph import Node
from flaot.ir.ops.attention import Attention
from flaot.kernels.base import PORTABLE, Builder, CpuChip, Implementation, Kernel, Param, float32_only
from flaot.kernels.common.cuts import cut, record, worth
from flaot.kernels.tiling import Cut, Patch, Reach
from flaot.plan.program import Step


def cuts(step: Step) -> Sequence[Cut]:
    """Batches, heads (those of one key head together), then queries; not keys, over which sums run."""
    q, k = step.inputs[:2]
    count, heads = len(step.inputs), q.dims[1] // k.dims[1]
    likes = [0, *range(3, count + 1)]
    together = {o: Reach(1, heads, 0, heads) for o in likes} | {1: Reach(1), 2: Reach(1)}
    single = cut("heads", q.dims[1], dict.fromkeys(likes, 1))
    start = (Patch("offset", "start"),) if record(step)["causal"] else ()
    return worth([
        cut("batch", q.dims[0], dict.fromkeys(range(count + 1), 0)),
        single if k.dims[1] == 1 else Cut("heads", k.dims[1], together),
        Cut("queries", q.dims[2], {o: Reach(2) for o in likes}, start),
    ])


ATTENTION = Kernel(
    "attention_f32",
    params=(Param("scale", "f32"), Param("softcap", "f32"), Param("causal"), Param("offset"), Param("zero_blind")),
    variants=PORTABLE,
    cuts=cuts,
    transposed=True,
)


class AttentionWay(Implementation):
    op = Attention

    def reject(self, node: Node, chip: CpuChip) -> str | None:
        return float32_only(node)

    def lower(self, node: Node, b: Builder) -> None:
        op = node.op
        assert isinstance(op, Attention)
        q, k, v = (b.view(x) for x in node.inputs[:3])
        mask = node.inputs[3] if len(node.inputs) > 3 else None
        scores = (*q.dims[:3], k.dims[2])
        masks = [] if mask is None else [b.view(mask).broadcast(scores)]
        b.step(
            ATTENTION, [q, k, v, *masks], [b.view(node.outputs[0])], scratch=4 * (k.dims[2] + q.dims[3] + v.dims[3]),
            parallel=op.cost(node.input_types, node.output_types).flops > 200_000, scale=op.scale, softcap=op.softcap,
            causal=int(op.causal), offset=op.offset, zero_blind=int(op.zero_blind),
        )
