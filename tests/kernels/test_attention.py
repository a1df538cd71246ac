"""Attention as one kernel: ONNX's own tests, and its definition in products."""

from __future__ import annotations

import numpy as np
import pytest

from flaot.ir.graph import Graph
from flaot.ir.ops.attention import Attention, causal_mask
from flaot.kernels.base import load_all
from flaot.rules.expand import expand_all
from flaot.schedule.evaluate import evaluate
from flaot.targets.cpu import Cpu
from tests.kernels.onnx_nodes import Case, cases, graph_of, run
from tests.kernels.test_hostile_calls import call
from tests.rules.harness import run_graph

load_all()

CASES = [
    c
    for c in cases("Attention")
    if all(a is None or a.dtype in (np.float32, np.bool_) for a in c.inputs)
    and not any(w in c.name for w in ("qk_matmul", "window"))  # read as a function of other operators
]


@pytest.mark.parametrize("case", CASES, ids=[c.name for c in CASES])
def test_onnx_attention(case: Case) -> None:
    graph = graph_of(case.model, case.feeds)
    assert any(isinstance(n.op, Attention) for n in graph.nodes())
    for got, want in zip(run(graph, case.feeds, Cpu()), case.outputs, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


def arrays(op: Attention, batch: int, queries: int, keys: int, depth: int, columns: int, mask: tuple[int, ...] | None) -> list[np.ndarray]:
    rng = np.random.default_rng(5)
    shapes = [(batch, op.q_heads, queries, depth), (batch, op.kv_heads, keys, depth), (batch, op.kv_heads, keys, columns)]
    return [rng.standard_normal(s, np.float32) for s in (*shapes, *([] if mask is None else [mask]))]


def expanded(op: Attention, inputs: list[np.ndarray]) -> np.ndarray:
    """The result of the op said in products."""
    graph = Graph()
    values = [graph.add_input(f"x{i}", graph.add_constant(a).type) for i, a in enumerate(inputs)]
    graph.set_output("y", graph.add_node(op, values).outputs[0])
    assert expand_all(graph, lambda n: isinstance(n.op, Attention))
    return run_graph(graph, {f"x{i}": a for i, a in enumerate(inputs)})[0]


@pytest.mark.parametrize(
    ("op", "sizes", "mask"),
    [
        (Attention(1, 1, 1.0), (1, 1, 1, 1, 1), None),
        (Attention(4, 4, 0.25), (2, 33, 17, 20, 9), None),
        (Attention(4, 2, 0.25), (2, 9, 21, 8, 16), (9, 21)),
        (Attention(6, 1, 0.5, softcap=2.0), (1, 5, 40, 7, 3), (1, 6, 1, 40)),
        (Attention(2, 2, 0.5, causal=True), (3, 12, 12, 16, 16), None),
        (Attention(2, 2, 0.5, causal=True, offset=4), (1, 6, 10, 16, 16), (1, 1, 6, 10)),
        (Attention(2, 2, 0.5, causal=True, offset=-3, zero_blind=True), (1, 6, 6, 4, 4), None),
        (Attention(2, 2, 0.5, causal=True, offset=-3), (1, 6, 6, 4, 4), None),
        (Attention(2, 2, 0.5, causal=True, offset=2**31 - 1), (1, 6, 6, 4, 4), None),
        (Attention(8, 8, 0.125), (1, 128, 128, 64, 64), None),
    ],
)
def test_agrees_with_its_products(op: Attention, sizes: tuple[int, ...], mask: tuple[int, ...] | None) -> None:
    inputs = arrays(op, *sizes, mask)
    (got,) = evaluate(op, inputs, parts=2)
    np.testing.assert_allclose(got, expanded(op, inputs), rtol=1e-5, atol=2e-6)


def test_causal_by_hand() -> None:
    """Equal scores: query i averages the first i + 1 values."""
    q, k = np.zeros((1, 1, 3, 2), np.float32), np.ones((1, 1, 3, 2), np.float32)
    v = np.array([3, 6, 12], np.float32).reshape(1, 1, 3, 1)
    assert evaluate(Attention(1, 1, 1.0, causal=True), [q, k, v])[0].ravel().tolist() == [3, 4.5, 7]
    assert causal_mask(2, 3, 1).tolist() == [[0, 0, -np.inf], [0, 0, 0]]


def test_blind_queries() -> None:
    op, mask = Attention(1, 1, 1.0), np.array([[0, 0], [-np.inf, -np.inf]], np.float32)
    inputs = [*arrays(op, 1, 2, 2, 3, 3, None), mask]
    assert np.isnan(evaluate(op, inputs)[0][0, 0]).tolist() == [[False] * 3, [True] * 3]
    (got,) = evaluate(Attention(1, 1, 1.0, zero_blind=True), inputs)
    assert got[0, 0, 1].tolist() == [0, 0, 0] and (got[0, 0, 0] != 0).all()
    inputs[0][0, 0, 1, 0] = np.nan
    inputs[3] = np.zeros((2, 2), np.float32)
    assert np.isnan(evaluate(Attention(1, 1, 1.0, zero_blind=True), inputs)[0][0, 0]).tolist() == [[False] * 3, [True] * 3]


@pytest.mark.parametrize("sizes", [(0, 2, 2, 2, 2), (1, 0, 2, 2, 2), (1, 2, 0, 2, 2), (1, 2, 2, 0, 2), (1, 2, 2, 2, 0)])
def test_empty(sizes: tuple[int, ...]) -> None:
    op = Attention(2, 2, 1.0)
    inputs = arrays(op, *sizes, None)
    np.testing.assert_allclose(evaluate(op, inputs)[0], expanded(op, inputs), rtol=1e-6)


def test_every_operand_has_strides_of_its_own() -> None:
    """Q and V lie as [batch, length, heads, depth], the mask repeats, Y is transposed."""
    op = Attention(2, 2, 0.5)
    q, k, v, mask = arrays(op, 1, 5, 6, 8, 3, (1, 1, 5, 1))
    turned = [x.transpose(0, 2, 1, 3).ravel() for x in (q, v)]
    (y,) = call(
        "attention_f32",
        [
            (q.shape, (80, 8, 16, 1), turned[0]), (k.shape, (0, 48, 8, 1), k.ravel()), (v.shape, (36, 3, 6, 1), turned[1]),
            ((1, 2, 5, 6), (0, 0, 1, 0), mask.ravel()),
        ],
        [((1, 2, 5, 3), (0, 1, 6, 2), None)], scratch=4 * 17, scale=0.5, softcap=0.0, causal=0, offset=0, zero_blind=0,
    )  # fmt: skip
    np.testing.assert_allclose(y.reshape(5, 3, 2).transpose(2, 0, 1)[None], expanded(op, [q, k, v, mask]), rtol=1e-5, atol=1e-6)
