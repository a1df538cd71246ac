"""Mathematical functions of one input."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from flaot.ir.op import reads
from flaot.ir.ops.elementwise import INTS, NUMBERS, SIGNED, _Elementwise
from flaot.ir.reading import NodeReader
from flaot.ir.types import DType, TensorType


@dataclass(frozen=True)
class _Exact(_Elementwise):
    exact = True


@dataclass(frozen=True)
class _Transcendental(_Elementwise):
    work = 20


class _Test(_Elementwise):
    exact = True

    def result(self, inputs: Sequence[TensorType]) -> DType:
        super().result(inputs)
        return DType.bool


@dataclass(frozen=True)
class Neg(_Exact):
    code, dtypes = "neg", SIGNED


@dataclass(frozen=True)
class Abs(_Exact):
    code, dtypes = "abs", NUMBERS


@dataclass(frozen=True)
class Sign(_Exact):
    """-1, 0 or 1; NaN stays NaN."""

    code, dtypes = "sign", NUMBERS


@dataclass(frozen=True)
class Floor(_Exact):
    code = "floor"


@dataclass(frozen=True)
class Ceil(_Exact):
    code = "ceil"


@dataclass(frozen=True)
class Round(_Exact):
    """To the nearest integer, halves to even."""

    code = "round"


@dataclass(frozen=True)
class Sqrt(_Exact):
    code, work = "sqrt", 6


@dataclass(frozen=True)
class Reciprocal(_Exact):
    code, work = "reciprocal", 4


@dataclass(frozen=True)
class BitwiseNot(_Exact):
    code, dtypes = "bit_not", INTS


@dataclass(frozen=True)
class Not(_Exact):
    code, dtypes = "not_", frozenset({DType.bool})


@dataclass(frozen=True)
class Exp(_Transcendental):
    code = "exp"


@dataclass(frozen=True)
class Log(_Transcendental):
    code = "log"


@dataclass(frozen=True)
class Sin(_Transcendental):
    code, magnitude = "sin", 1.0


@dataclass(frozen=True)
class Cos(_Transcendental):
    code, magnitude = "cos", 1.0


@dataclass(frozen=True)
class Tan(_Transcendental):
    code = "tan"


@dataclass(frozen=True)
class Asin(_Transcendental):
    code = "asin"


@dataclass(frozen=True)
class Acos(_Transcendental):
    code = "acos"


@dataclass(frozen=True)
class Atan(_Transcendental):
    code = "atan"


@dataclass(frozen=True)
class Sinh(_Transcendental):
    code = "sinh"


@dataclass(frozen=True)
class Cosh(_Transcendental):
    code = "cosh"


@dataclass(frozen=True)
class Asinh(_Transcendental):
    code = "asinh"


@dataclass(frozen=True)
class Acosh(_Transcendental):
    code = "acosh"


@dataclass(frozen=True)
class Atanh(_Transcendental):
    code = "atanh"


@dataclass(frozen=True)
class IsNaN(_Test):
    code = "is_nan"


@dataclass(frozen=True)
class IsInf(_Test):
    """Whether x is an infinity of a sign that counts."""

    negative: bool = True
    positive: bool = True
    code = "is_inf"

    @property
    def arguments(self) -> tuple[float, ...]:
        return (float(self.negative), float(self.positive))


PLAIN = {
    c.__name__: c
    for c in (
        Neg, Abs, Sign, Floor, Ceil, Round, Sqrt, Reciprocal, BitwiseNot, Not, Exp, Log, Sin, Cos, Tan, Asin, Acos, Atan,
        Sinh, Cosh, Asinh, Acosh, Atanh, IsNaN,
    )
}  # fmt: skip


@reads(*PLAIN)
def read_plain(r: NodeReader) -> None:
    r.result(r.emit(PLAIN[r.op_type](), [r.input(0)]))


@reads("IsInf")
def read_is_inf(r: NodeReader) -> None:
    op = IsInf(r.int("detect_negative", 1) != 0, r.int("detect_positive", 1) != 0)
    r.result(r.emit(op, [r.input(0)]))
