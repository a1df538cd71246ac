"""Conv with few input channels: of the model's planes (a first layer), or of channels-last images along whole kernel rows."""

from __future__ import annotations

import numpy as np

from flaot.ir.graph import Node
from flaot.ir.ops.conv import Conv
from flaot.kernels.base import LANES, Builder, CpuChip, Implementation, Kernel, Param, Storage
from flaot.kernels.conv import packing
from flaot.kernels.conv.gemm import NARROW, epilogue_views, parallel
from flaot.kernels.conv.parts import EPILOGUE, RATE, WINDOW, Shape, data, epilogue, fastest, reject_vector, shape_of

CONV_STEM = Kernel("conv_stem_f32", params=(Param("vl"), *WINDOW, Param("band"), Param("last"), *EPILOGUE), variants=("avx2", "avx512"))
"""Inputs x, packed weights, bias, then slope as flagged; residual is 0. ``band`` output rows are computed at a time.
``last`` is 1 when x is stored channels last."""

MOST, MOST_WIDE = 4, 40
"""Most input channels, and most under kernels at least five wide; with more, channels last is the better input."""

BAND_PIXELS = 448


class _Rows(Implementation):
    requires = "avx2"
    last: int

    def reject(self, node: Node, chip: CpuChip) -> str | None:
        reason = reject_vector(node)
        if reason is not None:
            return reason
        s = shape_of(node)
        if s.group != 1 or s.dilations[1] != 1:
            return f"group {s.group}, dilations {list(s.dilations)}; the row kernel takes one group, not dilated along rows"
        return "a residual is given" if len(node.inputs) > 3 and node.inputs[3] is not None else None

    def storage(self, node: Node) -> Storage:
        return Storage.last

    def copied(self, s: Shape) -> float:
        """Nanoseconds of copying the input."""
        reread = _read(s, band(s)) / (band(s) * s.strides[0])
        return s.n * s.ic * s.size[0] * s.size[1] * max(reread, 1.0) * 0.3

    def lower(self, node: Node, b: Builder) -> None:
        s, w = shape_of(node), data(node, 1)
        assert w is not None
        vl, rows = LANES[b.variant(CONV_STEM)], band(s)
        columns = (s.out[1] - 1) * s.strides[1] + s.kernel[1]
        inputs = [
            b.view(node.inputs[0]), b.constant(packing.panel_pack(self.weights(w), vl)),
            b.constant(packing.vector(data(node, 2), s.oc, 1, vl)), *epilogue_views(node, b, s, vl, 1),
        ]
        b.step(
            CONV_STEM, inputs, [b.view(node.outputs[0])],
            scratch=rows * s.out[1] * 16 + s.ic * s.kernel[0] * 8 + s.ic * _read(s, rows) * columns * 4, parallel=parallel(s),
            vl=vl, band=rows, last=self.last, **s.window, **epilogue(node),
        )

    def weights(self, w: np.ndarray) -> np.ndarray:
        """[1, K, M] in the order the kernel sums."""
        raise NotImplementedError


class StemWay(_Rows):
    """Planes in: no layout change before the first layer."""

    op = Conv
    last = 0

    def reject(self, node: Node, chip: CpuChip) -> str | None:
        reason = super().reject(node, chip)
        if reason is not None:
            return reason
        s = shape_of(node)
        most = MOST_WIDE if s.kernel[1] >= 5 else MOST
        return None if s.ic <= most else f"{s.ic} input channels; the first-layer kernel takes up to {most} at this width"

    def input_storage(self, node: Node, slot: int) -> Storage:
        return Storage.plain

    def cost(self, node: Node, chip: CpuChip) -> float:
        s, variant = shape_of(node), fastest(CONV_STEM, chip)
        products = s.pixels * s.taps * s.ic * packing.round_up(s.oc, LANES[variant])
        narrow = NARROW if s.oc <= LANES[variant] else 1.0
        return 2 * products * narrow / (0.7 * RATE[variant]) + self.copied(s) + 500

    def weights(self, w: np.ndarray) -> np.ndarray:
        return w.reshape(1, w.shape[0], -1).transpose(0, 2, 1)


class RowsWay(_Rows):
    """Channels last in: with few channels a kernel row is one run instead of many short ones."""

    op = Conv
    last = 1

    def cost(self, node: Node, chip: CpuChip) -> float:
        s, variant = shape_of(node), fastest(CONV_STEM, chip)
        products = s.pixels * s.taps * s.ic * packing.round_up(s.oc, LANES[variant])
        narrow = NARROW if s.oc <= LANES[variant] else 1.0
        return 2 * products * narrow / (0.9 * RATE[variant]) + self.copied(s) + 800

    def weights(self, w: np.ndarray) -> np.ndarray:
        order = (0, *range(2, w.ndim), 1)
        return w.transpose(order).reshape(1, w.shape[0], -1).transpose(0, 2, 1)


def _read(s: Shape, rows: int) -> int:
    """Input rows that ``rows`` output rows read."""
    return (rows - 1) * s.strides[0] + (s.kernel[0] - 1) * s.dilations[0] + 1


def band(s: Shape) -> int:
    """Output rows per band."""
    return max(min(BAND_PIXELS // max(s.out[1], 1), s.out[0]), 1)
