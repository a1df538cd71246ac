"""Whether the device takes a plan for the limits that are declared: adapters refuse what asks for more than their chip has."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from flaot.ir.types import Rounding
from flaot.optest.probes.bench import LARGEST, Bench
from flaot.optest.probes.finding import LIES, Finding
from flaot.plan.program import Chip


@dataclass(frozen=True)
class Limit:
    """A figure that plans state: its key, ``values`` from the declared one to the one that asks least, the chip with one of them, and how
    a descriptor writes it."""

    path: tuple[str, ...]
    values: Callable[[Chip], Sequence[Any]]
    into: Callable[[Chip, Any], Chip]
    write: Callable[[Any], str] = str


def _down(figure: Callable[[Chip], int]) -> Callable[[Chip], Sequence[int]]:
    return lambda chip: range(figure(chip), 0, -1) or (0,)


LIMITS = (
    Limit(("memory", "on_chip_cache", "size_kb"), _down(lambda c: c.machine.on_chip // 1024),
          lambda c, v: replace(c, machine=replace(c.machine, on_chip=v * 1024))),
    Limit(("constraints", "memory_alignment_bytes"),
          lambda c: [c.alignment << i for i in range(LARGEST.bit_length()) if c.alignment << i <= LARGEST] or (c.alignment,),
          lambda c, v: replace(c, alignment=v)),
    Limit(("tensor", "max_rank"), _down(lambda c: c.max_rank), lambda c, v: replace(c, max_rank=v)),
    Limit(("constraints", "max_batch_size"), _down(lambda c: c.max_batch), lambda c, v: replace(c, max_batch=v)),
    Limit(("constraints", "max_sequence_length"), _down(lambda c: c.max_sequence), lambda c, v: replace(c, max_sequence=v)),
    Limit(("dma", "channels"), _down(lambda c: c.machine.channels),
          lambda c, v: replace(c, machine=replace(c.machine, channels=v))),
    Limit(("numerics", "rounding"), lambda c: list(dict.fromkeys((c.rounding, Rounding.half_to_even))),
          lambda c, v: replace(c, rounding=v), lambda v: str(v.name)),
    Limit(("numerics", "denormals"), lambda c: (True, False) if c.flush_denormals else (False,),
          lambda c, v: replace(c, flush_denormals=v), lambda v: "flush" if v else "keep"),
)  # fmt: skip


def opening(bench: Bench) -> Iterator[Finding]:
    """Nothing where the device opens; else each limit it refuses, measured while the others ask as little as they can. Leaves the
    bench with the limits that it opens for."""
    declared = bench.chip
    said = bench.opens(declared)
    if not said:
        return
    least = declared
    for limit in LIMITS:
        least = limit.into(least, limit.values(declared)[-1])
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
