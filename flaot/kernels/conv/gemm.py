"""Dense and grouped Conv as implicit GEMM on channels-last images."""

from __future__ import annotations

from flaot.ir.graph import Node
from flaot.ir.ops.conv import Conv
from flaot.kernels.base import LANES, Builder, CpuChip, Implementation, Kernel, Param, Storage
from flaot.kernels.conv import packing
from flaot.kernels.conv.parts import EPILOGUE, RATE, WINDOW, Shape, data, epilogue, fastest, reject_vector, shape_of
from flaot.plan.program import View

CONV_GEMM = Kernel(
    "conv_gemm_f32", params=(Param("vl"), Param("group"), *WINDOW, Param("mc"), Param("kc"), *EPILOGUE), variants=("avx2", "avx512")
)
"""Inputs x, packed weights, bias, then residual and slope as flagged. Blocks of mc pixels; segments of about kc products."""

SHORT_RUN = 3.0
"""Nanoseconds a pixel loses per tap when the tap has fewer than 16 channels: its pointers cost more than its products."""

NARROW = 1.6
"""Factor on products when one vector holds all output channels: loads bound the kernel."""

POINTERS = 16_384
"""Most entries of a block's pointer table."""


class GemmWay(Implementation):
    op = Conv
    requires = "avx2"

    def reject(self, node: Node, chip: CpuChip) -> str | None:
        return reject_vector(node)

    def storage(self, node: Node) -> Storage:
        return Storage.last

    def in_place(self, node: Node) -> tuple[int, ...]:
        return (3,)

    def cost(self, node: Node, chip: CpuChip) -> float:
        s, variant = shape_of(node), fastest(CONV_GEMM, chip)
        padded = packing.round_up(s.oc // s.group, LANES[variant]) * s.group
        products = s.pixels * s.taps * (s.ic // s.group) * padded
        short = SHORT_RUN * s.pixels * s.taps if s.taps > 1 and s.ic // s.group < 16 else 0
        narrow = NARROW if s.oc // s.group <= LANES[variant] else 1.0
        return 2 * products * narrow / RATE[variant] + short + 4 * s.pixels * (s.taps + s.group) + 500

    def lower(self, node: Node, b: Builder) -> None:
        s, w = shape_of(node), data(node, 1)
        assert w is not None
        vl = LANES[b.variant(CONV_GEMM)]
        mc = block(s)
        inputs = [
            b.view(node.inputs[0]), b.constant(packing.gemm_weights(w, s.group, vl)),
            b.constant(packing.vector(data(node, 2), s.oc, s.group, vl)), *epilogue_views(node, b, s, vl, s.group),
        ]
        b.step(
            CONV_GEMM, inputs, [b.view(node.outputs[0])],
            scratch=packing.round_up(s.ic, 16) * 4 + s.taps * mc * 8 + mc * 32, parallel=parallel(s),
            vl=vl, group=s.group, mc=mc, kc=256, **s.window, **epilogue(node),
        )


def epilogue_views(node: Node, b: Builder, s: Shape, vl: int, group: int) -> list[View]:
    """Residual and padded slopes, where the node has them."""
    residual = node.inputs[3] if len(node.inputs) > 3 else None
    slope = data(node, 4)
    views = [] if residual is None else [b.view(residual)]
    return views if slope is None else [*views, b.constant(packing.vector(slope, s.oc, group, vl))]


def block(s: Shape) -> int:
    """Pixels per block of the GEMM kernel."""
    return max(min(192, s.pixels, POINTERS // s.taps), min(24, s.pixels), 1)


def parallel(s: Shape) -> bool:
    """Whether splitting over threads pays: some 20 microseconds of work."""
    return 2 * s.pixels * s.oc * s.taps * (s.ic // s.group) > 2_000_000
