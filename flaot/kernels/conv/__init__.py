"""Conv and FusedConv on CPUs: one implementation per way of computing it; the cheapest that fits is chosen by shape."""

from __future__ import annotations

from typing import Any

from flaot.ir.graph import Node
from flaot.ir.ops.conv import Conv, FusedConv
from flaot.ir.types import DType
from flaot.kernels.base import Builder, CpuChip, Implementation, Kernel, Param, Storage
from flaot.plan.program import View

CONV = Kernel(
    "conv_f32",
    params=(
        Param("strides", count=3), Param("pads", count=3), Param("dilations", count=3), Param("group"),
        Param("bias"), Param("residual"), Param("act"), Param("alpha", "f32"), Param("beta", "f32"),
    ),
)
"""Inputs x, w, then as flagged bias and residual, then slope when act is prelu. Arrays hold the last n entries for n spatial axes."""

OFFSETS_PER_TAP = 17 * 8
"""Bytes of scratch the portable kernel takes per kernel tap."""


def _three(values: tuple[int, ...], fill: int) -> tuple[int, ...]:
    return (fill,) * (3 - len(values)) + values


def _epilogue(node: Node, b: Builder) -> tuple[list[View], dict[str, Any]]:
    """Operands after the weights and the parameters that describe them."""
    op = node.op
    views = [b.view(v) for v in node.inputs[2:] if v is not None]
    given = [v is not None for v in (*node.inputs[2:], None, None, None)]
    fused = op if isinstance(op, FusedConv) else None
    return views, {
        "bias": int(given[0]), "residual": int(given[1]), "act": int(fused.act) if fused else 0,
        "alpha": fused.alpha if fused else 0.0, "beta": fused.beta if fused else 0.0,
    }


class PlainWay(Implementation):
    """Any Conv, any strides, weights as the model has them."""

    op = Conv

    def reject(self, node: Node, chip: CpuChip) -> str | None:
        dtype = node.outputs[0].type.dtype
        return None if dtype is DType.float32 else f"{node.op.name} of {dtype.name}; the CPU kernels take float32"

    def storage(self, node: Node) -> Storage:
        return Storage.plain

    def lower(self, node: Node, b: Builder) -> None:
        op = node.op
        assert isinstance(op, Conv) and node.inputs[0] is not None and node.inputs[1] is not None
        x, w, y = b.view(node.inputs[0]), b.view(node.inputs[1]), b.view(node.outputs[0])
        rest, flags = _epilogue(node, b)
        n = len(op.strides)
        b.step(
            CONV, [x, w, *rest], [y], scratch=_taps(w) * OFFSETS_PER_TAP,
            parallel=op.cost(node.input_types, node.output_types).flops > 500_000,
            strides=_three(op.strides, 1), pads=_three(op.pads[:n], 0), dilations=_three(op.dilations, 1), group=op.group, **flags,
        )


def _taps(w: View) -> int:
    taps = 1
    for k in w.dims[2:]:
        taps *= k
    return taps
