"""Products of 8-bit integers with exact int32 sums: matrices and convolutions, with or without rounding back to 8 bits."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from flaot.ir.graph import Node
from flaot.ir.ops.integer import ConvInteger, QLinearConv, QLinearMatMul, _Conv, _Product
from flaot.kernels.base import Builder, CpuChip, Implementation, Kernel, Param, Storage
from flaot.kernels.common.axes import three
from flaot.kernels.common.cuts import convolution, cut, worth
from flaot.kernels.qlinear import gemm
from flaot.kernels.tiling import Cut
from flaot.plan.program import Step, View


def _product_cuts(step: Step) -> Sequence[Cut]:
    y, result = step.outputs[0], len(step.inputs)
    rows, columns = len(y.dims) - 2, len(y.dims) - 1
    of_rows, of_columns = [o for o in (2, 4, 6, 7) if o < result], [o for o in (3, 5) if o < result]
    batches = [cut(f"batch {a}", y.dims[a], dict.fromkeys(range(result + 1), a)) for a in range(rows)]
    return worth([
        *batches,
        cut("rows", y.dims[rows], dict.fromkeys((0, *of_rows, result), rows)),
        cut("columns", y.dims[columns], {1: columns, **dict.fromkeys(of_columns, rows), result: columns}),
    ])


def _conv_cuts(step: Step) -> Sequence[Cut]:
    result = len(step.inputs)
    return convolution(step, [o for o in (3, 5, 8) if o < result], [result])


MATMUL = Kernel("matmul_s8", cuts=_product_cuts, transposed=True)
"""Inputs a [.., M, K], b [.., K, N], zeros of a [.., M] and b [.., N], then for 8-bit results scales [.., M] and [.., N] and the result's
scale and zero [.., M]. All batch dims are those of the output."""

CONV = Kernel(
    "conv_s8", params=(Param("strides", count=3), Param("pads", count=3), Param("dilations", count=3), Param("group"), Param("bias")),
    cuts=_conv_cuts,
)
"""Inputs x, w, zeros of x [] and w [M], then for 8-bit results scales of x [] and w [M], scale and zero of the result [], and bias [M]."""


def _along(b: Builder, view: View | None, like: View, batch: tuple[int, ...], size: int, axis: int) -> View:
    """A scale or zero point broadcast to [batch..., size]; absent zero points are 0."""
    if view is None:
        view = b.constant(np.zeros((), like.dtype.numpy))
    if len(view.dims) > 1:  # [..., size, 1] or [..., 1, size]
        view = view.slice(-3 - axis, 0, 1)
        keep = [i for i in range(len(view.dims)) if i != len(view.dims) - 3 - axis]
        view = View(view.buffer, view.dtype, tuple(view.dims[i] for i in keep), tuple(view.strides[i] for i in keep), view.offset)
    return view.broadcast((*batch, size))


class MatMulWay(Implementation):
    op = _Product

    def cost(self, node: Node, chip: CpuChip) -> float:
        return node.op.cost(node.input_types, node.output_types).flops / 2

    def lower(self, node: Node, b: Builder) -> None:
        slots = [None if v is None else b.view(v) for v in node.inputs]
        y = b.view(node.outputs[0])
        batch, m, n = y.dims[:-2], y.dims[-2], y.dims[-1]
        linear = isinstance(node.op, QLinearMatMul)
        a, w = _given(slots[0]), _given(slots[3 if linear else 1])
        zeros = [_along(b, slots[2], a, batch, m, -2), _along(b, slots[5 if linear else 3], w, batch, n, -1)]
        inputs = [a.broadcast((*batch, *a.dims[-2:])), w.broadcast((*batch, *w.dims[-2:])), *zeros]
        if linear:
            inputs += [_along(b, slots[1], a, batch, m, -2), _along(b, slots[4], w, batch, n, -1)]
            inputs += [_along(b, slots[6], a, batch, m, -2), _along(b, slots[7], y, batch, m, -2)]
        b.step(MATMUL, inputs, [y], scratch=4 * n, parallel=_heavy(node))


class ConvWay(Implementation):
    op = _Conv

    def cost(self, node: Node, chip: CpuChip) -> float:
        return node.op.cost(node.input_types, node.output_types).flops / 2

    def storage(self, node: Node) -> Storage:
        return Storage.either

    def lower(self, node: Node, b: Builder) -> None:
        op, y = node.op, b.view(node.outputs[0])
        assert isinstance(op, ConvInteger | QLinearConv)
        slots = [None if v is None else b.view(v) for v in node.inputs]
        linear = isinstance(op, QLinearConv)
        x, w = _given(slots[0]), _given(slots[3 if linear else 1])
        m, n = w.dims[0], len(op.strides)
        inputs = [x, w, _one(b, slots[2], x, 1), _one(b, slots[5 if linear else 3], w, m)]
        if linear:
            inputs += [_one(b, slots[1], x, 1), _one(b, slots[4], w, m), _one(b, slots[6], x, 1), _one(b, slots[7], y, 1)]
            inputs += [v for v in slots[8:] if v is not None]
        b.step(
            CONV, inputs, [y], parallel=_heavy(node), strides=three(op.strides, 1), pads=three(op.pads[:n], 0),
            dilations=three(op.dilations, 1), group=op.group, bias=int(linear and slots[8] is not None),
        )


def _given(view: View | None) -> View:
    assert view is not None
    return view


def _one(b: Builder, view: View | None, like: View, size: int) -> View:
    """A scale or zero point as [size]."""
    found = view if view is not None else b.constant(np.zeros((), like.dtype.numpy))
    return found.reshape((found.elements,)).broadcast((size,))


def _heavy(node: Node) -> bool:
    return node.op.cost(node.input_types, node.output_types).flops > 500_000


__all__ = ["CONV", "MATMUL", "ConvWay", "MatMulWay", "gemm"]
