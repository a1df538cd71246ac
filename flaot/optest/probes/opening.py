"""Whether the device takes a plan for the limits that are declared: adapters refuse what asks for more than their chip has."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator

from flaot.optest.probes.asked import LIMITS, Limit, least_of
from flaot.optest.probes.bench import Bench
from flaot.optest.probes.finding import LIES, Finding
from flaot.plan.program import Chip


def opening(bench: Bench) -> Iterator[Finding]:
    """Nothing where the device opens; else each limit it refuses, measured while the others ask as little as they can. Leaves the
    bench with the limits that it opens for."""
    declared = bench.chip
    said = bench.opens(declared)
    if not said:
        return
    least = least_of(declared)
    if bench.opens(least):
        bench.broken = True
        kind, origin = declared.device_type, bench.hcd.origin("chip", "device_type")
        yield Finding("opening", "chip.device_type", origin, kind, "a device that does not open", LIES, said, "the other probes need it")
        return
    for limit in LIMITS:
        yield from _refused(bench, limit, declared, least)
    bench.step = max(bench.step, bench.chip.alignment)
    bench.broken = bool(bench.opens(bench.chip))


def _refused(bench: Bench, limit: Limit, declared: Chip, least: Chip) -> Iterator[Finding]:
    values = limit.values(declared)
    said = bench.opens(limit.into(least, values[0]))
    if not said:
        return
    best = values[bisect_left(values, True, lo=1, key=lambda v: not bench.opens(limit.into(least, v)))]
    bench.chip = limit.into(bench.chip, best)
    was, now = limit.write(values[0]), limit.write(best)
    yield Finding(
        "opening", ".".join(limit.path), bench.hcd.origin(*limit.path), was, now, LIES, f"it does not open: {said}",
        f"state {'.'.join(limit.path[limit.path[0] in ('constraints', 'memory', 'tensor') :])}: {now}",
    )
