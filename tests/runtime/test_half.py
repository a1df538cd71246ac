"""core/half.h: every float16 and bfloat16, every tie and its neighbours, in every rounding; and the Recast kernel on top of it."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

from flaot.hcd.numerics import ROUNDINGS
from flaot.ir.types import DType, Rounding
from flaot.kernels.base import KERNELS, load_all
from flaot.plan.fields import kernel_id
from flaot.plan.program import Buffer, Space, View
from flaot.runtime import native

HALVES = (DType.float16, DType.bfloat16)
INFINITY = {DType.float16: 0x7C00, DType.bfloat16: 0x7F80}
NORMAL = {DType.float16: 0x0400, DType.bfloat16: 0x0080}
"""Bits of the smallest normal number."""


def widen(bits: np.ndarray, dtype: DType, strides: tuple[int, ...] | None = None, dims: tuple[int, ...] | None = None) -> np.ndarray:
    dims = bits.shape if dims is None else dims
    view = View(Buffer(Space.arena, bits.nbytes), dtype, dims, strides or native_strides(dims), 0)
    out = np.zeros(dims, np.float32)
    native.library().fl_widen(ctypes.byref(native.c_tensor(view)), at(bits), at(out))
    return out


def narrow(x: np.ndarray, dtype: DType, mode: Rounding, flush: bool = False) -> np.ndarray:
    x = np.ascontiguousarray(x, np.float32)
    out = np.zeros(x.shape, np.uint16)
    view = View(Buffer(Space.arena, out.nbytes), dtype, x.shape, native_strides(x.shape), 0)
    native.library().fl_narrow(ctypes.byref(native.c_tensor(view)), at(out), at(x), int(mode), ctypes.c_bool(flush))
    return out


def native_strides(dims: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(int(np.prod(dims[i + 1 :])) for i in range(len(dims)))


def at(array: np.ndarray) -> ctypes.c_void_p:
    return ctypes.c_void_p(array.ctypes.data)


def exact(bits: np.ndarray, dtype: DType) -> np.ndarray:
    """The numbers behind the bits, by definition."""
    fraction = 10 if dtype is DType.float16 else 7
    bias = 15 if dtype is DType.float16 else 127
    b = bits.astype(np.int64) & 0x7FFF
    exponent, low = b >> fraction, (b & ((1 << fraction) - 1)).astype(np.float64)
    value = np.where(exponent == 0, np.ldexp(low, 1 - bias - fraction), np.ldexp(low + (1 << fraction), exponent - bias - fraction))
    return np.where(bits & 0x8000, -value, value)


def hard_numbers(dtype: DType) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Float32 numbers from each number of the type to the next, ties and their neighbours among them: (x, bits below, next bits).

    The last next number is where finite ones would go on; it stands for infinity.
    """
    below = np.arange(INFINITY[dtype], dtype=np.uint16)
    low, high = exact(below, dtype), exact(below + np.uint16(1), dtype)
    tie = ((low + high) / 2).astype(np.float32)
    finite = np.minimum(high, float(np.finfo(np.float32).max)).astype(np.float32)
    start, inf = low.astype(np.float32), np.float32(np.inf)
    points = [start, np.nextafter(start, inf), np.nextafter(tie, -inf), tie, np.nextafter(tie, inf), np.nextafter(finite, -inf)]
    x = np.concatenate(points)
    times = len(points)
    keep = (x >= np.tile(low, times)) & (x < np.tile(high, times))
    return x[keep], np.tile(below, times)[keep], np.tile(below + np.uint16(1), times)[keep]


def expected(x: np.ndarray, below: np.ndarray, above: np.ndarray, dtype: DType, mode: Rounding, negative: bool) -> np.ndarray:
    """Bits of the rounded magnitude of x (of -x where ``negative``): every number and half-way point is exact in float64."""
    low, tie = exact(below, dtype), (exact(below, dtype) + exact(above, dtype)) / 2
    if mode is Rounding.half_to_even:
        up = (x > tie) | ((x == tie) & (below % 2 == 1))
    elif mode is Rounding.half_away_from_zero:
        up = x >= tie
    elif mode is Rounding.half_up:
        up = (x > tie) if negative else (x >= tie)
    elif mode is Rounding.floor:
        up = (x > low) & negative
    else:
        up = np.zeros(x.shape, bool)
    return np.where(up, above, below)


def test_roundings_are_those_of_descriptors() -> None:
    assert tuple(m.name for m in Rounding) == ROUNDINGS


@pytest.mark.parametrize("dtype", HALVES, ids=lambda d: d.name)
def test_every_number_widens_exactly(dtype: DType) -> None:
    bits = np.arange(65536, dtype=np.uint32).astype(np.uint16)
    wide = widen(bits, dtype)
    magnitude = bits & 0x7FFF
    finite, inf, nan = magnitude < INFINITY[dtype], magnitude == INFINITY[dtype], magnitude > INFINITY[dtype]
    assert (wide[finite] == exact(bits[finite], dtype)).all()
    assert (wide[inf] == [np.inf, -np.inf]).all()
    assert np.isnan(wide[nan]).all() and (wide[nan].view(np.uint32) & 0x400000).all()
    assert (np.signbit(wide) == (bits >= 0x8000)).all()
    if dtype is DType.float16:
        np.testing.assert_array_equal(wide, bits.view(np.float16).astype(np.float32))


