"""What plans state of their chip, figure by figure: what an adapter may refuse to open for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from flaot.ir.types import Rounding
from flaot.plan.program import Chip

LARGEST = 4096
"""Bytes of the largest alignment a descriptor may declare."""


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


def least_of(chip: Chip) -> Chip:
    """The chip that asks as little as plans can."""
    least = chip
    for limit in LIMITS:
        least = limit.into(least, limit.values(chip)[-1])
    return least
