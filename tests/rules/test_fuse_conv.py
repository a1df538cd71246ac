"""What follows a convolution goes into it when nothing else needs the result."""

from __future__ import annotations

import math

import numpy as np
import pytest

from flaot.ir.graph import Graph, Value
from flaot.ir.op import Op
from flaot.ir.ops.activations import HardSigmoid, HardSwish, LeakyRelu, Relu, Sigmoid, Silu, Tanh
from flaot.ir.ops.arithmetic import Add, Mul, PRelu
from flaot.ir.ops.clip import Clip
from flaot.ir.ops.conv import Act, Conv, FusedConv
from flaot.ir.types import DType, TensorType
from flaot.rewrite import Tracer, run_rules
from flaot.rules.fuse.conv import ActivationIntoConv, GateIntoConv, ResidualIntoConv, SlopesIntoConv

RULES = [ActivationIntoConv(), GateIntoConv(), ResidualIntoConv(), SlopesIntoConv()]


def start() -> tuple[Graph, Value, Value]:
    """A graph, its input and a convolution of it."""
    graph = Graph()
    x = graph.add_input("x", TensorType(DType.float32, (1, 4, 6, 6)))
    return graph, x, conv(graph, x)


def conv(graph: Graph, x: Value) -> Value:
    w = graph.add_constant(np.ones((4, 4, 3, 3), np.float32))
    return graph.add_node(Conv((1, 1), (1,) * 4, (1, 1)), [x, w, None]).outputs[0]


def finish(graph: Graph, y: Value) -> tuple[Graph, Tracer]:
    graph.set_output("y", y)
    tracer = Tracer()
    run_rules(graph, RULES, tracer)
    return graph, tracer


@pytest.mark.parametrize(
    ("op", "act", "alpha", "beta"),
    [
        (Relu(), Act.clamp, 0.0, math.inf),
        (Clip(0.0, 6.0), Act.clamp, 0.0, 6.0),
        (Sigmoid(), Act.sigmoid, 0.0, 0.0),
        (Tanh(), Act.tanh, 0.0, 0.0),
        (Silu(), Act.silu, 0.0, 0.0),
        (HardSwish(), Act.hard_swish, 0.0, 0.0),
        (HardSigmoid(0.2, 0.5), Act.hard_sigmoid, 0.2, 0.5),
        (LeakyRelu(0.1), Act.leaky_relu, 0.1, 0.0),
    ],
)
def test_activation(op: Op, act: Act, alpha: float, beta: float) -> None:
    graph, _, c = start()
    graph, _ = finish(graph, graph.add_node(op, [c]).outputs[0])
    (node,) = graph.nodes()
    assert node.op == FusedConv((1, 1), (1,) * 4, (1, 1), 1, act, alpha, beta)


def test_residual_then_activation() -> None:
    graph, x, c = start()
    second = conv(graph, c)
    total = graph.add_node(Add(), [second, c]).outputs[0]
    graph, _ = finish(graph, graph.add_node(Relu(), [total]).outputs[0])
    first, last = graph.nodes()
    assert isinstance(last.op, FusedConv) and last.op.act is Act.clamp and last.inputs[3] is first.outputs[0]


def test_two_convolutions_give_one_sum() -> None:
    graph, x, c = start()
    other = conv(graph, x)
    graph, _ = finish(graph, graph.add_node(Add(), [c, other]).outputs[0])
    plain, last = graph.nodes()
    assert type(plain.op) is Conv and last.inputs[3] is plain.outputs[0]


@pytest.mark.parametrize(("gate", "act"), [(Sigmoid(), Act.silu), (HardSigmoid(1 / 6, 0.5), Act.hard_swish)])
def test_gate(gate: Op, act: Act) -> None:
    graph, _, c = start()
    s = graph.add_node(gate, [c]).outputs[0]
    graph, _ = finish(graph, graph.add_node(Mul(), [s, c]).outputs[0])
    (node,) = graph.nodes()
    assert isinstance(node.op, FusedConv) and node.op.act is act


@pytest.mark.parametrize("shape", [(4, 1, 1), (1, 4, 1, 1), (1,), (1, 1, 1)])
def test_slopes(shape: tuple[int, ...]) -> None:
    graph, _, c = start()
    slope = graph.add_constant(np.full(shape, 0.25, np.float32))
    graph, _ = finish(graph, graph.add_node(PRelu(), [c, slope]).outputs[0])
    (node,) = graph.nodes()
    assert isinstance(node.op, FusedConv) and node.op.act is Act.prelu
    assert node.inputs[4] is not None and node.inputs[4].type.shape == (4,)


def test_a_shared_result_stays() -> None:
    graph, _, c = start()
    graph.set_output("c", c)
    graph, tracer = finish(graph, graph.add_node(Relu(), [c]).outputs[0])
    assert [type(n.op) for n in graph.nodes()] == [Conv, Relu]
    assert any("used elsewhere" in line for line in tracer.lines())


def test_slopes_of_another_shape_stay() -> None:
    graph, _, c = start()
    slope = graph.add_constant(np.full((6,), 0.25, np.float32))
    graph, _ = finish(graph, graph.add_node(PRelu(), [c, slope]).outputs[0])
    assert len(graph) == 2
