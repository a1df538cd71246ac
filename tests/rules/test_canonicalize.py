from __future__ import annotations

import numpy as np
import pytest

from flaot.ir.ops.clip import Clip
from flaot.ir.ops.reduce import ReduceMean
from flaot.ir.ops.reshape import Reshape
from flaot.ir.ops.transpose import Transpose
from flaot.rewrite import Tracer
from tests.rules.harness import assert_becomes, onnx_model, rewritten

CHANNELS = "(float[1,4,5,5] x) => (float[1,6,5,5] y)"
PAD1 = "pads=[1,1,1,1]"
BN = {"s": (6,), "b": (6,), "m": (6,), "v": np.float32([0.5, 1, 2, 3, 0.1, 0])}
F = np.float32
ONE = np.int64([1])


@pytest.mark.parametrize(
    ("head", "body", "weights", "ops"),
    [
        # BatchNormalization
        (CHANNELS, f"c = Conv<{PAD1}>(x, w) y = BatchNormalization(c, s, b, m, v)", {"w": (6, 4, 3, 3), **BN}, ["Conv"]),
        (
            CHANNELS,
            f"c = Conv<{PAD1}, group=2>(x, w, k) y = BatchNormalization(c, s, b, m, v)",
            {"w": (6, 2, 3, 3), "k": (6,), **BN},
            ["Conv"],
        ),
        (
            "(float[1,4,5,5] x) => (float[1,6,9,9] y)",
            f"c = ConvTranspose<{PAD1}, group=2, strides=[2,2]>(x, w, k) y = BatchNormalization(c, s, b, m, v)",
            {"w": (4, 3, 3, 3), "k": (6,), **BN},
            ["ConvTranspose"],
        ),
        (
            "(float[3,4] x) => (float[3,6] y)",
            "c = Gemm<transB=1>(x, w, k) y = BatchNormalization(c, s, b, m, v)",
            {"w": (6, 4), "k": (1, 6), **BN},
            ["Gemm"],
        ),
        ("(float[3,4] x) => (float[3,6] y)", "c = MatMul(x, w) y = BatchNormalization(c, s, b, m, v)", {"w": (4, 6), **BN}, ["Gemm"]),
        ("(float[2,6,3] x) => (float[2,6,3] y)", "y = BatchNormalization(x, s, b, m, v)", BN, ["Mul", "Add"]),
        (
            "(float[1,4,5,5] x) => (float[1,6,5,5] y, float[1,6,5,5] c)",
            f"c = Conv<{PAD1}>(x, w) y = BatchNormalization(c, s, b, m, v)",
            {"w": (6, 4, 3, 3), **BN},
            ["Conv", "Mul", "Add"],
        ),
        # per-channel constants into products
        (
            CHANNELS,
            f"c = Conv<{PAD1}>(x, w) d = Mul(c, k) e = Add(d, j) y = Sub(j, e)",
            {"w": (6, 4, 3, 3), "k": (6, 1, 1), "j": (1, 6, 1, 1)},
            ["Conv"],
        ),
        (CHANNELS, f"c = Conv<{PAD1}>(x, w) y = Div(c, k)", {"w": (6, 4, 3, 3), "k": F(3.0)}, ["Conv"]),
        (
            "(float[1,4,5,5] x) => (float[2,6,5,5] y)",
            f"c = Conv<{PAD1}>(x, w) y = Add(c, k)",
            {"w": (6, 4, 3, 3), "k": (2, 6, 1, 1)},
            ["Conv", "Add"],
        ),
        (CHANNELS, f"c = Conv<{PAD1}>(x, w) y = Add(c, k)", {"w": (6, 4, 3, 3), "k": (5,)}, ["Conv", "Add"]),
        (CHANNELS, f"c = Conv<{PAD1}>(x, w) y = Div(k, c)", {"w": (6, 4, 3, 3), "k": F(3.0)}, ["Conv", "Div"]),
        (
            CHANNELS,
            f"c = Conv<{PAD1}>(x, w) d = Relu(c) e = Add(c, k) y = Add(d, e)",
            {"w": (6, 4, 3, 3), "k": F(3.0)},
            ["Conv", "Relu", "Add", "Add"],
        ),
        # matrix products and their bias
        ("(float[3,4] x) => (float[3,6] y)", "c = MatMul(x, w) y = Add(k, c)", {"w": (4, 6), "k": (6,)}, ["Gemm"]),
        (
            "(float[2,3,4] x) => (float[2,3,6] y)",
            "c = MatMul(x, w) y = Add(k, c)",
            {"w": (4, 6), "k": (6,)},
            ["Reshape", "Gemm", "Reshape"],
        ),
        ("(float[3,4] x, float[4,6] w, float[6] k) => (float[3,6] y)", "c = MatMul(x, w) y = Add(c, k)", {}, ["Gemm"]),
        ("(float[1,4] x) => (float[5,6] y)", "c = MatMul(x, w) y = Add(c, k)", {"w": (4, 6), "k": (5, 6)}, ["MatMul", "Add"]),
        ("(float[3,4] x, float[3,1] k) => (float[3,6] y)", "c = Gemm(x, w) y = Add(k, c)", {"w": (4, 6)}, ["Gemm"]),
        ("(float[3,4] x) => (float[3,6] y)", "c = Gemm<alpha=0.5,beta=2.0>(x, w, k) y = Mul(c, k)", {"w": (4, 6), "k": (6,)}, ["Gemm"]),
        # nothing to do
        (
            "(float[2,3] x) => (float[2,3] y)",
            "a = Add(x, z) b = Mul(o, a) c = Sub(b, z) d = Div(c, o) y = Concat<axis=0>(d)",
            {"z": F([0, 0, 0]), "o": F(1)},
            [],
        ),
        ("(float[1,3] x) => (float[2,3] y)", "a = Add(x, z) y = Mul(o, a)", {"z": np.zeros((2, 3), F), "o": np.ones((2, 1), F)}, ["Add"]),
        ("(float[2,3] x) => (float[2,3] y)", "y = Sub(z, x)", {"z": F([0, 0, 0])}, ["Sub"]),
        # other spellings
        (
            "(float[2,3] x) => (float[2,3] y)",
            "a = Sub(x, k) b = Div(a, p) y = Div(b, j)",
            {"k": (3,), "p": F([2, -0.125, 1]), "j": F(3)},
            ["Add", "Mul", "Div"],
        ),
        # clamps
        ("(float[2,3] x) => (float[2,3] y)", "a = Relu(x) b = Clip(a, l, h) y = Relu(b)", {"l": F(-1), "h": F(2)}, ["Clip"]),
        ("(float[2,3] x) => (float[2,3] y)", "a = Max(x, l) b = Min(h, a) y = Clip(b, l)", {"l": F(0), "h": F([2])}, ["Clip"]),
        ("(float[2,3] x) => (float[2,3] y)", "a = Clip(x, l) y = Relu(a)", {"l": F(0)}, ["Relu"]),
        ("(float[2,3] x) => (float[2,3] y)", "y = Max(x, l)", {"l": (3,)}, ["Max"]),
        # reshapes and transposes
        (
            "(float[2,3,4] x) => (float[24] y)",
            "a = Flatten(x) b = Unsqueeze(a, k) y = Reshape(b, m)",
            {"k": np.int64([0]), "m": np.int64([-1])},
            ["Reshape"],
        ),
        ("(float[2,3,4] x) => (float[2,3,4] y)", "a = Flatten(x) y = Reshape(a, m)", {"m": np.int64([2, 3, 4])}, []),
        ("(float[2,3,4] x) => (float[2,3,4] y)", "a = Transpose<perm=[1,2,0]>(x) y = Transpose<perm=[2,0,1]>(a)", {}, []),
        ("(float[2,3,4] x) => (float[4,2,3] y)", "a = Transpose<perm=[1,2,0]>(x) y = Transpose<perm=[1,2,0]>(a)", {}, ["Transpose"]),
        ("(float[1,3,4] x) => (float[3,1,4] y)", "y = Transpose<perm=[1,0,2]>(x)", {}, ["Reshape"]),
        (
            "(float[1,4,5,6] x) => (float[1,4,5,6] y)",
            "a = Transpose<perm=[0,2,3,1]>(x) b = Relu(a) c = Mul(b, k) y = Transpose<perm=[0,3,1,2]>(c)",
            {"k": (4,)},
            ["Relu", "Mul"],
        ),
        (
            "(float[1,4,5,6] x, float[1,4,5,6] z) => (float[1,8,5,6] y)",
            "a = Transpose<perm=[0,2,3,1]>(x) b = Transpose<perm=[0,2,3,1]>(z) c = Concat<axis=3>(a, b) y = Transpose<perm=[0,3,1,2]>(c)",
            {},
            ["Concat"],
        ),
        (
            "(float[2,4,5,6] x) => (float[2,1,1,4] y)",
            "a = Transpose<perm=[0,2,3,1]>(x) y = ReduceMean<axes=[1,2]>(a)",
            {},
            ["ReduceMean", "Reshape"],
        ),
        (
            "(float[4,5,6] x) => (float[4,1,5,6] y)",
            "a = Transpose<perm=[1,2,0]>(x) b = Unsqueeze(a, k) y = Transpose<perm=[3,0,1,2]>(b)",
            {"k": np.int64([0])},
            ["Reshape"],
        ),
        (
            "(float[4,5,6] x) => (float[4,5,6] y, float[5,4,6] z)",
            "a = Transpose<perm=[1,0,2]>(x) z = Relu(a) y = Transpose<perm=[1,0,2]>(a)",
            {},
            ["Relu", "Transpose"],
        ),
        (
            "(float[2,4,5,6] x) => (float[2,4] y)",
            "a = Transpose<perm=[0,2,3,1]>(x) y = ReduceMax<axes=[1,2],keepdims=0>(a)",
            {},
            ["ReduceMax"],
        ),
        (
            "(float[2,4,5,6] x) => (float[6,4] y)",
            "a = Transpose<perm=[3,0,1,2]>(x) y = ReduceMax<axes=[1,3],keepdims=0>(a)",
            {},
            ["ReduceMax", "Transpose"],
        ),
        (
            "(float[2,4,5,6] x) => (float[2,4,6,9] y)",
            "a = Transpose<perm=[0,2,3,1]>(x) b = Pad(a, p, f) y = Transpose<perm=[0,3,1,2]>(b)",
            {"p": np.int64([0, 1, 0, 0, 0, 0, 3, 0]), "f": F(2)},
            ["Pad"],
        ),
        # pads
        (CHANNELS, "c = Pad(x, p) y = Conv<pads=[1,1,0,0]>(c, w)", {"w": (6, 4, 3, 3), "p": np.int64([0, 0, 0, 0, 0, 0, 1, 1])}, ["Conv"]),
        (
            CHANNELS,
            "c = Pad(x, p, f) y = Conv<pads=[1,1,0,0]>(c, w)",
            {"w": (6, 4, 3, 3), "p": np.int64([0, 0, 0, 0, 0, 0, 1, 1]), "f": F(2)},
            ["Pad", "Conv"],
        ),
        (
            CHANNELS,
            "c = Pad(x, p) y = Conv<pads=[1,1,1,1]>(c, w)",
            {"w": (6, 5, 3, 3), "p": np.int64([0, 1, 0, 0, 0, 0, 0, 0])},
            ["Pad", "Conv"],
        ),
        (
            "(float[1,2,4,4] x) => (float[1,2,3,3] y)",
            "c = Pad(x, p) y = MaxPool<kernel_shape=[2,2],strides=[2,2]>(c)",
            {"p": np.int64([0, 0, 1, 1, 0, 0, 1, 1])},
            ["Pad", "MaxPool"],
        ),
        (
            "(float[1,2,4,4] x) => (float[1,2,3,3] y)",
            "c = Pad(x, p, f) y = MaxPool<kernel_shape=[2,2],strides=[2,2]>(c)",
            {"p": np.int64([0, 0, 1, 1, 0, 0, 1, 1]), "f": F(-np.inf)},
            ["MaxPool"],
        ),
        (
            "(float[1,2,4,4] x) => (float[1,2,3,3] y)",
            "c = Pad(x, p) y = AveragePool<kernel_shape=[2,2],strides=[2,2]>(c)",
            {"p": np.int64([0, 0, 1, 1, 0, 0, 1, 1])},
            ["AveragePool"],
        ),
        (
            "(float[1,2,4,4] x) => (float[1,2,3,3] y)",
            "c = Pad(x, p) y = AveragePool<kernel_shape=[3,3],strides=[2,2],pads=[0,0,1,1]>(c)",
            {"p": np.int64([0, 0, 1, 1, 0, 0, 1, 1])},
            ["Pad", "AveragePool"],
        ),
        (
            "(float[2,3] x) => (float[5,4] y)",
            "a = Pad(x, p) y = Pad(a, q)",
            {"p": np.int64([1, 0, 0, 0]), "q": np.int64([1, 1, 1, 0])},
            ["Pad"],
        ),
        # common subexpressions
        (
            "(float[2,3] x) => (float[2,3] y)",
            "a = Exp(x) b = Exp(x) c = Add(a, j) d = Add(b, k) y = Mul(c, d)",
            {"j": F([1, 2, 3]), "k": F([1, 2, 3])},
            ["Exp", "Add", "Mul"],
        ),
        ("(float[2,3] x) => (float[2,3] y, float[2,3] z)", "y = Softmax<axis=0>(x) z = Softmax<axis=1>(x)", {}, ["Softmax", "Softmax"]),
        # means
        ("(float[2,4] x) => (float[2] y)", "a = ReduceSum<keepdims=0>(x, r) y = Mul(a, k)", {"r": ONE, "k": F(0.25)}, ["ReduceMean"]),
        ("(float[2,3] x) => (float[2,1] y)", "a = ReduceSum(x, r) y = Div(a, k)", {"r": ONE, "k": F([3])}, ["ReduceMean"]),
        ("(float[2,3] x) => (float[2,1] y)", "a = ReduceSum(x, r) y = Div(a, k)", {"r": ONE, "k": F([4])}, ["ReduceSum", "Mul"]),
        # constants
        ("(float[2,3] x) => (float[2,3] y)", "a = Exp(k) b = Add(a, k) y = Mul(x, b)", {"k": (3,)}, ["Mul"]),
        ("(float[2,3] x, float[1,3] z) => (float[2,3] y)", "a = Expand(z, k) y = Mul(x, a)", {"k": np.int64([2, 3])}, ["Mul"]),
    ],
)
def test_rules(head: str, body: str, weights: dict[str, object], ops: list[str]) -> None:
    assert_becomes(f"{head} {{ {body} }}", weights, ops)


