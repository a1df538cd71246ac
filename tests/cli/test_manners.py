"""What holds for every command: help, usage errors, closed outputs, signals, lazy imports."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from flaot.cli.app import COMMANDS
from tests.cli.conftest import ROOT, flaot


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_with_an_example(run, command):
    done = run(command, "--help")
    assert done.code == 0
    assert "Example" in done.out or command == "version"


def test_no_arguments_shows_help(run):
    done = run()
    assert done.code == 2
    assert "compile" in done.out + done.err


@pytest.mark.parametrize(
    "args", [["bogus"], ["--bogus"], ["hcd", "bogus"], ["hcd", "show"], ["hcd", "show", "--bogus"], ["version", "extra"]]
)
def test_usage_errors(run, args):
    run(*args).failed(2, "--help")


def test_a_misspelt_command_is_guessed(run):
    run("compil", "m.onnx").failed(2, "there is no command 'compil'; did you mean 'compile'?")
    run("m.onnx").failed(2, "there is no command 'm.onnx'; see 'flaot --help'")


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("flaot comp", ["plain,compile", "plain,completion"]),
        ("flaot compile m", ["file,m"]),
        ("flaot compile m.onnx --hcd npu", ["file,npu", "plain,npu_v2", "plain,npu_v3"]),
        ("flaot run p.flp --outp", ["plain,--outputs"]),
    ],
)
def test_tab_completes_commands_options_chips_and_files(run, line, offered):
    words = {"COMP_WORDS": line, "COMP_CWORD": str(line.count(" "))}
    assert run(env={"_FLAOT_COMPLETE": "bash_complete", **words}).out.split() == offered


def test_version(run):
    assert run("version").out.startswith("flaot ")
    assert json.loads(run("version", "--json").out)["version"]


def test_hcd_commands(run, tmp_path):
    assert "npu_v3" in run("hcd", "list").out
    assert len(json.loads(run("hcd", "list", "--json").out)["chips"]) >= 5
    shown = run("hcd", "show", "npu_v2").out
    assert "# derived: the unit's name" in shown
    (tmp_path / "again.hcd").write_text(shown)
    assert run("hcd", "validate", "again.hcd").code == 0
    document = json.loads(run("hcd", "show", "npu_v2", "--json").out)
    assert document["stated"]["compute_units"]["fp16"]["peak_tflops"] == 12.8
    assert any(d["path"] == "policy.fallback" for d in document["derived"])


def test_hcd_diff(run):
    shown = run("hcd", "diff", "npu_v2", "npu_v3").out
    assert "~ tensor.max_rank: 5 -> 6" in shown.splitlines()
    document = json.loads(run("hcd", "diff", "npu_v2", "npu_v3", "--json").out)
    assert not document["same"]
    assert {"path": "tensor.max_rank", "left": 5, "right": 6} in document["differences"]
    assert "describe the same chip" in run("hcd", "diff", "npu_v2", "npu_v2").out
    assert json.loads(run("hcd", "diff", "npu_v2", "npu_v2", "--json").out)["same"]


def test_hcd_new_prints_a_descriptor_that_validates(run, tmp_path):
    (tmp_path / "mine.hcd").write_text(run("hcd", "new").out)
    assert "My-NPU" in run("hcd", "validate", "mine.hcd").out


def test_bad_hcd_reports_every_problem_with_its_place(run, tmp_path):
    (tmp_path / "bad.hcd").write_text("chip: {nam: x, device_type: cpu}\ncompute_units: {cpu: {isa: [avx3]}}\n")
    done = run("hcd", "validate", "bad.hcd", "--json").failed(4, "bad.hcd:1:8: chip.nam: unknown key; did you mean 'name'?", "bad.hcd:2:29")
    assert json.loads(done.out)["exit_code"] == 4
    run("hcd", "show", "missing.hcd").failed(8, "missing.hcd: no such file")
    run("hcd", "show", "missing").failed(4, "no bundled descriptor")


def test_full_standard_output_is_reported():
    with open("/dev/full", "w") as full:
        line = [sys.executable, "-m", "flaot.cli.main", "hcd", "list"]
        done = subprocess.run(line, env={**os.environ, "PYTHONPATH": str(ROOT)}, stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 8
    assert done.stderr == "flaot: error: standard output: no space left on device\n"


def test_broken_pipe_and_closed_outputs_are_quiet():
    line = f"{sys.executable} -m flaot.cli.main hcd show npu_v3"
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    for tail in (" | true", " >&-", " 2>&-", " <&-"):
        done = subprocess.run(["sh", "-c", line + tail], env=env, capture_output=True, text=True)
        assert done.stderr == ""


@pytest.mark.parametrize("env", [{"LC_ALL": "C", "PYTHONIOENCODING": "ascii"}, {"COLUMNS": "0"}, {"HOME": ""}, {"PYTHONOPTIMIZE": "2"}])
def test_environments(env):
    assert flaot("hcd", "show", "npu_v3", env=env).code == 0


def test_a_package_that_is_not_installed_is_no_bug(tmp_path):
    code = (
        "import sys\nclass Absent:\n  def find_spec(self, name, path=None, target=None):\n"
        "    if name == 'onnx': raise ModuleNotFoundError('No module', name=name)\n"
        "sys.meta_path.insert(0, Absent())\nfrom flaot.cli.main import main\nmain(['compile', 'm.onnx'])"
    )
    (tmp_path / "m.onnx").write_bytes(b"")
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=env, capture_output=True, text=True)
    assert done.returncode == 8
    assert done.stderr == "flaot: error: the Python package 'onnx' is not installed; 'flaot doctor' shows what flaot needs\n"


def test_starting_imports_nothing_heavy():
    code = (
        "import sys\nfrom flaot.cli import main\ntry: main.main(['--help'])\nexcept SystemExit: pass\n"
        "print(*sorted({m.split('.')[0] for m in sys.modules}), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True)
    loaded = set(done.stderr.split())
    assert not loaded & {"numpy", "onnx", "onnxruntime", "networkx", "torch", "pydantic", "rich", "yaml"}
