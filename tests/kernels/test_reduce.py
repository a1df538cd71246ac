"""Reductions, ArgMax, ArgMin and TopK against onnxruntime."""

from __future__ import annotations

import numpy as np
import pytest

from flaot.ir.ops.arg import ArgMax, ArgMin, TopK
from flaot.ir.ops.reduce import KINDS, ReduceL2, ReduceMax, ReduceMean, ReduceMin, ReduceProd, ReduceSum, ReduceSumSquare, _Reduce
from flaot.kernels.base import load_all
from flaot.schedule.evaluate import evaluate
from tests.kernels.reference import CHIPS, onnx_node

load_all()
AXES = [(0,), (1,), (2,), (3,), (2, 3), (0, 2), (1, 3), (0, 1), (0, 1, 2, 3), (1, 2)]


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("kind", KINDS)
def test_float(chip: str, kind: type[_Reduce]) -> None:
    rng = np.random.default_rng(0)
    for axes in AXES:
        for shape in ((2, 5, 7, 33), (1, 40, 1, 19), (3, 1, 64, 48)):
            for keepdims in (True, False):
                x = rng.uniform(0.1, 2, shape).astype(np.float32)
                (got,) = evaluate(kind(axes, keepdims), [x], CHIPS[chip], parts=2)
                want = onnx_node(kind.__name__, [x, np.array(axes)], keepdims=int(keepdims))[0]
                assert got.shape == want.shape
                np.testing.assert_allclose(got, want, rtol=2e-5, atol=1e-5, err_msg=f"{axes} {shape}")


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("last", [2, 3, 5])
def test_a_few_neighbours(chip: str, last: int) -> None:
    """Many short runs, one of them with a NaN, which every kind passes on."""
    x = np.random.default_rng(3).normal(size=(3, 301, last)).astype(np.float32)
    x[1, 7, last - 1] = np.nan
    for kind, numpy in ((ReduceMax, np.max), (ReduceMin, np.min), (ReduceSum, np.sum), (ReduceMean, np.mean)):
        for keepdims in (True, False):
            (got,) = evaluate(kind((2,), keepdims), [x], CHIPS[chip], parts=2)
            np.testing.assert_allclose(got, numpy(x, axis=2, keepdims=keepdims), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("dtype", ["int32", "int64", "int8", "uint8"])
@pytest.mark.parametrize("kind", [ReduceSum, ReduceMax, ReduceMin])
def test_integers(chip: str, dtype: str, kind: type[_Reduce]) -> None:
    x = np.random.default_rng(1).integers(0 if dtype[0] == "u" else -50, 50, (3, 4, 5)).astype(dtype)
    numpy = {ReduceSum: np.sum, ReduceMax: np.max, ReduceMin: np.min}[kind]
    for axes in ((0,), (1, 2), (0, 1, 2)):
        (got,) = evaluate(kind(axes), [x], CHIPS[chip])
        np.testing.assert_array_equal(got, numpy(x, axis=axes, keepdims=True).astype(dtype))


@pytest.mark.parametrize("chip", CHIPS)
def test_a_million_elements(chip: str) -> None:
    x = np.random.default_rng(2).uniform(0, 1, (2, 1_000_000)).astype(np.float32)
    for kind, want in ((ReduceSum, x.sum(1, dtype=np.float64)), (ReduceMean, x.mean(1, dtype=np.float64)),
                       (ReduceSumSquare, (x.astype(np.float64) ** 2).sum(1)), (ReduceL2, np.sqrt((x.astype(np.float64) ** 2).sum(1)))):
        (got,) = evaluate(kind((1,), False), [x], CHIPS[chip])
        np.testing.assert_allclose(got, want, rtol=1e-6)
        (got,) = evaluate(kind((0,), False), [np.ascontiguousarray(x.T)], CHIPS[chip])
        np.testing.assert_allclose(got, want, rtol=1e-6)


@pytest.mark.parametrize("chip", CHIPS)
def test_empty_and_special(chip: str) -> None:
    empty = np.zeros((3, 0), np.float32)
    for kind, want in ((ReduceSum, 0), (ReduceProd, 1), (ReduceMax, -np.inf), (ReduceMin, np.inf)):
        (got,) = evaluate(kind((1,)), [empty], CHIPS[chip])
        assert got.shape == (3, 1) and (got == want).all()
    x = np.float32([[1, np.nan, 3], [np.inf, 1, 2], [-np.inf, -np.inf, -np.inf]] * 8).repeat(20, 1)
    for kind in KINDS[:4]:
        (got,) = evaluate(kind((1,), False), [x], CHIPS[chip])
        want = {"ReduceSum": np.sum, "ReduceMean": np.mean, "ReduceMax": np.max, "ReduceMin": np.min}[kind.__name__](x, axis=1)
        np.testing.assert_array_equal(got, want)
    (got,) = evaluate(ReduceSum((), True), [x], CHIPS[chip])
    np.testing.assert_array_equal(got, x)


@pytest.mark.parametrize("op", [ArgMax, ArgMin])
def test_arg(op: type) -> None:
    x = np.random.default_rng(3).integers(0, 4, (3, 9, 5)).astype(np.float32)
    for axis in range(3):
        for keep in (True, False):
            for last in (True, False):
                (got,) = evaluate(op(axis, keep, last), [x])
                want = onnx_node(op.__name__, [x], axis=axis, keepdims=int(keep), select_last_index=int(last))[0]
                np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("dtype", ["float32", "int64", "int32"])
def test_topk(dtype: str) -> None:
    x = np.random.default_rng(4).integers(-9, 9, (4, 31, 6)).astype(dtype)
    for axis, size in enumerate(x.shape):
        for k in {0, 1, size // 2, size}:
            for largest in (True, False):
                got = evaluate(TopK(axis, k, largest), [x])
                order = np.argsort(-x if largest else x, axis=axis, kind="stable").take(range(k), axis=axis)
                np.testing.assert_array_equal(got[1], order)
                np.testing.assert_array_equal(got[0], np.take_along_axis(x, order, axis))
