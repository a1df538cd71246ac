"""The record of decisions: complete in JSON, small and exact in plans, readable for people."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from flaot.errors import PlanError
from flaot.hcd import load_hcd
from flaot.mapping.decisions import Assigned, Candidate, Decision, Fused, Inserted, Missed
from flaot.mapping.policy import policy_of
from flaot.mapping.record import Record
from flaot.pipeline import Options, compile_model
from flaot.plan.read import read_plan
from flaot.plan.write import write_plan
from tests.mapping.models import convolutions

ROOT = Path(__file__).resolve().parents[2]


def record() -> Record:
    candidates = (Candidate("NPU.fp16", "float16", 12.5, True), Candidate("host", "float32", 1 / 3, False, "1000 ns more"))
    decisions = [
        Decision(("conv", "bn"), "Conv", "conv_f32", "native", "NPU", "fp16", "float16", "NHWC", candidates=candidates),
        Decision(("soft",), "Softmax", "softmax_f32", "fallback", "host", "", "float32", "", "not listed", "npu.hcd:9", "a note"),
        Decision((), "Add", "map_f32", "native", "NPU", "fp16", "float16"),
    ]
    inserted = [Inserted("Transfer", "x", 640, 1e300, "host", "NPU", "NPU", "node 'soft' (Softmax)", "run 'soft' on NPU", False)]
    fused = [Fused("conv_relu", ("conv", "relu"), 1, "npu.hcd:14"), Fused("up_act", ("up", "act"), 1, "npu.hcd:20", 2)]
    return Record(
        "NPU", {"fallback": "warn", "fusion_level": "balanced"}, "ab" * 32, "cd" * 32, decisions, inserted, fused,
        [Missed("conv_relu", "node 'r' (Relu)", "why")], [Assigned("place", 3, 1234.5, True)],
    )


def test_plans_keep_all_but_near_misses() -> None:
    kept = Record.parse(record().compact())
    want = record()
    want.missed = []
    assert kept == want


def test_texts_stand_once() -> None:
    data = record().compact()
    assert data.count(b"npu.hcd:14") == data.count(b"float16") == data.count(b"conv_f32") == 1
    many = record()
    many.decisions *= 100
    assert len(many.compact()) < len(data) + 100 * 70


def test_damage_is_an_error() -> None:
    data = record().compact()
    for bad in (data[:-1], data + b"x", b"\x01" + data[1:], b"", b"\x02\xff\xff\xff\xff\x0f", data.replace(b"{", b"[", 1)):
        with pytest.raises(PlanError, match="the record of decisions cannot be read"):
            Record.parse(bad)


def test_any_bytes_are_read_or_refused() -> None:
    data = bytearray(record().compact())
    for at in range(len(data)):
        for value in (0, 127, 255):
            changed = bytes(data[:at]) + bytes([value]) + bytes(data[at + 1 :])
            try:
                Record.parse(changed)
            except PlanError:
                continue


def test_json_is_whole() -> None:
    document = json.loads(json.dumps(record().to_json()))
    assert document["summary"]["verdicts"] == {"native": 2, "expanded": 0, "fallback": 1, "refused": 0}
    assert document["summary"]["inserted"]["Transfer"] == {"count": 1, "inner": 1, "bytes": 640}
    assert document["decisions"][0]["candidates"][1]["why_not"] == "1000 ns more"
    assert (document["chip"], document["model_digest"][:4], document["missed"][0]["why"]) == ("NPU", "abab", "why")


def test_why() -> None:
    assert record().why("soft") == [
        "Softmax -> softmax_f32: fallback, on host in float32",
        "  because not listed (npu.hcd:9)",
        "  note: a note",
        f"Transfer of 'x' from host to NPU, 640 bytes, {1e300:.0f} ns; removed by: run 'soft' on NPU",
    ]
    assert record().why("bn")[1:] == ["  chosen NPU.fp16 in float16: 12 ns", "  not host in float32: 0 ns; 1000 ns more"]
    assert record().why("conv")[-1] == "fused by conv_relu (npu.hcd:14): conv, relu"
    assert record().why("absent") == []


def test_summary() -> None:
    assert record().summary_lines() == [
        "2 native, 1 fallback",
        "  on the host: 1 x Softmax: not listed (npu.hcd:9); first 'soft'",
        "  1 x a note",
        "1 x Transfer, 640 bytes, 1 inside the model",
        "  1 x removed by: run 'soft' on NPU",
        "fused: 1 x conv_relu",
        "  1 x up_act runs as 2 steps, as no kernel takes them as one",
    ]


def test_zero_copy_transfers_are_told_apart() -> None:
    held = record()
    held.inserted.append(Inserted("Transfer", "z", 0, 0.0, "NPU", "host", "host", "output 'z'", "none", True, zero_copy=True))
    assert Record.parse(held.compact()).inserted[-1].zero_copy
    assert "2 x Transfer, 640 bytes (1 zero-copy: nothing is moved), 1 inside the model" in held.summary_lines()
    assert held.inserted[-1].line() == "Transfer of 'z' from NPU to host, zero-copy: nothing is moved; removed by: none"


def test_a_plan_for_a_chip_holds_its_record_and_one_for_a_cpu_when_asked() -> None:
    model = convolutions()
    chip = compile_model(model, "npu_v3")
    held = Record.parse(read_plan(chip.plan).decisions)
    assert held.decisions == chip.record.decisions and held.fused == chip.record.fused and held.inserted == chip.record.inserted
    assert {f.name for f in held.fused} == {"product_activation"} and len(held.fused) == 3
    assert read_plan(compile_model(model, "generic_cpu").plan).decisions == b""
    asked = compile_model(model, "generic_cpu", Options(keep_decisions=True))
    assert Record.parse(read_plan(asked.plan).decisions).decisions[0].device == "host"


def test_writing_what_was_read_gives_the_same_bytes() -> None:
    data = compile_model(convolutions(), "npu_v3").plan
    plan = read_plan(data)
    device = plan.devices[0]
    assert write_plan(plan.program(), model_digest=plan.model_digest, hcd_digest=plan.hcd_digest, device=device) == data
    assert plan.decisions


def test_plans_do_not_depend_on_where_the_descriptor_lies(tmp_path: Path) -> None:
    plans = []
    for folder in ("a", "some/other/b"):
        (tmp_path / folder).mkdir(parents=True)
        shutil.copy(ROOT / "hcd" / "npu_v3.hcd", tmp_path / folder / "my.hcd")
        plans.append(compile_model(convolutions(), tmp_path / folder / "my.hcd").plan)
    assert plans[0] == plans[1] and b"my.hcd:2" in plans[0] and str(tmp_path).encode() not in plans[0]


def test_a_plan_whose_nodes_all_stay_on_the_host_still_says_why() -> None:
    hcd = load_hcd("npu_v3")
    options = Options(policy=policy_of(hcd, exclude=["npu_v3"]))
    held = Record.parse(read_plan(compile_model(convolutions(), hcd, options).plan).decisions)
    assert {(d.verdict, d.reason) for d in held.decisions} == {("fallback", "NPU-V3 is excluded")}
