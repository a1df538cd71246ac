"""Attention in one step per head and query, any strides."""

from __future__ import annotations

from flaot.ir.graph import Node
from flaot.ir.ops.attention import Attention
from flaot.kernels.base import PORTABLE, Builder, CpuChip, Implementation, Kernel, Param, float32_only

ATTENTION = Kernel(
    "attention_f32",
    params=(Param("scale", "f32"), Param("softcap", "f32"), Param("causal"), Param("offset"), Param("zero_blind")),
    variants=PORTABLE,
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
