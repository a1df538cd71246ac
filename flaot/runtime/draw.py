"""Seeded random inputs, the same on every machine and without numpy.

Floating-point values have either sign and a magnitude from 2^-7 to 2, evenly over its logarithm; 8- and 16-bit integers are even over
their whole range; wider integers and booleans are 0 or 1, which is a valid index or token almost anywhere.
"""

from __future__ import annotations

import random

SIZES = {
    "float32": 4, "uint8": 1, "int8": 1, "uint16": 2, "int16": 2, "int32": 4, "int64": 8, "bool": 1,
    "float16": 2, "float64": 8, "uint32": 4, "uint64": 8, "bfloat16": 2,
}  # fmt: skip
"""Bytes of one element by dtype name."""

_PATTERNS = {
    "float32": (0x83FFFFFF, 0x3C000000),
    "float64": (0x807FFFFFFFFFFFFF, 0x3F80000000000000),
    "float16": (0x9FFF, 0x2000),
    "bfloat16": (0x83FF, 0x3C00),
    "uint8": (0xFF, 0),
    "int8": (0xFF, 0),
    "uint16": (0xFFFF, 0),
    "int16": (0xFFFF, 0),
}
"""Bits of an element that are random, and those that are set; for floats, sign, low three exponent bits and mantissa are random."""


def draw(dtype: str, shape: tuple[int, ...], seed: int, name: str) -> bytes:
    """The elements of input ``name`` as little-endian bytes."""
    size, count = SIZES[dtype], 1
    for d in shape:
        count *= d
    keep, set_ = _PATTERNS.get(dtype, (1, 0))
    bits = int.from_bytes(random.Random(f"{seed}/{name}").randbytes(size * count), "little")
    bits &= int.from_bytes(keep.to_bytes(size, "little") * count, "little")
    bits |= int.from_bytes(set_.to_bytes(size, "little") * count, "little")
    return bits.to_bytes(size * count, "little")
