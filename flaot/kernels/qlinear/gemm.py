"""Integer convolutions and matrix products as a vectorised product of gathered pixels and weights packed at compile time."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from flaot.ir.graph import Node
from flaot.ir.ops.integer import ConvInteger, QLinearConv, QLinearMatMul, _Conv, _Product
from flaot.kernels.base import LANES, Builder, CpuChip, Implementation, Kernel, Param, Storage
from flaot.kernels.common.axes import three
from flaot.plan.program import View

GEMM = Kernel(
    "conv_gemm_s8",
    params=(
        Param("vl"), Param("taps", count=3), Param("strides", count=3), Param("pads", count=3), Param("dilations", count=3), Param("group"),
    ),
    variants=("avx2", "avx512"),
)
"""Inputs x, packed weights, zero of x [1], then for 8-bit results scale of x [1] and w [M], scale and zero of the result [1], bias [M]."""

ROWS = 24
"""Pixels per block, as in gemm.h."""


def packed(w: np.ndarray, zero: np.ndarray, group: int, vl: int) -> np.ndarray:
    """[M, C / group, kernel...] less its zero points as int16 [group][panel][depth / 2][vector][lane][2]."""
    less = w.astype(np.int16) - zero.astype(np.int16).reshape(-1, *[1] * (w.ndim - 1))
    per, depth = w.shape[0] // group, math.prod(w.shape[1:])
    rows = np.moveaxis(less, 1, -1).reshape(group, per, depth)
    columns, even = -(-per // vl) * vl, depth + depth % 2
    pairs = np.pad(rows, ((0, 0), (0, columns - per), (0, even - depth))).reshape(group, columns, even // 2, 2)
    panels = [pairs[:, n : n + 2 * vl].swapaxes(1, 2).reshape(group, -1) for n in range(0, columns, 2 * vl)]
    return np.ascontiguousarray(np.concatenate(panels, axis=1).reshape(-1))


class _Way(Implementation):
    requires = "avx2"

    def cost(self, node: Node, chip: CpuChip) -> float:
        return node.op.cost(node.input_types, node.output_types).flops / 50 + 2 * node.outputs[0].type.elements + 1000


class ConvGemmWay(_Way):
    op = _Conv

    def reject(self, node: Node, chip: CpuChip) -> str | None:
        op = node.op
        assert isinstance(op, _Conv)
        linear = isinstance(op, QLinearConv)
        if not _known(node, 3 if linear else 1, 5 if linear else 3):
            return "weights or their zero points are not constant; the vector kernel packs them at compile time"
        per = node.outputs[0].type.shape[1] // op.group
        return "fewer than 4 output channels in a group" if per < 4 and op.group > 1 else None

    def storage(self, node: Node) -> Storage:
        return Storage.last

    def lower(self, node: Node, b: Builder) -> None:
        op, y = node.op, b.view(node.outputs[0])
        assert isinstance(op, ConvInteger | QLinearConv)
        slots = [None if v is None else b.view(v) for v in node.inputs]
        linear = isinstance(op, QLinearConv)
        w, zero = _data(node, 3 if linear else 1), _data(node, 5 if linear else 3)
        n = len(op.strides)
        window = {"taps": three(w.shape[2:], 1), "strides": three(op.strides, 1), "pads": three(op.pads[:n], 0)}
        rest = [slots[i] for i in (1, 4, 6, 7, 8)] if linear else []
        _step(b, node, _view(slots[0]), w, zero, slots[2], rest, y, group=op.group, dilations=three(op.dilations, 1), **window)


class MatMulGemmWay(_Way):
    op = _Product

    def reject(self, node: Node, chip: CpuChip) -> str | None:
        linear = isinstance(node.op, QLinearMatMul)
        a, b = node.inputs[0], node.inputs[3 if linear else 1]
        assert a is not None and b is not None
        if not _known(node, 3 if linear else 1, 5 if linear else 3):
            return "the right side or its zero points are not constant; the vector kernel packs them at compile time"
        scalars = [node.inputs[i] for i in ((1, 2, 6, 7) if linear else (2,))]
        if b.type.rank != 2 or 0 in a.type.shape or 0 in b.type.shape:
            return f"the right side is of rank {b.type.rank} or empty; the vector kernel takes one matrix"
        return "scales or zero points per row" if any(v is not None and v.type.elements != 1 for v in scalars) else None

    def lower(self, node: Node, b: Builder) -> None:
        linear = isinstance(node.op, QLinearMatMul)
        slots = [None if v is None else b.view(v) for v in node.inputs]
        w, zero = _data(node, 3 if linear else 1), _data(node, 5 if linear else 3)
        a, y = b.dense(_view(slots[0])), b.view(node.outputs[0])
        target = y if y.is_dense else b.temp(y.dtype, y.dims)
        rest = [*[slots[i] for i in (1, 4, 6, 7)], None] if linear else []
        ones, none = (1, 1, 1), (0, 0, 0)
        _step(
            b, node, _pixels(a), w.T.reshape(w.shape[1], w.shape[0], 1), zero, slots[2], rest, _pixels(target), group=1, taps=ones,
            strides=ones, pads=none, dilations=ones,
        )
        if target is not y:
            b.copy(target, y)


def _step(
    b: Builder, node: Node, x: View, w: np.ndarray, zero: np.ndarray, x_zero: View | None, rest: Sequence[View | None], y: View, *,
    group: int, **window: Any,
) -> None:
    m, vl = w.shape[0], LANES[b.variant(GEMM)]
    inputs = [x, b.constant(packed(w, zero.reshape(-1), group, vl)), _vector(b, x_zero, x, 1)]
    if rest:
        scale, w_scale, y_scale, y_zero, bias = rest
        inputs += [_vector(b, scale, x, 1), _vector(b, w_scale, x, m), _vector(b, y_scale, x, 1), _vector(b, y_zero, y, 1)]
        inputs += [] if bias is None else [bias]
    depth, columns = math.prod(w.shape[1:]), -(-(m // group) // vl) * vl
    parallel = node.op.cost(node.input_types, node.output_types).flops > 2_000_000
    scratch = ROWS * ((depth + depth % 2) * 2 + columns * 4) + columns * 4
    b.step(GEMM, inputs, [y], scratch=scratch, parallel=parallel, vl=vl, group=group, **window)


def _pixels(a: View) -> View:
    """A dense [..., rows, columns] as [1, columns, rows], channels last."""
    columns = a.dims[-1]
    rows = a.elements // columns
    return View(a.buffer, a.dtype, (1, columns, rows), (0, 1, columns), a.offset)


def _vector(b: Builder, view: View | None, like: View, size: int) -> View:
    found = view if view is not None else b.constant(np.zeros((), like.dtype.numpy))
    return found.reshape((found.elements,)).broadcast((size,))


def _view(view: View | None) -> View:
    assert view is not None
    return view


def _known(node: Node, *slots: int) -> bool:
    return all(v is None or v.data is not None for v in (node.inputs[i] for i in slots))


def _data(node: Node, slot: int) -> np.ndarray:
    value = node.inputs[slot]
    return np.zeros(1, np.int8) if value is None or value.data is None else value.data
