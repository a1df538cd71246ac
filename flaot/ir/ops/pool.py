"""Pooling over sliding windows of 1 to 3 spatial axes. Global pooling is a window as large as the input."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from flaot.ir.op import Cost, Op, Tolerance, reads, require
from flaot.ir.ops.reshape import Reshape
from flaot.ir.reading import NodeReader
from flaot.ir.types import MAX_ELEMENTS, DType, TensorType
from flaot.ir.windows import MAX_SPATIAL, Window, read_window, window_count


@dataclass(frozen=True)
class _Pool(Op):
    """``pads`` are all begins, then all ends; ``ceil`` lets the last window overhang the end padding."""

    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    pads: tuple[int, ...]
    dilations: tuple[int, ...]
    ceil: bool

    def infer(self, inputs: Sequence[TensorType | None]) -> tuple[TensorType, ...]:
        x = inputs[0]
        assert x is not None
        n = len(self.kernel)
        require(x.rank == n + 2, f"a window of {n} axes over shape {list(x.shape)}; batch, channels and {n} axes are expected")
        rows = zip(x.shape[2:], self.kernel, self.strides, self.pads[:n], self.pads[n:], self.dilations, strict=True)
        sizes = tuple(window_count(s, k, t, lo, hi, d, self.ceil) for s, k, t, lo, hi, d in rows)
        require(all(s > 0 for s in sizes), f"window {list(self.kernel)} is larger than the padded input {list(x.shape[2:])}")
        return (x.with_shape((*x.shape[:2], *sizes)),)

    def tolerance(self, inputs: Sequence[TensorType | None]) -> Tolerance:
        return Tolerance(length=math.prod(self.kernel))

    def cost(self, inputs: Sequence[TensorType | None], outputs: Sequence[TensorType]) -> Cost:
        moved = sum(t.nbytes for t in (*inputs, *outputs) if t is not None)
        return Cost(math.prod(self.kernel) * outputs[0].elements, moved)


@dataclass(frozen=True)
class MaxPool(_Pool):
    """Largest element of the window; padding never wins. With ``indices`` also where it was: the first one's flat index
    into the input, the spatial axes counted row-major or, with ``column_major``, first axis fastest."""

    indices: bool = False
    column_major: bool = False

    def infer(self, inputs: Sequence[TensorType | None]) -> tuple[TensorType, ...]:
        (y,) = super().infer(inputs)
        require(y.dtype.is_float or y.dtype in (DType.int8, DType.uint8), f"MaxPool of {y.dtype.name}; it takes floats, int8 and uint8")
        return (y, y.with_dtype(DType.int64)) if self.indices else (y,)


@dataclass(frozen=True)
class AveragePool(_Pool):
    """Mean of the window's elements; with ``count_include_pad`` padding counts as zeros (overhang never does)."""

    count_include_pad: bool = False

    def infer(self, inputs: Sequence[TensorType | None]) -> tuple[TensorType, ...]:
        (y,) = super().infer(inputs)
        require(y.dtype.is_float, f"AveragePool of {y.dtype.name}; it takes floats")
        return (y,)


@dataclass(frozen=True)
class LpPool(_Pool):
    """(sum |x|^p)^(1/p) over the window."""

    p: int = 2

    def infer(self, inputs: Sequence[TensorType | None]) -> tuple[TensorType, ...]:
        (y,) = super().infer(inputs)
        require(y.dtype.is_float, f"LpPool of {y.dtype.name}; it takes floats")
        require(self.p >= 1, f"LpPool with p {self.p}; p must be at least 1")
        return (y,)


def window_of(r: NodeReader) -> Window:
    """The window of a pooling node over its first input."""
    shape = r.type(0).shape
    if len(shape) < 3:
        r.fail(f"{r.op_type} of shape {list(shape)}; batch, channels and spatial axes are expected")
    if math.prod(shape) > MAX_ELEMENTS or 0 in shape:
        r.unsupported(f"{r.op_type} of shape {list(shape)}")
    return read_window(r, shape[2:], r.ints("kernel_shape"))


@reads("MaxPool")
def read_max(r: NodeReader) -> None:
    w = window_of(r)
    want = r.n_outputs > 1
    op = MaxPool(w.kernel, w.strides, w.pads, w.dilations, r.int("ceil_mode", 0) != 0, want, r.int("storage_order", 0) != 0)
    r.result(*r.emit_many(op, [r.input(0)]))


@reads("AveragePool")
def read_average(r: NodeReader) -> None:
    w = window_of(r)
    include = r.int("count_include_pad", 0) != 0
    op = AveragePool(w.kernel, w.strides, w.pads, w.dilations, r.int("ceil_mode", 0) != 0, include)
    r.result(r.emit(op, [r.input(0)]))


@reads("LpPool")
def read_lp(r: NodeReader) -> None:
    w = window_of(r)
    p = int(r.float("p", 2.0)) if r.opset < 2 else r.int("p", 2)
    r.result(r.emit(LpPool(w.kernel, w.strides, w.pads, w.dilations, r.int("ceil_mode", 0) != 0, p), [r.input(0)]))


@reads("GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool")
def read_global(r: NodeReader) -> None:
    x = r.input(0)
    shape, spatial = x.type.shape, x.type.shape[2:]
    if len(shape) < 3 or 0 in shape:
        r.fail(f"{r.op_type} of shape {list(shape)}; batch, channels and spatial axes are expected")
    if len(spatial) > MAX_SPATIAL:
        spatial = (math.prod(spatial),)
        x = r.emit(Reshape((*shape[:2], *spatial)), [x])
    n = len(spatial)
    window = (spatial, (1,) * n, (0,) * 2 * n, (1,) * n, False)
    if r.op_type == "GlobalAveragePool":
        y = r.emit(AveragePool(*window), [x])
    elif r.op_type == "GlobalMaxPool":
        y = r.emit(MaxPool(*window), [x])
    else:
        y = r.emit(LpPool(*window, r.int("p", 2)), [x])
    r.result(y if n == len(shape) - 2 else r.emit(Reshape((*shape[:2], *[1] * (len(shape) - 2))), [y]))
