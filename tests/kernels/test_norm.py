"""Normalisations against onnxruntime, or their formula in float64 where it has no kernel."""

from __future__ import annotations

import numpy as np
import pytest

from flaot.ir.ops.norm import (
    GroupNormalization,
    InstanceNormalization,
    LayerNormalization,
    LpNormalization,
    MeanVarianceNormalization,
    RMSNormalization,
)
from flaot.kernels.base import load_all
from flaot.schedule.evaluate import evaluate
from tests.kernels.reference import CHIPS, onnx_node

load_all()


def normal(rng: np.random.Generator, *shape: int) -> np.ndarray:
    return rng.standard_normal(shape, dtype=np.float32)


def close(got: np.ndarray, want: np.ndarray) -> None:
    assert got.shape == want.shape
    np.testing.assert_allclose(got, want, rtol=2e-5, atol=1e-5)


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("shape", [(2, 3, 5), (4, 33), (3, 1, 7, 64), (2, 384), (5, 1000), (3, 8)])
def test_layer(chip: str, shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(0)
    x = normal(rng, *shape) * 3 + 5
    for axis in range(1, len(shape)):
        scale, bias = normal(rng, *shape[axis:]), normal(rng, *shape[axis:])
        for b in (bias, None):
            got = evaluate(LayerNormalization(axis, 1e-4, True), [x, scale, b], CHIPS[chip], parts=2)
            for g, w in zip(got, onnx_node("LayerNormalization", [x, scale, b], 3, axis=axis, epsilon=1e-4), strict=True):
                close(g, w)
        wide = x.astype(np.float64)
        want = wide / np.sqrt((wide**2).mean(tuple(range(axis, x.ndim)), keepdims=True) + 1e-5) * scale
        close(evaluate(RMSNormalization(axis), [x, scale], CHIPS[chip])[0], want)


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("shape", [(2, 6, 5, 7), (1, 4, 33), (2, 12, 16, 16), (1, 6, 2, 3, 4), (2, 6, 1, 1)])
def test_channels(chip: str, shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(1)
    x, scale, bias = normal(rng, *shape) * 2 - 1, normal(rng, shape[1]), normal(rng, shape[1])
    close(evaluate(InstanceNormalization(1e-4), [x, scale, bias], CHIPS[chip])[0],
          onnx_node("InstanceNormalization", [x, scale, bias], epsilon=1e-4)[0])
    for groups in (1, 2, shape[1]):
        got = evaluate(GroupNormalization(groups), [x, scale, bias], CHIPS[chip], parts=2)[0]
        close(got, onnx_node("GroupNormalization", [x, scale, bias], num_groups=groups)[0])


@pytest.mark.parametrize("chip", CHIPS)
def test_without_scale(chip: str) -> None:
    x = normal(np.random.default_rng(2), 3, 4, 5, 6)
    for axes in ((0, 2, 3), (1,), (2, 3)):
        got = evaluate(MeanVarianceNormalization(axes), [x], CHIPS[chip])[0]
        close(got, onnx_node("MeanVarianceNormalization", [x], axes=axes)[0])
    x[0, 0, 0] = 0
    for axis in range(4):
        for p in (1, 2):
            close(evaluate(LpNormalization(axis, p), [x], CHIPS[chip])[0], onnx_node("LpNormalization", [x], axis=axis, p=p)[0])
