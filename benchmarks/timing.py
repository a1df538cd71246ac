"""Interleaved timing of two ways of doing the same work."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

Work = Callable[[], object]
BLOCK = 0.02
"""Seconds one block of calls takes at least."""


@dataclass(frozen=True)
class Times:
    """Milliseconds per call."""

    median: float
    minimum: float


def _calls(work: Work) -> int:
    """How many calls fill a block; warms up besides."""
    work()
    begin = time.perf_counter()
    work()
    return max(1, int(BLOCK / max(time.perf_counter() - begin, 1e-7)))


def interleaved(works: list[Work], seconds: float, clock: Callable[[], float] = time.process_time) -> list[Times]:
    """Times of each work, in blocks taken in turn until ``seconds`` have passed (five rounds at least)."""
    calls = [_calls(w) for w in works]
    samples: list[list[float]] = [[] for _ in works]
    end = time.perf_counter() + seconds
    while len(samples[-1]) < 5 or time.perf_counter() < end:
        for work, n, times in zip(works, calls, samples, strict=True):
            begin = clock()
            for _ in range(n):
                work()
            times.append((clock() - begin) / n * 1e3)
    return [Times(statistics.median(t), min(t)) for t in samples]
