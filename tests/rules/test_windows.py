"""Movement chains that pick evenly spaced elements become a slice."""

from __future__ import annotations

import numpy as np
import pytest

from flaot.ir.graph import Graph, Value
from flaot.ir.op import Op
from flaot.ir.ops.reshape import Reshape
from flaot.ir.ops.slice import Slice
from flaot.ir.ops.transpose import Transpose
from flaot.ir.types import DType, TensorType
from flaot.rewrite import run_rules
from flaot.rules.recognise.windows import EvenWindow
from tests.rules.harness import run_graph


def chain(graph: Graph, x: Value, *ops: Op) -> Value:
    for op in ops:
        x = graph.add_node(op, [x]).outputs[0]
    return x


def agree(shape: tuple[int, ...], *ops: Op) -> list[str]:
    """Names of the ops that are left; the result must not change."""
    graph = Graph()
    graph.set_output("y", chain(graph, graph.add_input("x", TensorType(DType.float32, shape)), *ops))
    x = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    want = run_graph(graph, {"x": x})[0]
    run_rules(graph, [EvenWindow()])
    np.testing.assert_array_equal(run_graph(graph, {"x": x})[0], want)
    return [n.op.name for n in graph.nodes()]


@pytest.mark.parametrize("half", [0, 1])
def test_half_of_a_channel_shuffle(half: int) -> None:
    pick = Slice((0,), (half,), (1,), (1,))
    left = agree(
        (1, 48, 44, 44), Reshape((24, 2, 1936)), Transpose((1, 0, 2)), Reshape((2, 1, 24, 44, 44)), pick, Reshape((1, 24, 44, 44))
    )
    assert left == ["Slice"]


def test_whole_shuffle_stays() -> None:
    left = agree((1, 6, 4, 4), Reshape((1, 2, 3, 4, 4)), Transpose((0, 2, 1, 3, 4)), Reshape((1, 6, 4, 4)))
    assert left == ["Reshape", "Transpose", "Reshape"]


def test_random_chains() -> None:
    rng = np.random.default_rng(0)
    for _ in range(300):
        shape: tuple[int, ...] = tuple(int(d) for d in rng.choice([1, 2, 3, 4, 6], 4))
        first, ops = shape, []
        for _ in range(int(rng.integers(3, 7))):
            kind = int(rng.integers(3))
            if kind == 0:
                perm = tuple(int(p) for p in rng.permutation(len(shape)))
                ops.append(Transpose(perm))
                shape = tuple(shape[p] for p in perm)
            elif kind == 1:
                axis, i = int(rng.integers(len(shape))), int(rng.integers(len(shape)))
                merged = [*shape[:i], *([shape[i] // 2, 2] if shape[i] % 2 == 0 else [shape[i], 1]), *shape[i + 1 :]]
                shape = tuple(merged) if len(merged) <= 6 else (int(np.prod(merged)),)
                ops.append(Reshape(shape))
            else:
                axis = int(rng.integers(len(shape)))
                step = int(rng.integers(1, 3))
                start = int(rng.integers(shape[axis]))
                size = (shape[axis] - start + step - 1) // step
                ops.append(Slice((axis,), (start,), (step,), (size,)))
                shape = (*shape[:axis], size, *shape[axis + 1 :])
        agree(first, *ops)
