"""Models nobody should trust: every one is refused with one line and its exit code, quickly and without a crash."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from flaot.errors import FlaotError
from flaot.frontend import read
from flaot.kernels.base import load_all
from flaot.schedule.evaluate import evaluate
from tests.frontend.models import info, model, softmax, tensor

load_all()
GOOD = softmax().SerializeToString()


def refusal(given: object, **more: object) -> FlaotError:
    with pytest.raises(FlaotError) as e:
        read(given, evaluate=evaluate, **more)
    for line in str(e.value).splitlines():
        assert line.isprintable() and len(line) < 700
    assert e.value.exit_code in (2, 3, 5, 8, 9)
    return e.value


def one_node(
    op: str, shapes: list[list[int]], weights: list[onnx.TensorProto] | None = None, opset: int = 17, **attributes: object
) -> onnx.ModelProto:
    inputs = [info(f"x{i}", s) for i, s in enumerate(shapes)]
    names = [f"x{i}" for i in range(len(shapes))] + [w.name for w in weights or []]
    node = helper.make_node(op, names, ["y"], name="n", **attributes)
    return model([node], inputs, [info("y", None)], weights or [], opset)


# -- O01 to O06: the file --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "empty"),
        (b"\0" * 4096, "zeros"),
        (b"\x89PNG\r\n\x1a\n" + b"\0" * 50, "PNG"),
        (b"PK\x03\x04" + b"\0" * 50, "zip"),
        (b"\x1f\x8b\x08" + b"\0" * 50, "gzip"),
        (b"chip: {name: x}\n# a descriptor\n" * 9, "text"),
        (b'{"ir_version": 8}', "text"),
        (os.urandom(0) + bytes(range(1, 256)) * 4, "ONNX"),
        (GOOD + GOOD, "a second time"),
        (GOOD + b"\0" * 7, "unknown field 0"),
        (GOOD + b"\xfa\x7f\x01x", "unknown field"),
    ],
)
def test_what_is_not_a_model(data: bytes, words: str) -> None:
    e = refusal(data)
    assert words in str(e) and e.exit_code == 3


def test_every_truncation_is_refused() -> None:
    for length in range(len(GOOD)):
        assert refusal(GOOD[:length]).exit_code == 3


@pytest.mark.slow
def test_every_bit_flip_is_refused_or_a_model() -> None:
    for at in range(len(GOOD) * 8):
        data = bytearray(GOOD)
        data[at // 8] ^= 1 << at % 8
        try:
            read(bytes(data), evaluate=evaluate)
        except FlaotError as e:
            assert e.exit_code in (3, 5, 9)


@pytest.mark.parametrize("version", [0, 1, 2, 2**31 - 1])
def test_ir_versions(version: int) -> None:
    m = softmax()
    m.ir_version = version
    assert "supported are 3 to" in str(refusal(m))


@pytest.mark.parametrize(
    ("imports", "words"),
    [
        ([], "no opset_import"),
        ([("", 0)], "supported are 7 to"),
        ([("", 6)], "supported are 7 to"),
        ([("", 999)], "supported are 7 to"),
        ([("", 17), ("ai.onnx", 18)], "imported as opset 17 and as 18"),
        ([("ai.onnx.ml", 3)], "'soft' (Softmax): domain 'ai.onnx' is not imported"),
    ],
)
def test_opsets(imports: list[tuple[str, int]], words: str) -> None:
    m = softmax()
    del m.opset_import[:]
    m.opset_import.extend(helper.make_opsetid(d, v) for d, v in imports)
    assert words in str(refusal(m))


def test_unused_imports_do_not_matter() -> None:
    m = softmax()
    m.opset_import.extend([helper.make_opsetid("no.such", 99), helper.make_opsetid("", 17)])
    read(m)


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


# -- O27 to O31: external data ---------------------------------------------------------------------------------------------


def external(folder: Path, location: str, **entries: str) -> Path:
    t = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[4], data_location=TensorProto.EXTERNAL)
    for key, value in {"location": location, **entries}.items():
        t.external_data.add(key=key, value=value)
    m = model([helper.make_node("Identity", ["w"], ["y"])], [], [info("y", (4,))], [t])
    (folder / "m.onnx").write_bytes(m.SerializeToString())
    return folder / "m.onnx"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    inside = tmp_path / "model"
    (inside / "sub").mkdir(parents=True)
    data = np.arange(8, dtype=np.float32).tobytes()
    for path in (tmp_path / "x", inside / "ok.bin", inside / "sub" / "ok.bin"):
        path.write_bytes(data)
    (inside / "link").symlink_to("ok.bin")
    (inside / "linked").symlink_to("sub")
    os.link(inside / "sub" / "ok.bin", inside / "hard")
    (inside / "sub" / "ok.bin").unlink()
    (inside / "sub" / "ok.bin").write_bytes(data)
    os.link(tmp_path / "x", inside / "hard2")
    os.mkfifo(inside / "fifo")
    (inside / "empty").touch()
    return inside


@pytest.mark.parametrize("location", ["ok.bin", "sub/ok.bin", "./ok.bin"])
def test_external_data_is_read(folder: Path, location: str) -> None:
    got = read(external(folder, location, offset="16", length="16"), evaluate=evaluate).outputs[0].value.data
    np.testing.assert_array_equal(got, np.float32([4, 5, 6, 7]))


@pytest.mark.parametrize(
    "location",
    [
        "../x", "sub/../../x", "sub/../ok.bin", "{folder}/ok.bin", "link", "linked/ok.bin", "hard2", "fifo", "/dev/zero", "sub", "empty",
        "ok.bin\0x", "*/_ORT_MEM_ADDR_/*", "", ".", "no.bin", "ok.bin/", "C:\\x", "a" * 5000,
    ],
)  # fmt: skip
def test_external_places_that_are_refused(folder: Path, location: str) -> None:
    e = refusal(external(folder, location.replace("{folder}", str(folder))))
    assert e.exit_code == 3 and "'w'" in str(e), str(e)


@pytest.mark.parametrize(
    "entries",
    [
        {"offset": "-4"}, {"offset": "20"}, {"offset": str(2**63)}, {"offset": "four"}, {"offset": " 4"}, {"offset": "\u0664"},
        {"length": "-1"}, {"length": str(2**40)}, {"length": "15"}, {"length": "17"}, {"__class__": "x"}, {"basepath": "/etc"},
    ],
)  # fmt: skip
def test_external_entries_that_are_refused(folder: Path, entries: dict[str, str]) -> None:
    assert refusal(external(folder, "ok.bin", **entries)).exit_code == 3


def test_external_data_needs_a_file(folder: Path) -> None:
    path = external(folder, "ok.bin")
    for given in (path.read_bytes(), onnx.load(path, load_external_data=False)):
        assert "not read from a file" in str(refusal(given))


def test_external_data_in_a_constant_and_in_a_branch(folder: Path) -> None:
    t = TensorProto(name="t", data_type=TensorProto.FLOAT, dims=[4], data_location=TensorProto.EXTERNAL)
    t.external_data.add(key="location", value="../x")
    constant = helper.make_node("Constant", [], ["y"], value=t)
    branch = helper.make_graph([constant], "b", [], [info("y", None)])
    choice = helper.make_node("If", ["c"], ["y"], then_branch=branch, else_branch=branch)
    for m in (model([constant], [], [info("y", (4,))]), model([choice], [], [info("y", (4,))], [tensor("c", True, "bool")])):
        (folder / "m.onnx").write_bytes(m.SerializeToString())
        assert "refused" in str(refusal(folder / "m.onnx"))


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


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    with open(tmp_path / "huge", "wb") as f:
        f.truncate(5 * 2**30)
    for path, code in ((tmp_path / "absent", 8), (tmp_path, 8), (tmp_path / "fifo", 8), (Path("a\0b"), 8), (tmp_path / "huge", 9)):
        assert refusal(path).exit_code == code
