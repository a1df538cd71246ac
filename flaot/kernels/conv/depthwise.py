"""Conv with one filter per channel, on channels-last images."""

from __future__ import annotations

from flaot.ir.graph import Node
from flaot.ir.ops.conv import Conv
from flaot.kernels.base import LANES, Builder, CpuChip, Implementation, Kernel, Param, Storage
from flaot.kernels.conv import packing
from flaot.kernels.conv.gemm import epilogue_views
from flaot.kernels.conv.parts import EPILOGUE, RATE, WINDOW, Shape, data, epilogue, fastest, reject_vector, shape_of

CONV_DW = Kernel("conv_dw_f32", params=(Param("vl"), *WINDOW, Param("band"), *EPILOGUE), variants=("avx2", "avx512"))
"""Inputs x, packed weights, bias, then residual and slope as flagged. ``band`` rows are computed tile column by tile column."""

BAND_BYTES = 256 * 1024
"""Input bytes of a band: they should stay in L2."""


class DepthwiseWay(Implementation):
    op = Conv
    requires = "avx2"

    def reject(self, node: Node, chip: CpuChip) -> str | None:
        reason = reject_vector(node)
        if reason is not None:
            return reason
        s = shape_of(node)
        if s.group == s.ic == s.oc:
            return None
        return f"{s.ic} input and {s.oc} output channels in {s.group} groups; depthwise has one filter per channel"

    def storage(self, node: Node) -> Storage:
        return Storage.last

    def in_place(self, node: Node) -> tuple[int, ...]:
        return (3,)

    def cost(self, node: Node, chip: CpuChip) -> float:
        s, variant = shape_of(node), fastest(CONV_DW, chip)
        return 2 * s.pixels * s.taps * packing.round_up(s.oc, LANES[variant]) / (0.4 * RATE[variant]) + 300

    def lower(self, node: Node, b: Builder) -> None:
        s, w = shape_of(node), data(node, 1)
        assert w is not None
        vl = LANES[b.variant(CONV_DW)]
        inputs = [
            b.view(node.inputs[0]), b.constant(packing.depthwise_weights(w, vl)),
            b.constant(packing.vector(data(node, 2), s.oc, 1, vl)), *epilogue_views(node, b, s, vl, 1),
        ]
        columns = s.kernel[0] * (3 * s.strides[1] + s.kernel[1])
        b.step(
            CONV_DW, inputs, [b.view(node.outputs[0])], scratch=packing.round_up(s.oc, 16) * 4 + (columns + s.out[1]) * 8,
            parallel=s.pixels * s.oc * s.taps > 200_000, vl=vl, band=band(s), **s.window, **epilogue(node),
        )


def band(s: Shape) -> int:
    """Output rows per band."""
    row = s.size[1] * s.ic * 4 * s.strides[0]
    return max(BAND_BYTES // max(row, 1), 1)
