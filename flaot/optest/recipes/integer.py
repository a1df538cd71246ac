"""Operators on integers: results are exact, or off by one rounding where a scale is applied."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from flaot.optest.case import Case, Tensor
from flaot.optest.limits import Limits
from flaot.optest.recipes import recipe


def scale(value: float) -> Tensor:
    """A constant scale."""
    return Tensor((), values=(value,), constant=True)


def zero(value: int, dtype: str = "int8") -> Tensor:
    """A constant zero point."""
    return Tensor((), dtype=dtype, values=(value,), constant=True)


def bytes_of(*shape: int, constant: bool = False, values: tuple[float, ...] = ()) -> Tensor:
    """int8 over their whole range."""
    return Tensor(shape, -128, 128, "int8", constant=constant, values=values)


@recipe("MatMulInteger")
def matmul_integer(op: str, limits: Limits) -> Iterator[Case]:
    """Products of bytes, the largest ones included."""
    yield Case("typical/dense", op, (bytes_of(4, 32), bytes_of(32, 8, constant=True)))
    yield Case("boundary/odd_sizes", op, (bytes_of(7, 13), bytes_of(13, 5, constant=True)))
    yield Case("boundary/zero_points", op, (bytes_of(3, 16), bytes_of(16, 4, constant=True), zero(3), zero(-5)))
    yield Case("precision/largest_sum", op, (bytes_of(2, 512, values=(-128.0,)), bytes_of(512, 3, constant=True, values=(-128.0,))))


@recipe("ConvInteger")
def conv_integer(op: str, limits: Limits) -> Iterator[Case]:
    """Convolutions of bytes."""
    yield Case("typical/3x3", op, (bytes_of(1, 4, 7, 6), bytes_of(6, 4, 3, 3, constant=True)), {"pads": [1, 1, 1, 1]})
    yield Case("boundary/odd_sizes", op, (bytes_of(2, 3, 5, 7), bytes_of(5, 3, 2, 3, constant=True)))
    w = bytes_of(2, 64, 3, 3, constant=True, values=(-128.0,))
    yield Case("precision/largest_sum", op, (bytes_of(1, 64, 3, 3, values=(-128.0,)), w))


@recipe("QLinearMatMul")
def qlinear_matmul(op: str, limits: Limits) -> Iterator[Case]:
    """Products with scales."""
    def case(name: str, m: int, k: int, n: int) -> Case:
        a, b = bytes_of(m, k), bytes_of(k, n, constant=True)
        return Case(name, op, (a, scale(0.0625), zero(2), b, scale(0.03125), zero(0), scale(0.5), zero(-3)))

    yield case("typical/dense", 4, 32, 8)
    yield case("boundary/odd_sizes", 7, 13, 5)
    yield case("boundary/unaligned", 3, limits.alignment + 1, 4)


@recipe("QLinearConv")
def qlinear_conv(op: str, limits: Limits) -> Iterator[Case]:
    """Convolutions with scales, in every layout."""
    def case(name: str, dims: tuple[int, ...], made: int, kernel: int) -> Case:
        w = bytes_of(made, dims[1], kernel, kernel, constant=True)
        bias = Tensor((made,), -1000, 1000, "int32", constant=True)
        return Case(name, op, (bytes_of(*dims), scale(0.0625), zero(1), w, scale(0.03125), zero(0), scale(0.5), zero(4), bias))

    yield case("typical/3x3", (1, 4, 7, 6), 6, 3)
    yield case("typical/1x1", (1, 16, 4, 4), 8, 1)
    yield case("boundary/odd_sizes", (2, 3, 5, 7), 5, 2)
    yield case(f"boundary/batch_{limits.max_batch}", (limits.max_batch, 2, 2, 2), 2, 1)
    for layout in limits.layouts:
        yield replace(case(f"boundary/layout_{layout}", (2, 4, 3, 5), 6, 3), layout=layout)


@recipe("QuantizeLinear")
def quantize(op: str, limits: Limits) -> Iterator[Case]:
    """Ties, values beyond the range, and every sign of zero point."""
    yield Case("typical/values", op, (Tensor((3, 7), -4, 4, step=0.0625), scale(0.0625), zero(0)))
    yield Case("boundary/beyond_range", op, (Tensor((2, 5), -100, 100, step=1), scale(0.5), zero(3)))
    yield Case("precision/ties", op, (Tensor((21,), values=tuple((k + 0.5) / 4 for k in range(-10, 11))), scale(0.25), zero(0)))


@recipe("DequantizeLinear")
def dequantize(op: str, limits: Limits) -> Iterator[Case]:
    """Every byte once."""
    yield Case("typical/values", op, (bytes_of(3, 7), scale(0.0625), zero(-2)))
    yield Case("boundary/every_byte", op, (bytes_of(256, values=tuple(range(-128, 128))), scale(0.125), zero(0)))
