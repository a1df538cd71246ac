"""``flaot new``: what it makes passes its own tests, and what it refuses."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from flaot.hcd import load_hcd
from flaot.scaffold.allowed import snake
from tests.cli.conftest import ROOT

COPIED = ("flaot", "tests", "hcd", "CMakeLists.txt", "pyproject.toml")


UNHOOKED = ROOT / "tests" / "cli" / "unhooked"
"""Holds a sitecustomize module that lets PYTHONPATH decide where flaot is, also where it is installed in place."""

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
def test_a_new_chip_passes_its_tests(run, tmp_path):
    assert run("new", "chip", "My-NPU").code == 0
    assert own_tests(tmp_path, "test_my_npu.py").startswith("2 passed")


def test_a_new_adapter_has_a_folder_of_its_own(run, tmp_path):
    done = run("new", "adapter", "My-NPU")
    assert done.code == 0, done
    made = sorted((tmp_path / "my_npu").iterdir())
    assert [p.name for p in made] == ["Makefile", "adapter.c", "my_npu.hcd", "sdk.c", "sdk.h", "test_my_npu.py"]
    assert all("@" not in p.read_text().replace("$@", "").replace("@pytest", "") for p in made)
    hcd = load_hcd(tmp_path / "my_npu" / "my_npu.hcd")
    assert (hcd.full.chip.device_type, list(hcd.full.operators), hcd.warnings) == ("my_npu", ["MatMul"], ())
    run("new", "adapter", "My-NPU").failed(2, "exists already; nothing was written")


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("make") is None or shutil.which("cc") is None, reason="needs make and a C compiler")
def test_a_new_adapter_passes_its_tests(run, tmp_path):
    assert run("new", "adapter", "My-NPU").code == 0
    assert own_tests(tmp_path / "my_npu", "test_my_npu.py").startswith("5 passed")


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
        ("softmax", "'softmax' is no name of an op; expected letters and digits such as HardSwish"),
        ("Softmax", "there is an op 'Softmax' already"),
        ("Is", "Python has the word 'is'"),
        ("Matmul", "'flaot/kernels/matmul' exists already; nothing was written"),
    ],
)
def test_ops_that_cannot_be(run, checkout, name, says):
    run("new", "op", name, "--into", checkout).failed(2, says)
    assert not (checkout / "tests" / "kernels" / f"test_{name.lower()}_.py").exists()


def test_an_op_belongs_into_a_checkout(run, tmp_path):
    run("new", "op", "HardShrink").failed(2, "'.' is no checkout of flaot; an op is part of flaot; say where it is by --into")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["", "1x", "a b", "../x", "x" * 70])
def test_names_a_chip_cannot_have(run, name):
    run("new", "chip", name).failed(2, "is no name of a chip; expected letters, digits, - and _ such as My-NPU")


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
