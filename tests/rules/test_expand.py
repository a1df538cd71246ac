"""Expansions compute what the op computes (whose kernels are held to onnxruntime elsewhere)."""

from __future__ import annotations

import math
import re
from pathlib import Path

import numpy as np
import pytest

from flaot.ir.graph import Graph, Value
from flaot.ir.op import Op
from flaot.ir.ops import activations as act
from flaot.ir.ops.arithmetic import Div, Pow, PRelu, Sub
from flaot.ir.ops.attention import Attention
from flaot.ir.ops.batch_norm import BatchNormalization
from flaot.ir.ops.clip import Clip
from flaot.ir.ops.conv import Conv
from flaot.ir.ops.einsum import Einsum
from flaot.ir.ops.lrn import LRN
from flaot.ir.ops.matmul import Gemm
from flaot.ir.ops.norm import (
    GroupNormalization,
    InstanceNormalization,
    LayerNormalization,
    LpNormalization,
    MeanVarianceNormalization,
    RMSNormalization,
)
from flaot.ir.ops.pool import AveragePool
from flaot.ir.ops.reduce import ReduceL1, ReduceL2, ReduceLogSum, ReduceLogSumExp, ReduceMean, ReduceSumSquare
from flaot.ir.ops.softmax import LogSoftmax, Softmax
from flaot.ir.types import DType, TensorType
from flaot.kernels.base import load_all
from flaot.rules.expand import expandable, expansion
from flaot.rules.expand.parts import EXPANSIONS
from flaot.schedule.evaluate import evaluate

load_all()
RNG = np.random.default_rng(5)