@pytest.mark.parametrize("mode", Rounding, ids=lambda m: m.name)
@pytest.mark.parametrize("dtype", HALVES, ids=lambda d: d.name)
def test_ties_and_their_neighbours(dtype: DType, mode: Rounding) -> None:
    x, below, above = hard_numbers(dtype)
    assert x.size > 5 * INFINITY[dtype] and (x == (exact(below, dtype) + exact(above, dtype)) / 2).sum() >= INFINITY[dtype] - 1
    for sign in (1, -1):
        want = expected(x, below, above, dtype, mode, sign < 0)
        got = narrow(sign * x, dtype, mode)
        np.testing.assert_array_equal(got, want | (0x8000 if sign < 0 else 0))
        flushed = narrow(sign * x, dtype, mode, flush=True)
        np.testing.assert_array_equal(flushed, np.where(want < NORMAL[dtype], 0, want) | (0x8000 if sign < 0 else 0))


@pytest.mark.parametrize("mode", Rounding, ids=lambda m: m.name)
@pytest.mark.parametrize("dtype", HALVES, ids=lambda d: d.name)
def test_what_every_half_widens_to_narrows_back(dtype: DType, mode: Rounding) -> None:
    bits = np.arange(65536, dtype=np.uint32).astype(np.uint16)
    nan = (bits & 0x7FFF) > INFINITY[dtype]
    back = narrow(widen(bits, dtype), dtype, mode)
    np.testing.assert_array_equal(back[~nan], bits[~nan])
    assert np.isnan(widen(back[nan], dtype)).all()


def test_overflow_is_as_the_rounding_says() -> None:
    large = np.array([65519.99, 65520, 1e30, np.inf], np.float32)
    results = {m.name: [hex(b) for b in narrow(np.concatenate([large, -large]), DType.float16, m)] for m in Rounding}
    nearest = ["0x7bff", "0x7c00", "0x7c00", "0x7c00", "0xfbff", "0xfc00", "0xfc00", "0xfc00"]
    assert results == {
        "half_to_even": nearest,
        "half_away_from_zero": nearest,
        "half_up": [*nearest[:5], "0xfbff", *nearest[6:]],
        "floor": ["0x7bff", "0x7bff", "0x7bff", "0x7c00", "0xfc00", "0xfc00", "0xfc00", "0xfc00"],
        "toward_zero": ["0x7bff", "0x7bff", "0x7bff", "0x7c00", "0xfbff", "0xfbff", "0xfbff", "0xfc00"],
    }


def test_random_numbers_as_numpy_rounds_them() -> None:
    bits = np.random.default_rng(1).integers(0, 2**32, 1_000_003, dtype=np.uint64).astype(np.uint32)
    x = bits.view(np.float32)
    x = x[~np.isnan(x)]
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(narrow(x, DType.float16, Rounding.half_to_even), x.astype(np.float16).view(np.uint16))


def test_strided_tensors() -> None:
    bits = np.arange(24, dtype=np.uint16) + np.uint16(0x3C00)
    rows = bits.view(np.float16).astype(np.float32).reshape(2, 3, 4)
    np.testing.assert_array_equal(widen(bits, DType.float16, (1, 2, 6), (2, 3, 4)), rows.reshape(4, 3, 2).transpose(2, 1, 0))
    np.testing.assert_array_equal(widen(bits, DType.float16, (12, 0, 1), (2, 3, 4)), np.broadcast_to(rows[:, :1], (2, 3, 4)))
    assert widen(bits[:1], DType.float16, (), ()) == 1.0
    assert widen(bits[:0], DType.float16, (4, 1), (0, 4)).shape == (0, 4)


@pytest.mark.parametrize("parts", [1, 3])
@pytest.mark.parametrize("source", [DType.float32, *HALVES], ids=lambda d: d.name)
@pytest.mark.parametrize("target", [DType.float32, *HALVES], ids=lambda d: d.name)
def test_recast_takes_any_strides(source: DType, target: DType, parts: int) -> None:
    """Channels last to row-major, 2 x 5 x 700; more than fits the kernel's room in a row."""
    if source is target:
        return
    load_all()
    x = np.random.default_rng(2).standard_normal((2, 5, 700)).astype(np.float32)
    stored = x if source is DType.float32 else narrow(x, source, Rounding.half_to_even)
    known = x if source is DType.float32 else widen(stored, source)
    a = View(Buffer(Space.arena, stored.nbytes), source, x.shape, (3500, 1, 5), 0)
    b = View(Buffer(Space.arena, x.size * target.size), target, x.shape, (3500, 700, 1), 0)
    memory = {id(a.buffer): stored.transpose(0, 2, 1).copy().view(np.uint8).reshape(-1), id(b.buffer): np.zeros(b.buffer.nbytes, np.uint8)}
    for mode in Rounding:
        params = KERNELS["recast"].pack(rounding=mode, flush=0)
        assert native.call_kernel(kernel_id("recast", "generic"), [a], [b], memory, params, 0, parts) == 0
        got = memory[id(b.buffer)].view(np.float32 if target is DType.float32 else np.uint16).reshape(x.shape)
        np.testing.assert_array_equal(got, known if target is DType.float32 else narrow(known, target, mode))
    bad = KERNELS["recast"].pack(rounding=5, flush=0)
    assert native.call_kernel(kernel_id("recast", "generic"), [a], [b], memory, bad, 0) != 0
