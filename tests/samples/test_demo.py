"""The demo and its classifier."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MNIST = ROOT / "samples" / "mnist"


def test_demo_compiles_verifies_and_reads_digits() -> None:
    environment = dict(os.environ, PYTHONPATH=str(ROOT))
    done = subprocess.run([sys.executable, MNIST / "demo.py"], cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "$ flaot verify" in done.stdout
    assert "read 1, written 1" in done.stdout
    right = next(line for line in done.stdout.splitlines() if line.endswith("microseconds each."))
    assert int(right.split()[0]) >= 275


def test_classifier_is_small_and_names_no_place() -> None:
    content = (MNIST / "digits.onnx").read_bytes()
    assert len(content) < 200_000
    assert str(ROOT).encode() not in content
