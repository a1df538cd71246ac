"""``flaot new``: what it makes passes its own tests, and what it refuses."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import onnx
import onnx.helper as oh
import pytest

from flaot.errors import FileSystemError, UsageError
from flaot.hcd import load_hcd
from flaot.scaffold.allowed import snake
from flaot.scaffold.make import make
from tests.cli.conftest import ROOT

COPIED = ("flaot", "tests", "hcd", "CMakeLists.txt", "pyproject.toml")


UNHOOKED = ROOT / "tests" / "cli" / "unhooked"
"""Holds a sitecustomize module that lets PYTHONPATH decide where flaot is, also where it is installed in place."""

LONGEST = "abcdefghij" * 4
needs_compiler = pytest.mark.skipif(shutil.which("make") is None or shutil.which("cc") is None, reason="needs make and a C compiler")

STRICT = {"CFLAGS": "-O1 -Wall -Wextra -Wconversion -Wshadow -Werror"}


def own_tests(folder: Path, *files: str, root: Path = ROOT) -> str:
    """Runs tests that were made, in a process of their own, with flaot from ``root``; what pytest says at the end."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", str(ROOT / "pyproject.toml"), "--rootdir", str(folder)]
    environment = {**os.environ, **STRICT, "PYTHONPATH": os.pathsep.join((str(root), str(UNHOOKED)))}
    done = subprocess.run([*command, *files], cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.splitlines()[-1]


def test_a_new_chip_is_valid_and_named(run, tmp_path):
    done = run("new", "chip", "My-NPU", "--into", "chips")
    assert done.code == 0, done
    assert "wrote chips/my_npu.hcd" in done.out and "python -m pytest chips/test_my_npu.py" in done.out
    hcd = load_hcd(tmp_path / "chips" / "my_npu.hcd")
    assert (hcd.name, hcd.full.chip.device_type, hcd.warnings) == ("My-NPU", "my_npu", ())
    run("new", "chip", "My-NPU", "--into", "chips").failed(2, "'chips/my_npu.hcd' exists already; nothing was written")


def test_what_is_made_as_json(run, tmp_path):
    document = json.loads(run("new", "chip", "X1", "--json").out)
    assert document["files"] == ["x1.hcd", "test_x1.py"]
    assert all((tmp_path / name).is_file() for name in document["files"])


@pytest.mark.slow
@pytest.mark.parametrize("name", ["My-NPU", LONGEST])
def test_a_new_chip_passes_its_tests_and_the_suite(run, tmp_path, name):
    assert run("new", "chip", name).code == 0
    low = name.lower().replace("-", "_")
    assert own_tests(tmp_path, f"test_{low}.py").startswith("2 passed")
    done = run("optest", "--hcd", f"{low}.hcd", "--quick")
    assert done.code == 0 and "not kept" not in done.out and "kept in part" not in done.out, done


def test_a_new_adapter_has_a_folder_of_its_own(run, tmp_path):
    done = run("new", "adapter", "My-NPU")
    assert done.code == 0, done
    made = sorted((tmp_path / "my_npu").iterdir())
    assert [p.name for p in made] == ["Makefile", "adapter.c", "my_npu.hcd", "sdk.c", "sdk.h", "test_my_npu_adapter.py"]
    assert all("@" not in p.read_text().replace("$@", "").replace("@pytest", "") for p in made)
    hcd = load_hcd(tmp_path / "my_npu" / "my_npu.hcd")
    assert (hcd.full.chip.device_type, list(hcd.full.operators), hcd.warnings) == ("my_npu", ["MatMul"], ())
    assert "docs/adapters.md of flaot: what an adapter does" in done.out and "python -m pytest my_npu " in done.out
    run("new", "adapter", "My-NPU").failed(2, "exists already; nothing was written")


@pytest.mark.parametrize(("name", "kind"), [("npu_v3", "npu_v3"), ("NPU-V2", "npu"), ("edge-dsp", "dsp"), ("npu", "npu")])
def test_an_adapter_for_a_chip_that_comes_with_flaot_serves_its_device_type(run, tmp_path, name, kind):
    assert run("new", "adapter", name).code == 0
    low = name.lower().replace("-", "_")
    assert load_hcd(tmp_path / low / f"{low}.hcd").full.chip.device_type == kind
    assert f'.device_type = "{kind}"' in (tmp_path / low / "adapter.c").read_text()


@pytest.mark.slow
@needs_compiler
@pytest.mark.parametrize(("name", "low"), [("My-NPU", "my_npu"), ("npu_v3", "npu_v3"), ("NPU-V2", "npu_v2"), (LONGEST, LONGEST)])
def test_a_new_adapter_passes_its_tests(run, tmp_path, name, low):
    """Also one for a chip that comes with flaot."""
    assert run("new", "adapter", name).code == 0
    assert own_tests(tmp_path / low, f"test_{low}_adapter.py").startswith("5 passed")


@pytest.mark.slow
@needs_compiler
def test_what_comes_next_for_an_adapter(run, tmp_path):
    """The printed lines, in a folder whose name has a space: built, measured, and a model run."""
    done = run("new", "adapter", "My-NPU", "--into", "my chips")
    hcd, library = "my chips/my_npu/my_npu.hcd", "my chips/my_npu/build/libmy_npu.so"
    assert f"flaot optest --hcd '{hcd}' --adapter '{library}'" in done.out and "make -C 'my chips/my_npu'" in done.out
    make = ["make", "-C", "my chips/my_npu", f"PYTHON={sys.executable}"]
    built = subprocess.run(make, cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True)
    assert built.returncode == 0, built.stderr
    measured = run("optest", "--hcd", hcd, "--adapter", library)
    assert measured.code == 0 and "16 cases of 1 operator: 10 pass, 6 outside the claim" in measured.out, measured
    ports = [oh.make_tensor_value_info(n, onnx.TensorProto.FLOAT, (4, 4)) for n in "xwy"]
    graph = oh.make_graph([oh.make_node("MatMul", ["x", "w"], ["y"])], "product", ports[:2], ports[2:])
    onnx.save(oh.make_model(graph, opset_imports=[oh.make_opsetid("", 18)], ir_version=9), tmp_path / "model.onnx")
    assert run("compile", "model.onnx", "--hcd", hcd, "--prefer", "My-NPU", "-o", "model.flp").code == 0
    assert "was run by My-NPU 0.1.0" in run("run", "model.flp", "--adapter", library).out


@needs_compiler
def test_make_says_where_flaot_is_missing(run, tmp_path):
    assert run("new", "adapter", "My-NPU").code == 0
    built = subprocess.run(["make", "-C", "my_npu", "FLAOT=/nowhere"], cwd=tmp_path, capture_output=True, text=True)
    assert built.returncode != 0 and "has no flaot: state PYTHON=..., or FLAOT=... for the folder that holds" in built.stderr
    assert subprocess.run(["make", "-C", "my_npu", "FLAOT=/nowhere", "clean"], cwd=tmp_path, capture_output=True).returncode == 0


@pytest.mark.parametrize(
    ("name", "module"), [("Halve", "halve"), ("HardShrink", "hard_shrink"), ("RMSNorm", "rms_norm"), ("Conv2D", "conv2_d")]
)
def test_names_of_modules(name, module):
    assert snake(name) == module


@pytest.fixture(scope="module")
def checkout(tmp_path_factory) -> Path:
    """A copy of this checkout's package and tests, without what was built."""
    folder = tmp_path_factory.mktemp("checkout")
    for name in COPIED:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__", "lib"))
        else:
            shutil.copy(ROOT / name, folder / name)
    return folder


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("softmax", "'softmax' is no name of an op; expected 2 to 40 of A-Z, a-z and 0-9, a capital first, such as HardSwish"),
        ("X" * 41, "is no name of an op; expected 2 to 40 of"),
        ("Softmax", "there is an op 'Softmax' already"),
        ("OneHot", "there is an op 'OneHot' already"),
        ("Is", "'Is' cannot be an op, as Python has the word 'is'"),
        ("None", "'None' cannot be an op, as Python has the word 'None'"),
        ("Kernel", "'Kernel' cannot be an op, as the files of an op need the name for something else"),
        ("Matmul", "'flaot/kernels/matmul' exists already; nothing was written"),
        ("Base", "'flaot/kernels/base.py' exists already; nothing was written"),
    ],
)
def test_ops_that_cannot_be(run, checkout, name, says):
    before = sorted(checkout.rglob("*"))
    run("new", "op", name, "--into", checkout).failed(2, says)
    assert sorted(checkout.rglob("*")) == before


