from __future__ import annotations

from hashlib import sha256

import numpy as np
import onnx
import pytest
from onnx import helper

from flaot.errors import FlaotError, ModelError, ProblemList, UnsupportedError, UsageError
from flaot.frontend import read
from flaot.ir.ops.reshape import Reshape
from flaot.ir.ops.softmax import Softmax
from flaot.ir.types import DType, Frozen, TensorType
from flaot.kernels.base import load_all
from flaot.schedule.evaluate import evaluate
from tests.frontend.models import info, model, softmax, tensor

load_all()


def test_reads_names_types_and_provenance() -> None:
    graph = read(softmax())
    (node,) = graph.nodes()
    assert node.op == Softmax(1) and node.origin == ("soft",)
    assert graph.inputs[0].type == TensorType(DType.float32, (2, 3))
    assert [(o.name, o.value.names) for o in graph.outputs] == [("y", ("y",))]


def test_initializers_listed_as_inputs_are_constants() -> None:
    nodes = [helper.make_node("Reshape", ["x", "s"], ["y"])]
    m = model(nodes, [info("x", (2, 3)), info("s", (2,), 7)], [info("y", (3, 2))], [tensor("s", [3, 2], "int64")])
    graph = read(m)
    assert [v.name for v in graph.inputs] == ["x"] and graph.nodes()[0].op == Reshape((3, 2))
    assert graph.frozen == [Frozen("s", TensorType(DType.int64, (2,)), sha256(np.array([3, 2], "<i8").tobytes()).digest())]


@pytest.mark.parametrize("used", [True, False])
@pytest.mark.parametrize("raw", [True, False])
def test_every_form_of_initializer_is_frozen(used: bool, raw: bool) -> None:
    data = np.array([[1, 0, 2]], np.float16)
    k = helper.make_tensor("k", 10, [1, 3], data.tobytes() if raw else data.reshape(-1), raw=raw)
    nodes = [helper.make_node("Mul", ["x", "k" if used else "x"], ["y"])]
    graph = read(model(nodes, [info("x", (1, 3), 10), info("k", (1, 3), 10)], [info("y", (1, 3), 10)], [k, tensor("w", [1])]))
    assert graph.frozen == [Frozen("k", TensorType(DType.float16, (1, 3)), sha256(data.tobytes()).digest())]


def test_sparse_initializers_are_frozen_dense() -> None:
    m = model([helper.make_node("Mul", ["x", "k"], ["y"])], [info("x", (3,)), info("k", (3,))], [info("y", (3,))])
    m.graph.sparse_initializer.append(helper.make_sparse_tensor(tensor("k", [5]), tensor("i", [1], "int64"), [3]))
    want = np.array([0, 5, 0], "<f4").tobytes()
    assert read(m).frozen == [Frozen("k", TensorType(DType.float32, (3,)), sha256(want).digest())]


@pytest.mark.parametrize(
    "form",
    [
        {"value": tensor("", [3, -1], "int64")},
        {"value_ints": [3, 2]},
        {"sparse_value": helper.make_sparse_tensor(tensor("v", [3, 2], "int64"), tensor("i", [0, 1], "int64"), [2])},
    ],
)
def test_constants_in_nodes(form: dict[str, object]) -> None:
    nodes = [helper.make_node("Constant", [], ["s"], **form), helper.make_node("Reshape", ["x", "s"], ["y"])]
    assert read(model(nodes, [info("x", (2, 3))], [info("y", (3, 2))])).nodes()[0].op == Reshape((3, 2))


def test_constant_inputs_fold_with_provenance_gone() -> None:
    nodes = [helper.make_node("Constant", [], ["c"], value_floats=[1.0, 1.0]), helper.make_node("Softmax", ["c"], ["y"])]
    graph = read(model(nodes, [], [info("y", (2,))]), evaluate=evaluate)
    assert len(graph) == 0
    np.testing.assert_array_equal(graph.outputs[0].value.data, np.float32([0.5, 0.5]))


def test_outputs_that_are_inputs_constants_or_twice_the_same() -> None:
    nodes = [helper.make_node("Softmax", ["x"], ["a"]), helper.make_node("Constant", [], ["c"], value_float=2.0)]
    m = model(nodes, [info("x", (2,)), info("unused", (1,))], [info(n, None) for n in ("x", "c", "a")])
    graph = read(m)
    assert [o.name for o in graph.outputs] == ["x", "c", "a"]
    assert [v.name for v in graph.inputs] == ["x", "unused"] and graph.outputs[0].value is graph.inputs[0]


def test_nodes_out_of_order_are_sorted() -> None:
    a, b = helper.make_node("Softmax", ["x"], ["a"], name="first"), helper.make_node("Softmax", ["a"], ["y"], name="second")
    graph = read(model([b, a], [info("x", (2,))], [info("y", (2,))]))
    assert [n.origin for n in graph.nodes()] == [("first",), ("second",)]


@pytest.mark.parametrize(
    ("shape", "bind", "want"),
    [
        (("batch", 3), {"batch": 4}, (4, 3)),
        (("batch", 3), {"x": (4, 3)}, (4, 3)),
        ((-1, 3), {"-1": 4}, (4, 3)),
        ((None, 3), {"x": (4, 3)}, (4, 3)),
        (None, {"x": (4, 3)}, (4, 3)),
        ((0, 3), {"x": (4, 3)}, (4, 3)),
    ],
)
def test_shapes_are_bound(shape: tuple[int | str | None, ...], bind: dict[str, object], want: tuple[int, ...]) -> None:
    assert read(softmax(shape, None), shapes=bind).inputs[0].type.shape == want


