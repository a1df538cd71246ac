"""Reductions over axes: ReduceSum and its kin."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from flaot.ir.op import Cost, Op, Tolerance, reads, require
from flaot.ir.reading import NodeReader
from flaot.ir.types import DType, TensorType


@dataclass(frozen=True)
class _Reduce(Op):
    """``axes`` are sorted and not negative; an empty tuple reduces nothing (each element alone)."""

    axes: tuple[int, ...]
    keepdims: bool = True

    def infer(self, inputs: Sequence[TensorType | None]) -> tuple[TensorType, ...]:
        (x,) = inputs
        assert x is not None
        require(all(0 <= a < x.rank for a in self.axes), f"axes {list(self.axes)} of a rank {x.rank} tensor")
        require(x.dtype is not DType.bool or isinstance(self, ReduceMax | ReduceMin), f"{self.name} of bool; it takes numbers")
        if self.keepdims:
            return (x.with_shape(tuple(1 if i in self.axes else d for i, d in enumerate(x.shape))),)
        return (x.with_shape(tuple(d for i, d in enumerate(x.shape) if i not in self.axes)),)

    def tolerance(self, inputs: Sequence[TensorType | None]) -> Tolerance:
        x = inputs[0]
        assert x is not None
        length = 1
        for a in self.axes:
            length *= x.shape[a]
        return Tolerance(length=max(1, length))

    def cost(self, inputs: Sequence[TensorType | None], outputs: Sequence[TensorType]) -> Cost:
        x = inputs[0]
        assert x is not None
        return Cost(x.elements, x.nbytes + outputs[0].nbytes)


@dataclass(frozen=True)
class ReduceSum(_Reduce):
    """Sum of x."""


@dataclass(frozen=True)
class ReduceMean(_Reduce):
    """Sum of x over the count."""


@dataclass(frozen=True)
class ReduceMax(_Reduce):
    """Largest x; the lowest value of the type over an empty axis."""


@dataclass(frozen=True)
class ReduceMin(_Reduce):
    """Smallest x; the highest value of the type over an empty axis."""


@dataclass(frozen=True)
class ReduceProd(_Reduce):
    """Product of x."""


@dataclass(frozen=True)
class ReduceL1(_Reduce):
    """Sum of |x|."""


@dataclass(frozen=True)
class ReduceL2(_Reduce):
    """Square root of the sum of x x."""


@dataclass(frozen=True)
class ReduceSumSquare(_Reduce):
    """Sum of x x."""


@dataclass(frozen=True)
class ReduceLogSum(_Reduce):
    """Logarithm of the sum of x."""


@dataclass(frozen=True)
class ReduceLogSumExp(_Reduce):
    """Logarithm of the sum of exp(x), safe for large x."""


KINDS = (ReduceSum, ReduceMean, ReduceMax, ReduceMin, ReduceProd, ReduceL1, ReduceL2, ReduceSumSquare, ReduceLogSum, ReduceLogSumExp)
AXES_INPUT_SINCE = {"ReduceSum": 13}


@reads(*(k.__name__ for k in KINDS))
def read(r: NodeReader) -> None:
    x = r.input(0)
    if r.opset >= AXES_INPUT_SINCE.get(r.op_type, 18):
        given = r.optional_constant(1, "the axes")
        axes = [] if given is None else [int(a) for a in given.reshape(-1)]
    else:
        axes = list(r.ints("axes", ()))
    rank = x.type.rank
    for a in axes:
        if not -rank <= a < max(rank, 1):
            r.fail(f"axis {a} is outside a rank {rank} tensor")
    if not axes and r.int("noop_with_empty_axes", 0) == 0:
        axes = list(range(rank))
    op = next(k for k in KINDS if k.__name__ == r.op_type)
    normal = tuple(sorted({a % rank for a in axes})) if rank else ()
    r.result(r.emit(op(normal, r.int("keepdims", 1) != 0), [x]))
