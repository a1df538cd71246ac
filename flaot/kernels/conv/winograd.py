"""3x3 stride 1 Conv by Winograd's minimal filtering, F(2x2) and F(4x4), on channels-last images.

The weights are transformed at compile time in float64: U = G g G^T. F(4x4) interpolates at 0, +-a, +-b and infinity with a = 3/4 and
b = 3/2; its error is 1.3 to 2.5 times that of summing directly, which Conv's tolerance covers. Off under ``precision_high``.
"""

from __future__ import annotations

import numpy as np

from flaot.ir.graph import Node
from flaot.ir.ops.conv import Conv
from flaot.kernels.base import LANES, Builder, CpuChip, Implementation, Kernel, Param, Storage
from flaot.kernels.conv import packing
from flaot.kernels.conv.gemm import epilogue_views
from flaot.kernels.conv.parts import EPILOGUE, RATE, Shape, data, epilogue, fastest, reject_vector, shape_of

CONV_WINO = Kernel(
    "conv_wino_f32", params=(Param("vl"), Param("m"), Param("pads", count=2), Param("tiles"), *EPILOGUE), variants=("avx2", "avx512")
)
"""Inputs x, transformed weights, bias, then residual and slope as flagged. ``m`` x ``m`` outputs per tile; blocks of ``tiles``."""

_A, _B = 0.75, 1.5
_NA, _NB = 2 * _A**2 * (_A**2 - _B**2), 2 * _B**2 * (_B**2 - _A**2)
G = {
    2: np.array([[1, 0, 0], [0.5, 0.5, 0.5], [0.5, -0.5, 0.5], [0, 0, 1]]),
    4: np.array([
        [1 / (_A * _B) ** 2, 0, 0], [1 / _NA, _A / _NA, _A**2 / _NA], [1 / _NA, -_A / _NA, _A**2 / _NA],
        [1 / _NB, _B / _NB, _B**2 / _NB], [1 / _NB, -_B / _NB, _B**2 / _NB], [0, 0, 1],
    ]),
}
"""Weight transforms by m."""

BLOCK_BYTES = 1_500_000
"""Bytes of transformed input and output of a block of tiles."""

LEAST = 16
"""Fewest input and output channels for which the transforms pay."""


def transformed(w: np.ndarray, m: int, vl: int) -> np.ndarray:
    """[M, C, 3, 3] to [point][panel][channel][lane], flat. Plain float64 sums in a fixed order: the same bytes on every machine."""
    g = w.astype(np.float64).transpose(2, 3, 1, 0)
    rows = [a * g[0] + b * g[1] + c * g[2] for a, b, c in G[m]]
    u = np.stack([a * r[0] + b * r[1] + c * r[2] for r in rows for a, b, c in G[m]])
    return packing.panel_pack(u.astype(np.float32), vl)


def tiles_of(s: Shape, m: int) -> int:
    return s.n * -(-s.out[0] // m) * -(-s.out[1] // m)


class _Winograd(Implementation):
    requires = "avx2"
    m: int

    def reject(self, node: Node, chip: CpuChip) -> str | None:
        reason = reject_vector(node)
        if reason is not None:
            return reason
        s = shape_of(node)
        if chip.precision_high:
            return "Winograd rounds more than direct summation; the chip asks for high precision"
        if (s.kernel, s.strides, s.dilations, s.group) != ((3, 3), (1, 1), (1, 1), 1):
            return f"kernel {list(s.kernel)}, strides {list(s.strides)}, group {s.group}; Winograd is for 3x3, stride 1, one group"
        return None if min(s.ic, s.oc) >= LEAST else f"{s.ic} input and {s.oc} output channels; Winograd pays from {LEAST}"

    def storage(self, node: Node) -> Storage:
        return Storage.last

    def in_place(self, node: Node) -> tuple[int, ...]:
        return (3,)

    def cost(self, node: Node, chip: CpuChip) -> float:
        s, variant = shape_of(node), fastest(CONV_WINO, chip)
        vl, points, tiles = LANES[variant], (self.m + 2) ** 2, tiles_of(s, self.m)
        padded = packing.round_up(s.oc, vl)
        blocks = -(-tiles // self.block(s))
        weights = 4 * points * s.ic * padded
        products = 2 * points * tiles * s.ic * padded / RATE[variant]
        transforms = tiles * (s.ic + padded) / vl * points * 2.0
        return products + transforms + blocks * weights / 20.0 + 1000

    def block(self, s: Shape) -> int:
        """Tiles per block."""
        per_tile = (self.m + 2) ** 2 * 4 * (s.ic + s.oc)
        return max(min(BLOCK_BYTES // per_tile // 12 * 12, 96, tiles_of(s, self.m)), min(12, tiles_of(s, self.m)), 1)

    def lower(self, node: Node, b: Builder) -> None:
        s, w = shape_of(node), data(node, 1)
        assert w is not None
        vl, tiles = LANES[b.variant(CONV_WINO)], self.block(s)
        inputs = [
            b.view(node.inputs[0]), b.constant(transformed(w, self.m, vl)), b.constant(packing.vector(data(node, 2), s.oc, 1, vl)),
            *epilogue_views(node, b, s, vl, 1),
        ]
        plane = tiles * (packing.round_up(s.ic, vl) + packing.round_up(s.oc, vl)) + 32
        b.step(
            CONV_WINO, inputs, [b.view(node.outputs[0])],
            scratch=(max(packing.round_up(s.ic, 16), 64) + (self.m + 2) ** 2 * plane) * 4 + tiles * 16,
            parallel=s.pixels * s.oc * s.ic > 100_000, vl=vl, m=self.m, pads=s.pads, tiles=tiles, **epilogue(node),
        )


class Winograd2Way(_Winograd):
    op = Conv
    m = 2


class Winograd4Way(_Winograd):
    op = Conv
    m = 4