def test_clamps_keep_nan_and_crossed_bounds() -> None:
    x = {"x": F([[np.nan, -5, 0.5], [np.inf, -np.inf, 3]])}
    body = "(float[2,3] x) => (float[2,3] y) { a = Clip(x, h, l) b = Clip(a, l, h) y = Relu(b) }"
    graph = assert_becomes(body, {"l": F(-1), "h": F(2)}, ["Clip"], feeds=x)
    assert graph.nodes()[0].op == Clip(0.0, 0.0)


def test_shapes_and_axes_after_moving() -> None:
    graph = rewritten(
        onnx_model("(float[2,4,5,6] x) => (float[2,1,1,4] y) { a = Transpose<perm=[0,2,3,1]>(x) y = ReduceMean<axes=[1,2]>(a) }")
    )
    assert [n.op for n in graph.nodes()] == [ReduceMean((2, 3)), Reshape((2, 1, 1, 4))]
    graph = rewritten(onnx_model("(float[2,3,4] x) => (float[4,2,3] y) { a = Transpose<perm=[1,2,0]>(x) y = Transpose<perm=[1,2,0]>(a) }"))
    assert graph.nodes()[0].op == Transpose((2, 0, 1))


def test_uniform_constants_shrink() -> None:
    body = "(float[2,3] x) => (float[2,3] y) { y = Pow(x, k) }"
    graph = assert_becomes(body, {"k": np.full((2, 3), 3, F)}, ["Pow"])
    assert graph.nodes()[0].inputs[1].type.shape == (1, 1)


