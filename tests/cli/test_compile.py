"""``flaot compile``: what a user sees when it works, and that nothing is left when it does not."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import flaot
from tests.cli.conftest import ROOT


def model(nodes=None, shape=(1, 4, 8, 8), dtype=TensorProto.FLOAT, weights=(4, 4, 3, 3), **changes):
    """Conv and Relu on one input, or other nodes; the graph's ports are x and y."""
    w = numpy_helper.from_array(np.linspace(-1, 1, int(np.prod(weights)), dtype=np.float32).reshape(weights), "w")
    default = [
        helper.make_node("Conv", ["x", "w"], ["c"], name="conv1", pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["c"], ["y"], name="relu1"),
    ]
    graph = helper.make_graph(
        nodes or default,
        "g",
        [helper.make_tensor_value_info("x", dtype, shape)],
        [helper.make_tensor_value_info("y", changes.get("out", dtype), None)],
        [w],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", changes.get("opset", 17))], ir_version=8)


@pytest.fixture(autouse=True)
def good(tmp_path):
    onnx.save(model(), tmp_path / "m.onnx")
    return tmp_path / "m.onnx"


def test_whole_way(run, tmp_path):
    done = run("compile", "m.onnx")
    assert done.code == 0, done
    assert done.err == ""
    assert "m.onnx -> m.flp for" in done.out
    assert sorted(os.listdir(tmp_path)) == ["m.flp", "m.onnx"]
    assert "verified" in run("verify", "m.flp", "m.onnx", "--layers").out
    assert run("run", "m.flp").out.startswith("y  float32[1,4,8,8]")
    assert "relu1" in run("inspect", "m.flp").out


def test_json(run):
    document = json.loads(run("compile", "m.onnx", "--hcd", "generic_cpu", "--json").out)
    assert document["memory"]["arena_bytes"] >= document["memory"]["lower_bound_bytes"]
    assert document["memory"]["ratio"] >= 1
    assert document["chip"] == "generic_cpu"
    assert document["digest"] == json.loads(run("inspect", "m.flp", "--json").out)["header"]["digest"]


def test_same_bytes_in_every_environment(run, tmp_path):
    plans = set()
    for i, env in enumerate(
        ({"PYTHONHASHSEED": "1"}, {"PYTHONHASHSEED": "2", "OMP_NUM_THREADS": "1", "LC_ALL": "C"}, {"PYTHONOPTIMIZE": "2"})
    ):
        assert run("compile", "m.onnx", "-o", f"{i}.flp", env=env).code == 0
        plans.add((tmp_path / f"{i}.flp").read_bytes())
    assert len(plans) == 1


def test_shapes(run, tmp_path):
    onnx.save(model(shape=("N", 4, 8, 8)), tmp_path / "n.onnx")
    run("compile", "n.onnx").failed(3, "N", "--shape")
    assert run("compile", "n.onnx", "--shape", "N=2").code == 0
    assert "float32[2,4,8,8]" in run("inspect", "n.flp").out
    assert run("compile", "n.onnx", "--shape", "x=3,4,8,8").code == 0
    assert "float32[3,4,8,8]" in run("inspect", "n.flp").out


def test_dump(run, tmp_path):
    assert run("compile", "m.onnx", "--dump", "after=read:read.txt", "--dump", "after=fuse").out.count("FusedConv") == 1
    assert "Conv" in (tmp_path / "read.txt").read_text()
    run("compile", "m.onnx", "--dump", "after=nothing").failed(2, "there is no stage 'nothing'", "canonicalize")
    for same in (["-o", "read.txt"], ["--dump", "after=fuse:./read.txt"]):
        run("compile", "m.onnx", "--dump", "after=read:read.txt", *same).failed(2, "another output goes to that file")
    run("compile", "m.onnx", "--dump", "fuse").failed(2, "after=STAGE")
    run("compile", "m.onnx", "--dump", "after=fuse", "--json").failed(2, "one document")


@pytest.mark.parametrize("flags", [["-o"], ["-o", "x.flp", "--explain"]])
def test_descriptors_and_routes_are_inputs_too(run, tmp_path, flags):
    (tmp_path / "mine.hcd").write_text("extends: base.hcd\n")
    (tmp_path / "base.hcd").write_text("extends: npu_v3\n")
    (tmp_path / "r.yaml").write_text("Relu: host\n")
    for read in ("mine.hcd", "base.hcd", "r.yaml"):
        run("compile", "m.onnx", "--hcd", "mine.hcd", "--routes", "r.yaml", *flags, read).failed(2, f"output '{read}' is also an input")
    run("compile", "m.onnx", "--explain", "e.json", "--dump", "after=read:e.json").failed(2, "another output goes to that file")
    assert (tmp_path / "base.hcd").read_text() == "extends: npu_v3\n"


def bad_models():
    good = model().SerializeToString()
    node = helper.make_node
    return {
        "empty": (b"", 3, "empty"),
        "text": (b"hello, this is not a model at all", 3, "not an ONNX model"),
        "zeros": (bytes(1000), 3, "bad.onnx"),
        "png": (b"\x89PNG\r\n\x1a\n" + bytes(100), 3, "PNG"),
        "truncated": (good[: len(good) // 2], 3, "bad.onnx"),
        "one byte short": (good[:-1], 3, "bad.onnx"),
        "twice": (good + good, 3, "bad.onnx"),
        "unknown op": (model([node("Frobnicate", ["x"], ["y"], name="frob")]), 3, "node 'frob' (Frobnicate)"),
        "unknown domain": (model([node("Relu", ["x"], ["y"], name="r", domain="acme")]), 3, "acme"),
        "string input": (model([node("Identity", ["x"], ["y"])], dtype=TensorProto.STRING), 5, "string"),
        "channels do not fit": (model(weights=(4, 5, 3, 3)), 3, "node 'conv1' (Conv)"),
        "kernel too large": (model(weights=(4, 4, 11, 11)), 3, "node 'conv1' (Conv)"),
        "missing input": (model([node("Relu", ["nowhere"], ["y"], name="r")]), 3, "nowhere"),
        "cycle": (model([node("Relu", ["b"], ["y"], name="r1"), node("Relu", ["y"], ["b"], name="r2")]), 3, "r1"),
        "no output": (model([node("Relu", ["x"], ["z"], name="r")]), 3, "y"),
        "opset 999": (model(opset=999), 3, "999"),
        "hostile name": (model([node("Frobnicate\x1b[2J\n", ["x"], ["y"], name="\u202e" + "n" * 5000)]), 3, "\\u202e"),
    }


@pytest.mark.parametrize("name", bad_models())
def test_bad_models(run, tmp_path, name):
    content, code, words = bad_models()[name]
    (tmp_path / "bad.onnx").write_bytes(content if isinstance(content, bytes) else content.SerializeToString())
    (tmp_path / "bad.flp").write_bytes(b"old")
    done = run("compile", "bad.onnx").failed(code, words, "bad.onnx")
    assert len(done.err) < 2000
    assert (tmp_path / "bad.flp").read_bytes() == b"old"
    assert sorted(os.listdir(tmp_path)) == ["bad.flp", "bad.onnx", "m.onnx"]


@pytest.mark.parametrize(
    ("args", "code", "words"),
    [
        (["absent.onnx"], 8, "absent.onnx"),
        (["."], 8, "regular file"),
        (["m.onnx", "-o", "."], 8, "directory"),
        (["m.onnx", "-o", "no/m.flp"], 8, "folder does not exist"),
        (["m.onnx", "-o", "/proc/m.flp"], 8, "/proc/m.flp"),
        (["m.onnx", "-o", "m.onnx"], 2, "also an input"),
        (["m.onnx", "-o", "pipe"], 8, "not a regular file"),
        (["m.onnx", "-o", "/dev/null"], 8, "not a regular file"),
        (["pipe"], 8, "regular file"),
        (["m.onnx", "--shape", "x"], 2, "expected NAME=SIZES, such as"),
        (["m.onnx", "--shape", "x=1,b"], 2, "whole numbers"),
        (["m.onnx", "--shape", "x=-1,4"], 2, "whole numbers"),
        (["m.onnx", "--shape", "z=1"], 2, "no such input or symbol"),
        (["m.onnx", "--shape", "x=1,4,8"], 2, "x"),
        (["m.onnx", "--hcd", "npu_9"], 4, "did you mean"),
        (["m.onnx", "--hcd", "absent.hcd"], 8, "absent.hcd"),
        (["m.onnx", "--precision", "extreme"], 2, "extreme"),
        (["m.onnx", "--memory-effort", "-1"], 2, "--memory-effort"),
        (["m.onnx", "--memory-effort", "1e6"], 2, "--memory-effort"),
        (["m.onnx", "--bogus"], 2, "--bogus"),
        ([], 2, "MODEL"),
        (["m.flp"], 2, "compile takes an ONNX model"),
        (["m.onnx", "-o", "f.flp", "--from", "fuse"], 3, "not the text of a graph"),
    ],
)
def test_bad_command_lines(run, tmp_path, args, code, words):
    os.mkfifo(tmp_path / "pipe")
    run("compile", *args).failed(code, words)
    assert sorted(os.listdir(tmp_path)) == ["m.onnx", "pipe"]


def test_errors_of_later_stages_name_the_model_too(run, tmp_path):
    double = model([helper.make_node("Conv", ["x", "h"], ["y"], name="conv1")], dtype=TensorProto.DOUBLE)
    double.graph.initializer.append(numpy_helper.from_array(np.ones((4, 4, 3, 3), np.float64), "h"))
    onnx.save(double, tmp_path / "double.onnx")
    run("compile", "double.onnx").failed(5, "double.onnx: node 'conv1' (Conv)", "float64")


def test_nodes_with_one_problem_are_counted(run, tmp_path):
    nodes = [helper.make_node("Softmax", [a], [b], name=f"s{a}", axis=1) for a, b in ("xu", "uv", "vy")]
    onnx.save(model(nodes, dtype=TensorProto.DOUBLE), tmp_path / "double.onnx")
    done = run("compile", "double.onnx").failed(5, "node 'sx' (Softmax)", "(as in 2 more nodes)")
    assert done.err.count("\n") == 1


def test_full_disk_leaves_the_old_plan(run, tmp_path):
    (tmp_path / "m.flp").write_bytes(b"old")

    def limit():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))

    run("compile", "m.onnx", preexec_fn=limit).failed(8, "m.flp")
    assert (tmp_path / "m.flp").read_bytes() == b"old"
    assert sorted(os.listdir(tmp_path)) == ["m.flp", "m.onnx"]


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_signals_leave_nothing(tmp_path, number, code):
    line = [sys.executable, "-m", "flaot.cli.main", "compile", "m.onnx"]
    for wait in (0.3, 0.8):
        child = subprocess.Popen(line, cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(ROOT)}, stderr=subprocess.PIPE, text=True)
        time.sleep(wait)
        child.send_signal(number)
        _, err = child.communicate(timeout=60)
        assert child.returncode in (code, 0, -number)
        if child.returncode == code:
            assert err.startswith("flaot: error: ")
            assert err.count("\n") == 1
        assert set(os.listdir(tmp_path)) <= {"m.onnx", "m.flp"}


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--memory-pool-size", "64"), "--memory-pool-size 64 is for on-chip memory of chips"),
        (("--queue-depth", "2"), "--queue-depth 2 is for queues of chips"),
        (("--no-async",), "--no-async is for queues of chips"),
    ],
)
def test_options_of_chips_are_refused_for_a_cpu_alone(run, tmp_path, options, told):
    done = run("compile", "m.onnx", "--hcd", "generic_cpu", *options)
    assert done.code == 2
    assert done.err == f"flaot: error: {told}; a plan for generic_cpu runs on the CPU alone; leave it out, or name a chip with --hcd\n"
    assert sorted(os.listdir(tmp_path)) == ["m.onnx"]
    assert run("compile", "m.onnx", "--hcd", "npu_v3", *options).code == 0


def test_python_interface(tmp_path, good):
    compiled = flaot.compile(str(good), "host")
    session = flaot.Session(compiled.plan)
    x = np.ones((1, 4, 8, 8), np.float32)
    assert session.run(None, {"x": x})[0].shape == (1, 4, 8, 8)
    assert flaot.verify(compiled.plan, str(good), {"x": x}).ok
    with pytest.raises(flaot.FlaotError) as e:
        flaot.compile(b"", "host")
    assert e.value.exit_code == 3


def test_any_path_works(tmp_path, good):
    folder = tmp_path / "with space and \udcff byte"
    folder.mkdir()
    Path(folder / "m.onnx").write_bytes(good.read_bytes())
    from tests.cli.conftest import flaot as call

    assert call("compile", "m.onnx", cwd=folder).code == 0
    assert call("compile", folder / "m.onnx", "-o", folder / "-n.flp", env={"LC_ALL": "C"}).code == 0
    assert call("run", "--", "-n.flp", cwd=folder).code == 0
