"""What every file of the repository keeps to."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
MAX_LINES = 350
MAX_TEST_LINES = 500
"""A list of cases may be longer than code."""

MACHINE_PATH = re.compile(r"(?<![\w./-])/(?:tmp|work|root|home)/\w")


def tracked(*patterns: str) -> list[Path]:
    """Files under version control, or all of the tree where there is no repository."""
    done = subprocess.run(["git", "ls-files", "-z", *patterns], cwd=ROOT, capture_output=True, text=True)
    if done.returncode:
        pytest.skip("not a git checkout")
    return [ROOT / name for name in done.stdout.split("\0") if name and (ROOT / name).is_file()]


def test_python_files_stay_readable() -> None:
    sizes = {p.relative_to(ROOT): len(p.read_text().splitlines()) for p in tracked("*.py")}
    assert {str(p): n for p, n in sizes.items() if n > (MAX_TEST_LINES if p.parts[0] == "tests" else MAX_LINES)} == {}


def test_generated_files_are_fresh() -> None:
    for module in ("flaot.kernels.generate", "flaot.plan.generate"):
        if not (ROOT / Path(*module.split("."))).with_suffix(".py").exists():
            continue
        done = subprocess.run([sys.executable, "-m", module, "--check"], cwd=ROOT, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr


def test_no_file_names_a_place_of_one_machine() -> None:
    found = []
    for path in tracked():
        try:
            text = path.read_text()
        except UnicodeDecodeError:
            continue
        found += [f"{path.relative_to(ROOT)}: {m.group()}" for m in MACHINE_PATH.finditer(text)]
    assert found == []
