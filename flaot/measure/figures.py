"""The figures of one CPU as they were measured."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

Rates = Mapping[int, float]
"""Number of threads -> what all of them together did in a second."""


@dataclass(frozen=True)
class Level:
    """A cache, or main memory (the last level, ``main``).

    ``size`` in bytes as the system states it, ``curve`` where the latency of loads rises; either may be None. ``shared`` is the number
    of CPUs that share it, ``latency`` in nanoseconds. Rates are bytes per second, those read and those written counted.
    """

    name: str
    size: int | None = None
    curve: int | None = None
    shared: int = 1
    latency: float | None = None
    read: Rates = field(default_factory=dict)
    write: Rates = field(default_factory=dict)
    copy: Rates = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        rates = {f"{what}_gb_per_s": _giga(getattr(self, what)) for what in ("read", "write", "copy")}
        return {"name": self.name, "bytes": self.size, "curve_bytes": self.curve, "latency_ns": self.latency, **rates}


@dataclass(frozen=True)
class Figures:
    """``cpus`` are those that may be used; rates exist for 1 thread, as many as the descriptor has cores, and all (64 at most).
    ``isa`` holds the features by the names of descriptors, None where the system does not tell them. ``variant`` is the instruction
    set the loops used, ``clock`` in Hz, ``peak`` in float32 operations per second, a multiply-add counted as two."""

    cpu: str
    cpus: int
    load: float
    isa: frozenset[str] | None
    variant: str
    clock: float
    peak: Rates
    levels: tuple[Level, ...]

    @property
    def threads(self) -> int:
        """The most threads there are rates for."""
        return max(self.peak)

    @property
    def main(self) -> Level:
        return self.levels[-1]

    @property
    def caches(self) -> tuple[Level, ...]:
        return self.levels[:-1]

    def to_json(self) -> dict[str, Any]:
        return {
            "cpu": self.cpu,
            "cpus": self.cpus,
            "load_average": self.load,
            "isa": None if self.isa is None else sorted(self.isa),
            "variant": self.variant,
            "clock_mhz": self.clock / 1e6,
            "peak_gflops": _giga(self.peak),
            "levels": [level.to_json() for level in self.levels],
        }


def _giga(rates: Rates) -> dict[str, float]:
    """By number of threads, in units of 1e9."""
    return {str(threads): rate / 1e9 for threads, rate in rates.items()}
