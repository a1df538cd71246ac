"""Integer products against exact numpy sums and, where it is right, onnxruntime."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from tests.kernels.one_node import agree, flaot, onnxruntime
from tests.kernels.reference import CHIPS

BYTES = (np.int8, np.uint8)
SHAPES = (((3, 37), (37, 5)), ((2, 4, 6), (6, 7)), ((2, 1, 3, 5), (4, 5, 2)), ((9,), (9, 4)), ((3, 9), (9,)))


def whole_range(rng: np.random.Generator, dtype: type, *shape: int) -> np.ndarray:
    return rng.integers(np.iinfo(dtype).min, np.iinfo(dtype).max + 1, shape).astype(dtype)


def back(total: np.ndarray, scale: np.ndarray, zero: np.ndarray) -> np.ndarray:
    """The rounding the operators' text asks for."""
    limits = np.iinfo(zero.dtype)
    return np.clip(np.rint(total.astype(np.float32) * scale.astype(np.float32)) + zero, limits.min, limits.max).astype(zero.dtype)


@pytest.mark.parametrize(("ta", "tb"), list(itertools.product(BYTES, BYTES)))
@pytest.mark.parametrize("shape", SHAPES)
def test_matmul_integer(ta: type, tb: type, shape: tuple) -> None:
    rng = np.random.default_rng(0)
    a, b = whole_range(rng, ta, *shape[0]), whole_range(rng, tb, *shape[1])
    agree("MatMulInteger", [a, b], want=[a.astype(np.int32) @ b.astype(np.int32)])
    za, zb = whole_range(rng, ta), whole_range(rng, tb, *([b.shape[1]] if b.ndim > 1 else []))
    if b.ndim <= 2:
        want = (a.astype(np.int32) - za) @ (b.astype(np.int32) - zb)
        agree("MatMulInteger", [a, b, za, zb], want=[want.astype(np.int32)], constant=(1, 3))


def test_zero_points_per_row() -> None:
    rng = np.random.default_rng(0)
    a, b = whole_range(rng, np.uint8, 2, 3, 5), whole_range(rng, np.int8, 2, 5, 4)
    za, zb = whole_range(rng, np.uint8, 2, 3, 1), whole_range(rng, np.int8, 2, 1, 4)
    agree("MatMulInteger", [a, b, za, zb], want=[(a.astype(np.int32) - za) @ (b.astype(np.int32) - zb)])


@pytest.mark.parametrize("fixed", [(), (3, 5)])
@pytest.mark.parametrize(("ta", "tb", "ty"), list(itertools.product(BYTES, BYTES, BYTES)))
def test_qlinear_matmul(ta: type, tb: type, ty: type, fixed: tuple) -> None:
    rng = np.random.default_rng(0)
    a, b = whole_range(rng, ta, 4, 30), whole_range(rng, tb, 30, 6)
    sa, sb, sy = np.float32(0.02), rng.uniform(0.01, 0.03, 6).astype(np.float32), np.float32(0.1)
    za, zb, zy = whole_range(rng, ta), whole_range(rng, tb, 6), whole_range(rng, ty)
    total = (a.astype(np.int32) - za) @ (b.astype(np.int32) - zb)
    inputs, want = [a, np.asarray(sa), za, b, sb, zb, np.asarray(sy), zy], back(total, sa * sb / sy, zy)
    agree("QLinearMatMul", inputs, want=[want], opset=21, constant=fixed)


@pytest.mark.parametrize(("tx", "tw"), list(itertools.product(BYTES, BYTES)))
@pytest.mark.parametrize(("group", "m"), [(1, 6), (2, 8), (1, 37), (2, 70)])
def test_convolutions(tx: type, tw: type, group: int, m: int) -> None:
    rng = np.random.default_rng(0)
    x, w = whole_range(rng, tx, 2, 4, 9, 8), whole_range(rng, tw, m, 4 // group, 3, 2)
    zx, zw = whole_range(rng, tx), whole_range(rng, tw, m)
    options = {"strides": [2, 1], "pads": [1, 0, 2, 1], "dilations": [1, 2], "group": group}
    total = exact_conv(x.astype(np.int64) - zx, w.astype(np.int64) - zw.reshape(m, 1, 1, 1), **options)
    agree("ConvInteger", [x, w, zx, zw], want=[total.astype(np.int32)], constant=(1, 3), **options)
    sx, sw, sy = np.float32(0.01), rng.uniform(0.01, 0.02, m).astype(np.float32), np.float32(0.05)
    bias, zy = rng.integers(-3000, 3000, m).astype(np.int32), whole_range(rng, np.uint8)
    fixed = (3, 5, 8) if m > 6 else (3, 8)
    want = back(total + bias.reshape(m, 1, 1), (sx * sw / sy).reshape(m, 1, 1), zy)
    agree("QLinearConv", [x, np.asarray(sx), zx, w, sw, zw, np.asarray(sy), zy, bias], want=[want], constant=fixed, **options)


def exact_conv(x: np.ndarray, w: np.ndarray, strides: list[int], pads: list[int], dilations: list[int], group: int) -> np.ndarray:
    x = np.pad(x, ((0, 0), (0, 0), (pads[0], pads[2]), (pads[1], pads[3])))
    (kh, kw), per = w.shape[2:], w.shape[1]
    oh, ow = ((s - (k - 1) * d - 1) // t + 1 for s, k, d, t in zip(x.shape[2:], (kh, kw), dilations, strides, strict=True))
    y = np.zeros((x.shape[0], w.shape[0], oh, ow), np.int64)
    for m, i, j in itertools.product(range(w.shape[0]), range(kh), range(kw)):
        first = m // (w.shape[0] // group) * per
        window = x[:, first : first + per, i * dilations[0] :: strides[0], j * dilations[1] :: strides[1]][:, :, :oh, :ow]
        y[:, m] += np.einsum("nchw,c->nhw", window, w[m, :, i, j])
    return y


CONTRIB = [
    ("QLinearAdd", 2, {}), ("QLinearMul", 2, {}), ("QLinearSigmoid", 1, {}), ("QLinearLeakyRelu", 1, {"alpha": 0.2}),
    ("QLinearSoftmax", 1, {"axis": -1, "opset_": 13}), ("QLinearGlobalAveragePool", 1, {}),
    ("QLinearAveragePool", 1, {"kernel_shape": [3, 2], "strides": [2, 1], "pads": [1, 0, 1, 1]}),
]


@pytest.mark.parametrize(("op", "count", "attributes"), CONTRIB, ids=[c[0] for c in CONTRIB])
def test_quantized_operators_of_onnxruntime(op: str, count: int, attributes: dict) -> None:
    rng = np.random.default_rng(0)
    small = [np.array(v, np.float32) for v in (0.02, 0.03, 0.05 if count == 2 else 0.004)]
    zero = np.array(120, np.uint8)
    inputs = [a for i in range(count) for a in (whole_range(rng, np.uint8, 1, 3, 6, 8), small[i], zero)] + [small[2], zero]
    want = onnxruntime(op, inputs, domain="com.microsoft", constant=(), types=[np.uint8], **attributes)
    for chip in CHIPS.values():
        got = flaot(chip, op, inputs, domain="com.microsoft", types=[np.uint8], **attributes)
        assert np.abs(got[0].astype(int) - want[0]).max() <= 1