@pytest.mark.parametrize(
    ("shape", "bind", "error", "words"),
    [
        (("batch", 3), {}, ModelError, ["'x'", "batch", "--shape batch=N", "--shape x=N,3"]),
        ((None, 3), {}, ModelError, ["'x'", "--shape x=N,3"]),
        ((2, 3), {"x": (2, 4)}, UsageError, ["axis 1 is 4", "expected 3"]),
        ((2, 3), {"x": (2, 3, 1)}, UsageError, ["3 dimensions", "declares 2"]),
        ((2, 3), {"batch": 1}, UsageError, ["batch", "no such input or symbol", "it has x"]),
        (("n", "n"), {"x": (2, 3)}, UsageError, ["axis 1 is 3", "expected 2"]),
        (("n", 3), {"n": 2**40}, FlaotError, ["elements"]),
    ],
)
def test_unbound_or_contradicting_shapes(
    shape: tuple[int | str | None, ...], bind: dict[str, object], error: type[FlaotError], words: list[str]
) -> None:
    with pytest.raises(error) as e:
        read(softmax(shape, None), shapes=bind)
    assert all(w in str(e.value) for w in words), str(e.value)


def test_a_constant_condition_takes_its_branch_only() -> None:
    then = helper.make_graph([helper.make_node("Softmax", ["x"], ["t"], name="s")], "then", [], [info("t", None)])
    other = helper.make_graph([helper.make_node("Magic", ["x"], ["e"], domain="no.such")], "else", [], [info("e", None)])
    nodes = [
        helper.make_node("Constant", [], ["c"], value=tensor("", True, "bool")),
        helper.make_node("If", ["c"], ["y"], name="choice", then_branch=then, else_branch=other),
    ]
    graph = read(model(nodes, [info("x", (2,))], [info("y", (2,))]))
    assert [(n.op, n.origin) for n in graph.nodes()] == [(Softmax(0), ("choice/s",))]
    with pytest.raises(UnsupportedError, match="'choice' .If.: the condition depends on run-time data"):
        read(model([nodes[1]], [info("x", (2,)), info("c", (), onnx.TensorProto.BOOL)], [info("y", (2,))]))


def function(name: str, calls: str, times: int = 1) -> onnx.FunctionProto:
    nodes = [helper.make_node(calls, [f"v{i}"], [f"v{i + 1}"], domain="" if calls == "Softmax" else "f") for i in range(times)]
    if calls == "Softmax":
        nodes[0].attribute.append(onnx.AttributeProto(name="axis", type=onnx.AttributeProto.INT, ref_attr_name="dim"))
    imports = [helper.make_opsetid("", 17), helper.make_opsetid("f", 1)]
    return helper.make_function("f", name, ["v0"], [f"v{times}"], nodes, imports, ["dim"])


def calling(functions: list[onnx.FunctionProto], **attributes: object) -> onnx.ModelProto:
    imports = [helper.make_opsetid("", 17), helper.make_opsetid("f", 1)]
    node = helper.make_node("A0", ["x"], ["y"], domain="f", name="call", **attributes)
    return model([node], [info("x", (2, 3))], [info("y", (2, 3))], imports=imports, functions=functions)


def test_functions_are_inlined_with_their_attributes() -> None:
    (node,) = read(calling([function("A0", "Softmax")], dim=0)).nodes()
    assert node.op == Softmax(0) and node.origin == ("call/v1",)
    assert read(calling([function("A0", "Softmax")])).nodes()[0].op == Softmax(1)


def test_functions_that_recurse_or_explode() -> None:
    with pytest.raises(ModelError, match="'f:A0' calls itself"):
        read(calling([function("A0", "A1"), function("A1", "A0")]))
    with pytest.raises(ModelError, match="'f:A0' calls itself"):
        read(calling([function("A0", "A0")]))
    with pytest.raises(FlaotError, match="nodes with functions inlined") as e:
        read(calling([function(f"A{i}", f"A{i + 1}", 2) for i in range(30)] + [function("A30", "Softmax")]))
    assert e.value.exit_code == 9


def test_problems_are_reported_together() -> None:
    nodes = [helper.make_node(t, ["x"], [t], name=f"n{t}") for t in ("Magic", "Softmax", "Wonder")]
    nodes.append(helper.make_node("Magic", ["Wonder"], ["y"]))
    with pytest.raises(ProblemList) as e:
        read(model(nodes, [info("x", (2,))], [info("y", (2,))]), file="m.onnx")
    assert str(e.value).splitlines() == [
        "m.onnx: node 'nMagic' (Magic): operator Magic is not known (nor in 1 more node)",
        "m.onnx: node 'nWonder' (Wonder): operator Wonder is not known",
    ]
    assert e.value.exit_code == 3


def test_declared_outputs_must_agree() -> None:
    with pytest.raises(ModelError, match=r"output 'y' is declared \[2,4\] but is computed as float32\[2,3\]"):
        read(softmax(out=(2, 4)))
    read(softmax(out=("n", 3)))


@pytest.mark.parametrize("count", [1000, 4000])
def test_deep_chains(count: int) -> None:
    nodes = [helper.make_node("Softmax", [f"v{i}"], [f"v{i + 1}"]) for i in range(count)]
    assert len(read(model(nodes[::-1], [info("v0", (2,))], [info(f"v{count}", (2,))]))) == count
