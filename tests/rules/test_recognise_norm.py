"""LayerNormalization and RMSNormalization found in every common spelling."""

from __future__ import annotations

import numpy as np
import pytest

from flaot.ir.graph import Graph, Value
from flaot.ir.op import Op
from flaot.ir.ops.arithmetic import Add, Div, Mul, Pow, Sub
from flaot.ir.ops.functions import Reciprocal, Sqrt
from flaot.ir.ops.norm import LayerNormalization, RMSNormalization
from flaot.ir.ops.reduce import ReduceMean
from flaot.ir.types import DType, TensorType
from flaot.rewrite import run_rules
from flaot.rules.recognise.norm import AffineNorm, BiasIntoNorm, Norm, ScaleIntoNorm

RULES = [AffineNorm(), BiasIntoNorm(), Norm(), ScaleIntoNorm()]
EPS, TWO = np.float32([1e-6]), np.float32([2])
GAIN, BIAS = np.float32([1, 2, 3, 4]), np.float32([5, 6, 7, 8])


class Sketch:
    """A graph under construction, from x float32[2,5,4]."""

    def __init__(self) -> None:
        self.graph = Graph()
        self.x = self.graph.add_input("x", TensorType(DType.float32, (2, 5, 4)))

    def add(self, op: Op, *inputs: Value | np.ndarray) -> Value:
        values = [self.graph.add_constant(i) if isinstance(i, np.ndarray) else i for i in inputs]
        return self.graph.add_node(op, values).outputs[0]

    def mean(self, x: Value, axes: tuple[int, ...] = (2,)) -> Value:
        return self.add(ReduceMean(axes), x)

    def root(self, d: Value, square: Op, axes: tuple[int, ...] = (2,)) -> Value:
        power = self.add(square, d, TWO) if isinstance(square, Pow) else self.add(square, d, d)
        return self.add(Sqrt(), self.add(Add(), self.mean(power, axes), EPS))

    def recognised(self, y: Value) -> list[Op]:
        self.graph.set_output("y", y)
        run_rules(self.graph, RULES)
        return [n.op for n in self.graph.nodes()]


@pytest.mark.parametrize("square", [Pow(), Mul()])
@pytest.mark.parametrize("axes", [(2,), (1, 2)])
def test_divided_by_the_root(square: Op, axes: tuple[int, ...]) -> None:
    s = Sketch()
    d = s.add(Sub(), s.x, s.mean(s.x, axes))
    y = s.add(Add(), BIAS, s.add(Mul(), s.add(Div(), d, s.root(d, square, axes)), GAIN))
    assert s.recognised(y) == [LayerNormalization(axes[0], float(EPS[0]))]
    (node,) = s.graph.nodes()
    assert [v.data.tolist() for v in node.inputs[1:] if v is not None and v.data is not None] == [GAIN.tolist(), BIAS.tolist()]


def test_times_the_reciprocal_root() -> None:
    s = Sketch()
    d = s.add(Sub(), s.x, s.mean(s.x))
    assert s.recognised(s.add(Mul(), s.add(Reciprocal(), s.root(d, Mul())), d)) == [LayerNormalization(2, float(EPS[0]))]


def test_affine_spelling() -> None:
    s = Sketch()
    m = s.mean(s.x)
    k = s.add(Mul(), s.add(Reciprocal(), s.root(s.add(Sub(), s.x, m), Mul())), GAIN)
    y = s.add(Add(), s.add(Mul(), s.x, k), s.add(Sub(), s.graph.add_constant(BIAS), s.add(Mul(), m, k)))
    assert s.recognised(y) == [LayerNormalization(2, float(EPS[0]))]


def test_root_mean_square() -> None:
    s = Sketch()
    y = s.add(Mul(), s.add(Mul(), s.x, s.add(Reciprocal(), s.root(s.x, Pow()))), GAIN)
    assert s.recognised(y) == [RMSNormalization(2, float(EPS[0]))]


def test_other_axes_stay() -> None:
    s = Sketch()
    d = s.add(Sub(), s.x, s.mean(s.x, (1,)))
    assert len(s.recognised(s.add(Div(), d, s.root(d, Mul(), (1,))))) == 7
