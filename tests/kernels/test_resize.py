"""Resize on every variant and storage against onnxruntime."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from flaot.ir.ops.resize import Resize
from flaot.kernels.base import load_all
from flaot.schedule.evaluate import evaluate
from tests.kernels.one_node import CHIPS, onnxruntime

load_all()
SCALES = ((2.0, 2.0), (0.5, 3.0), (1.5, 0.6), (1.0, 2.5))
COORDINATES = ("half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric")


def agree(op: Resize, x: np.ndarray, want: np.ndarray, chip: str) -> None:
    for last in (False, True):
        (got,) = evaluate(op, [x], CHIPS[chip], parts=2, last=last)
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5, err_msg=f"{op} of {x.shape}, channels last {last}")


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
@pytest.mark.parametrize("channels", [1, 19])
def test_modes(chip: str, mode: str, channels: int) -> None:
    x = np.random.default_rng(0).standard_normal((2, channels, 7, 10), dtype=np.float32)
    roundings = ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil") if mode == "nearest" else ("round_prefer_floor",)
    for scales, coordinates, rounding in itertools.product(SCALES, COORDINATES, roundings):
        full = np.array([1, 1, *scales], np.float32)
        want = onnxruntime(
            "Resize", [x, None, full], opset=19, constant=(2,), mode=mode, coordinate_transformation_mode=coordinates, nearest_mode=rounding
        )[0]
        agree(Resize(want.shape, tuple(float(s) for s in full), mode, coordinates, rounding), x, want, chip)


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
def test_crop_fills_outside(chip: str, mode: str) -> None:
    x = np.random.default_rng(0).standard_normal((1, 8, 7, 10), dtype=np.float32)
    roi, sizes = np.array([0, 0, -0.2, 0.1, 1, 1, 0.8, 1.3], np.float32), np.array([1, 8, 5, 12], np.int64)
    want = onnxruntime(
        "Resize", [x, roi, None, sizes], opset=19, constant=(1, 3), mode=mode, coordinate_transformation_mode="tf_crop_and_resize",
        extrapolation_value=7.0,
    )[0]
    scales = tuple(float(np.float32(s) / np.float32(d)) for s, d in zip(sizes, x.shape, strict=True))
    region = tuple((float(a), float(b)) for a, b in zip(roi[:4], roi[4:], strict=True))
    op = Resize(want.shape, scales, mode, "tf_crop_and_resize", extrapolation=7.0, roi=region)
    agree(op, x, want, chip)
    assert (want == 7).any()


@pytest.mark.parametrize("chip", CHIPS)
def test_three_axes(chip: str) -> None:
    x = np.random.default_rng(0).standard_normal((1, 3, 4, 5, 6), dtype=np.float32)
    scales = np.array([1, 1, 2, 1.5, 2], np.float32)
    want = onnxruntime("Resize", [x, None, scales], opset=19, constant=(2,), mode="linear")[0]
    agree(Resize(want.shape, tuple(map(float, scales)), "linear"), x, want, chip)


@pytest.mark.parametrize("dtype", [np.int8, np.int32, np.float64])
def test_nearest_of_other_dtypes(dtype: type) -> None:
    x = (np.random.default_rng(0).standard_normal((1, 3, 5, 6)) * 40).astype(dtype)
    agree(Resize((1, 3, 10, 12), (1.0, 1.0, 2.0, 2.0)), x, x.repeat(2, 2).repeat(2, 3), "generic")


@pytest.mark.parametrize("rounding", ["round_prefer_floor", "round_prefer_ceil"])
def test_ties_of_an_inexact_scale(rounding: str) -> None:
    for size, wanted in ((20, 6), (14, 1), (14, 19), (18, 39)):
        x = np.arange(size, dtype=np.float32).reshape(1, 1, 1, size)
        sizes = np.array([1, 1, 1, wanted])
        want = onnxruntime("Resize", [x, None, None, sizes], constant=(3,), nearest_mode=rounding)[0]
        op = Resize(want.shape, (1.0, 1.0, 1.0, float(np.float32(wanted) / np.float32(size))), "nearest", "half_pixel", rounding)
        agree(op, x, want, "generic")
