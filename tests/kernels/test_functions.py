"""Errors of the elementwise functions in units in the last place, and special values, on every variant."""

from __future__ import annotations

import math

import numpy as np
import pytest

from flaot.errors import RunInputError
from flaot.ir.op import Op
from flaot.ir.ops import activations as act
from flaot.ir.ops import functions as f
from flaot.ir.ops.arithmetic import Add, Div, Max, Min, Mod, Mul, Pow
from flaot.ir.ops.cast import Cast
from flaot.ir.ops.clip import Clip
from flaot.ir.types import DType
from flaot.kernels.base import load_all
from flaot.schedule.evaluate import evaluate
from tests.kernels.reference import CHIPS

load_all()

erf = np.vectorize(math.erf)

# Largest error against float64, in ulp of the float32 result, on a range; measured, then rounded up.
ERRORS: list[tuple[Op, object, float, float, float]] = [
    (f.Exp(), np.exp, -87, 88, 1.5), (f.Log(), np.log, 1e-30, 1e30, 1.5), (act.Sigmoid(), lambda x: 1 / (1 + np.exp(-x)), -80, 80, 4),
    (act.Tanh(), np.tanh, -12, 12, 6), (act.Erf(), erf, -5, 5, 7), (f.Sqrt(), np.sqrt, 0, 1e9, 0.5), (f.Sin(), np.sin, -1e4, 1e4, 0.51),
    (f.Cos(), np.cos, -1e4, 1e4, 0.51), (f.Tan(), np.tan, -1.5, 1.5, 0.51), (f.Asin(), np.arcsin, -1, 1, 0.51),
    (f.Acos(), np.arccos, -1, 1, 0.51), (f.Atan(), np.arctan, -1e3, 1e3, 0.51), (f.Sinh(), np.sinh, -80, 80, 0.51),
    (f.Cosh(), np.cosh, -80, 80, 0.51), (f.Asinh(), np.arcsinh, -1e9, 1e9, 0.51), (f.Acosh(), np.arccosh, 1, 1e9, 0.51),
    (f.Atanh(), np.arctanh, -0.999, 0.999, 0.51), (act.Softplus(), lambda x: np.logaddexp(0, x), -80, 80, 4),
    (act.Mish(), lambda x: x * np.tanh(np.logaddexp(0, x)), -80, 80, 5), 
    (act.Elu(1.0), lambda x: np.where(x < 0, np.expm1(x), x), -80, 80, 3),
    (f.Reciprocal(), lambda x: 1 / x, 0.1, 100, 0.5),
]  # fmt: skip


def ulps(got: np.ndarray, want: np.ndarray) -> float:
    return float(np.max(np.abs(got.astype(np.float64) - want) / np.spacing(np.abs(want.astype(np.float32))).astype(np.float64)))


def points(low: float, high: float) -> np.ndarray:
    rng = np.random.default_rng(0)
    even = rng.uniform(low, high, 20_011)
    near = np.geomspace(max(low, 1e-6), high, 5_000) if high > 0 else even
    near = np.concatenate([near, -near]) if low < 0 else near
    x = np.concatenate([even, near]).astype(np.float32)
    return x[(x >= np.float32(low)) & (x <= np.float32(high))]


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize(("op", "exact", "low", "high", "bound"), ERRORS, ids=[e[0].name for e in ERRORS])
def test_error(op: Op, exact, low: float, high: float, bound: float, chip: str) -> None:  # type: ignore[no-untyped-def]
    x = points(low, high)
    worst = ulps(evaluate(op, [x], CHIPS[chip])[0], exact(x.astype(np.float64)))
    assert worst <= bound, f"{worst:.2f} ulp"


@pytest.mark.parametrize("op", [e[0] for e in ERRORS], ids=[e[0].name for e in ERRORS])
def test_float64(op: Op) -> None:
    _, exact, low, high, _ = next(e for e in ERRORS if e[0] is op)
    x = points(low, high).astype(np.float64)
    np.testing.assert_allclose(evaluate(op, [x])[0], exact(x), rtol=3e-13, atol=1e-300)  # type: ignore[operator]


NAN = np.float32(np.nan)
TINY = np.float32(1e-41)


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize(
    "op", [act.Relu(), act.Sigmoid(), act.Tanh(), act.Erf(), act.Gelu(), act.Silu(), act.LeakyRelu(0.1), act.Elu(1.0), act.Selu(1.6, 1.05),
           act.Celu(1.0), act.HardSigmoid(0.2, 0.5), act.HardSwish(), act.Softplus(), act.Softsign(), act.Mish(), act.ThresholdedRelu(1.0),
           Clip(-1.0, 1.0), f.Exp(), f.Log(), f.Sqrt(), f.Abs(), f.Neg(), f.Sign(), f.Floor(), f.Ceil(), f.Round(), f.Sin(), f.Atan()],
    ids=lambda op: op.name,
)  # fmt: skip
def test_nan_stays(op: Op, chip: str) -> None:
    x = np.full(37, 0.5, np.float32)
    x[[0, 20, 36]] = NAN
    assert np.flatnonzero(np.isnan(evaluate(op, [x], CHIPS[chip])[0])).tolist() == [0, 20, 36]


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("op", [Max(), Min()])
def test_nan_in_either_operand(op: Op, chip: str) -> None:
    a, b = np.ones(40, np.float32), np.zeros(40, np.float32)
    a[3], b[17], a[39] = NAN, NAN, NAN
    for x, y in ((a, b), (b, a)):
        assert np.flatnonzero(np.isnan(evaluate(op, [x, y], CHIPS[chip])[0])).tolist() == [3, 17, 39]


