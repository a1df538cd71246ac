"""Arithmetic on two broadcast inputs, and ONNX's variadic and mixed-type forms of it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from flaot.ir.graph import Value
from flaot.ir.op import reads
from flaot.ir.ops.cast import Cast, cast
from flaot.ir.ops.elementwise import FLOATS, INTS, NUMBERS, _Elementwise
from flaot.ir.ops.functions import Sqrt
from flaot.ir.reading import NodeReader
from flaot.ir.types import DType


@dataclass(frozen=True)
class _Binary(_Elementwise):
    arity, dtypes, exact = 2, NUMBERS, True


@dataclass(frozen=True)
class Add(_Binary):
    code = "add"


@dataclass(frozen=True)
class Sub(_Binary):
    code = "sub"


@dataclass(frozen=True)
class Mul(_Binary):
    code = "mul"


@dataclass(frozen=True)
class Div(_Binary):
    """a / b; integers truncate toward zero, an integer zero divisor is refused at run time."""

    code, work = "div", 4


@dataclass(frozen=True)
class Max(_Binary):
    """The greater; NaN when one is NaN."""

    code = "max"


@dataclass(frozen=True)
class Min(_Binary):
    """The smaller; NaN when one is NaN."""

    code = "min"


@dataclass(frozen=True)
class Mod(_Binary):
    """Remainder with the sign of the divisor."""

    code, work = "mod", 4


@dataclass(frozen=True)
class Fmod(_Binary):
    """Remainder with the sign of the dividend, as C's fmod."""

    code, work = "fmod", 20


@dataclass(frozen=True)
class Pow(_Binary):
    """a to the power of b, of one type; integers exactly (wrapping), a negative integer power truncates."""

    code, exact, work = "pow", False, 60


@dataclass(frozen=True)
class PRelu(_Binary):
    """x where x >= 0, else slope * x."""

    code = "prelu"


@dataclass(frozen=True)
class _Bits(_Binary):
    dtypes = INTS


@dataclass(frozen=True)
class BitwiseAnd(_Bits):
    code = "bit_and"


@dataclass(frozen=True)
class BitwiseOr(_Bits):
    code = "bit_or"


@dataclass(frozen=True)
class BitwiseXor(_Bits):
    code = "bit_xor"


@dataclass(frozen=True)
class ShiftLeft(_Bits):
    code = "shift_left"


@dataclass(frozen=True)
class ShiftRight(_Bits):
    code = "shift_right"


PLAIN = {c.__name__: c for c in (Add, Sub, Mul, Div, BitwiseAnd, BitwiseOr, BitwiseXor)}
VARIADIC: dict[str, type[_Binary]] = {"Max": Max, "Min": Min, "Sum": Add, "Mean": Add}


@reads(*PLAIN)
def read_plain(r: NodeReader) -> None:
    r.result(r.emit(PLAIN[r.op_type](), [r.input(0), r.input(1)]))


@reads(*VARIADIC)
def read_variadic(r: NodeReader) -> None:
    op, total, count = VARIADIC[r.op_type](), r.input(0), r.n_inputs()
    for i in range(1, count):
        total = r.emit(op, [total, r.input(i)])
    if r.op_type == "Mean":
        total = r.emit(Div(), [total, scalar(r, count, total.type.dtype)])
    r.result(total)


def scalar(r: NodeReader, number: float, dtype: DType) -> Value:
    """A rank 0 constant of any element type."""
    if dtype is DType.bfloat16:
        return r.emit(Cast(dtype), [r.literal(np.array(number, np.float32))])
    return r.literal(np.array(number, dtype.numpy))


@reads("Mod")
def read_mod(r: NodeReader) -> None:
    a, b = r.input(0), r.input(1)
    r.result(r.emit(Fmod() if r.int("fmod", 0) else Mod(), [a, b]))


@reads("BitShift")
def read_shift(r: NodeReader) -> None:
    ways: dict[str, type[_Bits]] = {"LEFT": ShiftLeft, "RIGHT": ShiftRight}
    way = r.str("direction")
    if way not in ways:
        r.fail(f"direction is '{way}'; allowed are LEFT and RIGHT")
    r.result(r.emit(ways[way](), [r.input(0), r.input(1)]))


@reads("PRelu")
def read_prelu(r: NodeReader) -> None:
    x, slope = r.input(0), r.input(1)
    y = r.emit(PRelu(), [x, slope])
    if y.type.shape != x.type.shape:
        r.fail(f"slope of shape {list(slope.type.shape)} does not broadcast to the input's {list(x.type.shape)}")
    r.result(y)


@reads("Pow")
def read_pow(r: NodeReader) -> None:
    """Fixed powers 1, 2 and 1/2 become what they are; mixed types are computed as the base's, or in float64."""
    base, power = r.input(0), r.input(1)
    kind = base.type.dtype
    known = power.data.reshape(-1) if power.data is not None and power.type.elements == 1 and power.type.rank <= base.type.rank else None
    if known is not None and power.type.dtype is not DType.bfloat16:
        if known[0] == 1:
            return r.result(base)
        if known[0] == 2:
            return r.result(r.emit(Mul(), [base, base]))
        if known[0] == 0.5 and kind in FLOATS:
            return r.result(r.emit(Sqrt(), [base]))
    if kind in FLOATS or power.type.dtype not in FLOATS:
        return r.result(r.emit(Pow(), [base, cast(r, power, kind)]))
    wide = r.emit(Pow(), [cast(r, base, DType.float64), cast(r, power, DType.float64)])
    return r.result(cast(r, wide, kind))