@pytest.mark.parametrize("into", [".", "/dev/null", "x" * 300])
def test_an_op_belongs_into_a_checkout(run, tmp_path, into):
    run("new", "op", "HardShrink", "--into", into).failed(2, "is no checkout of flaot; an op is part of flaot; say where it is by --into")
    assert list(tmp_path.iterdir()) == []


def test_nothing_is_written_when_one_file_cannot_be(tmp_path):
    (tmp_path / "taken").write_text("")
    with pytest.raises(FileSystemError, match="taken: file exists"):
        make(tmp_path, {"a.txt": "", "taken/b.txt": ""}, ())
    (tmp_path / "link").symlink_to("/nowhere")
    with pytest.raises(UsageError, match="'.*link' exists already; nothing was written"):
        make(tmp_path, {"a.txt": "", "link": ""}, ())
    assert not (tmp_path / "a.txt").exists()


@pytest.mark.parametrize("kind", ["chip", "adapter"])
@pytest.mark.parametrize("name", ["", "x", "1x", "a b", "a.b", "../x", "\u00c9-NPU", "x" * 41, "a\nb"])
def test_names_a_chip_cannot_have(run, tmp_path, kind, name):
    says = "is no name of a chip; expected 2 to 40 of A-Z, a-z, 0-9, - and _, a letter first, such as My-NPU"
    run("new", kind, name).failed(2, says)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("kind", ["chip", "adapter"])
