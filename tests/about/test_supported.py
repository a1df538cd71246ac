"""The table of what is supported: against pyproject.toml, against what the tests run with, and as flaot doctor says it."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from flaot.about import versions as about
from flaot.about.document import page
from flaot.about.table import ABSENT, MISSING, OK, OUTSIDE, UNTESTED, Component, numbers, table
from tests.cli.conftest import flaot

ROOT = Path(__file__).resolve().parents[2]
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def lowest(requirement: str) -> tuple[str, str]:
    found = re.fullmatch(r"([a-z_]+)[=>]=([\d.]+)", requirement)
    assert found, requirement
    return found[1], found[2]


def test_the_table_asks_for_what_the_package_asks_for() -> None:
    optional = PROJECT["optional-dependencies"]
    asked = dict(lowest(r) for r in [*PROJECT["dependencies"], *optional["torch"], *optional["picture"]])
    asked["Python"] = PROJECT["requires-python"].removeprefix(">=")
    held = {c.name: c.lowest for c in table() if not c.allowed}
    assert {k: v for k, v in asked.items() if k != "onnxscript"} == held
    assert {c.name for c in table() if c.optional} == {"torch", "matplotlib"}


def test_what_was_tested_is_supported() -> None:
    assert {(c.name, t): c.verdict(t) for c in table() for t in c.tested if c.verdict(t) != OK} == {}


def test_the_tests_run_with_what_is_supported() -> None:
    assert [f for f in about.versions() if not f.good] == []


def test_the_page_is_fresh() -> None:
    assert (ROOT / "docs" / "supported.md").read_text() == page(), "run make generate"


@pytest.mark.parametrize(("found", "says"), [
    ("1.25.9", OUTSIDE), ("1.26", OK), ("1.26.4", OK), ("1.260", UNTESTED), ("2.0.1+cpu", UNTESTED), ("3.0", OUTSIDE), ("3", OUTSIDE),
    ("what", OUTSIDE), (None, MISSING),
])
def test_versions_are_numbers_not_text(found: str | None, says: str) -> None:
    assert Component("numpy", "", "1.26", "3", tested=("1.26",)).verdict(found) == says


def test_names_and_optional_ones() -> None:
    compiler = Component("compiler", "", allowed=("gcc", "clang"), tested=("gcc 12",))
    assert [compiler.verdict(v) for v in ("gcc 12.2.0", "gcc 13", "clang 17", "tcc 1")] == [OK, UNTESTED, UNTESTED, OUTSIDE]
    assert Component("torch", "", "2", "3", optional=True).verdict(None) == ABSENT
    assert numbers("2.13.0+cpu") == (2, 13) and numbers("13") < numbers("13.0.1")


def test_doctor_says_ok_here() -> None:
    done = flaot("doctor")
    assert done.code == 0 and done.err == ""
    assert re.search(r"^  adapter ABI +2 +2 +ok$", done.out, re.M)
    assert re.search(r"^  Python +3\.\d+\.\d+ +3\.11 to before 4 +", done.out, re.M)
    held = json.loads(flaot("doctor", "--json").out)
    assert held["ok"] is True and {c["name"] for c in held["components"]} >= {"flaot", "plan format", "compiler", "onnx", "machine"}


def test_doctor_tells_what_is_outside(tmp_path: Path) -> None:
    info = tmp_path / "numpy-3.1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: numpy\nVersion: 3.1\n")
    done = flaot("doctor", env={"PYTHONPATH": f"{tmp_path}:{ROOT}"}).failed(1, "not supported: numpy; docs/supported.md lists what is")
    assert re.search(r"numpy +3\.1 +1\.26 to before 3 +outside", done.out)
    held = json.loads(flaot("doctor", "--json", env={"PYTHONPATH": f"{tmp_path}:{ROOT}"}).out)
    assert held["ok"] is False and held["exit_code"] == 1


@pytest.mark.parametrize("library", ["none.so", "empty.so"])
def test_doctor_works_without_a_native_library(tmp_path: Path, library: str) -> None:
    (tmp_path / "empty.so").write_bytes(b"")
    done = flaot("doctor", env={"FLAOT_LIBRARY": str(tmp_path / library)})
    done.failed(1, "native library, plan format, kernel ABI, adapter ABI, compiler")


@pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")
def test_an_older_native_library_is_told_from_a_bug(tmp_path: Path) -> None:
    """One that has no function but the first that is looked up."""
    (tmp_path / "old.c").write_text("const char *fl_status_text(int status) { return status ? \"old\" : \"ok\"; }\n")
    subprocess.run(["cc", "-shared", "-fPIC", "-o", tmp_path / "old.so", tmp_path / "old.c"], check=True)
    old = {"FLAOT_LIBRARY": str(tmp_path / "old.so")}
    digits = ROOT / "samples" / "mnist" / "digits.onnx"
    assert flaot("compile", digits, "--hcd", "generic_cpu", "-o", tmp_path / "p.flp").code == 0
    flaot("run", tmp_path / "p.flp", env=old).failed(8, "the native library is older than this flaot: it has no fl_", "'make native'")
    assert re.search(r"native library +older than this flaot", flaot("doctor", env=old).out)


def test_the_table_is_read_without_onnx() -> None:
    code = "import sys, flaot.about.versions as v; v.versions(); sys.exit('onnx' in sys.modules or 'onnxruntime' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT).returncode == 0
