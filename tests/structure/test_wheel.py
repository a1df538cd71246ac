"""The wheel holds what an installation needs, and works away from the checkout."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.slow

ONLY_PATHS = "import sys; sys.meta_path[:] = [f for f in sys.meta_path if isinstance(f, type)]"
"""Leaves Python's own finders, which are classes: the one of an editable install would find the checkout before the wheel."""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("wheel")
    build = f"--config-settings=build-dir={place / 'build'}"
    subprocess.run([sys.executable, "-m", "pip", "wheel", "-qq", "--no-deps", build, "-w", place, ROOT], check=True)
    (path,) = place.glob("*.whl")
    return path


def test_wheel_holds_library_sources_and_descriptors(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        inside = set(archive.namelist())
    wanted = {"flaot/runtime/lib/libflaot.so", "flaot/about/supported.toml"}
    wanted |= {str(p.relative_to(ROOT)) for p in (ROOT / "flaot").rglob("*.[ch]")}
    wanted |= {str(p.relative_to(ROOT)) for p in (ROOT / "flaot" / "scaffold").rglob("*.in")}
    wanted |= {f"flaot/hcd/bundled/{p.name}" for p in (ROOT / "hcd").glob("*.hcd")}
    assert wanted - inside == set()


def test_wheel_compiles_and_runs_a_model_away_from_the_checkout(wheel: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "installed")
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("FLAOT", "PYTHON"))}
    environment["PYTHONPATH"] = str(tmp_path / "installed")
    for words in (["compile", ROOT / "samples" / "mnist" / "digits.onnx", "--hcd", "generic_cpu", "-o", "d.flp"], ["run", "d.flp"]):
        code = f"{ONLY_PATHS}; import flaot; assert 'installed' in flaot.__file__; from flaot.cli.main import main; main()"
        done = subprocess.run([sys.executable, "-c", code, *map(str, words)], cwd=tmp_path, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
