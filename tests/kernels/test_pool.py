"""Pooling on every variant and storage against onnxruntime."""

from __future__ import annotations

import numpy as np
import pytest

from flaot.ir.ops.pool import AveragePool, LpPool, MaxPool
from flaot.kernels.base import load_all
from flaot.schedule.evaluate import evaluate
from tests.kernels.one_node import CHIPS, onnxruntime

load_all()


def window(rng: np.random.Generator, n: int, dilated: bool = True) -> dict[str, object]:
    kernel = [int(k) for k in rng.integers(1, 5, n)]
    return {
        "kernel_shape": kernel,
        "strides": [int(s) for s in rng.integers(1, 4, n)],
        "pads": [int(rng.integers(0, kernel[i % n])) for i in range(2 * n)],
        "dilations": [int(d) for d in rng.integers(1, 3, n)] if dilated else [1] * n,
        "ceil_mode": int(rng.integers(2)),
    }


def agree(op: MaxPool | AveragePool | LpPool, x: np.ndarray, want: list[np.ndarray], chip: str) -> None:
    for last in (False, True):
        got = evaluate(op, [x], CHIPS[chip], parts=2, last=last)
        for g, w in zip(got, want, strict=True):
            np.testing.assert_allclose(g, w, rtol=1e-4, atol=1e-5, err_msg=f"{op} of {x.shape}, channels last {last}")


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("seed", range(12))
def test_random_windows(chip: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = 1 + seed % 3
    x = rng.standard_normal((2, int(rng.choice([1, 3, 17, 40])), *(int(s) for s in rng.integers(8, 15, n))), dtype=np.float32)
    w = window(rng, n)
    fields = tuple(tuple(w[k]) for k in ("kernel_shape", "strides", "pads", "dilations"))  # type: ignore[call-overload]
    ceil = bool(w["ceil_mode"])
    agree(MaxPool(*fields, ceil), x, onnxruntime("MaxPool", [x], opset=22, **w), chip)
    agree(MaxPool(*fields, ceil, indices=True), x, onnxruntime("MaxPool", [x], opset=22, outputs=2, **w), chip)
    for include in (False, True):
        want = onnxruntime("AveragePool", [x], opset=19, count_include_pad=int(include), **w)
        agree(AveragePool(*fields, ceil, include), x, want, chip)
    lp = {k: v for k, v in w.items() if k not in ("dilations", "ceil_mode")}
    if not ceil:
        agree(LpPool(*fields[:3], (1,) * n, False, 3), x, onnxruntime("LpPool", [x], p=3, **lp), chip)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
def test_bytes(dtype: type) -> None:
    x = np.random.default_rng(0).integers(np.iinfo(dtype).min, np.iinfo(dtype).max, (1, 3, 9, 9)).astype(dtype)
    want = onnxruntime("MaxPool", [x], kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1], outputs=2)
    agree(MaxPool((3, 3), (2, 2), (1, 1, 1, 1), (1, 1), False, True), x, want, "generic")
    for chip in CHIPS:
        agree(MaxPool((3, 3), (2, 2), (1, 1, 1, 1), (1, 1), False), x, want[:1], chip)


@pytest.mark.parametrize("chip", CHIPS)
def test_whole_plane(chip: str) -> None:
    for shape in ((2, 5, 37), (1, 33, 9, 11), (2, 3, 4, 5, 6)):
        x = np.random.default_rng(1).standard_normal(shape, dtype=np.float32)
        n = len(shape) - 2
        whole = (shape[2:], (1,) * n, (0,) * 2 * n, (1,) * n, False)
        agree(AveragePool(*whole), x, onnxruntime("GlobalAveragePool", [x]), chip)
        agree(MaxPool(*whole), x, onnxruntime("GlobalMaxPool", [x]), chip)


@pytest.mark.parametrize("chip", CHIPS)
def test_infinite_input(chip: str) -> None:
    x = np.full((1, 16, 4, 4), -np.inf, np.float32)
    assert (evaluate(MaxPool((3, 3), (1, 1), (1,) * 4, (1, 1), False), [x], CHIPS[chip], last=True)[0] == -np.inf).all()
