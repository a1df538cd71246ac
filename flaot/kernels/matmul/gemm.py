"""float32 products with the vector kernel: panel widths, packing, and how operands reach the form it takes."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from flaot.ir.graph import Node, Value
from flaot.ir.ops.conv import Act
from flaot.ir.ops.matmul import Gemm, _Product
from flaot.ir.types import DType
from flaot.kernels.base import LANES, Builder, CpuChip, Implementation, Kernel, Param
from flaot.kernels.matmul.portable import Product, product
from flaot.plan.program import View, normal_strides

GEMM = Kernel(
    "gemm_f32",
    params=(
        Param("vl"), Param("nv"), Param("packed"), Param("bias"), Param("residual"), Param("scale", "f32"),
        Param("act"), Param("alpha", "f32"), Param("beta", "f32"),
    ),
    variants=("avx2", "avx512"),
)
HEIGHTS = {8: (8, 6, 4, 2), 16: (12, 12, 8, 6)}
"""Rows of a register tile for panels of 1, 2, 3 and 4 vectors."""

SCRATCH = {8: 384 * 4 * 8 * 4, 16: 384 * 4 * 16 * 4}
"""Bytes of a packed panel segment: KC x 4 vectors."""


def panel_vectors(m: int, n: int, lanes: int) -> int:
    """Vectors per panel: the least port cycles over all tiles; a step of k costs its FMAs or its loads, two each cycle."""

    def cost(nv: int) -> float:
        height = HEIGHTS[lanes][nv - 1]
        tiles = max(1, -(-m // height))  # no rows at all: any panel does
        panels, rest = divmod(-(-n // lanes), nv)

        def one(width: int) -> float:
            return tiles * max(-(-m // tiles) * width, -(-m // tiles) + width, 3) if width else 0.0

        return panels * one(nv) + one(rest)

    return min((4, 3, 2, 1), key=cost)


def pack_panels(weights: np.ndarray, nv: int, lanes: int) -> np.ndarray:
    """[k, n] as panels of ``nv`` vectors of columns, each [k][columns], one after the other, zero padded."""
    k, n = weights.shape
    vectors = -(-n // lanes)
    padded = np.zeros((k, vectors * lanes), np.float32)
    padded[:, :n] = weights
    cuts = range(0, vectors * lanes, nv * lanes)
    return np.concatenate([padded[:, c : c + nv * lanes].reshape(-1) for c in cuts]) if vectors and k else np.zeros(0, np.float32)


def padded(vector: np.ndarray, lanes: int) -> np.ndarray:
    """A vector with zeros up to whole SIMD vectors."""
    return np.pad(vector.astype(np.float32), (0, -len(vector) % lanes))


def merge_rows(views: Sequence[View]) -> list[View]:
    """Leading axes joined with the rows where the strides of all views allow it; all views have equal leading axes and rows."""
    out = [dataclasses.replace(v, strides=normal_strides(v.dims, v.strides)) for v in views]
    while len(out[0].dims) > 2:
        rows = out[0].dims[-2]
        if out[0].dims[-3] == 1:
            joint = [v.strides[-2] for v in out]
        elif rows == 1:
            joint = [v.strides[-3] for v in out]
        elif all(v.strides[-3] == v.strides[-2] * rows for v in out):
            joint = [v.strides[-2] for v in out]
        else:
            break
        out = [
            dataclasses.replace(v, dims=(*v.dims[:-3], v.dims[-3] * rows, v.dims[-1]), strides=(*v.strides[:-3], s, v.strides[-1]))
            for v, s in zip(out, joint, strict=True)
        ]
    return out


def contiguous(view: View, axis: int) -> bool:
    return view.dims[axis] <= 1 or view.strides[axis] == 1


def emit_gemm(
    b: Builder, left: View, right: View | np.ndarray, y: View, *, bias: np.ndarray | None = None, residual: View | None = None,
    scale: float = 1.0, act: Act = Act.none, alpha: float = 0.0, beta: float = 0.0,
) -> None:
    """Steps for y = act(scale left right + bias + residual); ``right`` [k, n] as an array is packed at compile time."""
    lanes = LANES[b.variant(GEMM)]
    flops = 2 * y.elements * left.dims[-1]
    extra = [] if residual is None else [residual]
    packed = isinstance(right, np.ndarray)
    if packed:
        left, y, *extra = merge_rows([left, y, *extra])
    nv = panel_vectors(y.dims[-2], y.dims[-1], lanes)
    operand = b.constant(pack_panels(right * np.float32(scale), nv, lanes)) if isinstance(right, np.ndarray) else right
    add = [] if bias is None else [b.constant(padded(bias, lanes))]
    b.step(
        GEMM, [left, operand, *add, *extra], [y], scratch=0 if packed else SCRATCH[lanes], parallel=flops > 400_000,
        vl=lanes, nv=nv, packed=int(packed), bias=len(add), residual=len(extra), scale=1.0 if packed else scale,
        act=int(act), alpha=alpha, beta=beta,
    )


def _constant(value: Value | None) -> bool:
    return value is None or value.is_constant


class VectorProduct(Implementation):
    op = _Product
    requires = "avx2"

    def reject(self, node: Node, chip: CpuChip) -> str | None:
        x = node.outputs[0].type
        if isinstance(node.op, Gemm) and node.op.beta not in (0.0, 1.0) and len(node.inputs) > 2 and not _constant(node.inputs[2]):
            return "beta other than 0 and 1 on a C that is not constant; the vector kernels do not scale it"
        return None if x.dtype is DType.float32 else f"{node.op.name} of {x.dtype.name}; the vector kernels take float32"

    def cost(self, node: Node, chip: CpuChip) -> float:
        c = node.op.cost(node.input_types, node.output_types)
        return c.flops / 60.0 + c.bytes / 20.0

    def lower(self, node: Node, b: Builder) -> None:
        p = product(node, b)
        weights = node.inputs[1]
        assert weights is not None
        packed = weights.data if weights.data is not None and weights.type.elements == p.right.dims[-1] * p.right.dims[-2] else None
        right: View | np.ndarray = p.right
        if packed is not None:
            matrix = packed.reshape(weights.type.shape[-2:])
            right = matrix.T if getattr(node.op, "trans_b", False) else matrix
        elif not contiguous(p.right, -1) and not contiguous(p.right, -2):
            right = b.dense(p.right)
        bias, residual = self._added(node, p, b)
        y = p.y if contiguous(p.y, -1) else b.temp(p.y.dtype, p.y.dims)
        emit_gemm(b, p.left, right, y, bias=bias, residual=residual, scale=p.scale, act=p.act, alpha=p.alpha, beta=p.act_beta)
        if y is not p.y:
            b.copy(y, p.y)

    def _added(self, node: Node, p: Product, b: Builder) -> tuple[np.ndarray | None, View | None]:
        """Bias as a constant vector, the rest as one residual view; C of a Gemm may be either."""
        c = node.inputs[2] if len(node.inputs) > 2 and p.bias is not None else None
        n = p.y.dims[-1]
        if c is None or p.bias is None:
            return None, self._residual(p.residual, p, b)
        if c.data is not None and c.type.elements in (1, n) and (c.type.rank < 2 or c.type.shape[-2] == 1):
            vector = np.broadcast_to(c.data.reshape(-1) * np.float32(p.beta), (n,))
            return vector, self._residual(p.residual, p, b)
        scaled = p.bias if c.data is None or p.beta == 1.0 else b.constant(c.data * np.float32(p.beta))
        return None, self._residual(scaled, p, b)

    def _residual(self, view: View | None, p: Product, b: Builder) -> View | None:
        if view is None:
            return None
        full = view.broadcast(p.y.dims)
        return full if contiguous(full, -1) else b.dense(full)
