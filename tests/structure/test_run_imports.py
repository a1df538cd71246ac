"""``flaot run`` and the session start without the compiler: no onnx, onnxruntime, networkx or torch."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import flaot

DIGITS = Path(__file__).resolve().parents[2] / "samples" / "mnist" / "digits.onnx"
HEAVY = ("onnx", "onnxruntime", "networkx", "torch", "yaml", "pydantic", "google.protobuf", "flaot.ir.graph", "flaot.kernels")


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("plan") / "digits.flp"
    path.write_bytes(flaot.compile(DIGITS, "generic_cpu").plan)
    return path


def loaded_by(code: str, *args: object) -> set[str]:
    """The heavy modules that a fresh Python has loaded after running the code."""
    report = f"\nimport sys\nprint('LOADED', *[m for m in {HEAVY!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code + report, *map(str, args)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return set(done.stdout.splitlines()[-1].split()[1:])


def test_run_loads_no_compiler(plan: Path) -> None:
    code = "import sys\nfrom flaot.cli.main import main\ntry:\n main()\nexcept SystemExit as e:\n assert not e.code, e.code"
    assert loaded_by(code, "run", plan) == set()


def test_session_loads_no_compiler(plan: Path) -> None:
    assert loaded_by("import sys, flaot\nflaot.Session(sys.argv[1])", plan) == set()


def test_importing_the_package_loads_nothing() -> None:
    assert loaded_by("import flaot") == set()
