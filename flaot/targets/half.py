"""float32 arrays in the element types chips store them in."""

from __future__ import annotations

import numpy as np

from flaot.ir.types import DType, Rounding

LARGEST = {DType.float16: 65504.0, DType.bfloat16: float(np.array(0x7F7F0000, np.uint32).view(np.float32))}
"""Largest finite numbers."""

_FORMATS = {DType.float16: (10, -14), DType.bfloat16: (7, -126)}
"""Fraction bits, and the exponent of the smallest normal number."""


def narrow(array: np.ndarray, dtype: DType, rounding: Rounding = Rounding.half_to_even) -> np.ndarray:
    """A float32 array as float16, or as the bits of bfloat16 (uint16), rounded as a chip's descriptor says.

    Finite numbers beyond the largest finite one become that one: such constants (-1e9 in a mask) mean "very large", and an infinity in
    their place would make products NaN.
    """
    if dtype is DType.float32:
        return array
    bits, lowest = _FORMATS[dtype]
    wide = array.astype(np.float64)
    finite = np.isfinite(wide)
    exponent = np.maximum(np.frexp(np.where(finite, wide, 0.0))[1] - 1, lowest) - bits
    rounded = np.ldexp(_round(np.ldexp(np.where(finite, wide, 0.0), -exponent), rounding), exponent)
    kept = np.where(finite, np.clip(rounded, -LARGEST[dtype], LARGEST[dtype]), wide)
    if dtype is DType.float16:
        return kept.astype(np.float16)
    return (kept.astype(np.float32).view(np.uint32) >> np.uint32(16)).astype(np.uint16)


def _round(x: np.ndarray, rounding: Rounding) -> np.ndarray:
    match rounding:
        case Rounding.half_to_even:
            y = np.rint(x)
        case Rounding.half_away_from_zero:
            y = np.copysign(np.floor(np.abs(x) + 0.5), x)
        case Rounding.half_up:
            y = np.floor(x + 0.5)
        case Rounding.floor:
            y = np.floor(x)
        case _:
            y = np.trunc(x)
    return np.asarray(y)