@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("cpu", "'cpu' cannot be a chip: it is the device type of CPUs, which run plans themselves; choose another name"),
        ("CPU", "'CPU' cannot be a chip: it is the device type of CPUs"),
        ("host", "'host' cannot be a chip: it means the CPU that runs the plan"),
        ("Simulator", "'Simulator' cannot be a chip: --adapter simulator means the one that comes with flaot"),
        ("null", "'null' cannot be a chip: it is no text in YAML, which descriptors are written in"),
        ("No", "'No' cannot be a chip: it is no text in YAML"),
        ("generic_cpu", "'generic_cpu' "),
    ],
)
def test_names_that_mean_something_already(run, tmp_path, kind, name, says):
    run("new", kind, name).failed(2, says)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["npu_v3", "NPU-V3", "npu", "dsp", "Edge-DSP"])
def test_a_chip_that_comes_with_flaot_is_not_new(run, tmp_path, name):
    run("new", "chip", name).failed(2, f"'{name}' cannot be a new chip, as ")
    assert list(tmp_path.iterdir()) == []


def test_an_adapter_is_for_no_cpu(run):
    run("new", "adapter", "x86_64_avx2").failed(2, "'x86_64_avx2' is a CPU that comes with flaot; CPUs need no adapter")


def test_a_long_name_leaves_the_comments_of_a_descriptor(run, tmp_path):
    assert run("new", "chip", LONGEST).code == 0
    text = (tmp_path / f"{LONGEST}.hcd").read_text()
    assert f"  device_type: {LONGEST} # decides which target executes it" in text
    assert load_hcd(tmp_path / f"{LONGEST}.hcd").full.chip.device_type == LONGEST


@pytest.mark.slow
def test_a_new_op_passes_its_tests_and_lint(run, checkout):
    """The copy is built as the printed steps say, without make's environment."""
    assert run("new", "op", "HardShrinker", "--into", checkout).code == 0
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join((str(checkout), str(UNHOOKED)))}
    environment.pop("FLAOT_LIBRARY", None)
    for words in (
        [sys.executable, "-m", "flaot.kernels.generate"],
        ["cmake", "-S", ".", "-B", "build", "-G", "Ninja"],
        ["cmake", "--build", "build"],
        [sys.executable, "-m", "ruff", "check", "."],
        [sys.executable, "-m", "mypy"],
    ):
        done = subprocess.run(words, cwd=checkout, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
        assert "warning:" not in done.stdout
    assert own_tests(checkout, "tests/kernels/test_hard_shrinker.py", root=checkout).startswith("32 passed")
