"""Compiling gives the same plan whatever the process: hash seed, thread counts, working directory, optimisation of Python."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.models.manifest import folder, models

ROOT = Path(__file__).resolve().parents[2]
DIGITS = ROOT / "samples" / "mnist" / "digits.onnx"
CODE = """
import sys, json, hashlib
from flaot.pipeline import Options, compile_model
for path, shapes in json.loads(sys.argv[1]):
    for chip in ("host", "generic_cpu"):
        print(hashlib.sha256(compile_model(path, chip, Options(shapes=shapes)).plan).hexdigest())
"""
REAL = ("ultraface_rfb320", "gtcrn_stream_simple", "aecmos_gru", "atspm_head")


def digests(work: list[tuple[str, object]], where: Path, *options: str, **settings: str) -> list[str]:
    """SHA-256 of the plans, made by a process of its own."""
    environment = dict(os.environ, PYTHONPATH=str(ROOT), **settings)
    command = [sys.executable, *options, "-c", CODE, json.dumps(work)]
    done = subprocess.run(command, cwd=where, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def compare(work: list[tuple[str, object]], elsewhere: Path) -> None:
    one = digests(work, ROOT, PYTHONHASHSEED="0", OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")
    two = digests(work, elsewhere, "-O", PYTHONHASHSEED="12345", OMP_NUM_THREADS="2", OPENBLAS_NUM_THREADS="2", TZ="Asia/Tokyo")
    assert len(one) == 2 * len(work)
    assert one == two


def test_the_digit_classifier_gives_the_same_bytes(tmp_path: Path) -> None:
    compare([(str(DIGITS), {})], tmp_path)


@pytest.mark.slow
@pytest.mark.skipif(folder() is None, reason="FLAOT_MODELS is not set")
def test_real_models_give_the_same_bytes(tmp_path: Path) -> None:
    compare([(str(models()[n].path), models()[n].shapes) for n in REAL], tmp_path)


def test_the_digests_tell_plans_apart(tmp_path: Path) -> None:
    host, portable = digests([(str(DIGITS), {})], tmp_path)
    assert host != portable
    assert len(host) == hashlib.sha256().digest_size * 2
