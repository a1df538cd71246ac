from __future__ import annotations

import numpy as np
import pytest

from flaot.ir.types import DType, Rounding
from flaot.schedule.narrow import narrow

NUMBERS = np.float32([0, 1, 2049, 2051, -2049, 1e9, -1e9, np.inf, -np.inf])


@pytest.mark.parametrize(("rounding", "want"), [
    (Rounding.half_to_even, [2048, 2052, -2048]), (Rounding.half_away_from_zero, [2050, 2052, -2050]),
    (Rounding.half_up, [2050, 2052, -2048]), (Rounding.floor, [2048, 2050, -2050]), (Rounding.toward_zero, [2048, 2050, -2048]),
])
def test_constants_are_rounded_as_the_chip_says_and_stay_finite(rounding: Rounding, want: list[float]) -> None:
    got = narrow(NUMBERS, DType.float16, rounding)
    assert got.dtype == np.float16
    assert got.tolist() == [0, 1, *want, 65504, -65504, np.inf, -np.inf]


def test_bfloat16_is_carried_as_its_bits() -> None:
    assert narrow(np.float32([[1, -2], [3e38, -3.4e38]]), DType.bfloat16).tolist() == [[0x3F80, 0xC000], [0x7F62, 0xFF7F]]
    assert narrow(np.empty((0, 3), np.float32), DType.float16).shape == (0, 3)
