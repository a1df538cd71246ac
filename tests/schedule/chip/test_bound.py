"""The roofline beside the estimate: operations at the peak, or ports and constants once and what else cannot stay on chip twice."""

from __future__ import annotations

import onnx.helper as oh
import pytest

from tests.schedule.chip.small import compiled, model, npu, random

KB = 1024
IMAGE, HIDDEN, WEIGHTS = 512 * 64 * 2, 512 * 128 * 2, 2 * 64 * 128 * 2
"""Bytes of x and y, of h, and of both constants: 64, 128 and 32 kB."""
OPERATIONS = 2 * 2 * 512 * 64 * 128


def two_products() -> bytes:
    """y = h @ v where h = x @ w."""
    nodes = [oh.make_node("MatMul", ["x", "w"], ["h"], "wide"), oh.make_node("MatMul", ["h", "v"], ["y"], "narrow")]
    return model(nodes, {"x": [512, 64]}, {"y": [512, 64]}, {"w": random(64, 128), "v": random(128, 64, seed=1)})


def bound(kb: int, peak: float, off: float = 1) -> float:
    """Nanoseconds."""
    return round(1000 * compiled(two_products(), npu(kb, peak, off)).report["estimate"]["bound_us"], 3)


@pytest.mark.parametrize(("kb", "hidden"), [(1024, 0), (128, 0), (127, 2 * HIDDEN), (63, 2 * HIDDEN), (32, 2 * HIDDEN)])
def test_moving(kb: int, hidden: int) -> None:
    """Ports count once although they do not fit on chip either, h twice where on-chip memory is smaller."""
    assert bound(kb, peak=4096) == IMAGE + WEIGHTS + hidden + IMAGE
    assert bound(kb, peak=4096, off=4) == (IMAGE + WEIGHTS + hidden + IMAGE) / 4


@pytest.mark.parametrize("kb", [1024, 63])
def test_computing(kb: int) -> None:
    assert bound(kb, peak=16) == OPERATIONS / 16
    assert bound(kb, peak=8) == OPERATIONS / 8


@pytest.mark.parametrize("kb", [1024, 256, 128, 96, 63, 32])
@pytest.mark.parametrize("peak", [16, 64, 4096])
def test_no_plan_of_single_steps_is_faster(kb: int, peak: float) -> None:
    assert compiled(two_products(), npu(kb, peak)).report["estimate"]["ratio"] >= 1
