"""MatMul and Gemm against onnxruntime, or numpy's integer arithmetic."""

from __future__ import annotations

import numpy as np
import pytest

from flaot.ir.op import OpTypeError
from flaot.ir.ops.conv import Act
from flaot.ir.ops.matmul import FusedMatMul, Gemm, MatMul
from flaot.kernels.base import load_all
from flaot.schedule.evaluate import evaluate
from tests.kernels.reference import CHIPS, onnx_node

load_all()
STACKS = [((), ()), ((3,), (3,)), ((2, 1), (1, 3)), ((), (4,)), ((2, 3), ())]


def normal(rng: np.random.Generator, *shape: int) -> np.ndarray:
    return rng.standard_normal(shape, dtype=np.float32)


def close(got: np.ndarray, want: np.ndarray, length: int) -> None:
    assert got.shape == want.shape
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=2e-6 * max(length, 5) ** 0.5)


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("seed", range(8))
def test_matmul_shapes(chip: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    for _ in range(12):
        m, n = (int(rng.choice([1, 1, 2, 3, 5, 8, 13, 31, 64, 100])) for _ in range(2))
        k = int(rng.choice([1, 2, 3, 7, 16, 33, 64, 200, 500]))
        left, right = STACKS[int(rng.integers(len(STACKS)))]
        a, b = normal(rng, *left, m, k), normal(rng, *right, k, n)
        constant = (1,) if rng.random() < 0.6 else ()
        (got,) = evaluate(MatMul(), [a, b], CHIPS[chip], constant=constant, parts=int(rng.integers(1, 4)))
        close(got, onnx_node("MatMul", [a, b])[0], k)


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("c", [None, (), (1,), (37,), (1, 37), (29, 1), (29, 37), (1, 1)])
def test_gemm_options(chip: str, c: tuple[int, ...] | None) -> None:
    rng = np.random.default_rng(1)
    for trans_a in (False, True):
        for trans_b in (False, True):
            for alpha, beta in ((1.0, 1.0), (0.5, -2.0), (1.5, 0.0)):
                a = normal(rng, 23, 29) if trans_a else normal(rng, 29, 23)
                b = normal(rng, 37, 23) if trans_b else normal(rng, 23, 37)
                inputs = [a, b] + ([] if c is None else [normal(rng, *c)])
                for constant in ((), (1,), (1, 2)):
                    (got,) = evaluate(Gemm(alpha, beta, trans_a, trans_b), inputs, CHIPS[chip], constant=constant)
                    want = onnx_node("Gemm", inputs, alpha=alpha, beta=beta, transA=int(trans_a), transB=int(trans_b))[0]
                    close(got, want, 23)


@pytest.mark.parametrize("chip", CHIPS)
def test_no_inner_dimension_gives_zeros(chip: str) -> None:
    (got,) = evaluate(MatMul(), [np.zeros((2, 3, 0), np.float32), np.zeros((0, 4), np.float32)], CHIPS[chip])
    assert got.shape == (2, 3, 4) and not got.any()
    (got,) = evaluate(Gemm(), [np.zeros((3, 0), np.float32), np.zeros((0, 4), np.float32), np.ones(4, np.float32)], CHIPS[chip])
    assert (got == 1).all()


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("act", [a for a in Act if a is not Act.prelu])
def test_fused(chip: str, act: Act) -> None:
    rng = np.random.default_rng(5)
    names = {Act.sigmoid: "Sigmoid", Act.tanh: "Tanh", Act.gelu: "Gelu", Act.hard_swish: "HardSwish"}
    for a, b, trans_b, constant in (((2, 3, 50, 40), (40, 37), False, (1, 2)), ((7, 400), (60, 400), True, (1, 2)),
                                    ((2, 3, 21, 40), (2, 3, 70, 40), True, (2,)), ((2, 3, 90, 40), (2, 3, 40, 9), False, (2,))):
        x, w = normal(rng, *a), normal(rng, *b)
        want = np.matmul(x.astype(np.float64), (np.swapaxes(w, -1, -2) if trans_b else w).astype(np.float64)) * 0.125
        bias, residual = normal(rng, want.shape[-1]), normal(rng, *want.shape)
        want = (want + bias + residual).astype(np.float32)
        if act in names:
            want = onnx_node(names[act], [want])[0]
        elif act is Act.silu:
            want = want / (1 + np.exp(-want))
        elif act is Act.clamp:
            want = want.clip(-0.5, 0.8)
        elif act is Act.leaky_relu:
            want = np.where(want < 0, -0.5 * want, want)
        elif act is Act.hard_sigmoid:
            want = (want * np.float32(-0.5) + np.float32(0.8)).clip(0, 1)
        op = FusedMatMul(trans_b=trans_b, scale=0.125, act=act, alpha=-0.5, beta=0.8)
        for parts in (1, 2):
            (got,) = evaluate(op, [x, w, bias, residual], CHIPS[chip], constant=constant, parts=parts)
            close(got, want, a[-1])


@pytest.mark.parametrize("dtype", ["int32", "int64", "uint32", "uint64"])
def test_integers_wrap(dtype: str) -> None:
    rng = np.random.default_rng(2)
    high = np.iinfo(dtype).max
    a, b = (rng.integers(0, high, shape, dtype=dtype) for shape in ((5, 7), (7, 3)))
    (got,) = evaluate(MatMul(), [a, b])
    np.testing.assert_array_equal(got, a @ b)


def test_float64() -> None:
    rng = np.random.default_rng(3)
    a, b = rng.standard_normal((5, 7)), rng.standard_normal((7, 3))
    (got,) = evaluate(MatMul(), [a, b])
    np.testing.assert_allclose(got, a @ b, rtol=1e-12)


def test_refusals() -> None:
    f = np.zeros
    with pytest.raises(OpTypeError, match="inner dimensions 3 and 4"):
        evaluate(MatMul(), [f((2, 3), np.float32), f((4, 5), np.float32)])
    with pytest.raises(OpTypeError, match="do not broadcast"):
        evaluate(MatMul(), [f((2, 3, 3), np.float32), f((4, 3, 5), np.float32)])
    with pytest.raises(OpTypeError, match=r"C of shape \[4, 5\] does not broadcast to the result's \[1, 5\]"):
        evaluate(Gemm(), [f((1, 3), np.float32), f((3, 5), np.float32), f((4, 5), np.float32)])


def test_folding_does_not_depend_on_threads() -> None:
    rng = np.random.default_rng(4)
    a, b = normal(rng, 200, 100), normal(rng, 100, 50)
    assert evaluate(MatMul(), [a, b])[0].tobytes() == evaluate(MatMul(), [a, b], parts=3)[0].tobytes()
