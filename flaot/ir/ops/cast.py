"""Conversion between element types."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from flaot.ir.graph import Value
from flaot.ir.op import reads
from flaot.ir.ops.elementwise import BOOL, NUMBERS, _Elementwise
from flaot.ir.reading import NodeReader
from flaot.ir.types import DType, TensorType


@dataclass(frozen=True)
class Cast(_Elementwise):
    """Integers wrap, floats lose their fraction toward zero or round to nearest even, everything but 0 is true."""

    to: DType
    code, dtypes, exact = "cast", NUMBERS | BOOL, True

    def result(self, inputs: Sequence[TensorType]) -> DType:
        super().result(inputs)
        return self.to


def cast(r: NodeReader, x: Value, to: DType) -> Value:
    """``x`` as elements of type ``to``; ``x`` itself when it is of that type."""
    return x if x.type.dtype is to else r.emit(Cast(to), [x])


@reads("Cast")
def read_cast(r: NodeReader) -> None:
    r.result(cast(r, r.input(0), r.dtype("to")))


@reads("CastLike")
def read_cast_like(r: NodeReader) -> None:
    r.result(cast(r, r.input(0), r.input(1).type.dtype))
