"""Sums kept in float16: 4096 ones stall at 2048, where the spacing of float16 becomes 2; float32 sums give 4096."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from flaot.hcd import bundled, load_hcd
from flaot.ir.op import Op
from flaot.ir.ops.attention import Attention
from flaot.ir.ops.conv import Act, Conv, FusedConv
from flaot.ir.ops.conv_transpose import ConvTranspose
from flaot.ir.ops.cumsum import CumSum
from flaot.ir.ops.einsum import Einsum
from flaot.ir.ops.matmul import Gemm, MatMul
from flaot.ir.ops.norm import RMSNormalization
from flaot.ir.ops.pool import AveragePool
from flaot.ir.ops.recurrent import RNN
from flaot.ir.ops.reduce import ReduceL1, ReduceL2, ReduceMax, ReduceMean, ReduceSum
from flaot.ir.ops.softmax import LogSoftmax, Softmax
from flaot.kernels.base import KERNELS, PORTABLE, VARIANTS, load_all
from flaot.schedule.evaluate import evaluate
from flaot.targets.cpu import Cpu, cpu_of

load_all()
HALF = Cpu(variants=PORTABLE)
N = 4096


def ones(*shape: int) -> np.ndarray:
    return np.ones(shape, np.float32)


def first(y: np.ndarray) -> float:
    return float(y.reshape(-1)[0])


def last(y: np.ndarray) -> float:
    return float(y.reshape(-1)[-1])


POINT = ((1, 1), (0, 0, 0, 0), (1, 1))
CASES: dict[str, tuple[Op, list[np.ndarray | None], Callable[[np.ndarray], float], float, float]] = {
    "dot product": (MatMul(), [ones(1, N), ones(N, 1)], first, 4096, 2048),
    "many columns": (MatMul(), [ones(1, N), ones(N, 32)], last, 4096, 2048),
    "bias comes last, in float32": (Gemm(1.0, 1.0, False, False), [ones(1, N), ones(N, 1), ones(1) / 2], first, 4096.5, 2048.5),
    "convolution": (Conv(*POINT, 1), [ones(1, N, 1, 1), ones(4, N, 1, 1), ones(4) / 2], first, 4096.5, 2048.5),
    "fused convolution": (
        FusedConv(*POINT, 1, Act.clamp, 0.0, 1e6), [ones(1, N, 1, 2), ones(1, N, 1, 1), ones(1), 5 * ones(1, 1, 1, 2), None],
        last, 4102, 2054,
    ),
    "transposed convolution": (
        ConvTranspose((1, 1), (0, 0), (1, 1), (1, 1)), [ones(1, N, 1, 1), ones(N, 1, 1, 1), ones(1) / 2], first, 4096.5, 2048.5,
    ),
    "einsum": (Einsum(("i", "i", "i"), ""), [ones(N)] * 3, first, 4096, 2048),
    "average pool": (AveragePool((64, 64), (1, 1), (0, 0, 0, 0), (1, 1), False), [ones(1, 1, 64, 64)], first, 1.0, 0.5),
    "sum": (ReduceSum((0, 1), True), [ones(64, 64)], first, 4096, 2048),
    "mean": (ReduceMean((0,), True), [ones(N)], first, 1.0, 0.5),
    "L1": (ReduceL1((0,), True), [-ones(N)], first, 4096, 2048),
    "L2": (ReduceL2((0,), True), [ones(N)], first, 64.0, 2048**0.5),
    "maximum": (ReduceMax((0,), True), [7 * ones(N)], first, 7, 7),
    "running sum": (CumSum(0, False, False), [ones(N)], last, 4096, 2048),
    "softmax": (Softmax(0), [ones(N)], first, 1 / 4096, 1 / 2048),
    "log softmax": (LogSoftmax(0), [ones(N)], first, -np.log(4096), -np.log(2048)),
    "norm": (RMSNormalization(0, 0.0), [ones(N), ones(N), None], first, 1.0, 2**0.5),
}


@pytest.mark.parametrize("name", CASES)
def test_ones(name: str) -> None:
    op, inputs, pick, full, half = CASES[name]
    assert pick(evaluate(op, inputs)[0]) == pytest.approx(full, rel=1e-6)
    assert pick(evaluate(op, inputs, HALF)[0]) == pytest.approx(half, rel=1e-6)


def test_a_recurrent_layer() -> None:
    op = RNN(1, "forward", (("Relu", 0.0, 0.0),))
    inputs = [ones(1, 1, N), ones(1, 1, N), ones(1, 1, 1), None, None, None]
    assert first(evaluate(op, inputs)[0]) == 4096 and first(evaluate(op, inputs, HALF)[0]) == 2048


def test_attention() -> None:
    """A query of 4096 ones, a key of ones and one of zeros, scores divided by 2048: softmax of (2, 0), of (1, 0) with stalled sums."""
    keys = np.concatenate([ones(1, 1, 1, N), 0 * ones(1, 1, 1, N)], axis=2)
    values = np.array([1, 0], np.float32).reshape(1, 1, 2, 1)
    inputs = [ones(1, 1, 1, N), keys, values]
    op = Attention(1, 1, 1 / 2048)
    assert first(evaluate(op, inputs)[0]) == pytest.approx(1 / (1 + np.exp(-2)), rel=1e-5)
    assert first(evaluate(op, inputs, HALF)[0]) == pytest.approx(1 / (1 + np.exp(-1)), rel=1e-3)


def test_every_addition_is_rounded_in_order() -> None:
    rng = np.random.default_rng(1)
    a, b = (rng.standard_normal(s).astype(np.float16).astype(np.float32) for s in ((3, 300), (300, 5)))
    want = np.zeros((3, 5), np.float16)
    for k in range(300):
        want = (want.astype(np.float32) + a[:, k : k + 1] * b[k : k + 1]).astype(np.float16)
    np.testing.assert_array_equal(evaluate(MatMul(), [a, b], HALF)[0], want.astype(np.float32))
    image, weights = np.ascontiguousarray(a.T).reshape(1, 300, 3, 1), np.ascontiguousarray(b.T).reshape(5, 300, 1, 1)
    np.testing.assert_array_equal(evaluate(Conv(*POINT, 1), [image, weights], HALF)[0].reshape(5, 3).T, want.astype(np.float32))


def test_overflow_of_a_sum_is_infinite() -> None:
    assert first(evaluate(MatMul(), [100 * ones(1, 8), 100 * ones(8, 1)], HALF)[0]) == np.inf


def test_integers_stay_exact() -> None:
    a = np.ones((1, N), np.int32)
    assert int(evaluate(MatMul(), [a, a.T.copy()], HALF)[0][0, 0]) == 4096


def test_no_cpu_sums_in_float16() -> None:
    assert "half" not in VARIANTS
    for name in bundled():
        hcd = load_hcd(name)
        if hcd.full.chip.device_type == "cpu":
            assert "half" not in cpu_of(hcd).variants
    assert all("generic" in k.variants for k in KERNELS.values() if "half" in k.variants)
