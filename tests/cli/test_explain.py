"""``flaot explain`` and what ``flaot inspect`` tells of decisions."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import flaot

DIGITS = Path(__file__).resolve().parents[2] / "samples" / "mnist" / "digits.onnx"


def test_the_table_of_rules(run):
    text = run("explain", DIGITS, "--hcd", "edge_dsp").out.splitlines()
    assert text[0].split() == ["stage", "rule", "fired", "nearly"]
    row = next(line for line in text if " conv_relu " in line)
    assert row.split(None, 4)[:4] == ["fusions", "conv_relu", "2", "0"]
    assert row.endswith("Conv -> Relu, level conservative (edge_dsp.hcd:66)")
    rules = json.loads(run("explain", DIGITS, "--json").out)["rules"]
    assert {r["stage"] for r in rules} >= {"canonicalize", "recognise", "fuse", "chain"} and "fusions" not in {r["stage"] for r in rules}
    assert next(r for r in rules if r["rule"] == "conv.ActivationIntoConv")["fired"] == 2


def test_one_rule(run):
    assert run("explain", DIGITS, "--hcd", "npu_v3", "--rule", "product_activation").out.splitlines() == [
        "product_activation (fusions): Conv|ConvTranspose|MatMul|Gemm -> activation, level conservative (npu_v3.hcd:2)",
        "  fired 3 times:",
        "    node '/1/Relu' (Relu) on NPU-V3",
        "    node '/4/Relu' (Relu) on NPU-V3",
        "    node '/8/Relu' (Relu) on NPU-V3",
    ]
    rule = ("explain", DIGITS, "--hcd", "npu_v3", "--fusion-level", "none", "--rule", "conv.ActivationIntoConv")
    assert run(*rule).out.splitlines() == [
        "conv.ActivationIntoConv (fuse): an activation of one input",
        "  fired 0 times",
        "  nearly fired 2 times:",
        *(
            f"    node '/{i}/Relu' (Relu): the fusion product_activation (npu_v3.hcd:2) does not apply: "
            "it is listed for level conservative; this is level none"
            for i in (1, 4)
        ),
    ]
    (row,) = json.loads(run(*rule, "--json").out)["rules"]
    assert row["fired"] == 0 and [m["node"] for m in row["missed_at"]] == ["node '/1/Relu' (Relu)", "node '/4/Relu' (Relu)"]


def test_a_part_of_a_name(run):
    found = json.loads(run("explain", DIGITS, "--rule", "conv.", "--json").out)["rules"]
    assert [r["rule"] for r in found][:2] == ["conv.ResidualIntoConv", "conv.ActivationIntoConv"]
    run("explain", DIGITS, "--rule", "ActivationIntoConvv").failed(2, "no rule or fusion of that name; did you mean 'ActivationIntoConv'?")
    run("explain", "absent.onnx").failed(8)


@pytest.fixture(scope="module")
def plan(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("plan") / "d.flp"
    assert flaot("compile", DIGITS, "--hcd", "npu_v3", "-o", path).code == 0
    return path


def test_why(run, plan):
    text = run("inspect", plan, "--why", "/4/Relu").out.splitlines()
    assert text[0] == "Relu -> conv_f32: native, on NPU-V3.fp16 in float16 NCHW"
    assert text[1].startswith("  chosen NPU-V3.fp16 in float16: ") and text[2].startswith("  not host in float32: ")
    assert text[3] == "path resident (whole) on NPU-V3.fp16: everything it works on fits on chip"
    assert text[-1] == "fused by product_activation (npu_v3.hcd:2): /3/Conv, /4/Relu"
    document = json.loads(run("inspect", plan, "--why", "/4/Relu", "--json").out)
    assert [d["node"] for d in document["decisions"]] == [["/4/Relu"]] and document["fused"][0]["name"] == "product_activation"
    run("inspect", plan, "--why", "/4/Rel").failed(2, "the plan records no node '/4/Rel'; did you mean '/4/Relu'?")


def test_decisions(run, plan):
    text = run("inspect", plan, "--decisions").out
    assert text.startswith("11 native, 0 fallback\n")
    assert "  /9/Gemm      Gemm     matmul" in text
    assert len(json.loads(run("inspect", plan, "--decisions", "--json").out)["decisions"]) == 11


def test_cpu_plans_hold_decisions_when_asked(run):
    assert run("compile", DIGITS, "--hcd", "generic_cpu", "-o", "c.flp").code == 0
    run("inspect", "c.flp", "--why", "/3/Conv").failed(2, "holds no record of decisions", "--keep-decisions")
    assert run("compile", DIGITS, "--hcd", "generic_cpu", "-o", "k.flp", "--keep-decisions").code == 0
    assert run("inspect", "k.flp", "--why", "/4/Relu").out.startswith("Conv -> conv_f32: native, on host in float32")


def test_the_record_as_json(run, tmp_path):
    assert run("compile", DIGITS, "--hcd", "npu_v3", "-o", "d.flp", "--explain", "out.json").code == 0
    document = json.loads((tmp_path / "out.json").read_text())
    assert document["summary"]["verdicts"]["native"] == len(document["decisions"]) == 11
    assert document["policy"]["fusion_level"] == "balanced" and len(document["model_digest"]) == 64
    assert {a["stage"] for a in document["assigned"]} == {"place", "layouts"} and all(a["exact"] for a in document["assigned"])
    assert document["rules"]["product_activation"] == 3
