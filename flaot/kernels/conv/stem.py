"""First Conv of a net: few input channels, row-major in, channels last out."""

from __future__ import annotations

from flaot.ir.graph import Node
from flaot.ir.ops.conv import Conv
from flaot.kernels.base import Builder, CpuChip, Implementation, Kernel, Param, Storage
from flaot.kernels.conv import packing
from flaot.kernels.conv.gemm import epilogue_views, parallel
from flaot.kernels.conv.parts import EPILOGUE, RATE, WINDOW, Shape, data, epilogue, fastest, lanes, reject_vector, shape_of

CONV_STEM = Kernel("conv_stem_f32", params=(Param("vl"), *WINDOW, Param("band"), *EPILOGUE), variants=("avx2", "avx512"))
"""Inputs x, packed weights, bias, then slope as flagged; residual is 0. ``band`` output rows are computed at a time."""

MOST, MOST_WIDE = 4, 40
"""Most input channels, and most under kernels at least five wide; with more, channels last is the better input."""

BAND_PIXELS = 448


class StemWay(Implementation):
    op = Conv
    requires = "avx2"

    def reject(self, node: Node, chip: CpuChip) -> str | None:
        reason = reject_vector(node)
        if reason is not None:
            return reason
        s = shape_of(node)
        most = MOST_WIDE if s.kernel[1] >= 5 else MOST
        if s.ic > most or s.group != 1 or s.dilations[1] != 1:
            return f"{s.ic} input channels, group {s.group}; the first-layer kernel takes up to {most} in one group, not dilated along rows"
        return "a residual is given" if len(node.inputs) > 3 and node.inputs[3] is not None else None

    def storage(self, node: Node) -> Storage:
        return Storage.last

    def input_storage(self, node: Node, slot: int) -> Storage:
        return Storage.plain

    def cost(self, node: Node, chip: CpuChip) -> float:
        s, variant = shape_of(node), fastest(CONV_STEM, chip)
        products = s.pixels * s.taps * s.ic * packing.round_up(s.oc, lanes(variant))
        return 2 * products / (0.7 * RATE[variant]) + s.ic * s.size[0] * s.size[1] * s.n * 0.2 + 500

    def lower(self, node: Node, b: Builder) -> None:
        s, w = shape_of(node), data(node, 1)
        assert w is not None
        vl, rows = lanes(b.variant(CONV_STEM)), band(s)
        inputs = [
            b.view(node.inputs[0]), b.constant(packing.panel_pack(w.reshape(1, s.oc, -1).transpose(0, 2, 1), vl)),
            b.constant(packing.vector(data(node, 2), s.oc, 1, vl)), *epilogue_views(node, b, s, vl, 1),
        ]
        read = (rows - 1) * s.strides[0] + (s.kernel[0] - 1) * s.dilations[0] + 1
        columns = (s.out[1] - 1) * s.strides[1] + s.kernel[1]
        b.step(
            CONV_STEM, inputs, [b.view(node.outputs[0])],
            scratch=rows * s.out[1] * 16 + s.ic * s.kernel[0] * 8 + s.ic * read * columns * 4, parallel=parallel(s),
            vl=vl, band=rows, **s.window, **epilogue(node),
        )


def band(s: Shape) -> int:
    """Output rows per band."""
    return max(min(BAND_PIXELS // max(s.out[1], 1), s.out[0]), 1)
