"""Which bundled descriptor fits the CPU this runs on."""

from __future__ import annotations

import platform
from pathlib import Path

from flaot.hcd.rules import AVX2, AVX512


def features() -> frozenset[str]:
    """Instruction-set features of this CPU, by the names of Linux's /proc/cpuinfo; empty where that does not exist."""
    try:
        text = Path("/proc/cpuinfo").read_text(errors="replace")
    except OSError:
        return frozenset()
    return frozenset(next((line.split(":", 1)[1] for line in text.splitlines() if line.startswith("flags")), "").split())


def best_for_host() -> str:
    """Name of the fastest bundled descriptor this CPU can run."""
    have = features()
    if platform.machine().lower() not in ("x86_64", "amd64"):
        return "generic_cpu"
    if have.issuperset(AVX512):
        return "x86_64_avx512"
    return "x86_64_avx2" if have.issuperset(AVX2) else "generic_cpu"
