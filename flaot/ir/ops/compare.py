"""Comparisons, logic and selection."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from flaot.ir.op import reads, require
from flaot.ir.ops.elementwise import BOOL, NUMBERS, _Elementwise
from flaot.ir.reading import NodeReader
from flaot.ir.types import DType, TensorType


@dataclass(frozen=True)
class _Comparison(_Elementwise):
    arity, dtypes, exact = 2, NUMBERS, True

    def result(self, inputs: Sequence[TensorType]) -> DType:
        super().result(inputs)
        return DType.bool


@dataclass(frozen=True)
class Equal(_Comparison):
    code, dtypes = "equal", NUMBERS | BOOL


@dataclass(frozen=True)
class Less(_Comparison):
    code = "less"


@dataclass(frozen=True)
class LessOrEqual(_Comparison):
    code = "less_equal"


@dataclass(frozen=True)
class _Logic(_Elementwise):
    arity, dtypes, exact = 2, BOOL, True


@dataclass(frozen=True)
class And(_Logic):
    code = "and_"


@dataclass(frozen=True)
class Or(_Logic):
    code = "or_"


@dataclass(frozen=True)
class Xor(_Logic):
    code = "xor"


@dataclass(frozen=True)
class Where(_Elementwise):
    """``a`` where the condition holds, else ``b``."""

    code, arity, dtypes, exact = "where", 3, NUMBERS | BOOL, True

    def result(self, inputs: Sequence[TensorType]) -> DType:
        condition, a, b = inputs
        require(condition.dtype is DType.bool, f"condition of {condition.dtype.name}; it must be bool")
        require(a.dtype is b.dtype, f"Where of {a.dtype.name} and {b.dtype.name}; the types must be equal")
        return a.dtype


FORWARD = {c.__name__: c for c in (Equal, Less, LessOrEqual, And, Or, Xor)}
SWAPPED = {"Greater": Less, "GreaterOrEqual": LessOrEqual}


@reads(*FORWARD)
def read_forward(r: NodeReader) -> None:
    r.result(r.emit(FORWARD[r.op_type](), [r.input(0), r.input(1)]))


@reads(*SWAPPED)
def read_swapped(r: NodeReader) -> None:
    r.result(r.emit(SWAPPED[r.op_type](), [r.input(1), r.input(0)]))


@reads("Where")
def read_where(r: NodeReader) -> None:
    r.result(r.emit(Where(), [r.input(0), r.input(1), r.input(2)]))
