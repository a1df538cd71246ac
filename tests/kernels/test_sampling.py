"""GridSample, RoiAlign and LRN against onnxruntime."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from flaot.errors import RunInputError
from flaot.ir.ops.roi_align import RoiAlign
from flaot.schedule.evaluate import evaluate
from tests.kernels.one_node import agree


def normal(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape, dtype=np.float32)


@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
def test_grid_sample(mode: str, padding: str) -> None:
    for align in (0, 1):
        options = {"mode": mode, "padding_mode": padding, "align_corners": align}
        agree("GridSample", [normal(2, 3, 5, 7), normal(2, 4, 6, 2, seed=1) * 1.2], opset=20, **options)
        if mode != "cubic":
            agree("GridSample", [normal(1, 2, 3, 4, 5), normal(1, 2, 3, 4, 3, seed=1)], opset=20, **options)


def test_grid_sample_of_nan_position_stays_inside() -> None:
    grid = np.array([np.nan, np.inf, -np.inf, 1e30], np.float32).reshape(1, 1, 2, 2)
    want = [np.zeros((1, 1, 1, 2), np.float32)]
    agree("GridSample", [normal(1, 1, 3, 3), grid], opset=20, want=want)


@pytest.mark.parametrize(("mode", "sampling", "coordinates"), list(itertools.product(
    ["avg", "max"], [0, 2], ["half_pixel", "output_half_pixel"]
)))
def test_roi_align(mode: str, sampling: int, coordinates: str) -> None:
    rois = np.array([[0, 0, 5, 6], [1.5, 2, 9, 4], [-2, -1, 3, 30]], np.float32)
    agree(
        "RoiAlign", [normal(2, 3, 9, 11), rois, np.array([0, 1, 1])], opset=16, output_height=3, output_width=2, mode=mode,
        sampling_ratio=sampling, spatial_scale=0.7, coordinate_transformation_mode=coordinates,
    )


def test_roi_align_refuses_an_absent_image() -> None:
    op = RoiAlign(2, 2, 2, 1.0, True, False)
    with pytest.raises(RunInputError, match="index"):
        evaluate(op, [normal(1, 1, 4, 4), np.zeros((1, 4), np.float32), np.array([1])])


@pytest.mark.parametrize("size", [1, 3, 5])
def test_lrn(size: int) -> None:
    agree("LRN", [normal(2, 6, 4, 5) * 5], size=size, alpha=0.3, beta=0.75, bias=2.0)


@pytest.mark.parametrize("align", [0, 1])
@pytest.mark.parametrize("sizes", [(5, 6), (3, 4, 2)])
def test_affine_grid(align: int, sizes: tuple) -> None:
    n = len(sizes)
    size = np.array([2, 3, *sizes])
    agree("AffineGrid", [normal(2, n, n + 1), size], opset=20, constant=(1,), align_corners=align, types=[np.float32])
