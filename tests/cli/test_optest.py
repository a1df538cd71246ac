"""``flaot optest`` at the command line."""

from __future__ import annotations

import json


def test_a_claim_that_holds(run, tmp_path):
    page = tmp_path / "r.html"
    done = run("optest", "--hcd", "npu_v3", "--op", "Relu", "--case", "typical/*", "--report", page)
    assert done.code == 0 and "Relu" in done.out and "kept" in done.out and "2 cases of 1 operators: 2 pass" in done.out
    assert "NPU-V3" in page.read_text()


def test_a_claim_that_does_not_and_its_ratchet(run, tmp_path):
    ratchet = tmp_path / "npu.ratchet"
    line = ("optest", "--hcd", "npu_v3", "--op", "Pad", "--case", "*/reflected")
    done = run(*line)
    assert done.code == 1 and "1 operator not kept as claimed" in done.err
    assert "to repeat: flaot optest --hcd npu_v3 --op Pad --case 'boundary/reflected' --keep DIR" in done.out
    assert run(*line, "--ratchet", ratchet, "--update-ratchet").code == 0 and "reflected" in ratchet.read_text()
    assert run(*line, "--ratchet", ratchet).code == 0
    ratchet.write_text('{"format": 1, "chip": "NPU-V3", "pass": {"Pad": ["boundary/reflected"]}, "others": {}, "probes": {}}')
    done = run(*line, "--ratchet", ratchet, "--json")
    held = json.loads(done.out)
    assert done.code == 1 and "1 got worse: Pad/boundary/reflected was pass, is not on the chip" in done.err
    assert held["ratchet"]["worse"] == [{"name": "Pad/boundary/reflected", "was": "pass", "is": "not on the chip"}]
    assert run(*line[:2], "npu_v2", *line[3:], "--ratchet", ratchet).code == 2


def test_probes_alone(run):
    done = run("optest", "--hcd", "edge_dsp", "--probes", "--json")
    held = json.loads(done.out)
    assert done.code == 0 and held["cases"] == 0 and {"key": "tensor.max_rank", "verdict": "holds"}.items() <= held["probes"][-1].items()


def test_what_is_refused(run, tmp_path):
    for line, says in (
        (("--report", "x.pdf"), "a name that ends in .md or .html"),
        (("--update-ratchet",), "--update-ratchet without --ratchet"),
        (("--op", "Softmax", "--hcd", "edge_dsp"), "Edge-DSP does not claim it"),
        (("--op", "Relu", "--case", "no/*"), "there is no such case"),
    ):
        done = run("optest", "--hcd", "npu_v3", *line)
        assert done.code == 2 and says in done.err, done.err
    assert run("optest", "--hcd", "npu_v3", "--ratchet", tmp_path / "none").code == 8
