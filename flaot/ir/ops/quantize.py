"""QuantizeLinear, DequantizeLinear and DynamicQuantizeLinear on scales and zero points that broadcast against the input.

ONNX's axis and block_size are expressed by the reader: a per-axis scale becomes shape [1, C, 1, 1], a blocked one is repeated.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from flaot.ir.graph import Value
from flaot.ir.op import reads, require
from flaot.ir.ops.arithmetic import Div, Max, Min, Sub
from flaot.ir.ops.cast import cast
from flaot.ir.ops.compare import Equal, Where
from flaot.ir.ops.elementwise import _Elementwise
from flaot.ir.ops.expand import Expand
from flaot.ir.ops.functions import Neg
from flaot.ir.ops.reduce import ReduceMax, ReduceMin
from flaot.ir.ops.reshape import Reshape
from flaot.ir.ops.slice import Slice
from flaot.ir.reading import NodeReader
from flaot.ir.types import DType, TensorType

NARROW = frozenset({DType.uint8, DType.int8, DType.uint16, DType.int16})


@dataclass(frozen=True)
class QuantizeLinear(_Elementwise):
    """round_half_even(x / scale) + zero_point, saturated to the zero point's type."""

    code, arity, dtypes, work = "quantize", 3, frozenset({DType.float32}), 8

    def result(self, inputs: Sequence[TensorType]) -> DType:
        x, scale, zero = inputs
        require(x.dtype is scale.dtype is DType.float32, f"QuantizeLinear of {x.dtype.name} by {scale.dtype.name}; both must be float32")
        require(zero.dtype in NARROW, f"QuantizeLinear to {zero.dtype.name}; allowed are 8 and 16 bit integers")
        return zero.dtype


@dataclass(frozen=True)
class DequantizeLinear(_Elementwise):
    """(x - zero_point) * scale."""

    code, arity, dtypes, work = "dequantize", 3, NARROW | {DType.int32}, 3

    def result(self, inputs: Sequence[TensorType]) -> DType:
        x, scale, zero = inputs
        require(x.dtype in self.dtypes, f"DequantizeLinear of {x.dtype.name}; allowed are 8, 16 and 32 bit integers")
        require(x.dtype is zero.dtype, f"zero point of {zero.dtype.name} for {x.dtype.name}; the types must be equal")
        require(scale.dtype is DType.float32, f"scale of {scale.dtype.name}; it must be float32")
        return DType.float32


@reads("QuantizeLinear")
def read_quantize(r: NodeReader) -> None:
    x, scale, zero = cast(r, r.input(0), DType.float32), r.input(1), r.optional(2)
    if zero is None:
        kind = r.dtype("output_dtype", DType.uint8) if r.int("output_dtype", 0) else DType.uint8
        zero = r.literal(np.zeros(scale.type.shape, kind.numpy))
    parts = [spread(r, x.type.shape, cast(r, scale, DType.float32)), spread(r, x.type.shape, zero)]
    r.result(r.emit(QuantizeLinear(), [x, *parts]))


@reads("DequantizeLinear")
def read_dequantize(r: NodeReader) -> None:
    x, scale, zero = r.input(0), r.input(1), r.optional(2)
    if zero is None:
        zero = r.literal(np.zeros(scale.type.shape, x.type.dtype.numpy))
    parts = [spread(r, x.type.shape, cast(r, scale, DType.float32)), spread(r, x.type.shape, zero)]
    r.result(cast(r, r.emit(DequantizeLinear(), [x, *parts]), scale.type.dtype))


def spread(r: NodeReader, shape: tuple[int, ...], p: Value) -> Value:
    """A scale or zero point in a form that broadcasts against ``shape``."""
    given, rank = p.type.shape, len(shape)
    if p.type.elements == 1 and len(given) <= 1:
        return r.emit(Reshape(()), [p]) if given else p
    axis, block = r.int("axis", 1), r.int("block_size", 0)
    if not -rank <= axis < rank:
        r.fail(f"axis {axis} is outside a rank {rank} tensor")
    axis %= rank
    if block == 0:
        if given != (shape[axis],):
            r.fail(f"scale or zero point of shape {list(given)}; axis {axis} of {list(shape)} needs [{shape[axis]}]")
        return r.emit(Reshape(tuple(d if i == axis else 1 for i, d in enumerate(shape))), [p])
    return _repeat(r, shape, p, axis, block)


def _repeat(r: NodeReader, shape: tuple[int, ...], p: Value, axis: int, block: int) -> Value:
    wanted = tuple(-(-d // block) if i == axis else d for i, d in enumerate(shape))
    if block < 0 or p.type.shape != wanted:
        found = list(p.type.shape)
        r.fail(f"scale or zero point of shape {found}; blocks of {block} along axis {axis} of {list(shape)} need {list(wanted)}")
    head, tail = wanted[: axis + 1], wanted[axis + 1 :]
    column = r.emit(Reshape((*head, 1, *tail)), [p])
    wide = r.emit(Expand((*head, block, *tail)), [column])
    flat = r.emit(Reshape((*head[:-1], head[-1] * block, *tail)), [wide])
    return flat if head[-1] * block == shape[axis] else r.emit(Slice((axis,), (0,), (1,), (shape[axis],)), [flat])


@reads("DynamicQuantizeLinear")
def read_dynamic(r: NodeReader) -> None:
    """uint8 over the range of x widened to contain 0; scale 1 for an x of zeros."""
    x = r.input(0)
    zero, one = (r.literal(np.array(v, np.float32)) for v in (0.0, 1.0))
    low = r.emit(Min(), [r.emit(ReduceMin(tuple(range(x.type.rank)), False), [x]), zero])
    high = r.emit(Max(), [r.emit(ReduceMax(tuple(range(x.type.rank)), False), [x]), zero])
    width = r.emit(Sub(), [high, low])
    scale = r.emit(Div(), [width, r.literal(np.array(255.0, np.float32))])
    scale = r.emit(Where(), [r.emit(Equal(), [width, zero]), one, scale])
    none = r.literal(np.array(0, np.uint8))
    offset = r.emit(QuantizeLinear(), [r.emit(Neg(), [low]), scale, none])
    r.result(r.emit(QuantizeLinear(), [x, scale, offset]), scale, offset)
