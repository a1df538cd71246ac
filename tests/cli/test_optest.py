"""``flaot optest`` at the command line."""

from __future__ import annotations

import json


def test_a_claim_that_holds(run, tmp_path):
    page = tmp_path / "r.html"
    done = run("optest", "--hcd", "npu_v3", "--op", "Relu", "--case", "typical/*", "--report", page)
    assert done.code == 0 and "Relu" in done.out and "kept" in done.out and "2 cases of 1 operator: 2 pass" in done.out
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
    assert done.code == 1 and "1 got worse: Pad/boundary/reflected was pass, is outside the claim" in done.err
    assert held["ratchet"]["worse"] == [{"name": "Pad/boundary/reflected", "was": "pass", "is": "outside the claim"}]
    assert run(*line[:2], "npu_v2", *line[3:], "--ratchet", ratchet).code == 2


def test_probes_alone(run):
    done = run("optest", "--hcd", "edge_dsp", "--probes", "--json")
    held = json.loads(done.out)
    assert done.code == 0 and held["cases"] == 0 and {"key": "tensor.max_rank", "verdict": "holds"}.items() <= held["probes"][-1].items()


def test_what_is_refused(run, tmp_path):
    for line, says in (
        (("--report", "x.pdf"), "a name that ends in .md or .html"),
        (("--update-ratchet",), "--update-ratchet without --ratchet"),
        (("--hcd", "npu_v2"), "--hcd is given 2 times; optest takes one"),
        (("--op", "Relu", "--case", "no/*"), "there is no such case"),
    ):
        done = run("optest", "--hcd", "npu_v3", *line)
        assert done.code == 2 and says in done.err, done.err
    assert run("optest", "--hcd", "npu_v3", "--ratchet", tmp_path / "none").code == 8
    done = run("optest", "--hcd", "generic_cpu", "--adapter", "x.so")
    assert done.code == 2 and "--adapter x.so: generic_cpu is the CPU of the host, which needs none; leave it out" in done.err
    run("optest", "--hcd", "edge_dsp", "--op", "Softmax").failed(2, "Edge-DSP does not claim it")


def test_outputs_are_refused_before_any_work(run, tmp_path):
    line = ("optest", "--hcd", "npu_v3", "--op", "Relu", "--ratchet", "r.md")
    (tmp_path / "r.md").write_text("mine")
    run(*line, "--report", "./r.md", "--update-ratchet").failed(2, "'./r.md' is also an input")
    (tmp_path / "base.hcd").write_text("extends: npu_v3\n")
    (tmp_path / "mine.hcd").write_text("extends: base.hcd\n")
    run("optest", "--hcd", "mine.hcd", "--ratchet", "base.hcd", "--update-ratchet").failed(2, "'base.hcd' is also an input")
    run(*line[:-2], "--keep", "r.md").failed(8, "r.md: is not a folder")
    run(*line[:-2], "--keep", "/proc/nothing").failed(8, "/proc/nothing: no such file or directory")
    run(*line[:-1], "new.md", "--update-ratchet", "--report", "new.md").failed(2, "--report and --ratchet are one file, 'new.md'")
    assert (tmp_path / "r.md").read_text() == "mine" and (tmp_path / "base.hcd").read_text() == "extends: npu_v3\n"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["base.hcd", "mine.hcd", "r.md"]


SMALL = """chip: {name: ONE, vendor: v, device_type: one}
compute_units: {vector: {peak_gflops: 100}}
memory:
  on_chip_cache: {size_kb: 64, bandwidth_gb_per_s: 64}
  off_chip_memory: {bandwidth_gb_per_s: 16}
tensor: {max_rank: 4, supported_dtypes: [float16]}
constraints: {memory_alignment_bytes: 64}
operators:
  Neg: {units: [vector]}
"""


def test_a_whole_run_names_what_is_gone(run, tmp_path):
    (tmp_path / "one.hcd").write_text(SMALL)
    line = ("optest", "--hcd", "one.hcd", "--ratchet", "r.ratchet")
    run(*line, "--update-ratchet")
    known = (tmp_path / "r.ratchet").read_text()
    (tmp_path / "r.ratchet").write_text(known.replace('"pass": {', '"pass": {"Gone": ["typical/rows"],', 1))
    assert "Gone" not in run(*line, "--op", "Neg").out
    done = run(*line, "--update-ratchet")
    assert done.code == 0 and "in the ratchet, but no longer tried: Gone/typical/rows\n" in done.out
    assert (tmp_path / "r.ratchet").read_text() == known
