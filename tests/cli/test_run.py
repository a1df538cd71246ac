"""``flaot run``: inputs, outputs, profiles, and every way to get the inputs wrong."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import numpy as np
import pytest

from flaot.plan.fields import Section
from flaot.plan.read import read_plan
from tests.cli.conftest import ROOT
from tests.cli.models import write_pair, x
from tests.plan.programs import K, plan_of, seal, softmax, with_frozen


@pytest.fixture(autouse=True)
def pair(tmp_path):
    return write_pair(tmp_path)


def test_named_inputs_and_saved_outputs(run, tmp_path):
    np.savez(tmp_path / "f.npz", x=x())
    np.save(tmp_path / "x.npy", x())
    for given in (["--inputs", "f.npz"], ["--input", "x=x.npy"]):
        done = run("run", "p.flp", *given, "--outputs", "o.npz")
        assert done.code == 0, done
        assert "y  float32[2,8]  min" in done.out
        with np.load(tmp_path / "o.npz") as saved:
            np.testing.assert_allclose(saved["y"], softmax(softmax(x())), rtol=1e-5)


@pytest.mark.parametrize("array", [np.asfortranarray(x()), x().astype(">f4"), np.repeat(x(), 2, 1)[:, ::2]])
def test_any_memory_order_is_read_right(run, tmp_path, array):
    np.save(tmp_path / "x.npy", array)
    assert run("run", "p.flp", "--input", "x=x.npy", "--outputs", "o.npz").code == 0
    with np.load(tmp_path / "o.npz") as saved:
        np.testing.assert_allclose(saved["y"], softmax(softmax(x())), rtol=1e-5)


def test_random_inputs_follow_the_seed(run):
    first, again, other = (run("run", "p.flp", "--seed", s).out for s in (1, 1, 2))
    assert first == again != other


def test_json_repeat_profile_and_threads(run):
    done = json.loads(run("run", "p.flp", "--json", "--repeat", 5, "--profile", "--threads", 2).out)
    assert done["outputs"][0]["shape"] == [2, 8]
    assert done["seconds"]["runs"] == 5
    assert [s["nodes"] for s in done["steps"]] == [["first"], ["second", "third"]]
    shown = run("run", "p.flp", "--profile", "--repeat", 3)
    assert "second third" in shown.out
    assert "min" in shown.out


def test_classifier_like_outputs_show_the_top_classes(run, tmp_path):
    write_pair(tmp_path, 1, 100)
    np.save(tmp_path / "x.npy", np.eye(1, 100, 42, dtype=np.float32))
    assert "top 5: 42 (" in run("run", "p.flp", "--input", "x=x.npy").out


def bad(tmp_path, name):
    path = tmp_path / name
    if name == "f64.npy":
        np.save(path, x().astype(np.float64))
    elif name == "shape.npy":
        np.save(path, x(2, 7))
    elif name == "rank.npy":
        np.save(path, x()[None])
    elif name == "object.npy":
        np.save(path, np.array([[None] * 8] * 2), allow_pickle=True)
    elif name == "text.npy":
        path.write_text("not an array")
    elif name == "cut.npy":
        np.save(path, x())
        path.write_bytes(path.read_bytes()[:-1])
    elif name == "long.npy":
        np.save(path, x())
        path.write_bytes(path.read_bytes() + b"\0")
    elif name == "header.npy":
        path.write_bytes(b"\x93NUMPY\x01\x00\x10\x00" + b"(((((((((((((((((" + bytes(64))
    return f"x={path.name}"


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("f64.npy", "input 'x' has dtype float64; the plan takes float32"),
        ("shape.npy", "input 'x' has shape [2, 7]; the plan takes [2, 8]"),
        ("rank.npy", "has shape [1, 2, 8]"),
        ("object.npy", "holds Python objects"),
        ("text.npy", "not a .npy file"),
        ("cut.npy", "holds fewer bytes"),
        ("long.npy", "holds more bytes"),
        ("header.npy", "a damaged .npy header"),
    ],
)
def test_bad_input_files(run, tmp_path, name, words):
    run("run", "p.flp", "--input", bad(tmp_path, name), "--outputs", "o.npz").failed(7, words)
    assert not (tmp_path / "o.npz").exists()


def test_unknown_inputs_are_named(run, tmp_path):
    np.save(tmp_path / "x.npy", x())
    run("run", "p.flp", "--input", "xx=x.npy").failed(7, "no input 'xx'", "did you mean 'x'?")
    np.savez(tmp_path / "f.npz", other=x())
    run("run", "p.flp", "--inputs", "f.npz").failed(7, "f.npz", "no input 'other'", "its inputs are 'x'")
    run("run", "p.flp", "--inputs", "x.npy").failed(7, "not a .npz file")


def test_frozen_initializers_are_accepted_unchanged_only(run, tmp_path):
    (tmp_path / "k.flp").write_bytes(plan_of(with_frozen()))
    np.savez(tmp_path / "same.npz", x=x(), k=K)
    np.save(tmp_path / "k.npy", np.asfortranarray(K))
    for given in (["--inputs", "same.npz"], ["--input", "k=k.npy", "--inputs", "same.npz"]):
        done = run("run", "k.flp", *given, "--outputs", "o.npz")
        assert done.code == 0, done
        with np.load(tmp_path / "o.npz") as saved:
            np.testing.assert_allclose(saved["y"], softmax(softmax(x())), rtol=1e-5)
    for other, words in ((K + 1, "other values"), (K[:1], "fed float32[1, 3]"), (K.astype("f8"), "fed float64[2, 3]")):
        np.save(tmp_path / "k.npy", other)
        said = "input 'k' is frozen into the plan as an initializer of the model"
        run("run", "k.flp", "--input", "k=k.npy").failed(7, said, words, "compile a model without it among the initializers")


def test_damaged_frozen_initializers_are_refused_when_needed(run, tmp_path):
    data = plan_of(with_frozen())
    section = read_plan(data)._sections[Section.frozen].tobytes()
    (tmp_path / "k.flp").write_bytes(seal(data.replace(section, section[:4] + b"\x77" + section[5:])))
    np.save(tmp_path / "k.npy", K)
    assert run("run", "k.flp").code == 0
    run("run", "k.flp", "--input", "k=k.npy").failed(6, "k.flp", "a frozen initializer of type 119")
    run("inspect", "k.flp").failed(6, "k.flp")


@pytest.mark.parametrize(
    ("args", "code", "words"),
    [
        (["absent.flp"], 8, "absent.flp: no such file"),
        (["."], 8, "not a regular file"),
        (["pipe"], 8, "not a regular file"),
        (["m.onnx"], 6, "not a flaot plan"),
        (["empty"], 6, "empty"),
        (["p.flp", "--input", "x=absent.npy"], 8, "absent.npy"),
        (["p.flp", "--input", "x="], 2, "expected NAME=X.npy"),
        (["p.flp", "--input", "nonsense"], 2, "expected NAME=X.npy"),
        (["p.flp", "--input", "x=a", "--input", "x=b"], 2, "given twice"),
        (["p.flp", "--outputs", "no/such/o.npz"], 8, "folder does not exist"),
        (["p.flp", "--outputs", "."], 8, "directory"),
        (["p.flp", "--outputs", "p.flp"], 2, "also an input"),
        (["p.flp", "--threads", "0"], 2, "--threads"),
        (["p.flp", "--repeat", "-1"], 2, "--repeat"),
    ],
)
def test_bad_command_lines(run, tmp_path, args, code, words):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "empty").touch()
    before = sorted(os.listdir(tmp_path))
    run("run", *args).failed(code, words)
    assert sorted(os.listdir(tmp_path)) == before


def test_damaged_plans_are_refused(run, tmp_path):
    data = (tmp_path / "p.flp").read_bytes()
    for name, damaged in {"cut": data[:-1], "long": data + b"\0", "flip": data[:500] + bytes([data[500] ^ 1]) + data[501:]}.items():
        (tmp_path / name).write_bytes(damaged)
        run("run", name).failed(6, name)
        run("inspect", name).failed(6, name)


def test_imports_nothing_heavy(tmp_path):
    code = (
        "import sys\nfrom flaot.cli import main\ntry: main.main(sys.argv[1:])\nexcept SystemExit as e: assert not e.code\n"
        "print(*sorted({m.split('.')[0] for m in sys.modules}), file=sys.stderr)"
    )
    np.savez(tmp_path / "f.npz", x=x())
    args = ["run", "p.flp", "--inputs", "f.npz", "--outputs", "o.npz", "--repeat", "2", "--profile", "--threads", "2"]
    done = subprocess.run(
        [sys.executable, "-c", code, *args], cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True
    )
    loaded = set(done.stderr.split())
    assert "flaot" in loaded, done
    assert not loaded & {"numpy", "onnx", "onnxruntime", "networkx", "torch", "pydantic", "rich", "yaml", "ml_dtypes", "click"}
