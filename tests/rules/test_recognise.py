from __future__ import annotations

import math

import numpy as np
import pytest

from tests.rules.harness import assert_becomes

F = np.float32
HEAD = "(float[2,3] x) => (float[2,3] y)"
SUM = "p = Pow(x, three) q = Mul(p, c) s = Add(x, q) u = Mul(s, r) t = Tanh(u) v = Add(t, one)"
NUMBERS = {
    "one": F(1), "two": F(2), "three": F(3), "six": F(6), "half": F(0.5), "sixth": F(1 / 6), "zero": F(0), "root": F(math.sqrt(2)),
    "inv": F(math.sqrt(0.5)), "r": F(math.sqrt(2 / math.pi)), "c": F(0.044715), "k": F(1.702), "ten": F(10), "row": F([1, 1, 2]),
}  # fmt: skip


@pytest.mark.parametrize(
    ("body", "ops"),
    [
        ("a = Sigmoid(x) y = Mul(x, a)", ["Silu"]),
        ("k1 = Mul(k, x) a = Sigmoid(k1) y = Mul(a, x)", ["Silu"]),
        ("a = Div(x, root) b = Erf(a) c1 = Add(b, one) d = Mul(x, c1) y = Mul(d, half)", ["Gelu"]),
        ("a = Mul(x, inv) b = Erf(a) c1 = Add(one, b) d = Mul(half, c1) y = Mul(x, d)", ["Gelu"]),
        ("h = Mul(x, half) a = Div(x, root) b = Erf(a) c1 = Add(b, one) y = Mul(h, c1)", ["Gelu"]),
        ("h = Div(x, two) a = Div(x, root) b = Erf(a) c1 = Add(b, one) y = Mul(h, c1)", ["Gelu"]),
        (f"{SUM} h = Mul(x, half) y = Mul(h, v)", ["GeluTanh"]),
        (f"{SUM} h = Mul(x, v) y = Mul(half, h)", ["GeluTanh"]),
        ("a = Add(x, three) b = Clip(a, zero, six) d = Mul(x, b) y = Div(d, six)", ["HardSwish"]),
        ("a = Add(x, three) b = Clip(a, zero, six) d = Div(b, six) y = Mul(d, x)", ["HardSwish"]),
        ("a = Add(x, three) b = Relu(a) d = Min(b, six) e = Mul(d, sixth) y = Mul(e, x)", ["HardSwish"]),
        ("a = Add(x, three) b = Clip(a, zero, six) y = Div(b, six)", ["HardSigmoid"]),
        ("a = Softplus(x) b = Tanh(a) y = Mul(x, b)", ["Mish"]),
        # near misses
        ("a = Sigmoid(x) b = Mul(x, a) y = Add(a, b)", ["Sigmoid", "Mul", "Add"]),
        ("a = Mul(x, row) b = Sigmoid(a) y = Mul(b, x)", ["Mul", "Sigmoid", "Mul"]),
        ("a = Div(x, two) b = Erf(a) c1 = Add(b, one) d = Mul(x, c1) y = Mul(d, half)", ["Mul", "Erf", "Add", "Mul", "Mul"]),
        ("a = Add(x, two) b = Clip(a, zero, six) d = Mul(x, b) y = Div(d, six)", ["Add", "Clip", "Mul", "Div"]),
        ("a = Add(x, three) b = Clip(a, zero, six) y = Div(b, ten)", ["Add", "Clip", "Div"]),
    ],
)
def test_activations(body: str, ops: list[str]) -> None:
    used = {name: data for name, data in NUMBERS.items() if f"{name})" in body or f"{name}," in body}
    assert_becomes(f"{HEAD} {{ {body} }}", used, ops)
