"""Random inputs are the same everywhere and have the stated ranges."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest

from flaot.runtime.draw import SIZES, draw


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
def test_floats(dtype):
    v = np.frombuffer(draw(dtype, (1000,), 7, "x"), dtype).astype(np.float64)
    assert np.abs(v).max() < 2
    assert np.abs(v).min() >= 2**-7
    assert abs(v.mean()) < 0.1
    assert 0.4 < (v > 0).mean() < 0.6


def test_bfloat16_is_the_upper_half_of_a_float32():
    bits = np.frombuffer(draw("bfloat16", (500,), 7, "x"), np.uint16).astype(np.uint32) << 16
    assert 2**-7 <= np.abs(bits.view(np.float32)).min() < np.abs(bits.view(np.float32)).max() < 2


@pytest.mark.parametrize(
    ("dtype", "low", "high"), [("uint8", 0, 255), ("int8", -128, 127), ("int64", 0, 1), ("bool", 0, 1), ("int32", 0, 1)]
)
def test_integers_fill_their_range(dtype, low, high):
    v = np.frombuffer(draw(dtype, (5000,), 7, "x"), dtype)
    assert (v.min(), v.max()) == (low, high)


def test_every_dtype_and_empty_shapes():
    for dtype, size in SIZES.items():
        assert len(draw(dtype, (3, 2), 0, "x")) == 6 * size
        assert draw(dtype, (0, 2), 0, "x") == b""
        assert len(draw(dtype, (), 0, "x")) == size


def test_same_bytes_on_every_machine():
    assert hashlib.sha256(draw("float32", (100,), 0, "x")).hexdigest()[:16] == "6b6a20ce720e4b0f"
    assert draw("float32", (9,), 0, "x") != draw("float32", (9,), 0, "y")
