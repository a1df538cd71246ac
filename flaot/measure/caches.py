"""The caches of this machine: as the system states them, and as latencies show them."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping
from pathlib import Path

from flaot.measure.figures import Level

SYSTEM = Path("/sys/devices/system/cpu/cpu0/cache")

RISE, FLAT = 1.5, 1.2
"""Latency over the plateau's from which a new level begins, and from one size to the next below which its plateau has been reached."""


def stated(folder: Path = SYSTEM) -> tuple[Level, ...]:
    """Data caches from the first level on, from Linux's sysfs; none where it does not exist."""
    found = {}
    for entry in sorted(folder.glob("index*")):
        with contextlib.suppress(OSError, ValueError):
            text = {key: (entry / key).read_text().strip() for key in ("level", "type", "size", "shared_cpu_list")}
            if text["type"] in ("Data", "Unified"):
                level = int(text["level"])
                found[level] = Level(f"L{level}", size=_bytes(text["size"]), shared=_count(text["shared_cpu_list"]))
    return tuple(found[level] for level in sorted(found))


def _bytes(text: str) -> int:
    return int(text.rstrip("KMG")) * {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}.get(text[-1], 1)


def _count(cpus: str) -> int:
    """CPUs of a list such as 0-3,8."""
    parts = [p.split("-") for p in cpus.split(",")]
    return sum(int(p[-1]) - int(p[0]) + 1 for p in parts)


def sizes(largest: int) -> list[int]:
    """Working sets for the curve, in bytes: powers of two from 8 kB on and what lies half way between them."""
    return [s for k in range(13, 63) if 1 << k <= largest for s in (1 << k, 3 << (k - 1))]


def knees(curve: Mapping[int, float]) -> list[int]:
    """Sizes of caches from latencies by working set, smallest first: where the curve crosses the middle (of logarithms) of a rise."""
    points = sorted(curve.items())
    found, at = [], 0
    while at < len(points) - 1:
        begin = at
        while at < len(points) - 1 and points[at][1] <= RISE * points[begin][1]:
            at += 1
        if points[at][1] <= RISE * points[begin][1]:
            break
        while at < len(points) - 1 and points[at + 1][1] > FLAT * points[at][1]:
            at += 1
        middle = (points[begin][1] * points[at][1]) ** 0.5
        found.append(max(size for size, latency in points[begin : at + 1] if latency <= middle))
    return found


def latency_within(curve: Mapping[int, float], size: int) -> float | None:
    """The latency of the largest working set of at most three quarters of ``size``."""
    return next((curve[s] for s in sorted(curve, reverse=True) if s <= size * 3 // 4), None)


def physical() -> tuple[int | None, int | None]:
    """Bytes of main memory, and of those the free ones; None where the system does not tell."""
    try:
        page = os.sysconf("SC_PAGE_SIZE")
        return page * os.sysconf("SC_PHYS_PAGES"), page * os.sysconf("SC_AVPHYS_PAGES")
    except (ValueError, OSError):
        return None, None
