"""Models nobody should trust: every one is refused with one line and its exit code, quickly and without a crash."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from flaot.errors import FlaotError
from flaot.frontend import read
from flaot.kernels.base import load_all
from flaot.schedule.evaluate import evaluate
from tests.frontend.models import info, model, refusal, softmax, tensor

load_all()


def one_node(
    op: str, shapes: list[list[int]], weights: list[onnx.TensorProto] | None = None, opset: int = 17, **attributes: object
) -> onnx.ModelProto:
    inputs = [info(f"x{i}", s) for i, s in enumerate(shapes)]
    names = [f"x{i}" for i in range(len(shapes))] + [w.name for w in weights or []]
    node = helper.make_node(op, names, ["y"], name="n", **attributes)
    return model([node], inputs, [info("y", None)], weights or [], opset)


# -- O07 to O13: the graph -------------------------------------------------------------------------------------------------


def two(first: onnx.NodeProto, second: onnx.NodeProto) -> onnx.ModelProto:
    return model([first, second], [info("x", (2,))], [info("y", (2,))])


def node(inputs: list[str], outputs: list[str], name: str = "") -> onnx.NodeProto:
    return helper.make_node("Softmax", inputs, outputs, name=name)


@pytest.mark.parametrize(
    ("m", "words"),
    [
        (one_node("Magic", [[2]]), ["'n' (Magic)", "not known"]),
        (model([helper.make_node("Softmax", ["x"], ["y"], domain="no.such")], [info("x", (2,))], [info("y", (2,))]), ["no.such:Softmax"]),
        (two(node(["b"], ["a"], "one"), node(["a"], ["b"], "two")), ["cycle", "'one'", "'two'"]),
        (two(node(["x"], ["y"]), node(["c"], ["c"], "self")), ["cycle", "'self'"]),
        (two(node(["x"], ["y"], "one"), node(["x"], ["y"], "two")), ["'y' is defined twice", "'one'", "'two'"]),
        (two(node(["x"], ["x"], "one"), node(["x"], ["y"])), ["'x' is defined twice", "input or initializer", "'one'"]),
        (two(node(["x"], ["a"]), node(["nowhere"], ["y"], "two")), ["'two'", "'nowhere' is produced by nothing"]),
        (two(node(["x"], ["a"]), node(["a"], [""])), ["output 'y' is produced by nothing"]),
        (two(node([""], ["a"], "one"), node(["x"], ["y"])), ["'one'", "input 0 is missing"]),
        (two(node([], ["a"], "one"), node(["x"], ["y"])), ["'one'", "input 0 is missing"]),
        (model([node(["x"], ["y"])], [info("x", (2,)), info("x", (2,))], [info("y", (2,))]), ["two graph inputs are named 'x'"]),
        (model([node(["x"], ["y"])], [info("x", (2,))], [info("y", (2,)), info("y", (2,))]), ["two graph outputs are named 'y'"]),
        (model([node(["x"], ["y"])], [info("x", (2,))], []), ["no outputs"]),
        (
            model([node(["x"], ["y"])], [info("x", (2,))], [info("y", (2,))], [tensor("w", [1.0]), tensor("w", [1.0])]),
            ["two initializers", "'w'"],
        ),
        (one_node("Conv", [[1, 1, 4, 4]]), ["'n' (Conv)", "input 1 is missing"]),
    ],
)
def test_graphs(m: onnx.ModelProto, words: list[str]) -> None:
    e = refusal(m)
    assert e.exit_code == 3 and all(w in str(e) for w in words), str(e)


@pytest.mark.parametrize("name", ["a\nb", "a\0b", "\x1b[31m", "\u202egpj", "x" * 2**20, "../../x", "/etc/x"])
def test_names_are_escaped_and_cut(name: str) -> None:
    refusal(model([helper.make_node("Magic", [name], [name + "o"], name=name)], [info(name, (2,))], [info(name + "o", (2,))]))


def test_names_that_are_not_utf8() -> None:
    data = softmax().SerializeToString().replace(b"soft", b"s\xff\xfet")
    try:
        read(data)
    except FlaotError as e:
        assert e.exit_code == 3


# -- O14 to O18: tensors ---------------------------------------------------------------------------------------------------


def raw(dims: list[int], data: bytes | None, kind: int = TensorProto.FLOAT, **more: object) -> onnx.TensorProto:
    t = TensorProto(name="w", data_type=kind, dims=dims, **more)
    if data is not None:
        t.raw_data = data
    return t


@pytest.mark.parametrize(
    ("t", "code", "words"),
    [
        (raw([4], b"\0" * 4), 3, "4 bytes of data, 16 needed"),
        (raw([4], b"\0" * 20), 3, "20 bytes"),
        (raw([4], b"\0" * 16, float_data=[1.0]), 3, "both set"),
        (raw([4], None), 3, "0 elements of data, 4 needed"),
        (raw([4], None, float_data=[1.0]), 3, "1 elements of data"),
        (raw([1], None, int32_data=[1]), 3, "expected in float_data"),
        (raw([-1, 4], b"\0" * 16), 3, "negative dimension"),
        (raw([2**31, 2**31], b""), 9, "elements"),
        (raw([2**62], b""), 9, "elements"),
        (raw([2**63 - 1], b""), 9, "elements"),
        (raw([0, 2**62], b""), 9, "elements"),
        (raw([1] * 10**5, b"\0" * 4), 5, "rank 100000"),
        (raw([4], b"\0" * 16, 0), 3, "data type 0"),
        (raw([4], b"\0" * 16, 99), 3, "data type 99"),
        (raw([1], None, TensorProto.STRING, string_data=[b"a"]), 5, "string"),
        (raw([1], b"\0" * 8, TensorProto.COMPLEX64), 5, "complex64"),
        (raw([1], b"\0", TensorProto.FLOAT8E4M3FN), 5, "float8e4m3fn"),
        (raw([2], b"\0", TensorProto.INT4), 5, "int4"),
        (raw([1], None, TensorProto.INT8, int32_data=[300]), 3, "does not fit int8"),
    ],
)
def test_tensors(t: onnx.TensorProto, code: int, words: str) -> None:
    e = refusal(model([node(["x"], ["y"])], [info("x", (2,))], [info("y", (2,))], [t]))
    assert e.exit_code == code and words in str(e) and "'w'" in str(e), str(e)
    attribute = helper.make_node("Constant", [], ["c"], value=t)
    e = refusal(model([attribute, node(["c"], ["y"])], [info("x", (2,))], [info("y", None)]))
    assert e.exit_code == code and words in str(e)


def test_declared_shapes_and_types_must_agree() -> None:
    m = two(node(["x"], ["a"]), node(["a"], ["y"]))
    m.graph.value_info.append(info("a", (3,)))
    assert "'a' is declared [3] but is computed as float32[2]" in str(refusal(m))
    m.graph.value_info[0].CopyFrom(info("a", (2,), TensorProto.DOUBLE))
    assert "declared double" in str(refusal(m))


def test_nan_and_inf_weights_are_kept_bit_for_bit() -> None:
    bits = np.array([0x7FC00001, 0xFF800000, 0x7FA00000, 0x80000000], np.uint32)
    m = model([helper.make_node("Identity", ["w"], ["y"])], [], [info("y", (4,))], [raw([4], bits.tobytes())])
    assert read(m, evaluate=evaluate).outputs[0].value.data.tobytes() == bits.tobytes()


# -- O19 to O25: operators -------------------------------------------------------------------------------------------------

X = [1, 4, 5, 5]
W = tensor("w", np.ones((4, 4, 3, 3)))
BN = [tensor(n, np.ones(4)) for n in ("s", "b", "m")]


@pytest.mark.parametrize(
    "m",
    [
        one_node("Conv", [X], [W], strides=[0, 1]),
        one_node("Conv", [X], [W], strides=[2**40, 1]),
        one_node("Conv", [X], [W], dilations=[0, 1]),
        one_node("Conv", [X], [W], group=0),
        one_node("Conv", [X], [W], group=3),
        one_node("Conv", [[1, 4, 2, 2]], [W]),
        one_node("Conv", [X], [W], pads=[-1, 0, 0, 0]),
        one_node("Conv", [X], [W], pads=[1, 1]),
        one_node("MaxPool", [X], kernel_shape=[9, 9]),
        one_node("MaxPool", [X], kernel_shape=[0, 1]),
        one_node("Reshape", [[2, 3]], [tensor("s", [-1, -1], "int64")]),
        one_node("Reshape", [[2, 3]], [tensor("s", [4, 2], "int64")]),
        one_node("Reshape", [[2, 3]], [tensor("s", [-(2**63), 2], "int64")]),
        one_node("Transpose", [[2, 3]], perm=[0, 0]),
        one_node("Transpose", [[2, 3]], perm=[0, 2]),
        one_node("Softmax", [[2, 3]], axis=2),
        one_node("Softmax", [[2, 3]], axis=-3),
        one_node("Concat", [[2, 3]], axis=-(2**63)),
        one_node("Slice", [[2, 3]], [tensor(n, v, "int64") for n, v in (("a", [0]), ("b", [1]), ("c", [0]), ("d", [0]))]),
        one_node("Resize", [X], [tensor("r", []), tensor("s", [1, 1, 0, 1])]),
        one_node("Resize", [X], [tensor("r", []), tensor("s", [1, 1, np.nan, 1])]),
        one_node("Resize", [X], [tensor("r", []), tensor("s", [1, 1, 1e30, 1])]),
        one_node("Pad", [[2, 3]], [tensor("p", [2**40, 0, 0, 0], "int64")]),
        one_node("Pad", [[2, 3]], [tensor("p", [0, 0], "int64")]),
        one_node("Split", [[2, 3]], [tensor("p", [1, 3], "int64")], axis=1),
        one_node("Gather", [[2, 3]], [tensor("i", [2], "int64")]),
        one_node("Gather", [[2, 3]], [tensor("i", [-3], "int64")]),
        one_node("TopK", [[2, 3]], [tensor("k", [4], "int64")]),
        one_node("BatchNormalization", [X], [*BN, tensor("v", [1, 1, -1, 1])]),
        one_node("BatchNormalization", [X], [*BN, tensor("v", np.ones(4))], epsilon=float("nan")),
        one_node("BatchNormalization", [X], [*BN, tensor("v", np.zeros(4))], epsilon=0.0),
        one_node("BatchNormalization", [X], [*BN, tensor("v", np.ones(3))]),
        one_node("MatMul", [[2, 3], [2, 3]]),
        one_node("Add", [[2, 3], [2]]),
    ],
)
def test_operators(m: onnx.ModelProto) -> None:
    e = refusal(m)
    assert "node 'n'" in str(e) and e.exit_code in (3, 9), str(e)


# -- O32 to O35: nesting, types and size -----------------------------------------------------------------------------------


def nested(depth: int, condition: str = "c") -> onnx.ModelProto:
    inner = helper.make_graph([node(["x"], ["r"])], "g", [], [info("r", None)])
    for _ in range(depth):
        choice = helper.make_node("If", [condition], ["r"], then_branch=inner, else_branch=inner)
        inner = helper.make_graph([choice], "g", [], [info("r", None)])
    last = inner.node[0]
    last.output[0] = "y"
    return model([last], [info("x", (2,))], [info("y", (2,))], [tensor("c", True, "bool")])


@pytest.mark.parametrize("depth", [1, 8])
def test_nested_branches(depth: int) -> None:
    assert len(read(nested(depth).SerializeToString())) == 1


def test_branches_nested_too_deep() -> None:
    def wrap(field: int, inner: bytes) -> bytes:
        head, size = bytes([field << 3 | 2]), len(inner)
        while size > 127:
            head, size = head + bytes([size & 127 | 128]), size >> 7
        return head + bytes([size]) + inner

    graph = b""
    for _ in range(3_000):
        attribute = b"\x0a\x01b" + wrap(6, graph) + b"\xa0\x01\x05"
        graph = wrap(1, b"\x12\x01y\x22\x02If" + wrap(5, attribute))
    assert refusal(b"\x08\x08" + wrap(7, graph) + b"\x42\x04\x0a\x00\x10\x11").exit_code == 3


def test_sparse_tensors_that_point_outside() -> None:
    bad = helper.make_sparse_tensor(tensor("w", [1.0]), tensor("i", [9], "int64"), [4])
    m = model([helper.make_node("Identity", ["w"], ["y"])], [], [info("y", (4,))])
    m.graph.sparse_initializer.append(bad)
    assert "outside shape [4]" in str(refusal(m))


@pytest.mark.parametrize(
    "kind",
    [
        helper.make_sequence_type_proto(helper.make_tensor_type_proto(1, [2])),
        helper.make_optional_type_proto(helper.make_tensor_type_proto(1, [2])),
        helper.make_tensor_type_proto(TensorProto.STRING, [2]),
        onnx.TypeProto(),
    ],
)
def test_inputs_that_are_no_tensors_of_numbers(kind: onnx.TypeProto) -> None:
    m = model([node(["x"], ["y"])], [helper.make_value_info("x", kind)], [info("y", None)])
    e = refusal(m)
    assert e.exit_code in (3, 5) and "'x'" in str(e)


BOMBS: dict[str, Callable[[], onnx.ModelProto]] = {
    "ConstantOfShape": lambda: model(
        [helper.make_node("ConstantOfShape", ["s"], ["y"], name="n")], [], [info("y", None)], [tensor("s", [2**20, 400], "int64")]
    ),
    "ConstantOfShape 2^62": lambda: model(
        [helper.make_node("ConstantOfShape", ["s"], ["y"], name="n")], [], [info("y", None)], [tensor("s", [2**62], "int64")]
    ),
    "Expand": lambda: model(
        [helper.make_node("Expand", ["a", "s"], ["y"], name="n")],
        [],
        [info("y", None)],
        [tensor("a", [1.0]), tensor("s", [4 * 10**8], "int64")],
    ),
    "Tile": lambda: model(
        [helper.make_node("Tile", ["a", "s"], ["y"], name="n")],
        [],
        [info("y", None)],
        [tensor("a", [1.0]), tensor("s", [4 * 10**8], "int64")],
    ),
    "Range": lambda: model(
        [helper.make_node("Range", ["a", "b", "c"], ["y"], name="n")],
        [],
        [info("y", None)],
        [tensor(n, v, "int64") for n, v in (("a", 0), ("b", 10**18), ("c", 1))],
    ),
    "Concat": lambda: model(
        [helper.make_node("Concat", [f"v{i}", f"v{i}"], [f"v{i + 1}"], axis=0, name=f"n{i}") for i in range(60)],
        [info("v0", (2,))],
        [info("v60", None)],
    ),
    "Concat of constants": lambda: model(
        [helper.make_node("Concat", [f"v{i}", f"v{i}"], [f"v{i + 1}"], axis=0, name=f"n{i}") for i in range(60)],
        [],
        [info("v60", None)],
        [tensor("v0", [1.0, 2.0])],
    ),
}


@pytest.mark.parametrize("name", BOMBS)
def test_resource_bombs(name: str) -> None:
    e = refusal(BOMBS[name]())
    assert e.exit_code == 9 and "node 'n" in str(e), str(e)


def test_many_unused_initializers_and_inputs() -> None:
    weights = [tensor(f"w{i}", 1.0) for i in range(20_000)]
    assert len(read(model([node(["x"], ["y"])], [info("x", (2,))], [info("y", (2,))], weights))) == 1
    wide = helper.make_node("Concat", ["x"] * 20_000, ["y"], axis=0)
    read(model([wide], [info("x", (2,))], [info("y", (40_000,))]))