def test_twins_of_another_type_stay() -> None:
    body = "(float[2] x, int32[2] i) => (float[2] y, int32[2] j) { y = Add(x, k) j = Add(i, l) }"
    graph = rewritten(onnx_model(body, {"k": F([0, 1]), "l": np.int32([0, 0x3F800000])}))
    assert [n.inputs[1].type.dtype.name for n in graph.nodes()] == ["float32", "int32"]


def test_names_and_provenance_survive() -> None:
    body = f"{CHANNELS} {{ c = Conv<{PAD1}>(x, w) y = Relu(c) }}"
    model = onnx_model(body, {"w": (6, 4, 3, 3)})
    model.graph.node[0].name, model.graph.node[1].name = "conv", "relu"
    graph = rewritten(model)
    assert [n.origin for n in graph.nodes()] == [("conv",), ("relu",)] and graph.outputs[0].value.names == ("y",)


def test_why_a_rule_did_not_fire() -> None:
    tracer = Tracer()
    rewritten(
        onnx_model(
            f"(float[1,4,5,5] x) => (float[2,6,5,5] y) {{ c = Conv<{PAD1}>(x, w) y = Add(c, k) }}", {"w": (6, 4, 3, 3), "k": (2, 6, 1, 1)}
        ),
        tracer,
    )
    assert "affine.IntoWeights did not fire at node 'y' (Add): the constant widens the result" in tracer.lines()
