"""Attention found in products: heads, scale, causality and mask come out right, and the numbers stay what onnxruntime computes."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest

from flaot.ir.graph import Graph, Node
from flaot.ir.ops.attention import Attention
from flaot.ir.spec import check
from flaot.rewrite import Tracer
from flaot.rules.expand import expand_all
from tests.rules.harness import Weights, draw, onnx_model, reference, rewritten, run_graph

INF = float("inf")
Q = "float[2,3,5,4] q, float[2,3,7,4] k, float[2,3,7,6] v"
TAIL = "p = Softmax<axis=-1>(s) y = MatMul(p, v)"
SEEN = np.tril(np.ones((5, 7), bool))
CAUSAL = np.where(SEEN, 0, -np.inf).astype(np.float32)


def attentions(graph: Graph) -> list[Node]:
    return [n for n in graph.nodes() if isinstance(n.op, Attention)]


def recognised(body: str, weights: Weights | None = None, feeds: Mapping[str, np.ndarray] | None = None, opset: int = 17) -> Node:
    """The one Attention the model becomes, once the model said in products again has been found to compute the same."""
    model = onnx_model(body, weights, opset)
    graph = rewritten(model)
    (node,) = attentions(graph)
    op, types = node.op, node.input_types
    expand_all(graph, lambda n: isinstance(n.op, Attention))
    check(graph, "recognise")
    feeds = {**draw(model), **(feeds or {})}
    for got, want in zip(run_graph(graph, feeds), reference(model, feeds), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)
    assert [op] == [node.op] and types == node.input_types
    return node


def missed(body: str, weights: Weights | None = None, opset: int = 17) -> list[str]:
    """Why the model does not become Attention."""
    tracer = Tracer()
    assert attentions(rewritten(onnx_model(body, weights, opset), tracer)) == []
    return [why for (rule, _), why in tracer.misses.items() if rule == "attention.AttentionForm"]


@pytest.mark.parametrize(
    ("lines", "scale"),
    [
        ("t = Transpose<perm=[0,1,3,2]>(k) s = MatMul(q, t)", 1.0),
        ("t = Transpose<perm=[0,1,3,2]>(k) m = MatMul(q, t) s = Mul(m, c)", 0.25),
        ("t = Transpose<perm=[0,1,3,2]>(k) m = MatMul(q, t) s = Div(m, c)", 4.0),
        ("t = Transpose<perm=[0,1,3,2]>(k) m = Mul(q, c) s = MatMul(m, t)", 0.25),
        ("t = Transpose<perm=[0,1,3,2]>(k) m = Div(q, c) s = MatMul(m, t)", 4.0),
        ("m = Mul(c, k) t = Transpose<perm=[0,1,3,2]>(m) s = MatMul(q, t)", 0.25),
        ("t = Transpose<perm=[0,1,3,2]>(k) m = Mul(q, c) u = Mul(t, c) s = MatMul(m, u)", 0.0625),
    ],
)
def test_scale_on_either_side(lines: str, scale: float) -> None:
    node = recognised(f"({Q}) => (float[2,3,5,6] y) {{ {lines} {TAIL} }}", {"c": np.array(0.25, np.float32)})
    assert node.op == Attention(3, 3, scale)
    assert [str(t) for t in node.input_types] == ["float32[2,3,5,4]", "float32[2,3,7,4]", "float32[2,3,7,6]"]
    assert node.op.heads == 3 and node.op.lengths(node.input_types) == (5, 7)


@pytest.mark.parametrize("axis", [-1, 3])
def test_in_exports_of_older_opsets(axis: int) -> None:
    """Before opset 13 Softmax flattens its input at the axis, which is nothing at the last one."""
    lines = f"t = Transpose<perm=[0,1,3,2]>(k) s = MatMul(q, t) p = Softmax<axis={axis}>(s) y = MatMul(p, v)"
    assert recognised(f"({Q}) => (float[2,3,5,6] y) {{ {lines} }}", opset=11).op == Attention(3, 3, 1.0)


def test_transpose_merged_into_the_split_of_heads() -> None:
    body = """(float[2,5,12] q, float[2,7,12] k, float[2,7,18] v) => (float[2,5,18] y) {
        q4 = Reshape(q, qs) qh = Transpose<perm=[0,2,1,3]>(q4) k4 = Reshape(k, qs) kt = Transpose<perm=[0,2,3,1]>(k4)
        v4 = Reshape(v, qs) vh = Transpose<perm=[0,2,1,3]>(v4) s = MatMul(qh, kt) p = Softmax<axis=-1>(s) o = MatMul(p, vh)
        t = Transpose<perm=[0,2,1,3]>(o) y = Reshape(t, flat) }"""
    node = recognised(body, {"qs": np.array([0, 0, 3, -1]), "flat": np.array([0, 0, -1])})
    assert node.op == Attention(3, 3, 1.0)
    assert [t.shape for t in node.input_types if t] == [(2, 3, 5, 4), (2, 3, 7, 4), (2, 3, 7, 6)]


@pytest.mark.parametrize(("first", "heads"), [("[5,2,12]", 3), ("[5,1,12]", 3)])
def test_heads_in_the_batch_are_those_the_reshape_tells(first: str, heads: int) -> None:
    """nn.MultiheadAttention: [length, batch, width] to [length, batch * heads, depth] to [batch * heads, length, depth]."""
    batch = int(first[3])
    body = f"""(float{first} q, float{first} k, float{first} v) => (float{first} y) {{
        q3 = Reshape(q, s3) qh = Transpose<perm=[1,0,2]>(q3) k3 = Reshape(k, s3) kt = Transpose<perm=[1,2,0]>(k3)
        v3 = Reshape(v, s3) vh = Transpose<perm=[1,0,2]>(v3) m = MatMul(qh, kt) s = Mul(m, c) p = Softmax<axis=-1>(s)
        o = MatMul(p, vh) t = Transpose<perm=[1,0,2]>(o) y = Reshape(t, back) }}"""
    node = recognised(body, {"s3": np.array([5, 3 * batch, 4]), "c": np.array(0.5, np.float32), "back": np.array([5, batch, 12])})
    assert node.op == Attention(heads, heads, 0.5)
    assert node.input_types[0] is not None and node.input_types[0].shape == (batch, heads, 5, 4)


def test_heads_told_by_the_mask() -> None:
    """OPT: scores of [batch * heads, q, k] are seen as [batch, heads, q, k] for the mask."""
    body = """(float[6,5,4] q, float[6,4,7] kt, float[6,7,4] v, float[2,1,5,7] mask) => (float[6,5,4] y) {
        m = MatMul(q, kt) m4 = Reshape(m, four) a = Add(m4, mask) s = Reshape(a, three) p = Softmax<axis=-1>(s) y = MatMul(p, v) }"""
    node = recognised(body, {"four": np.array([2, 3, 5, 7]), "three": np.array([6, 5, 7])})
    assert node.op == Attention(3, 3, 1.0)
    assert [t.shape for t in node.input_types if t] == [(2, 3, 5, 4), (2, 3, 7, 4), (2, 3, 7, 4), (2, 1, 5, 7)]


@pytest.mark.parametrize(("shapes", "heads"), [(("6,5,4", "6,4,7", "6,7,4"), 1), (("5,4", "4,7", "7,4"), 1)])
def test_without_a_word_on_heads_each_matrix_is_one(shapes: tuple[str, ...], heads: int) -> None:
    q, k, v = shapes
    body = f"(float[{q}] q, float[{k}] k, float[{v}] v) => (float[{q}] y) {{ s = MatMul(q, k) p = Softmax<axis=-1>(s) y = MatMul(p, v) }}"
    assert recognised(body).op == Attention(heads, heads, 1.0)


@pytest.mark.parametrize("mask", ["[7]", "[5,7]", "[2,1,1,7]", "[2,3,5,7]", "[1,1,5,7]"])
def test_mask_of_run_time(mask: str) -> None:
    body = f"({Q}, float{mask} m) => (float[2,3,5,6] y) {{ t = Transpose<perm=[0,1,3,2]>(k) a = MatMul(q, t) s = Add(m, a) {TAIL} }}"
    node = recognised(body)
    assert node.op == Attention(3, 3, 1.0) and str(node.input_types[3]) == f"float32{mask}"


@pytest.mark.parametrize("form", ["s = Add(a, add)", "s = Where(hide, low, a)", "s = Where(see, a, low)", "s = Where(see, a, big)"])
def test_causality_of_a_constant_mask(form: str) -> None:
    weights = {"add": CAUSAL, "hide": ~SEEN, "see": SEEN, "low": np.array(-np.inf, np.float32), "big": np.array(-1e4, np.float32)}
    node = recognised(f"({Q}) => (float[2,3,5,6] y) {{ t = Transpose<perm=[0,1,3,2]>(k) a = MatMul(q, t) {form} {TAIL} }}", weights)
    assert node.op == Attention(3, 3, 1.0, causal=True) and len(node.inputs) == 3


def test_causality_after_cached_keys() -> None:
    shifted = np.where(np.tril(np.ones((5, 7), bool), 2), 0, -1e9).astype(np.float32)
    body = f"({Q}) => (float[2,3,5,6] y) {{ t = Transpose<perm=[0,1,3,2]>(k) a = MatMul(q, t) s = Add(a, m) {TAIL} }}"
    assert recognised(body, {"m": shifted}).op == Attention(3, 3, 1.0, causal=True, offset=2)


def test_hiding_at_run_time_becomes_a_mask_to_add() -> None:
    body = f"""({Q}, bool[2,1,1,7] hide) => (float[2,3,5,6] y) {{
        t = Transpose<perm=[0,1,3,2]>(k) a = MatMul(q, t) s = Where(hide, low, a) {TAIL} }}"""
    hide = np.zeros((2, 1, 1, 7), bool)
    hide[1, ..., 3:] = True
    node = recognised(body, {"low": np.array(-1e9, np.float32)}, {"hide": hide})
    assert str(node.input_types[3]) == "float32[2,1,1,7]"


def test_zeros_where_a_query_sees_nothing() -> None:
    body = f"""({Q}, float[2,1,1,7] m) => (float[2,3,5,6] y) {{ t = Transpose<perm=[0,1,3,2]>(k) a = MatMul(q, t) s = Add(a, m)
        w = Softmax<axis=-1>(s) n = IsNaN(w) p = Where(n, zero, w) y = MatMul(p, v) }}"""
    mask = np.zeros((2, 1, 1, 7), np.float32)
    mask[1] = -np.inf
    assert recognised(body, {"zero": np.array(0, np.float32)}, {"m": mask}).op == Attention(3, 3, 1.0, zero_blind=True)


def test_cap_and_grouped_keys() -> None:
    body = """(float[2,6,5,4] q, float[2,3,7,4] k, float[2,3,7,4] v) => (float[2,6,5,4] y) {
        k5 = Unsqueeze(k, two) ke = Expand(k5, wide) kr = Reshape(ke, full) v5 = Unsqueeze(v, two) ve = Expand(v5, wide)
        vr = Reshape(ve, full) t = Transpose<perm=[0,1,3,2]>(kr) m = MatMul(q, t) d = Mul(m, c) e = Div(d, cap) f = Tanh(e)
        s = Mul(f, cap) p = Softmax<axis=-1>(s) y = MatMul(p, vr) }"""
    weights = {
        "two": np.array([2]), "wide": np.array([2, 3, 2, 7, 4]), "full": np.array([2, 6, 7, 4]), "c": np.array(0.5, np.float32),
        "cap": np.array(3.0, np.float32),
    }
    node = recognised(body, weights)
    assert node.op == Attention(6, 3, 0.5, softcap=3.0)
    assert [t.shape for t in node.input_types if t] == [(2, 6, 5, 4), (2, 3, 7, 4), (2, 3, 7, 4)]


def test_one_key_head_for_all() -> None:
    body = f"(float[2,3,5,4] q, float[2,1,4,7] k, float[2,1,7,6] v) => (float[2,3,5,6] y) {{ s = MatMul(q, k) {TAIL} }}"
    assert recognised(body).op == Attention(3, 1, 1.0)


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (f"({Q}) => (float[2,3,5,6] y, float[2,3,5,7] p) {{ t = Transpose<perm=[0,1,3,2]>(k) s = MatMul(q, t) {TAIL} }}", "weights"),
        (
            f"({Q}) => (float[2,3,5,6] y) {{ t = Transpose<perm=[0,1,3,2]>(k) s = MatMul(q, t) p = Softmax<axis=2>(s) y = MatMul(p, v) }}",
            "not over the last axis",
        ),
        (f"(float[2,3,5,4] q, float[3,4,7] t, float[3,7,6] v) => (float[2,3,5,6] y) {{ s = MatMul(q, t) {TAIL} }}", "of ranks 4, 3 and 3"),
    ],
)
def test_what_is_nearly_attention_says_why(body: str, why: str) -> None:
    assert [m for m in missed(body) if why in m]


@pytest.mark.parametrize(
    "form",
    [
        "b = Add(a, m) s = Mul(b, c)",  # the mask is scaled too
        "h = Greater(m, c) s = Where(h, big, a)",  # at run time a query may see nothing, and then -1e4 shows
        "s = Add(a, a)",
    ],
)
def test_other_sums_are_left_alone(form: str) -> None:
    body = f"({Q}, float[5,7] m) => (float[2,3,5,6] y) {{ t = Transpose<perm=[0,1,3,2]>(k) a = MatMul(q, t) {form} {TAIL} }}"
    missed(body, {"c": np.array(0.5, np.float32), "big": np.array(-1e4, np.float32)})
