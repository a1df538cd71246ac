"""What follows a matrix product goes into it when nothing else needs the result."""

from __future__ import annotations

import math

import numpy as np
import pytest

from flaot.ir.graph import Graph, Value
from flaot.ir.op import Op
from flaot.ir.ops.activations import Gelu, Relu, Sigmoid, Tanh
from flaot.ir.ops.arithmetic import Add, Div, Mul
from flaot.ir.ops.conv import Act
from flaot.ir.ops.matmul import FusedMatMul, Gemm, MatMul
from flaot.ir.ops.reshape import Reshape
from flaot.ir.types import DType, TensorType
from flaot.rewrite import Tracer, run_rules
from flaot.rules.fuse.matmul import (
    ActivationIntoProduct,
    BeforeReshape,
    GateIntoProduct,
    ReshapesIntoProduct,
    ScaleIntoProduct,
    SumIntoProduct,
)

RULES = [ActivationIntoProduct(), BeforeReshape(), GateIntoProduct(), ReshapesIntoProduct(), ScaleIntoProduct(), SumIntoProduct()]


class Sketch:
    """A graph under construction, from x float32[2,5,4]."""

    def __init__(self) -> None:
        self.graph = Graph()
        self.x = self.graph.add_input("x", TensorType(DType.float32, (2, 5, 4)))

    def add(self, op: Op, *inputs: Value | np.ndarray) -> Value:
        values = [self.graph.add_constant(i) if isinstance(i, np.ndarray) else i for i in inputs]
        return self.graph.add_node(op, values).outputs[0]

    def product(self) -> Value:
        return self.add(MatMul(), self.x, np.ones((4, 4), np.float32))

    def fused(self, y: Value) -> list[Op]:
        self.graph.set_output("y", y)
        self.tracer = Tracer()
        run_rules(self.graph, RULES, self.tracer)
        return [n.op for n in self.graph.nodes()]


@pytest.mark.parametrize(("op", "act", "beta"), [(Relu(), Act.clamp, math.inf), (Gelu(), Act.gelu, 0.0), (Tanh(), Act.tanh, 0.0)])
def test_scale_bias_residual_and_activation(op: Op, act: Act, beta: float) -> None:
    s = Sketch()
    scaled = s.add(Div(), s.product(), np.float32([4]))
    total = s.add(Add(), s.add(Add(), np.float32([[1, 2, 3, 4]]), scaled), s.x)
    assert s.fused(s.add(op, total)) == [FusedMatMul(False, False, 0.25, act, 0.0, beta)]
    (node,) = s.graph.nodes()
    bias, residual = node.inputs[2:]
    assert bias is not None and bias.data is not None and bias.data.tolist() == [1, 2, 3, 4] and residual is s.x


def test_reshapes_around_a_product() -> None:
    s = Sketch()
    rows = s.add(Reshape((10, 4)), s.x)
    y = s.add(Reshape((2, 5, 3)), s.add(Gemm(), rows, np.ones((4, 3), np.float32), np.ones(3, np.float32)))
    assert s.fused(s.add(Tanh(), y)) == [FusedMatMul(act=Act.tanh)]


def test_a_sum_and_an_activation_after_a_reshape() -> None:
    s = Sketch()
    other = s.graph.add_input("r", TensorType(DType.float32, (1, 2, 5, 3)))
    rows = s.add(Reshape((5, 8)), s.x)
    y = s.add(Reshape((1, 2, 5, 3)), s.add(Gemm(), rows, np.ones((8, 6), np.float32)))
    ops = s.fused(s.add(Relu(), s.add(Add(), other, y)))
    assert ops == [Reshape((5, 8)), Reshape((5, 6)), FusedMatMul(act=Act.clamp, beta=math.inf), Reshape((1, 2, 5, 3))]


def test_gate() -> None:
    s = Sketch()
    p = s.product()
    assert s.fused(s.add(Mul(), s.add(Sigmoid(), p), p)) == [FusedMatMul(act=Act.silu)]


def test_gemm_keeps_its_transposition_and_bias() -> None:
    graph = Graph()
    x = graph.add_input("x", TensorType(DType.float32, (3, 4)))
    w, c = graph.add_constant(np.ones((5, 4), np.float32)), graph.add_constant(np.float32([2]))
    y = graph.add_node(Gemm(0.5, 3.0, False, True), [x, w, c]).outputs[0]
    graph.set_output("y", graph.add_node(Relu(), [y]).outputs[0])
    run_rules(graph, RULES)
    (node,) = graph.nodes()
    assert node.op == FusedMatMul(False, True, 0.5, Act.clamp, 0.0, math.inf)
    assert node.inputs[2] is not None and node.inputs[2].data is not None and node.inputs[2].data.tolist() == [6] * 5


def test_what_is_used_elsewhere_stays() -> None:
    s = Sketch()
    p = s.product()
    s.graph.set_output("p", p)
    assert s.fused(s.add(Relu(), p)) == [MatMul(), Relu()]


def test_a_factor_after_the_bias_stays() -> None:
    s = Sketch()
    biased = s.add(Add(), s.product(), np.float32([1, 2, 3, 4]))
    assert s.fused(s.add(Mul(), biased, np.float32([2]))) == [FusedMatMul(), Mul()]