def some(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


IMAGE, ROWS, VECTOR = some(2, 6, 4, 5), some(3, 7), some(6)
CASES: list[tuple[Op, list[np.ndarray]]] = [
    *[(op, [4 * ROWS]) for op in (act.Gelu(), act.GeluTanh(), act.Silu(1.0), act.Silu(1.5), act.HardSigmoid(0.2, 0.5), act.HardSwish())],
    *[(op, [4 * ROWS]) for op in (act.Relu(), act.LeakyRelu(0.1), act.Elu(0.7), act.Celu(0.7), act.Selu(1.6, 1.05), act.Softsign())],
    *[(op, [9 * ROWS]) for op in (act.Softplus(), act.Mish(), Clip(-0.5, 1.0), Clip(-math.inf, 1.0), Clip(0.0, math.inf))],
    (PRelu(), [IMAGE, some(6, 1, 1)]), (Sub(), [ROWS, some(1, 7)]), (Pow(), [ROWS, np.float32([2])]),
    (Pow(), [abs(ROWS), np.float32([0.5])]), (LayerNormalization(1), [ROWS, some(7), some(7)]),
    (LayerNormalization(2), [IMAGE, some(4, 5), None]), (RMSNormalization(1), [ROWS, some(7)]),
    (InstanceNormalization(), [IMAGE, VECTOR, VECTOR]), (GroupNormalization(3), [IMAGE, VECTOR, VECTOR]),
    (MeanVarianceNormalization((0, 2, 3)), [IMAGE]), (LpNormalization(1, 1), [ROWS]), (LpNormalization(1, 2), [ROWS]),
    (Softmax(1), [IMAGE]), (LogSoftmax(3), [IMAGE]), (ReduceL1((1,)), [ROWS]), (ReduceL2((0,), False), [ROWS]),
    (ReduceMean((1, 2)), [IMAGE]), (ReduceLogSum((1,)), [abs(ROWS)]), (ReduceLogSumExp((1,)), [ROWS]), (ReduceSumSquare((0, 1)), [ROWS]),
    (AveragePool((4, 5), (1, 1), (0, 0, 0, 0), (1, 1), False), [IMAGE]),
    (Gemm(0.5, 2.0, True, True), [some(4, 3), some(5, 4), some(5)]), (Gemm(), [some(3, 4), some(4, 5)]),
    (act.ThresholdedRelu(0.5), [ROWS]), (act.Shrink(0.5, 0.1), [ROWS]), (Div(), [ROWS, some(3, 1)]),
    (LRN(3, 0.5, 0.75, 1.0), [IMAGE]), (LRN(4, 0.5, 0.5, 2.0), [IMAGE]), (LayerNormalization(1, 1e-5, True), [ROWS, some(7), some(7)]),
    (Einsum(("abc", "cd", "d"), "db"), [some(2, 3, 4), some(4, 5), some(5)]), (Einsum(("ab",), "ba"), [ROWS]),
    (Einsum(("ab", "ac"), ""), [some(1, 3), some(4, 2)]), (ReduceLogSumExp((0,), False), [500 * ROWS]),
    (Conv((1, 1), (0, 0, 0, 0), (1, 1), 1), [IMAGE, some(8, 6, 1, 1), some(8)]),
]  # fmt: skip


def run(graph: Graph, feeds: dict[int, np.ndarray]) -> np.ndarray:
    """Node by node through the portable kernels."""
    held = dict(feeds)

    def of(v: Value | None) -> np.ndarray | None:
        return None if v is None else v.data if v.data is not None else held[v.id]

    for node in graph.nodes():
        held |= {v.id: y for v, y in zip(node.outputs, evaluate(node.op, [of(v) for v in node.inputs]), strict=True)}
    return held[graph.outputs[0].value.id]


@pytest.mark.parametrize("op, inputs", CASES, ids=lambda x: str(x)[:40] if isinstance(x, Op) else "")
def test_an_expansion_computes_the_same(op: Op, inputs: list[np.ndarray]) -> None:
    graph = Graph()
    weights = isinstance(op, Conv | Pow)
    values = [
        None if x is None else graph.add_constant(x) if weights and i else graph.add_input(f"i{i}", TensorType(DType.float32, x.shape))
        for i, x in enumerate(inputs)
    ]
    node = graph.add_node(op, values, names=("y",), origin=("n",))
    graph.set_output("y", node.outputs[0])
    feeds = {v.id: x for v, x in zip(values, inputs, strict=True) if v is not None and v.data is None}
    want = run(graph, feeds)
    patch = expansion(graph, node)
    assert patch is not None
    patch.apply()
    assert not any(n.op == op for n in graph.nodes()) and all(n.origin == ("n",) for n in graph.nodes())
    np.testing.assert_allclose(run(graph, feeds), want, rtol=2e-5, atol=2e-6)
    assert graph.outputs[0].value.name == "y"


def test_every_expansion_has_a_case() -> None:
    assert expandable(Attention)
    assert set(EXPANSIONS) - {Attention, BatchNormalization} == {type(op) for op, _ in CASES}


def test_the_page_lists_every_expansion() -> None:
    page = (Path(__file__).parents[2] / "docs" / "expansion.md").read_text()
    words = set(re.findall(r"\w+", page))
    assert expandable(Attention) and {op.__name__ for op in EXPANSIONS} <= words


def test_batch_normalization() -> None:
    """It has no kernel: canonicalize folds it away."""
    graph = Graph()
    vectors = [some(6), some(6), some(6), abs(some(6))]
    values = [graph.add_input(f"i{i}", TensorType(DType.float32, x.shape)) for i, x in enumerate([IMAGE, *vectors])]
    node = graph.add_node(BatchNormalization(1e-3), values)
    graph.set_output("y", node.outputs[0])
    patch = expansion(graph, node)
    assert patch is not None
    patch.apply()
    scale, bias, mean, variance = (v.reshape(6, 1, 1) for v in vectors)
    want = (IMAGE - mean) / np.sqrt(variance + 1e-3) * scale + bias
    got = run(graph, dict(zip([v.id for v in values], [IMAGE, *vectors], strict=True)))
    np.testing.assert_allclose(got, want, rtol=2e-5, atol=2e-6)


def test_every_output_of_layer_normalization() -> None:
    graph = Graph()
    x, scale = graph.add_input("x", TensorType(DType.float32, ROWS.shape)), graph.add_constant(np.ones(7, np.float32))
    node = graph.add_node(LayerNormalization(1, 0.0, True), [x, scale, None])
    graph.set_output("inverse", node.outputs[2])
    patch = expansion(graph, node)
    assert patch is not None
    patch.apply()
    np.testing.assert_allclose(run(graph, {x.id: ROWS})[:, 0], 1 / ROWS.std(axis=1), rtol=1e-5)
