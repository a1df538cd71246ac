"""``flaot query`` and ``flaot ops``: what a chip runs, for people and as JSON."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.mapping.nets import attention, conv


@pytest.fixture(autouse=True)
def nets(tmp_path: Path) -> None:
    (tmp_path / "m.onnx").write_bytes(conv())
    (tmp_path / "wide.onnx").write_bytes(conv(9))
    (tmp_path / "att12.onnx").write_bytes(attention(12))


def test_an_operator_with_the_line_of_every_fact(run):
    done = run("query", "Conv", "--hcd", "npu_v3")
    assert done.out.splitlines()[0] == "Conv on NPU-V3: native on fp16"
    assert re.search(r"fp16 layouts +NHCW, NCHW, NHWC \(npu_v3.hcd:3\)", done.out)
    assert re.search(r"max_batch_size +512 \(npu_v3.hcd:10\)", done.out)
    heads = json.loads(run("query", "Attention", "--hcd", "npu_v3", "--json").out)
    assert heads["units"] == ["attention"]
    assert {"name": "attention heads", "value": "1, 2, 4, 8, 16", "origin": "npu_v3.hcd:5"} in heads["facts"]


def test_limits_of_a_table_and_what_it_denies(run):
    lines = run("query", "Conv", "--hcd", "edge_dsp").out
    assert re.search(r"requires +kernel_shape at most 7: the line buffer holds 7 rows \(edge_dsp.hcd:32\)", lines)
    assert "Softmax on Edge-DSP: expanded into simpler operators" in run("query", "Softmax", "--hcd", "edge_dsp").out
    assert "CumSum on Edge-DSP: on the host" in run("query", "CumSum", "--hcd", "edge_dsp").out
    assert "native on cpu" in run("query", "CumSum", "--hcd", "generic_cpu").out


def test_a_model_node_by_node(run):
    done = run("query", "wide.onnx", "--hcd", "edge_dsp")
    assert done.code == 0, done
    head, first, second, last = done.out.splitlines()
    assert head.split() == ["node", "operator", "verdict", "device", "unit", "dtype", "reason"]
    sentence = "kernel_shape is [9, 9]; at most 7 is allowed: the line buffer holds 7 rows (edge_dsp.hcd:32)"
    assert first.split(maxsplit=5) == ["conv1", "Conv", "fallback", "host", "float32", sentence]
    assert second.split() == ["relu1", "Relu", "native", "Edge-DSP", "vector", "float16"]
    assert last == "2 nodes: 1 fallback, 1 native"


def test_a_model_as_json_with_policy(run):
    options = ["--route", "Relu=host", "--fallback", "error"]
    document = json.loads(run("query", "wide.onnx", "--hcd", "edge_dsp", *options, "--json").out)
    assert document["verdicts"] == {"refused": 1, "fallback": 1}
    assert document["nodes"][0]["origin"] == "edge_dsp.hcd:32"
    assert document["nodes"][1]["reason"] == "routed there by --route Relu=host"
    rows = json.loads(run("query", "att12.onnx", "--hcd", "generic_cpu", "--json").out)["nodes"]
    assert {(r["operator"], r["verdict"]) for r in rows} == {("Attention", "expanded")}


def test_mistakes_are_named(run):
    run("query", "Cnov", "--hcd", "npu_v3").failed(2, "there is no operator 'Cnov' and no such file; did you mean 'Conv'?")
    run("query", "m.onnx", "--hcd", "npu_v3", "--route", "Relu=gpu").failed(2, "no device 'gpu'")
    run("query", "none.onnx", "--hcd", "npu_v3").failed(8, "none.onnx")


def test_the_whole_table(run):
    done = run("ops", "--hcd", "npu_v3", "--hcd", "edge_dsp", "--hcd", "generic_cpu")
    rows = {line.split()[0]: re.split("  +", line)[1:] for line in done.out.splitlines()}
    assert rows["operator"] == ["NPU-V3", "Edge-DSP", "generic_cpu"]
    assert rows["Conv"] == ["native on fp16", "native on vector", "native on cpu"]
    assert rows["CumSum"] == ["on the host", "on the host", "native on cpu"]
    assert rows["Flatten"] == ["read as Reshape"] * 3
    document = json.loads(run("ops", "--hcd", "npu_v3", "--json").out)
    assert {"operator": "Attention", "chips": {"NPU-V3": {"text": "native on attention", "units": ["attention"]}}} in document["operators"]


def test_compile_refuses_with_exit_code_5(run):
    run("compile", "att12.onnx", "--hcd", "npu_v3").failed(5, "12 heads; the unit attention of NPU-V3 lists 1, 2, 4, 8, 16 (npu_v3.hcd:5)")
    run("compile", "wide.onnx", "--hcd", "edge_dsp", "--fallback", "error").failed(5, "node 'conv1' (Conv): kernel_shape is [9, 9]")


def test_compile_says_where_every_node_went(run):
    done = run("compile", "m.onnx", "--hcd", "npu_v3", "--exclude", "host", "-v")
    assert done.code == 0, done
    assert re.search(r"conv1 Conv -> conv_f32[^,]*, float16 \w+, native on NPU-V3.fp16", done.out)


def test_names_in_a_descriptor_that_nobody_knows_are_warned_about(run, tmp_path):
    text = run("hcd", "new").out + "\noperators:\n  Convv: {}\n"
    (tmp_path / "mine.hcd").write_text(text)
    done = run("hcd", "validate", "mine.hcd")
    assert done.code == 0, done
    assert "flaot: warning: mine.hcd:" in done.err and "there is no operator Convv; did you mean 'Conv'?" in done.err


def test_several_chips_in_one_plan(run):
    both = ("--hcd", "npu_v3", "--hcd", "npu_v2")
    heads = [line for line in run("query", "Attention", *both).out.splitlines() if not line.startswith(" ")]
    assert heads == [f"Attention on {name}: native on attention" for name in ("NPU-V3", "NPU-V2")]
    assert [c["chip"] for c in json.loads(run("query", "Conv", *both, "--json").out)["chips"]] == ["NPU-V3", "NPU-V2"]
    held = json.loads(run("query", "m.onnx", *both, "--route", "Conv=npu_v2", "--route", "Relu=NPU-V3", "--json").out)
    assert held["chip"] == "NPU-V3 + NPU-V2"
    assert [(n["node"], n["device"]) for n in held["nodes"]] == [("conv1", "NPU-V2"), ("relu1", "NPU-V3")]
    run("query", "m.onnx", *both, "--prefer", "npu").failed(2, "'npu' may be NPU-V3 or NPU-V2")
    run("query", "m.onnx", "--hcd", "npu_v3", "--hcd", "npu_v3").failed(2, "two descriptors are named NPU-V3")


def test_several_chips_are_compiled_explained_run_and_inspected(run):
    chips = ("--hcd", "npu_v3", "--hcd", "npu_v2", "--hcd", "generic_cpu")
    done = run("compile", "m.onnx", *chips, "--route", "Relu=npu_v2", "--route", "Conv=npu_v3", "-o", "m.flp", "--json")
    assert json.loads(done.out)["chip"] == "generic_cpu + NPU-V3 + NPU-V2"
    assert run("verify", "m.flp", "m.onnx").code == 0 and run("run", "m.flp").code == 0
    held = json.loads(run("inspect", "m.flp", "--json").out)
    assert [d["name"] for d in held["devices"]] == ["generic_cpu", "NPU-V3", "NPU-V2"]
    assert "NPU-V2.fp16" in run("inspect", "m.flp", "--why", "relu1").out
    rules = [r["rule"] for r in json.loads(run("explain", "m.onnx", *chips, "--json").out)["rules"]]
    assert {"product_activation on NPU-V3", "product_activation on NPU-V2"} <= set(rules)
