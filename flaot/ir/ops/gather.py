"""Gather in its three forms, and what is expressed by them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from flaot.ir.graph import Value
from flaot.ir.op import Op, reads, require
from flaot.ir.ops.arithmetic import Add, Sub
from flaot.ir.ops.cast import cast
from flaot.ir.ops.compare import Equal, Less, Where
from flaot.ir.ops.expand import Expand
from flaot.ir.ops.reshape import Reshape
from flaot.ir.ops.slice import Slice, normal_axes
from flaot.ir.ops.transpose import _Movement
from flaot.ir.reading import NodeReader
from flaot.ir.types import DType, TensorType

INDEX_TYPES = (DType.int32, DType.int64)


def require_index(op: Op, t: TensorType) -> None:
    require(t.dtype in INDEX_TYPES, f"indices of {t.dtype.name}; {op.name} takes int32 and int64")


@dataclass(frozen=True)
class Gather(_Movement):
    """y[a, i, b] = x[a, indices[i], b] along ``axis``; negative indices count from the end."""

    axis: int

    def infer(self, inputs: Sequence[TensorType | None]) -> tuple[TensorType, ...]:
        x, indices = inputs
        assert x is not None and indices is not None
        require_index(self, indices)
        require(0 <= self.axis < x.rank, f"axis {self.axis} of a rank {x.rank} tensor")
        return (x.with_shape((*x.shape[: self.axis], *indices.shape, *x.shape[self.axis + 1 :])),)


@dataclass(frozen=True)
class GatherElements(_Movement):
    """y[i, j, k] = x[i, indices[i, j, k], k] for ``axis`` 1, and so on."""

    axis: int

    def infer(self, inputs: Sequence[TensorType | None]) -> tuple[TensorType, ...]:
        x, indices = inputs
        assert x is not None and indices is not None
        require_index(self, indices)
        require(0 <= self.axis < x.rank == indices.rank, f"indices of rank {indices.rank} and axis {self.axis} for {x}")
        fits = all(i <= d for a, (i, d) in enumerate(zip(indices.shape, x.shape, strict=True)) if a != self.axis)
        require(fits, f"indices of shape {list(indices.shape)} reach past {list(x.shape)} beside axis {self.axis}")
        return (x.with_shape(indices.shape),)


@dataclass(frozen=True)
class GatherND(_Movement):
    """Slices of x at the index tuples in the last axis of ``indices``, behind ``batch_dims`` axes both share."""

    batch_dims: int

    def infer(self, inputs: Sequence[TensorType | None]) -> tuple[TensorType, ...]:
        x, indices = inputs
        assert x is not None and indices is not None
        require_index(self, indices)
        b = self.batch_dims
        require(0 <= b < min(x.rank, indices.rank), f"batch_dims {b} for ranks {x.rank} and {indices.rank}")
        require(x.shape[:b] == indices.shape[:b], f"batch axes {list(x.shape[:b])} and {list(indices.shape[:b])} differ")
        length = indices.shape[-1]
        require(1 <= length <= x.rank - b, f"index tuples of {length} for a rank {x.rank} tensor with batch_dims {b}")
        return (x.with_shape((*indices.shape[:-1], *x.shape[b + length :])),)


def along(r: NodeReader, x: Value, axis: int, at: np.ndarray) -> Value:
    """``x`` with the elements of one axis picked by known indices: a slice where they are evenly spaced."""
    at = np.where(at < 0, at + x.type.shape[axis], at)
    steps = np.unique(np.diff(at)) if at.size > 1 else np.array([1])
    if at.size == 0 or (steps.size == 1 and steps[0] != 0):
        first = int(at[0]) if at.size else 0
        if (first, int(steps[0]), at.size) == (0, 1, x.type.shape[axis]):
            return x
        return r.emit(Slice((axis,), (first,), (int(steps[0]),), (at.size,)), [x])
    return r.emit(Gather(axis), [x, r.literal(at.astype(np.int64))])


def check_known(r: NodeReader, indices: Value, size: int, axis: int) -> None:
    """Refuses constant indices outside an axis."""
    if indices.data is None or not indices.data.size:
        return
    low, high = int(indices.data.min()), int(indices.data.max())
    if low < -size or high >= size:
        r.fail(f"index {high if high >= size else low} is outside axis {axis} of {size}")


@reads("Gather")
def read_gather(r: NodeReader) -> None:
    x, indices = r.input(0), r.input(1)
    (axis,) = normal_axes(r, [r.int("axis", 0)], x.type.rank)
    check_known(r, indices, x.type.shape[axis], axis)
    if indices.data is None or x.is_constant:
        r.result(r.emit(Gather(axis), [x, indices]))
        return
    shape = (*x.type.shape[:axis], *indices.type.shape, *x.type.shape[axis + 1 :])
    y = along(r, x, axis, indices.data.reshape(-1).astype(np.int64))
    r.result(y if y.type.shape == shape else r.emit(Reshape(shape), [y]))


@reads("GatherElements")
def read_gather_elements(r: NodeReader) -> None:
    x, indices = r.input(0), r.input(1)
    (axis,) = normal_axes(r, [r.int("axis", 0)], x.type.rank)
    check_known(r, indices, x.type.shape[axis], axis)
    r.result(r.emit(GatherElements(axis), [x, indices]))


@reads("GatherND")
def read_gather_nd(r: NodeReader) -> None:
    r.result(r.emit(GatherND(r.int("batch_dims", 0)), [r.input(0), r.input(1)]))


@reads("Compress")
def read_compress(r: NodeReader) -> None:
    """With a known condition this is a gather."""
    x, keep = r.input(0), np.flatnonzero(r.constant(1, "the condition, and with it the size of the output,"))
    if not r.has("axis"):
        x = r.emit(Reshape((x.type.elements,)), [x])
    (axis,) = normal_axes(r, [r.int("axis", 0)], x.type.rank)
    if keep.size and keep[-1] >= x.type.shape[axis]:
        r.fail(f"the condition keeps element {keep[-1]} of an axis of {x.type.shape[axis]}")
    r.result(along(r, x, axis, keep))


@reads("NonZero")
def read_non_zero(r: NodeReader) -> None:
    x = r.constant(0, "the input, and with it the size of the output,")
    r.result(r.literal(np.array(np.nonzero(x.reshape(x.shape or (1,))), np.int64)))


@reads("Unique")
def read_unique(r: NodeReader) -> None:
    r.unsupported("the size of the output depends on run-time data")


@reads("ReverseSequence")
def read_reverse_sequence(r: NodeReader) -> None:
    """Element t of a sequence of n shows element n - 1 - t below n, itself from there on."""
    x, lengths = r.input(0), cast(r, r.input(1), DType.int64)
    time, batch = r.int("time_axis", 0), r.int("batch_axis", 1)
    if sorted((time, batch)) != [0, 1] or x.type.rank < 2:
        r.fail(f"time_axis {time} and batch_axis {batch} of a rank {x.type.rank} tensor; they must be 0 and 1")
    steps, sequences = x.type.shape[time], x.type.shape[batch]
    if lengths.type.shape != (sequences,):
        r.fail(f"lengths of shape {list(lengths.type.shape)}; there are {sequences} sequences")
    thin = [1] * x.type.rank
    r.reserve(steps)
    t = r.literal(np.arange(steps, dtype=np.int64).reshape([steps if i == time else 1 for i in range(x.type.rank)]))
    thin[batch] = sequences
    n = r.emit(Reshape(tuple(thin)), [lengths])
    back = r.emit(Sub(), [r.emit(Sub(), [n, t]), r.literal(np.array(1, np.int64))])
    at = r.emit(Where(), [r.emit(Less(), [t, n]), back, t])
    r.result(r.emit(GatherElements(time), [x, r.emit(Expand(x.type.shape), [at])]))


@reads("OneHot")
def read_one_hot(r: NodeReader) -> None:
    """Where the position along the new axis equals the index, the second of ``values``, else the first."""
    indices, values = cast(r, r.input(0), DType.int64), r.input(2)
    depth = int(r.constant(1, "the depth").reshape(()))
    (axis,) = normal_axes(r, [r.int("axis", -1)], indices.type.rank + 1)
    if values.type.shape != (2,):
        r.fail(f"values of shape {list(values.type.shape)}; they must be the off and the on value")
    shape = indices.type.shape
    at = r.emit(Reshape((*shape[:axis], 1, *shape[axis:])), [indices])
    size, zero = r.literal(np.array(depth, np.int64)), r.literal(np.array(0, np.int64))
    at = r.emit(Where(), [r.emit(Less(), [at, zero]), r.emit(Add(), [at, size]), at])
    r.reserve(depth)
    places = np.arange(depth, dtype=np.int64).reshape([depth if i == axis else 1 for i in range(len(shape) + 1)])
    off, on = (r.emit(Reshape(()), [r.emit(Slice((0,), (i,), (1,), (1,)), [values])]) for i in (0, 1))
    r.result(r.emit(Where(), [r.emit(Equal(), [at, r.literal(places)]), on, off]))