@pytest.mark.parametrize("chip", CHIPS)
def test_denormals_survive(chip: str) -> None:
    x = np.full(35, TINY, np.float32)
    for op, want in ((Add(), TINY + TINY), (Mul(), TINY * np.float32(1)), (Max(), TINY)):
        other = x if op.name != "Mul" else np.ones(35, np.float32)
        assert (evaluate(op, [x, other], CHIPS[chip])[0] == want).all()
    np.testing.assert_allclose(evaluate(f.Log(), [x], CHIPS[chip])[0], np.log(x), rtol=1e-6)


@pytest.mark.parametrize("chip", CHIPS)
def test_exp_and_log_ends(chip: str) -> None:
    inf = np.float32(np.inf)
    np.testing.assert_array_equal(evaluate(f.Exp(), [np.array([inf, 89, -inf, -200], np.float32)], CHIPS[chip])[0], [inf, inf, 0, 0])
    np.testing.assert_array_equal(evaluate(f.Log(), [np.array([0, -1, inf], np.float32)], CHIPS[chip])[0], [-inf, NAN, inf])


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("source", [d for d in DType if d is not DType.bfloat16], ids=lambda d: d.name)
@pytest.mark.parametrize("to", [d for d in DType if d is not DType.bfloat16], ids=lambda d: d.name)
def test_casts(source: DType, to: DType, chip: str) -> None:
    """As numpy, inside the ranges where the result is defined."""
    rng = np.random.default_rng(1)
    if source.is_float:
        span = 60_000 if to.is_float else 2**62 if to.size == 8 and source is DType.float64 else 120
        x = rng.uniform(0 if not to.is_signed else -span, span, 1003).astype(source.numpy)
        x[::50] = x[::50] // 1 + x.dtype.type(0.5)
    else:
        kind = np.dtype(np.uint8) if source is DType.bool else source.numpy
        x = rng.integers(0, 256, (1003, source.size), dtype=np.uint8).reshape(-1).view(kind)
        x = x % 2 == 1 if source is DType.bool else x
    with np.errstate(all="ignore"):
        want = x.astype(to.numpy)
    np.testing.assert_array_equal(evaluate(Cast(to), [x], CHIPS[chip])[0], want)


def test_bfloat16_rounds_to_even() -> None:
    x = np.array([1.00390625, 1.01171875, 1.0078125, 3.4e38, -0.0, np.inf, np.nan], np.float32)
    bits = evaluate(Cast(DType.bfloat16), [x])[0]
    assert bits[:6].tolist() == [0x3F80, 0x3F82, 0x3F81, 0x7F80, 0x8000, 0x7F80]
    back = evaluate(Cast(DType.float32), [bits], dtypes=[DType.bfloat16])[0]
    assert back[0] == 1.0 and np.isnan(back[6])


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("op", [Div(), Mod()])
def test_integer_zero_divisor_is_refused(op: Op, chip: str) -> None:
    with pytest.raises(RunInputError):
        evaluate(op, [np.arange(40, dtype=np.int32), np.zeros(40, np.int32)], CHIPS[chip])


@pytest.mark.parametrize("dtype", [np.int8, np.int32, np.int64])
def test_integer_division_and_power_at_the_ends(dtype: type) -> None:
    low = np.iinfo(dtype).min
    a = np.array([7, -7, low, low], dtype)
    assert evaluate(Div(), [a, np.array([2, 2, -1, 1], dtype)])[0].tolist() == [3, -3, low, low]
    assert evaluate(Mod(), [a, np.array([-2, 2, -1, 3], dtype)])[0].tolist() == [-1, 1, 0, low % 3]
    assert evaluate(Pow(), [np.array([3, -2, 2, -1], dtype), np.array([4, 3, -1, -3], dtype)])[0].tolist() == [81, -8, 0, -1]


def test_float_power() -> None:
    x = np.array([2, -8, 0, -0.0, np.inf, -np.inf, 4, 1, 9.5, -2], np.float32)
    y = np.array([10, 3, -1, -1, 2, 3, -0.5, np.nan, 0.37, 0.5], np.float32)
    with np.errstate(all="ignore"):
        want = np.power(x.astype(np.float64), y).astype(np.float32)
    np.testing.assert_array_equal(evaluate(Pow(), [x, y])[0], want)
