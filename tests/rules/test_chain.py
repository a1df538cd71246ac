"""Chains of elementwise ops become one node that computes the same."""

from __future__ import annotations

import numpy as np
import pytest

import flaot.rules.chain
from flaot.ir.graph import Graph, Value
from flaot.ir.op import Op
from flaot.ir.ops.activations import Relu, Sigmoid
from flaot.ir.ops.arithmetic import Add, Max, Mul, Sub
from flaot.ir.ops.cast import Cast
from flaot.ir.ops.compare import Less, Where
from flaot.ir.ops.fused_map import FusedMap
from flaot.ir.types import DType, TensorType
from flaot.kernels.base import load_all
from flaot.rewrite import Tracer, rules_in, run_rules
from flaot.rules.chain.elementwise import MAX_OPERANDS, MAX_STEPS
from tests.kernels.onnx_nodes import run
from tests.kernels.reference import CHIPS

load_all()


def fuse(graph: Graph) -> Tracer:
    tracer = Tracer()
    run_rules(graph, rules_in(flaot.rules.chain), tracer)
    return tracer


def node(graph: Graph, op: Op, *inputs: Value) -> Value:
    return graph.add_node(op, inputs, origin=(op.name.lower(),)).outputs[0]


def two_inputs(shape: tuple[int, ...] = (3, 5, 37), small: tuple[int, ...] = (5, 1)) -> tuple[Graph, Value, Value]:
    graph = Graph()
    return graph, graph.add_input("x", TensorType(DType.float32, shape)), graph.add_input("b", TensorType(DType.float32, small))


def test_diamond_with_shared_operand() -> None:
    graph, x, b = two_inputs()
    y = node(graph, Add(), x, b)
    graph.set_output("y", node(graph, Mul(), node(graph, Relu(), y), node(graph, Sigmoid(), y)))
    fuse(graph)
    (only,) = graph.nodes()
    assert isinstance(only.op, FusedMap) and len(only.op.steps) == 4
    assert list(only.inputs) == [x, b] and set(only.origin) == {"add", "mul", "relu", "sigmoid"}


def test_nothing_is_computed_twice() -> None:
    graph, x, b = two_inputs()
    small = node(graph, Sigmoid(), b)
    y = node(graph, Add(), x, small)
    graph.set_output("kept", y)
    graph.set_output("y", node(graph, Relu(), y))
    tracer = fuse(graph)
    assert [n.op.name for n in graph.nodes()] == ["Sigmoid", "Add", "Relu"]
    assert set(tracer.misses.values()) >= {"the operand is broadcast", "the operand is also used elsewhere"}


def test_limits() -> None:
    graph, x, b = two_inputs()
    y = x
    for _ in range(100):
        y = node(graph, Add(), y, b)
    graph.set_output("y", y)
    fuse(graph)
    sizes = [len(n.op.steps) for n in graph.nodes() if isinstance(n.op, FusedMap)]
    assert sum(sizes) == 100 and max(sizes) <= MAX_STEPS and all(len(n.inputs) <= MAX_OPERANDS for n in graph.nodes())


def random_graph(seed: int) -> tuple[Graph, dict[str, np.ndarray]]:
    """Ops on random earlier values; the last is the output."""
    rng = np.random.default_rng(seed)
    shape = tuple(int(d) for d in rng.choice([1, 2, 3, 7, 33, 130], 3))
    graph, x, b = two_inputs(shape, (shape[1], 1))
    values = [x, b, graph.add_constant(np.float32(0.5)), graph.add_constant(rng.standard_normal(shape[-1]).astype(np.float32))]
    last = x
    for _ in range(int(rng.integers(2, 12))):
        other = values[int(rng.integers(len(values)))]
        kind = int(rng.integers(5))
        if kind == 0:
            new = node(graph, Relu(), last)
        elif kind == 1:
            new = node(graph, Where(), node(graph, Less(), last, other), last, other)
        elif kind == 2:
            new = node(graph, Cast(DType.float32), node(graph, Cast(DType.float16), last))
        else:
            new = node(graph, (Add(), Sub(), Mul(), Max())[int(rng.integers(4))], last, other)
        values.append(new)
        last = new
    graph.set_output("y", last)
    graph.prune()
    feeds = {"x": rng.standard_normal(shape).astype(np.float32), "b": rng.standard_normal((shape[1], 1)).astype(np.float32)}
    return graph, {v.name: feeds[v.name] for v in graph.inputs}


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("seed", range(25))
def test_same_bits(seed: int, chip: str) -> None:
    graph, feeds = random_graph(seed)
    want = run(graph, feeds, CHIPS[chip])
    before = len(graph)
    fuse(graph)
    assert len(graph) < before
    np.testing.assert_array_equal(run(graph, feeds, CHIPS[chip], parts=3)[0], want[0])
