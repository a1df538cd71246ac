"""ArgMax, ArgMin and TopK: positions of extreme values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from flaot.ir.op import Op, reads, require
from flaot.ir.reading import NodeReader
from flaot.ir.types import DType, TensorType


@dataclass(frozen=True)
class _Arg(Op):
    """``last`` picks the last of equal values instead of the first."""

    axis: int
    keepdims: bool = True
    last: bool = False

    def infer(self, inputs: Sequence[TensorType | None]) -> tuple[TensorType, ...]:
        (x,) = inputs
        assert x is not None
        require(0 <= self.axis < x.rank, f"axis {self.axis} of a rank {x.rank} tensor; allowed are 0 to {x.rank - 1}")
        require(x.shape[self.axis] > 0, f"axis {self.axis} of shape {list(x.shape)} is empty and has no extreme value")
        shape = list(x.shape)
        shape[self.axis : self.axis + 1] = [1] if self.keepdims else []
        return (TensorType(DType.int64, tuple(shape)),)


@dataclass(frozen=True)
class ArgMax(_Arg):
    """Index of the largest value along ``axis``."""


@dataclass(frozen=True)
class ArgMin(_Arg):
    """Index of the smallest value along ``axis``."""


@dataclass(frozen=True)
class TopK(Op):
    """The ``k`` largest (or smallest) values along ``axis`` in order, and their int64 indices; equal values by rising index."""

    axis: int
    k: int
    largest: bool = True

    def infer(self, inputs: Sequence[TensorType | None]) -> tuple[TensorType, ...]:
        (x,) = inputs
        assert x is not None
        require(0 <= self.axis < x.rank, f"axis {self.axis} of a rank {x.rank} tensor; allowed are 0 to {x.rank - 1}")
        size = x.shape[self.axis]
        require(0 <= self.k <= size, f"k {self.k} of an axis of size {size}; allowed are 0 to {size}")
        shape = tuple(self.k if i == self.axis else d for i, d in enumerate(x.shape))
        return x.with_shape(shape), TensorType(DType.int64, shape)


def _axis(r: NodeReader, default: int) -> int:
    axis, rank = r.int("axis", default), r.type(0).rank
    if not -rank <= axis < rank:
        r.fail(f"axis {axis} is outside a rank {rank} tensor")
    return axis % rank


@reads("ArgMax", "ArgMin")
def read_arg(r: NodeReader) -> None:
    op = ArgMax if r.op_type == "ArgMax" else ArgMin
    r.result(r.emit(op(_axis(r, 0), r.int("keepdims", 1) != 0, r.int("select_last_index", 0) != 0), [r.input(0)]))


@reads("TopK")
def read_topk(r: NodeReader) -> None:
    k = int(r.constant(1, "k").reshape(-1)[0]) if r.opset >= 10 else r.int("k")
    r.result(*r.emit_many(TopK(_axis(r, -1), k, r.int("largest", 1) != 0), [r.input(0)]))
