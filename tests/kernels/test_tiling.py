"""Kernels in parts: the bits of the whole, from nothing but what a part is said to need."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from flaot.ir.op import Op
from flaot.ir.ops.activations import Gelu
from flaot.ir.ops.arg import ArgMax, TopK
from flaot.ir.ops.arithmetic import Add, Mul
from flaot.ir.ops.attention import Attention
from flaot.ir.ops.cast import Cast
from flaot.ir.ops.conv import Act, FusedConv
from flaot.ir.ops.conv_transpose import ConvTranspose
from flaot.ir.ops.cumsum import CumSum
from flaot.ir.ops.einsum import Einsum
from flaot.ir.ops.gather import Gather, GatherElements, GatherND
from flaot.ir.ops.grid_sample import GridSample
from flaot.ir.ops.integer import ConvInteger, MatMulInteger, QLinearConv, QLinearMatMul
from flaot.ir.ops.lrn import LRN
from flaot.ir.ops.matmul import FusedMatMul, Gemm, MatMul
from flaot.ir.ops.norm import GroupNormalization, InstanceNormalization, LayerNormalization, LpNormalization, RMSNormalization
from flaot.ir.ops.pool import AveragePool, LpPool, MaxPool
from flaot.ir.ops.reduce import ReduceLogSumExp, ReduceMax, ReduceMean
from flaot.ir.ops.resize import Resize
from flaot.ir.ops.roi_align import RoiAlign
from flaot.ir.ops.scatter import Reduction, ScatterElements, ScatterND
from flaot.ir.ops.softmax import LogSoftmax, Softmax
from flaot.ir.ops.transpose import Transpose
from flaot.ir.types import DType
from flaot.kernels.base import KERNELS, PORTABLE
from tests.kernels.conv_cases import case, normal
from tests.kernels.parts import check_op, lowered
from tests.kernels.test_recurrent import GRU, LSTM, default, operands

RNG = np.random.default_rng(4)


def f(*shape: int) -> np.ndarray:
    return normal(RNG, shape)


def whole(low: int, high: int, *shape: int, kind: type = np.int64) -> np.ndarray:
    return RNG.integers(low, high, shape).astype(kind)


def fused(
    x: tuple[int, ...], w: tuple[int, ...], strides: tuple[int, ...], pads: tuple[int, ...], group: int = 1, act: Act = Act.none,
    residual: bool = False,
) -> tuple[Op, Sequence[np.ndarray | None]]:
    made = case(RNG, x, w, FusedConv(strides, pads, (1,) * len(strides), group, act), residual=residual)
    return made.op, made.inputs


def u8(*shape: int) -> np.ndarray:
    return whole(0, 256, *shape, kind=np.uint8)


def one(kind: type, value: float) -> np.ndarray:
    return np.array(value, kind)


LINEAR = (one(np.float32, 0.02), one(np.uint8, 3))
CASES: dict[str, tuple[Op, Sequence[np.ndarray | None], str]] = {
    "convolution": (*fused((2, 5, 7, 9), (6, 5, 3, 3), (1, 1), (1, 1, 1, 1), act=Act.silu, residual=True), "batch channels height width"),
    "strided convolution": (*fused((1, 3, 15, 14), (8, 3, 7, 7), (2, 2), (3, 3, 3, 3), act=Act.prelu), "channels height width"),
    "grouped convolution": (*fused((1, 6, 5, 6), (9, 2, 3, 2), (1, 2), (0, 1, 1, 0), 3, Act.prelu, True), "groups height width"),
    "depthwise convolution": (*fused((2, 7, 9, 8), (7, 1, 3, 3), (2, 1), (1, 1, 1, 1), 7), "batch groups height width"),
    "convolution of a line": (*fused((1, 4, 21), (3, 4, 5), (3,), (4, 0)), "channels width"),
    "convolution of a volume": (*fused((1, 2, 5, 4, 6), (3, 2, 3, 2, 3), (1, 2, 1), (1, 0, 1, 1, 1, 1)), "channels depth height width"),
    "windows in the padding": (*fused((1, 2, 3, 2), (3, 2, 2, 2), (1, 2), (5, 4, 6, 5)), "channels height width"),
    "transposed convolution": (
        ConvTranspose((2, 3), (1, 0), (1, 1), (9, 14)), [f(2, 4, 5, 4), f(4, 3, 3, 5), f(3)], "batch channels height width"),
    "transposed groups, dilated": (
        ConvTranspose((2,), (2,), (3,), (12,), 2), [f(1, 4, 5), f(4, 3, 3), f(6)], "groups width"),
    "transposed with gaps": (ConvTranspose((4, 4), (0, 1), (1, 1), (15, 13)), [f(1, 3, 4, 4), f(3, 2, 2, 2)], "channels height width"),
    "product": (MatMul(), [f(7, 33), f(33, 37)], "rows columns"),
    "products, one side shared": (MatMul(), [f(2, 3, 5, 8), f(3, 8, 19)], "batch 0 batch 1 rows columns"),
    "transposed product": (Gemm(0.5, 2.0, True, True), [f(9, 5), f(20, 9), f(20)], "rows columns"),
    "fused product": (
        FusedMatMul(False, True, 0.25, Act.gelu), [f(2, 5, 8), f(2, 6, 8), f(6), f(2, 5, 6)], "batch 0 rows columns"),
    "element by element": (Gelu(), [f(3, 700)], "axis 0"),
    "repeated operands": (Mul(), [f(2, 5, 6), f(5, 1)], "axis 0 axis 1 axis 2"),
    "rows and columns added": (Add(), [f(40, 1), f(1, 30)], "axis 0 axis 1"),
    "conversion": (Cast(DType.int32), [f(3, 4, 5) * 100], "axis 0"),
    "maximum pool": (MaxPool((3, 2), (2, 1), (1, 1, 1, 0), (1, 2), False), [f(2, 3, 8, 9)], "batch channels height width"),
    "mean pool": (AveragePool((3, 3), (2, 2), (1, 1, 1, 1), (1, 1), False), [f(1, 4, 9, 8)], "channels height width"),
    "mean pool with its padding": (
        AveragePool((3, 4), (2, 3), (1, 2, 2, 1), (1, 1), True, count_include_pad=True), [f(1, 2, 9, 11)], "channels height width"),
    "norm pool": (LpPool((4,), (3,), (2, 1), (1,), False, p=3), [f(2, 2, 14)], "batch channels width"),
    "pool of bytes": (MaxPool((2, 2), (2, 2), (0, 0, 0, 0), (1, 1), False), [u8(1, 3, 6, 8)], "channels height width"),
    "pool with indices": (MaxPool((2, 2), (2, 2), (0, 0, 0, 0), (1, 1), False, indices=True), [f(1, 3, 6, 8)], ""),
    "softmax": (Softmax(1), [f(3, 40, 5)], "axis 0 axis 2"),
    "log softmax": (LogSoftmax(2), [f(3, 4, 50)], "axis 0 axis 1"),
    "layer norm": (LayerNormalization(2, stats=True), [f(3, 5, 70), f(70), f(70)], "axis 0 axis 1"),
    "rms norm": (RMSNormalization(1), [f(6, 70), f(70)], "axis 0"),
    "instance norm": (InstanceNormalization(), [f(2, 5, 6, 7), f(5), f(5)], "axis 0 axis 1"),
    "group norm": (GroupNormalization(3), [f(2, 6, 5, 4), f(6), f(6)], "axis 0 axis 1"),
    "lp norm": (LpNormalization(0), [f(9, 12)], "axis 1"),
    "attention": (Attention(4, 4, 0.3), [f(2, 4, 6, 9), f(2, 4, 7, 9), f(2, 4, 7, 5)], "batch heads queries"),
    "causal attention of groups": (
        Attention(6, 2, 0.3, causal=True, offset=1), [f(1, 6, 5, 8), f(1, 2, 6, 8), f(1, 2, 6, 8)], "heads queries"),
    "masked attention to one head": (
        Attention(4, 1, 0.5, softcap=2.0), [f(2, 4, 3, 8), f(2, 1, 6, 8), f(2, 1, 6, 8), f(2, 1, 3, 6)], "batch heads queries"),
    "transposition": (Transpose((1, 2, 0)), [f(3, 4, 5)], "axis 0 axis 1"),
    "gather": (Gather(1), [f(2, 9, 3), whole(-9, 9, 4)], "outer indices inner"),
    "gather of tuples": (GatherND(0), [f(4, 5, 6), whole(0, 4, 7, 2)], "indices inner"),
    "gather of tuples per batch": (GatherND(1), [f(4, 5, 6), whole(0, 5, 4, 3, 1)], "batch inner"),
    "gather of elements": (GatherElements(1), [f(4, 5, 6), whole(-5, 5, 3, 2, 6)], "axis 0"),
    "mean": (ReduceMean((1,)), [f(3, 100, 4)], "axis 0 axis 2"),
    "maximum over outer axes": (ReduceMax((0, 2), keepdims=False), [f(3, 5, 4, 6)], "axis 1 axis 3"),
    "logarithm of a sum": (ReduceLogSumExp((2,)), [f(3, 5, 40)], "axis 0 axis 1"),
    "position of the largest": (ArgMax(1, True, False), [f(4, 9, 3)], "axis 0 axis 2"),
    "largest": (TopK(1, 3), [f(6, 20)], "axis 0"),
    "running sum": (CumSum(1, True, True), [f(4, 9, 3)], "axis 0 axis 2"),
    "contraction": (Einsum(("bij", "bjk"), "bki"), [f(2, 5, 7), f(2, 7, 6)], "axis 0 axis 1 axis 2"),
    "local response": (LRN(3, 1e-2, 0.75, 1.0), [f(2, 6, 4, 5)], "axis 0 axis 2 axis 3"),
    "sampling by a grid": (GridSample(), [f(2, 3, 5, 6), f(2, 4, 7, 2)], "batch height width channels"),
    "regions": (
        RoiAlign(2, 3, 2, 1.0, True, False), [f(2, 4, 9, 9), np.abs(f(5, 4)) * 4, whole(0, 2, 5)], "channels regions"),
    "resize to neighbours": (Resize((2, 3, 8, 10), (1, 1, 2.0, 2.0)), [f(2, 3, 4, 5)], "axis 0 axis 1 axis 2 axis 3"),
    "linear resize": (Resize((1, 3, 9, 7), (1, 1, 2.25, 1.4), mode="linear"), [f(1, 3, 4, 5)], "axis 1 axis 2 axis 3"),
    "cubic resize of a line": (Resize((2, 3, 5), (1, 1, 0.5), mode="cubic", antialias=True), [f(2, 3, 10)], "axis 0 axis 1 axis 2"),
    "crop beyond the edges": (
        Resize((1, 1, 6, 7), (1, 1, 1.5, 1.4), "linear", "tf_crop_and_resize", extrapolation=9.0,
               roi=((0, 1), (0, 1), (-0.6, 0.5), (0.4, 1.9))), [f(1, 1, 4, 5)], "axis 2 axis 3"),
    "scattered elements": (
        ScatterElements(1, Reduction.add), [f(3, 5, 2), whole(0, 5, 3, 4, 2), f(3, 4, 2)], "axis 0 axis 0"),
    "scattered rows": (ScatterND(Reduction.none), [f(5, 6), whole(0, 5, 3, 1), f(3, 6)], "axis 0"),
    "integer product": (
        MatMulInteger(), [u8(2, 5, 8), u8(8, 9), one(np.uint8, 7), u8(9)], "batch 0 rows columns"),
    "quantized product": (
        QLinearMatMul(), [u8(5, 8), *LINEAR, u8(8, 9), f(9) ** 2, u8(9), *LINEAR], "rows columns"),
    "integer convolution": (
        ConvInteger((1, 2), (1, 1, 1, 1), (1, 1)), [u8(2, 3, 5, 6), u8(4, 3, 3, 3), one(np.uint8, 9), u8(4)],
        "batch channels height width"),
    "quantized convolution": (
        QLinearConv((1, 1), (2, 2, 2, 2), (1, 1), 2),
        [u8(1, 4, 3, 4), *LINEAR, u8(6, 2, 3, 3), f(6) ** 2 / 50, u8(6), *LINEAR, whole(-99, 99, 6, kind=np.int32)],
        "groups height width"),
    "long short-term memory": (default(LSTM, 6, "bidirectional"), operands(RNG, LSTM, (4, 5, 3, 6), 2, "blhcp"), "batch"),
    "gated units": (default(GRU, 5), operands(RNG, GRU, (4, 3, 7, 5), 1, "bh"), "batch"),
}


@pytest.mark.parametrize("last", [False, True], ids=["planes", "channels last"])
@pytest.mark.parametrize("name", CASES)
def test_parts_have_the_bits_of_the_whole(name: str, last: bool) -> None:
    op, inputs, cuts = CASES[name]
    found = check_op(op, inputs, last=last)
    assert last or " ".join(found) == cuts


SUMS = [n for n, (op, inputs, _) in CASES.items() if lowered(op, inputs, PORTABLE, False)[0][-1].variant == "half"]


@pytest.mark.parametrize("name", SUMS)
def test_sums_in_float16_do_not_depend_on_parts(name: str) -> None:
    check_op(*CASES[name][:2], variants=PORTABLE)


def test_every_portable_kernel_is_tried() -> None:
    met = {s.kernel for op, inputs, _ in CASES.values() for s in lowered(op, inputs, ("generic",), False)[0]}
    portable = {k.name for k in KERNELS.values() if "generic" in k.variants}
    assert portable - met == {"recast"}
