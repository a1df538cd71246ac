"""``flaot hcd measure``: a descriptor caught lying, and one that is written from what was measured."""

from __future__ import annotations

import json

import pytest

from flaot.hcd.fields import ISA_FEATURES
from flaot.hcd.host import best_for_host, features


def test_figures_and_comparison_as_json(run):
    done = run("hcd", "measure", "--seconds", "0.3", "--json")
    assert done.code == 0, done
    document = json.loads(done.out)
    assert document["hcd"] == f"{best_for_host()}.hcd"
    assert document["contradicted"] == 0
    assert document["measured"]["peak_gflops"]["1"] > 0.1
    assert document["measured"]["levels"][-1]["name"] == "main"
    rows = {r["key"]: r for r in document["comparison"]}
    assert rows["compute_units.cpu.isa"]["verdict"] == "ok"
    assert rows["compute_units.cpu.peak_gflops"]["verdict"] == "not declared"


def test_a_written_descriptor_holds_what_was_measured(run, tmp_path):
    assert run("hcd", "measure", "--seconds", "0.3", "--write", "mine.hcd").code == 0
    assert run("hcd", "validate", "mine.hcd").code == 0
    done = run("hcd", "measure", "--hcd", "mine.hcd", "--seconds", "0.3", "--factor", "100")
    assert done.code == 0, done
    assert "memory.off_chip_memory.bandwidth_gb_per_s" in done.out and "mine.hcd:" in done.out
    (tmp_path / "over.hcd").write_text("extends: mine.hcd\n")
    for descriptor in ("mine.hcd", "over.hcd"):
        run("hcd", "measure", "--hcd", descriptor, "--write", "mine.hcd").failed(2, "is also an input")
    run("hcd", "measure", "--hcd", "mine.hcd", "--write", "no/where.hcd").failed(8, "its folder does not exist")


def test_lies_have_exit_code_1_and_are_named(run, tmp_path):
    lacking = [f for f in ISA_FEATURES if f not in features()]
    isa = f", isa: [{lacking[-1]}]" if lacking else ""
    text = f"extends: generic_cpu\nchip: {{name: liar}}\ncompute_units:\n  cpu: {{peak_tflops: 900{isa}}}\n"
    (tmp_path / "liar.hcd").write_text(text)
    done = run("hcd", "measure", "--hcd", "liar.hcd", "--seconds", "0.3")
    done.failed(1, "liar.hcd:4: compute_units.cpu.peak_tflops: declared 900")
    assert not lacking or f"this CPU lacks {lacking[-1]}" in done.err
    document = json.loads(run("hcd", "measure", "--hcd", "liar.hcd", "--seconds", "0.3", "--json").out)
    assert document["exit_code"] == 1 and document["contradicted"] == 1 + bool(lacking)


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["--hcd", "npu_v3"], "describes a chip of device type npu_v3; --device host is a cpu; give a descriptor of device type cpu"),
        (["--device", "npu"], "'npu' is not 'host'"),
        (["--seconds", "0"], "--seconds"),
        (["--hcd", "host", "--hcd", "generic_cpu"], "--hcd is given 2 times; measure takes one"),
    ],
)
def test_what_cannot_be_measured(run, args, words):
    run("hcd", "measure", *args).failed(2, words)
