"""The toy chip of samples/vendor_adapter, built once and rebuilt when a source changes."""

from __future__ import annotations

import fcntl
import shutil
import subprocess
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "samples" / "vendor_adapter"
HCD = FOLDER / "toy_npu.hcd"
LIES = ("bfloat16_is_float16", "alignment", "layout", "rank", "memory", "rounding")
"""What the environment variable TOY_LIE may be."""


@cache
def library() -> str:
    """Path of the adapter's library. Skips the test where there is no make or C compiler."""
    if shutil.which("make") is None or shutil.which("cc") is None:
        pytest.skip("needs make and a C compiler")
    build = ROOT / "build" / "toy"
    build.mkdir(parents=True, exist_ok=True)
    with (build / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        made = subprocess.run(["make", "-C", FOLDER, f"BUILD={build}", f"FLAOT={ROOT / 'flaot'}"], capture_output=True, text=True)
    assert made.returncode == 0 and "warning" not in made.stderr, made.stderr
    return str(build / "libtoy_adapter.so")
