"""Drives the loops of ``runtime/csrc/port/measure`` over this machine's cores and memories."""

from __future__ import annotations

import ctypes
import os
import platform
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from flaot.errors import LimitError
from flaot.hcd.fields import ISA_FEATURES
from flaot.hcd.host import features
from flaot.measure import caches
from flaot.measure.figures import Figures, Level
from flaot.runtime.library import functions
from flaot.targets.cpu import VARIANT_NEEDS

CLOCK, PEAK, READ, WRITE, COPY, CHASE = range(6)
"""What ``fl_host_measure`` measures."""

NAMES = ("clock", "peak", "read", "write", "copy", "latency")
CURVE = 0.3
"""The part of the time that the latency curve gets."""

MAX_THREADS = 64
"""FL_MAX_THREADS of flaot.h."""

ISA_BITS = {"generic": 0, "avx2": 1, "avx512": 3}
"""FL_ISA_* of flaot.h that the loops of a variant may use."""

UNKNOWN = (Level("L1", shared=1), Level("L2", shared=1), Level("L3", shared=MAX_THREADS))
MAX_BYTES = 512 << 20
"""No measurement of main memory takes more."""

SAY: Callable[[str], None] = lambda text: None  # noqa: E731  a default that does nothing


@dataclass(frozen=True)
class Task:
    """One measurement: what the progress bar shows, and the arguments of ``fl_host_measure``. ``bytes`` are those of each thread."""

    text: str
    what: int
    threads: int = 1
    bytes: int = 0


def cpus() -> int:
    """CPUs this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def best_variant(allowed: Sequence[str]) -> str:
    """The fastest of the variants (slowest first) that this CPU runs."""
    have = int(functions().fl_host_isa())
    return next((v for v in reversed(allowed) if ISA_BITS[v] & ~have == 0), "generic")


def measure_host(
    seconds: float = 4.0, units: int = 1, variants: Sequence[str] = ("generic", *VARIANT_NEEDS), begin: Callable[[int], Any] | None = None,
) -> Figures:
    """Measures this machine with 1, ``units`` and all threads (64 at most), in about ``seconds``, with the fastest of ``variants`` it runs.

    ``begin(total)`` is told the number of measurements and gives the function that each one's name goes to. Raises LimitError without
    memory or threads.
    """
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0
    variant, all_cpus = best_variant(variants), cpus()
    threads = sorted({min(t, all_cpus, MAX_THREADS) for t in (1, units, all_cpus)})
    chased = caches.sizes(_largest())
    levels = caches.stated() or UNKNOWN
    tasks = 1 + len(threads) * (1 + 3 * (len(levels) + 1))
    say = begin(len(chased) + tasks) if begin is not None else SAY

    def run(task: Task) -> float:
        say(task.text)
        share = CURVE / len(chased) if task.what == CHASE else (1 - CURVE) / tasks
        return measured(task, ISA_BITS[variant], share * seconds)

    clock = run(Task(NAMES[CLOCK], CLOCK))
    curve = {size: 1e9 / run(Task(f"{NAMES[CHASE]}, {size >> 10} kB", CHASE, 1, size)) for size in chased}
    peak = {t: run(Task(f"{NAMES[PEAK]}, {_threads(t)}", PEAK, t)) for t in threads}
    known = _with_curve(levels, curve)

    def rates(level: Level, what: int) -> dict[int, float]:
        return {t: run(_moving(level, known, what, t)) for t in threads}

    filled = tuple(replace(v, read=rates(v, READ), write=rates(v, WRITE), copy=rates(v, COPY)) for v in known)
    return Figures(cpu_name(), all_cpus, load, _isa(), variant, clock, peak, filled)


def measured(task: Task, isa: int, seconds: float) -> float:
    """The best rate seen in that time. Raises LimitError without memory or threads."""
    rate = float(_measure()(task.what, isa, task.threads, task.bytes, seconds))
    if rate <= 0:
        lacks = f"{_threads(task.threads)}" if rate == -2 else f"memory of {task.threads} x {task.bytes} bytes"
        raise LimitError(f"the system gives no {lacks} to measure '{task.text}'")
    return rate


@cache
def _measure() -> Any:
    function = functions().fl_host_measure
    u32 = ctypes.c_uint32
    function.restype, function.argtypes = ctypes.c_double, [u32, u32, u32, ctypes.c_uint64, ctypes.c_double]
    return function


def _threads(count: int) -> str:
    return "1 thread" if count == 1 else f"{count} threads"


def _largest() -> int:
    """Working set at which only main memory is left: twice the last cache, within what is free."""
    last = max((level.size or 0 for level in caches.stated()), default=0)
    free = caches.physical()[1] or MAX_BYTES
    return min(max(2 * last, 64 << 20), MAX_BYTES, max(free // 4, 1 << 20))


def _with_curve(levels: Sequence[Level], curve: dict[int, float]) -> tuple[Level, ...]:
    """Caches with what the curve says of them, and main memory. Without the system's word the curve decides how many there are."""
    found = caches.knees(curve)
    if all(level.size is None for level in levels):
        levels = levels[: len(found)]
    known = []
    for i, level in enumerate(levels):
        near = _nearest(found, level.size) if level.size else found[i]
        known.append(replace(level, curve=near, latency=caches.latency_within(curve, level.size or near or 0)))
    return (*known, Level("main", size=caches.physical()[0], shared=MAX_THREADS, latency=curve[max(curve)]))


def _nearest(found: Sequence[int], size: int) -> int | None:
    """The knee that belongs to a cache of this size: within a factor of 4."""
    near = min(found, key=lambda s: max(s / size, size / s), default=None)
    return near if near is not None and size / 4 <= near <= size * 4 else None


def _moving(level: Level, levels: Sequence[Level], what: int, threads: int) -> Task:
    """Half of a cache, or four times the last one for main memory, shared out among the threads that share it."""
    if level is levels[-1]:
        last = max((lv.size or lv.curve or 0 for lv in levels[:-1]), default=16 << 20)
        total = min(max(4 * last, 64 << 20), MAX_BYTES, max((caches.physical()[1] or MAX_BYTES) // 4, 1 << 20))
    else:
        total = (level.size or level.curve or 0) // 2
    each = max(total // min(threads, level.shared), 2048)
    return Task(f"{level.name} {NAMES[what]}, {_threads(threads)}", what, threads, each)


def _isa() -> frozenset[str] | None:
    known = features()
    if known:
        return known & frozenset(ISA_FEATURES)
    return frozenset() if platform.machine().lower() not in ("x86_64", "amd64") else None


def cpu_name() -> str:
    """The model of this CPU as the system names it."""
    return next(_model_names(), platform.processor() or platform.machine())


def _model_names() -> Iterator[str]:
    try:
        lines = Path("/proc/cpuinfo").read_text(errors="replace").splitlines()
    except OSError:
        return
    yield from (line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
