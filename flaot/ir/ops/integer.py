"""Products of quantized integers: MatMulInteger and ConvInteger give int32, QLinearMatMul and QLinearConv round back to 8 bits.

Accumulation is exact (int32, wrapping). Rounding back is saturate(round_half_even(sum * (a_scale * b_scale / y_scale)) + y_zero).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from flaot.ir.graph import Value
from flaot.ir.op import Cost, Op, Tolerance, reads, require
from flaot.ir.ops.conv import check_window, same_pads
from flaot.ir.ops.reshape import Reshape
from flaot.ir.reading import NodeReader
from flaot.ir.types import DType, TensorType, broadcast_shapes
from flaot.ir.windows import window_count

BYTES = (DType.int8, DType.uint8)


def _bytes(name: str, *types: TensorType | None) -> None:
    for t in types:
        require(t is not None and t.dtype in BYTES, f"{name} of {t}; int8 and uint8 are expected")


def _zero(name: str, zero: TensorType | None, of: TensorType) -> None:
    require(zero is None or zero.dtype is of.dtype, f"{name} of {of.dtype.name} with a zero point of {zero.dtype.name if zero else ''}")


def _fits(what: str, t: TensorType | None, axis: int, size: int, rank: int) -> None:
    """A scale or zero point is one number, or one per row (axis -2) or column (axis -1)."""
    if t is None or t.elements == 1:
        return
    ok = t.shape == (size,) or (t.rank == rank and t.shape[axis] == size and t.shape[-3 - axis] == 1)
    require(ok, f"{what} of shape {list(t.shape)}; one number or one for each of {size} is expected")


@dataclass(frozen=True)
class _Product(Op):
    """Matrices (or stacks of them) of rank 2 and up."""

    def product(self, a: TensorType | None, b: TensorType | None) -> tuple[int, ...]:
        _bytes(self.name, a, b)
        assert a is not None and b is not None
        require(a.rank >= 2 and b.rank >= 2, f"{self.name} of ranks {a.rank} and {b.rank}; it takes matrices")
        require(a.shape[-1] == b.shape[-2], f"the inner dimensions {a.shape[-1]} and {b.shape[-2]} differ")
        try:
            return (*broadcast_shapes(a.shape[:-2], b.shape[:-2]), a.shape[-2], b.shape[-1])
        except ValueError as e:
            require(False, str(e))
            raise

    def cost(self, inputs: Sequence[TensorType | None], outputs: Sequence[TensorType]) -> Cost:
        assert inputs[0] is not None
        return Cost(2 * inputs[0].shape[-1] * outputs[0].elements, sum(t.nbytes for t in (*inputs, *outputs) if t is not None))


@dataclass(frozen=True)
class MatMulInteger(_Product):
    """(a - a_zero) (b - b_zero) in int32; inputs a, b, a_zero, b_zero, the last two optional."""

    def infer(self, inputs: Sequence[TensorType | None]) -> tuple[TensorType, ...]:
        a, b, a_zero, b_zero = inputs
        shape = self.product(a, b)
        assert a is not None and b is not None
        for what, zero, of, axis in (("a_zero_point", a_zero, a, -2), ("b_zero_point", b_zero, b, -1)):
            _zero(self.name, zero, of)
            _fits(what, zero, axis, of.shape[axis], of.rank)
        return (TensorType(DType.int32, shape),)


@dataclass(frozen=True)
class QLinearMatMul(_Product):
    """Inputs a, a_scale, a_zero, b, b_scale, b_zero, y_scale, y_zero."""

    def infer(self, inputs: Sequence[TensorType | None]) -> tuple[TensorType, ...]:
        a, a_scale, a_zero, b, b_scale, b_zero, y_scale, y_zero = inputs
        shape = self.product(a, b)
        assert a is not None and b is not None and y_zero is not None
        _bytes(self.name, y_zero)
        for what, t, of, axis in (
            ("a_scale", a_scale, a, -2), ("a_zero_point", a_zero, a, -2), ("b_scale", b_scale, b, -1), ("b_zero_point", b_zero, b, -1),
            ("y_scale", y_scale, a, -2), ("y_zero_point", y_zero, a, -2),
        ):
            _fits(what, t, axis, of.shape[axis], of.rank)
        for zero, of in ((a_zero, a), (b_zero, b)):
            _zero(self.name, zero, of)
        for scale in (a_scale, b_scale, y_scale):
            require(scale is not None and scale.dtype is DType.float32, f"{self.name} with a scale of {scale}; float32 is expected")
        return (TensorType(y_zero.dtype, shape),)

    def tolerance(self, inputs: Sequence[TensorType | None]) -> Tolerance:
        return Tolerance(0.0, 1.0)


@dataclass(frozen=True)
class _Conv(Op):
    """One to three spatial axes; ``pads`` are all begins, then all ends. Padding holds the zero point of x."""

    strides: tuple[int, ...]
    pads: tuple[int, ...]
    dilations: tuple[int, ...]
    group: int = 1

    def window(self, x: TensorType | None, w: TensorType | None) -> tuple[int, ...]:
        _bytes(self.name, x, w)
        assert x is not None and w is not None
        n = len(self.strides)
        require(x.rank == w.rank == n + 2 and 1 <= n <= 3, f"{self.name} of {x} with weights {w}; {n} spatial axes are expected")
        ok = self.group >= 1 and x.shape[1] == w.shape[1] * self.group and w.shape[0] % self.group == 0
        require(ok, f"{self.name} of {x} with weights {w} in {self.group} groups")
        rows = zip(x.shape[2:], w.shape[2:], self.strides, self.pads[:n], self.pads[n:], self.dilations, strict=True)
        sizes = tuple(window_count(s, k, t, lo, hi, d) for s, k, t, lo, hi, d in rows)
        require(all(sizes), f"kernel {list(w.shape[2:])} is larger than the padded input {list(x.shape[2:])}")
        return (x.shape[0], w.shape[0], *sizes)

    def cost(self, inputs: Sequence[TensorType | None], outputs: Sequence[TensorType]) -> Cost:
        w = next(t for t in inputs[1:] if t is not None and t.rank > 2)
        return Cost(2 * math.prod(w.shape[1:]) * outputs[0].elements, sum(t.nbytes for t in (*inputs, *outputs) if t is not None))


@dataclass(frozen=True)
class ConvInteger(_Conv):
    """Inputs x, w, x_zero, w_zero; the zero points are optional, that of w one number or one per output channel."""

    def infer(self, inputs: Sequence[TensorType | None]) -> tuple[TensorType, ...]:
        x, w, x_zero, w_zero = inputs
        shape = self.window(x, w)
        assert x is not None and w is not None
        _zero(self.name, x_zero, x)
        _zero(self.name, w_zero, w)
        _fits("x_zero_point", x_zero, 0, 1, 0)
        _fits("w_zero_point", w_zero, 0, w.shape[0], 0)
        return (TensorType(DType.int32, shape),)


@dataclass(frozen=True)
class QLinearConv(_Conv):
    """Inputs x, x_scale, x_zero, w, w_scale, w_zero, y_scale, y_zero, bias (int32, optional)."""

    def infer(self, inputs: Sequence[TensorType | None]) -> tuple[TensorType, ...]:
        x, x_scale, x_zero, w, w_scale, w_zero, y_scale, y_zero, bias = inputs
        shape = self.window(x, w)
        assert x is not None and w is not None and y_zero is not None
        _bytes(self.name, y_zero)
        _zero(self.name, x_zero, x)
        _zero(self.name, w_zero, w)
        for what, t, size in (
            ("x_scale", x_scale, 1), ("x_zero_point", x_zero, 1), ("w_scale", w_scale, w.shape[0]), ("w_zero_point", w_zero, w.shape[0]),
            ("y_scale", y_scale, 1), ("y_zero_point", y_zero, 1),
        ):
            _fits(what, t, 0, size, 0)
        require(bias is None or bias == TensorType(DType.int32, w.shape[:1]), f"bias {bias}; int32[{w.shape[0]}] is expected")
        return (TensorType(y_zero.dtype, shape),)

    def tolerance(self, inputs: Sequence[TensorType | None]) -> Tolerance:
        return Tolerance(0.0, 1.0)


def _matrices(r: NodeReader, op: Op, a_slot: int, b_slot: int) -> None:
    """Emits a product whose 1-D operands count as a row and a column."""
    inputs: list[Value | None] = [r.optional(i) for i in range(4 if a_slot + b_slot == 1 else 8)]
    a, b = r.input(a_slot), r.input(b_slot)
    if not a.type.rank or not b.type.rank:
        r.fail(f"{r.op_type} of {a.type} and {b.type}; at least one axis each is expected")
    if a.type.rank == 1:
        inputs[a_slot] = r.emit(Reshape((1, *a.type.shape)), [a])
    if b.type.rank == 1:
        inputs[b_slot] = r.emit(Reshape((*b.type.shape, 1)), [b])
    y = r.emit(op, inputs)
    shape = list(y.type.shape)
    if b.type.rank == 1:
        del shape[-1]
    if a.type.rank == 1:
        del shape[-1 if b.type.rank == 1 else -2]
    r.result(y if tuple(shape) == y.type.shape else r.emit(Reshape(tuple(shape)), [y]))


@reads("MatMulInteger")
def read_matmul(r: NodeReader) -> None:
    _matrices(r, MatMulInteger(), 0, 1)


@reads("QLinearMatMul")
def read_qlinear_matmul(r: NodeReader) -> None:
    _matrices(r, QLinearMatMul(), 0, 3)


@reads("ConvInteger", "QLinearConv")
def read_conv(r: NodeReader) -> None:
    linear = r.op_type == "QLinearConv"
    x, w = r.type(0), r.type(3 if linear else 1)
    n = x.rank - 2
    if not 1 <= n <= 3 or w.rank != x.rank:
        r.unsupported(f"{r.op_type} of {x} with weights {w}; supported are 1 to 3 spatial axes")
    strides, dilations = r.ints("strides", (1,) * n), r.ints("dilations", (1,) * n)
    check_window(r, n, strides, dilations)
    if r.has("kernel_shape") and r.ints("kernel_shape") != w.shape[2:]:
        r.fail(f"kernel_shape {list(r.ints('kernel_shape'))} for weights {w}")
    pads = same_pads(r, w.shape[2:], strides, dilations)
    if len(pads) != 2 * n or any(p < 0 for p in pads):
        r.fail(f"pads {list(pads)} for {n} spatial axes; {2 * n} entries of at least 0 are expected")
    kind = QLinearConv if linear else ConvInteger
    r.result(r.emit(kind(strides, pads, dilations, r.int("group", 1)), [r.optional(i) for i in range(9 if linear else 4)]))
