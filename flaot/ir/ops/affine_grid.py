"""AffineGrid, read as a matrix product: the positions of an upright grid times the transposed affine maps."""

from __future__ import annotations

import math

import numpy as np

from flaot.ir.op import reads
from flaot.ir.ops.cast import cast
from flaot.ir.ops.matmul import MatMul
from flaot.ir.ops.reshape import Reshape
from flaot.ir.ops.transpose import Transpose
from flaot.ir.reading import NodeReader
from flaot.ir.types import MAX_ELEMENTS, DType


@reads("AffineGrid")
def read(r: NodeReader) -> None:
    theta, size = r.input(0), [int(d) for d in r.constant(1, "the size").reshape(-1)]
    n = len(size) - 2
    if n not in (2, 3) or theta.type.shape != (size[0], n, n + 1) or any(d < 1 for d in size):
        r.fail(f"theta {theta.type} for size {size}; [N, 2, 3] for N, C, H, W or [N, 3, 4] for N, C, D, H, W is expected")
    if math.prod(size[2:]) * (n + 1) > MAX_ELEMENTS:
        r.unsupported(f"AffineGrid of size {size}; it has more than {MAX_ELEMENTS} elements")
    if theta.type.dtype is DType.float64:
        r.unsupported("AffineGrid of float64; the other float types are supported")
    grid = r.literal(upright(size[2:], r.int("align_corners", 0) != 0))
    maps = r.emit(Transpose((0, 2, 1)), [cast(r, theta, DType.float32)])
    r.result(cast(r, r.emit(Reshape((size[0], *size[2:], n)), [r.emit(MatMul(), [grid, maps])]), theta.type.dtype))


def upright(sizes: list[int], align_corners: bool) -> np.ndarray:
    """[1, points, n + 1]: every position, last axis first as grids have it, and a 1."""
    axes = []
    for d in sizes:
        i = np.arange(d, dtype=np.float32)
        axes.append((2 * i / np.float32(max(d - 1, 1)) - 1 if d > 1 else i * 0) if align_corners else (2 * i + 1) / np.float32(d) - 1)
    mesh = np.meshgrid(*axes, indexing="ij")
    return np.stack([*(m.reshape(-1) for m in reversed(mesh)), np.ones(math.prod(sizes), np.float32)], axis=-1)[None].astype(np.float32)
