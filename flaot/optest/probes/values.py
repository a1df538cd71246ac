"""Numbers as chips store them, and rounding by definition."""

from __future__ import annotations

import math

import numpy as np

from flaot.ir.types import DType, Rounding
from flaot.mapping.capability import SIGNIFICAND


def encode(values: np.ndarray, dtype: DType) -> np.ndarray:
    """float64 numbers that the type holds as its elements; bfloat16 as uint16."""
    if dtype is not DType.bfloat16:
        return values.astype(dtype.numpy)
    return (values.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)


def decode(stored: np.ndarray, dtype: DType) -> np.ndarray:
    """The inverse, as float64."""
    if dtype is not DType.bfloat16:
        return stored.astype(np.float64)
    return (stored.astype(np.uint32) << 16).view(np.float32).astype(np.float64)


def rounded(value: float, dtype: DType, mode: Rounding) -> float:
    """A normal number of the type nearest in the sense of the mode."""
    _, exponent = math.frexp(value)
    spacing = 2.0 ** (exponent - SIGNIFICAND[dtype])
    return spacing * _whole(value / spacing, mode)


def _whole(x: float, mode: Rounding) -> float:
    down = math.floor(x)
    half = x - down == 0.5
    match mode:
        case Rounding.half_to_even:
            return float(round(x))
        case Rounding.half_away_from_zero:
            return math.copysign(math.floor(abs(x) + 0.5), x)
        case Rounding.half_up:
            return float(down + 1 if half else math.floor(x + 0.5))
        case Rounding.floor:
            return float(down)
        case _:
            return float(math.trunc(x))
