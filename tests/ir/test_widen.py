"""Models of float16 and bfloat16: float32 inside, their own types at the ports, and the same numbers out."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import flaot
from flaot.frontend import read
from flaot.ir.graph import Graph
from flaot.ir.parse import parse_graph
from flaot.ir.text import print_graph
from flaot.ir.types import DType
from flaot.ir.widen import widen, widened
from flaot.pipeline import compile_model
from flaot.schedule.evaluate import evaluate
from tests.frontend.models import info, model, tensor

HALF, BFLOAT, FLOAT, INT = TensorProto.FLOAT16, TensorProto.BFLOAT16, TensorProto.FLOAT, TensorProto.INT64


def wide(proto: onnx.ModelProto) -> Graph:
    return widen(read(proto, evaluate=evaluate))


def ops(graph: Graph) -> list[str]:
    return [f"{n.op.name} {n.output_types[0].dtype.name}" for n in graph.nodes()]


def test_casts_stand_only_at_the_ports() -> None:
    nodes = [helper.make_node("Add", ["x", "k"], ["a"]), helper.make_node("Relu", ["a"], ["y"])]
    graph = wide(model(nodes, [info("x", [2], HALF)], [info("y", [2], HALF)], [tensor("k", [1, 0.1], "float16")]))
    assert ops(graph) == ["Cast float32", "Add float32", "Relu float32", "Cast float16"]
    assert [str(v.type) for v in graph.inputs] == ["float16[2]"] and [str(o.value.type) for o in graph.outputs] == ["float16[2]"]
    constant = graph.nodes()[1].inputs[1]
    assert constant is not None and constant.data is not None
    assert constant.data.dtype == np.float32 and constant.data.tolist() == [1.0, 0.0999755859375]
    assert graph.model_dtype is DType.float16


def test_the_text_form_keeps_the_type_of_the_model() -> None:
    graph = wide(model([helper.make_node("Relu", ["x"], ["y"])], [info("x", [2], HALF)], [info("y", [2], HALF)]))
    text = print_graph(graph)
    assert " widened float16 {" in text.splitlines()[0]
    assert print_graph(parse_graph(text)) == text
    plain = wide(model([helper.make_node("Relu", ["x"], ["y"])], [info("x", [2])], [info("y", [2])]))
    assert plain.model_dtype is None and "widened" not in print_graph(plain)


def test_casts_of_a_mixed_model_vanish() -> None:
    """float16 -> float32 -> Exp -> float16 -> Exp: one type now, and no rounding between the two."""
    nodes = [
        helper.make_node("Cast", ["x"], ["a"], to=FLOAT), helper.make_node("Exp", ["a"], ["b"]),
        helper.make_node("Cast", ["b"], ["c"], to=HALF), helper.make_node("Exp", ["c"], ["y"]),
    ]
    graph = wide(model(nodes, [info("x", [2], HALF)], [info("y", [2], HALF)]))
    assert [n.op.name for n in graph.nodes()] == ["Cast", "Exp", "Exp", "Cast"]
    assert graph.nodes()[1].outputs[0].names == ("b", "c")


def test_weights_kept_in_float16_do_not_make_a_float16_model() -> None:
    nodes = [helper.make_node("Cast", ["w"], ["k"], to=FLOAT), helper.make_node("Mul", ["x", "k"], ["y"])]
    graph = widen(read(model(nodes, [info("x", [2])], [info("y", [2])], [tensor("w", [1, 2], "float16")])))
    assert graph.model_dtype is None
    assert [n.op.name for n in graph.nodes()] == ["Mul"] and all(v.type.dtype is DType.float32 for v in graph.values())


def test_outputs_that_are_an_input_or_a_constant_or_come_twice() -> None:
    nodes = [
        helper.make_node("Identity", ["x"], ["same"]), helper.make_node("Identity", ["k"], ["fixed"]),
        helper.make_node("Exp", ["x"], ["y"]), helper.make_node("Identity", ["y"], ["z"]),
    ]
    outputs = [info(n, [2], HALF) for n in ("same", "fixed", "y", "z")]
    proto = model(nodes, [info("x", [2], HALF)], outputs, [tensor("k", [1, 2], "float16")])
    graph = wide(proto)
    assert [o.value.type.dtype for o in graph.outputs] == [DType.float16] * 4
    assert graph.outputs[0].value is graph.inputs[0] and graph.outputs[2].value is graph.outputs[3].value
    x = np.array([0, -1], np.float16)
    same, fixed, y, z = flaot.Session(compile_model(proto).plan).run(None, {"x": x})
    assert same.tolist() == [0, -1] and fixed.tolist() == [1, 2]
    assert y.tobytes() == z.tobytes() == np.exp(x.astype(np.float32)).astype(np.float16).tobytes()


def test_integers_stay_and_indices_come_out() -> None:
    nodes = [helper.make_node("TopK", ["x", "k"], ["v", "i"]), helper.make_node("Cast", ["v"], ["n"], to=INT)]
    proto = model(nodes, [info("x", [4], HALF)], [info("i", [2], INT), info("n", [2], INT)], [tensor("k", [2], "int64")])
    i, n = flaot.Session(compile_model(proto).plan).run(None, {"x": np.array([1.5, 7.25, -3, 7.5], np.float16)})
    assert i.tolist() == [3, 1] and n.tolist() == [7, 7]


@pytest.mark.parametrize("layer", ["LSTM", "GRU"])
def test_recurrent_layers_of_float16(layer: str) -> None:
    rng, gates = np.random.default_rng(1), 4 if layer == "LSTM" else 3
    weights = [tensor(n, rng.standard_normal((1, gates * 3, size)), "float16") for n, size in (("w", 2), ("r", 3))]
    proto = model([helper.make_node(layer, ["x", "w", "r"], ["y"], hidden_size=3)], [info("x", [5, 1, 2], HALF)],
                  [info("y", [5, 1, 1, 3], HALF)], weights)
    x = rng.standard_normal((5, 1, 2)).astype(np.float16)
    (got,) = flaot.Session(compile_model(proto).plan).run(None, {"x": x})
    full = onnx.ModelProto.FromString(proto.SerializeToString())
    for t in full.graph.initializer:
        t.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(t).astype(np.float32), t.name))
    for v in (*full.graph.input, *full.graph.output):
        v.type.tensor_type.elem_type = FLOAT
    (want,) = flaot.Session(compile_model(full).plan).run(None, {"x": x.astype(np.float32)})
    assert got.tobytes() == want.astype(np.float16).tobytes()


def test_bfloat16() -> None:
    """1.5 and -2 are 0x3FC0 and 0xC000; times 3 they are 4.5 (0x4090) and -6 (0xC0C0)."""
    k = helper.make_tensor("k", BFLOAT, [1], [3.0])
    proto = model([helper.make_node("Mul", ["x", "k"], ["y"])], [info("x", [2], BFLOAT)], [info("y", [2], BFLOAT)], [k])
    assert wide(proto).model_dtype is DType.bfloat16
    (y,) = flaot.Session(compile_model(proto).plan).run(None, {"x": np.array([0x3FC0, 0xC000], np.uint16)})
    assert y.tolist() == [0x4090, 0xC0C0]
    assert widened(np.array([0x3F80], np.uint16), DType.bfloat16).tolist() == [1.0]
