"""``flaot inspect``: everything from the file alone."""

from __future__ import annotations

import json
from dataclasses import replace

from tests.cli.models import write_pair
from tests.plan.programs import plan_of, softmax_of_constant, with_frozen


def test_text_and_json(run, tmp_path):
    write_pair(tmp_path)
    text = run("inspect", "p.flp").out
    for words in ("test_cpu (cpu", "float32[2,8]", "softmax_f32.generic", "second third", "aligned to 64 bytes"):
        assert words in text
    document = json.loads(run("inspect", "p.flp", "--json").out)
    assert document["header"]["model_digest"] == bytes(range(32)).hex()
    assert document["memory"]["lower_bound_bytes"] == 64
    assert document["inputs"] == [{"name": "x", "dtype": "float32", "shape": [2, 8], "type": "float32[2,8]", "bytes": 64}]
    assert [s["nodes"] for s in document["steps"]] == [["first"], ["second", "third"]]
    assert document["values"] == [{"name": "mid", "after_step": 0, "type": "float32[2,8]"}]


def test_constants_by_size(run, tmp_path):
    (tmp_path / "c.flp").write_bytes(plan_of(softmax_of_constant()))
    assert json.loads(run("inspect", "c.flp", "--json").out)["constants"][0]["bytes"] == 48
    assert "Constants (1, largest first)" in run("inspect", "c.flp").out


def test_frozen_initializers(run, tmp_path):
    write_pair(tmp_path)
    (tmp_path / "k.flp").write_bytes(plan_of(with_frozen()))
    text = run("inspect", "k.flp").out
    assert "frozen into the plan (2)\n" in text and "k     float32[2,3]" in text
    frozen = json.loads(run("inspect", "k.flp", "--json").out)["frozen"]
    assert [(f["name"], f["type"]) for f in frozen] == [("k", "float32[2,3]"), ("flag", "bool[]")]
    assert "frozen" not in run("inspect", "p.flp").out
    many = with_frozen()
    many.frozen = [replace(many.frozen[0], name=f"k{i}") for i in range(20)]
    (tmp_path / "many.flp").write_bytes(plan_of(many))
    text = run("inspect", "many.flp").out
    assert "k15  " in text and "k16" not in text and "and 4 more; --json lists them all" in text


def test_refusals(run, tmp_path):
    (tmp_path / "x").write_bytes(b"text")
    run("inspect", "x").failed(6, "not a flaot plan")
    run("inspect", "absent").failed(8)
