from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from onnx import helper

from flaot.errors import ModelError
from flaot.ir.graph import Graph
from flaot.ir.ops.reshape import Reshape
from flaot.ir.ops.softmax import Softmax
from flaot.ir.parse import load_graph, parse_graph
from flaot.ir.place import Facts
from flaot.ir.spec import SPECS, check, problems
from flaot.ir.text import blobs, print_graph, save_graph
from flaot.ir.types import DType, TensorType
from flaot.pipeline import STAGES, Options, compile_graph, compile_model
from flaot.plan.read import read_plan
from tests.rules.harness import onnx_model

AT = 'at "NPU" "fp16" float16 group "g.1" facts (1, 2, 3)'
TEXT = f"""graph "net \\u2603" {{
  %0 = input : float32[2,3] "x"
  %1 = Reshape(shape=(3, 2))(%0) : float32[3,2] "r" "alias" layout (1, 0) stored float16 {AT} from "one" "two"
  %2 = constant : float32[2] "c" = [0.1, -inf]
  %3 = Softmax(axis=0)(%2) : float32[2]
  output "y" = %1
  output "z" = %3
}}
"""


def test_parse_is_the_inverse_of_print() -> None:
    graph = parse_graph(TEXT)
    assert print_graph(graph) == TEXT
    node = graph.nodes()[0]
    assert node.op == Reshape((3, 2)) and node.origin == ("one", "two") and node.outputs[0].names == ("r", "alias")
    assert node.outputs[0].layout == (1, 0) and node.outputs[0].stored is DType.float16
    assert str(node.place) == "NPU.fp16" and node.group == "g.1" and node.facts == Facts(1, 2, 3)


FROZEN = """graph "net" {
  %0 = input : float32[2] "x"
  frozen "k\\u2603" : int64[2,1] = "4bf5122f344554c53bde2ebb8cd2b7e3d1600ad631c385a5d7cce23c7785459a"
  frozen "s" : bool[] = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
  output "y" = %0
}
"""


def test_frozen_initializers_are_kept() -> None:
    graph = parse_graph(FROZEN)
    assert print_graph(graph) == FROZEN
    assert [(f.name, str(f.type)) for f in graph.frozen] == [("k\u2603", "int64[2,1]"), ("s", "bool[]")]
    with pytest.raises(ModelError, match=r"d:3:35: the SHA-256 of a frozen initializer must be 64 hexadecimal digits"):
        parse_graph(FROZEN.replace("4bf5", "4b"), file="d")


@pytest.mark.parametrize("dtype", ["float32", "float16", "float64", "int8", "uint64", "bool", "bfloat16"])
@pytest.mark.parametrize("count", [0, 5, 100])
def test_constants_survive_bit_for_bit(dtype: str, count: int, tmp_path: Path) -> None:
    kind = DType[dtype]
    rng = np.random.default_rng(1)
    data = np.frombuffer(rng.bytes(count * kind.size), kind.numpy) if kind is not DType.bool else rng.integers(0, 2, count) > 0
    graph = Graph()
    graph.set_output("y", graph.add_constant(data, dtype=kind))
    save_graph(graph, tmp_path / "g.txt")
    back = load_graph(tmp_path / "g.txt").outputs[0].value
    assert back.type == TensorType(kind, (count,)) and back.data.tobytes() == data.tobytes()
    assert len(blobs(graph)) == (count > 16)


@pytest.mark.parametrize(
    ("old", "new", "place", "words"),
    [
        ("axis=0", "axis=1", "5:8", "Softmax refuses"),
        ("axis=0", "axes=0", "5:16", "no attribute 'axes'"),
        ("Softmax(", "Sotfmax(", "5:8", "unknown op 'Sotfmax'"),
        ("(%2)", "(%9)", "5:24", "%9 is used before"),
        (") : float32[3,2]", ") : float32[2,3]", "3:8", "gives float32[3,2], declared float32[2,3]"),
        ("[0.1, -inf]", "[0.1]", "4:36", "1 elements"),
        ("float32[2,3]", "float33[2,3]", "2:16", "unknown element type"),
        ("(1, 0)", "(1, 1)", "3:69", "layout must order"),
        ("(3, 2)", "(" * 99, "3:42", "nested more than"),
        ("{", "?", "1:20", "unexpected '?'"),
        ("}\n", "", "8:1", "expected a value"),
    ],
)
def test_errors_have_a_place(old: str, new: str, place: str, words: str) -> None:
    with pytest.raises(ModelError) as e:
        parse_graph(TEXT.replace(old, new, 1), file="d.txt")
    assert str(e.value).startswith(f"d.txt:{place}: ") and words in str(e.value), str(e.value)


def test_specs_hold_and_name_what_breaks() -> None:
    graph = Graph()
    x = graph.add_input("x", TensorType(DType.float32, (2, 3)))
    node = graph.add_node(Softmax(1), [x], origin=("s",))
    graph.set_output("y", node.outputs[0])
    for stage in SPECS:
        check(graph, stage)
    node.outputs[0].type = TensorType(DType.float32, (3, 2))
    assert problems(graph, "read") == ["output types are those the op infers: node 's' (Softmax): float32[3,2] instead of float32[2,3]"]


def test_every_stage_has_a_spec() -> None:
    assert tuple(SPECS) == STAGES


@pytest.mark.parametrize("stage", list(SPECS))
def test_a_dump_of_any_stage_goes_on_to_the_same_plan(stage: str, tmp_path: Path) -> None:
    model = onnx_model(
        "(float[1,4,5,5] x) => (float[1,6] y) { c = Conv<pads=[1,1,1,1]>(x, w) d = BatchNormalization(c, s, s, s, v) e = Relu(d) "
        "f = Sigmoid(e) g = Mul(e, f) h = GlobalAveragePool(g) i = Flatten(h) j = MatMul(i, m) k = Exp(j) l = Add(k, s) y = Softmax(l) }",
        {"w": (6, 4, 3, 3), "s": (6,), "v": np.ones(6, np.float32), "m": (6, 6)},
    )
    model.graph.input.append(helper.make_tensor_value_info("s", 1, [6]))
    saved = tmp_path / "dump.txt"
    whole = compile_model(model, "generic_cpu", Options(observe=lambda at, graph: save_graph(graph, saved) if at == stage else None))
    dump = load_graph(saved)
    assert print_graph(dump) == saved.read_text()
    assert compile_graph(dump, "generic_cpu", after=stage).plan == whole.plan
    assert [f.name for f in read_plan(whole.plan).frozen] == ["s"]


def test_a_file_that_is_no_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "g.txt").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ModelError, match="not the text of a graph"):
        load_graph(tmp_path / "g.txt")
