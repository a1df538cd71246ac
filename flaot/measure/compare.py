"""What a descriptor of a CPU declares beside what was measured."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from flaot.errors import CheckFailed, FlaotError
from flaot.hcd import Hcd
from flaot.hcd.memory import Region
from flaot.hcd.rules import PEAKS, kind_of
from flaot.hcd.units import ComputeUnit
from flaot.measure.figures import Figures, Level

Path_ = tuple[str | int, ...]

OK, WRONG, UNDECLARED, UNMEASURED = "ok", "contradicted", "not declared", "not measured"


@dataclass(frozen=True)
class Row:
    """One key: its path, what it declares and what was measured in the key's unit (None: nothing), the verdict, and where it is written.
    ``limit`` is the sentence a contradiction is explained with."""

    key: str
    declared: Any
    measured: Any
    verdict: str
    origin: str = ""
    limit: str = ""

    @property
    def ratio(self) -> float | None:
        """Measured over declared."""
        numbers = isinstance(self.declared, int | float) and isinstance(self.measured, int | float)
        return self.measured / self.declared if numbers and self.declared else None

    def to_json(self) -> dict[str, Any]:
        return {
            "key": self.key,
            "declared": self.declared,
            "measured": self.measured,
            "ratio": self.ratio,
            "verdict": self.verdict,
            "origin": self.origin,
        }


def compare(hcd: Hcd, figures: Figures, factor: float = 2.0) -> list[Row]:
    """A row per key of a descriptor of device type cpu that can be measured. Rates, sizes and latencies may be off by ``factor`` either
    way; what is counted (features, cores, bytes of main memory) may only be less than there is."""
    return list(_Comparison(hcd, figures, factor).rows())


def contradictions(rows: list[Row], figures: Figures) -> list[FlaotError]:
    """One error for every row that is contradicted."""
    busy = f"other programs were running (load average {figures.load:.1f}): measure again when they are done, or state what was measured"

    def hint(row: Row) -> str:
        slow = row.ratio is not None and row.ratio < 1 and figures.load > 0.3 * figures.cpus
        return busy if slow else "state what was measured"

    return [CheckFailed(f"{r.key}: {r.limit}", where=r.origin, hint=hint(r)) for r in rows if r.verdict == WRONG]


def text_of(value: Any) -> str:
    """A figure for people."""
    if isinstance(value, float):
        return f"{value:.0f}" if value >= 1000 else f"{value:.3g}"
    return "-" if value is None else str(value)


@dataclass(frozen=True)
class _Comparison:
    hcd: Hcd
    figures: Figures
    factor: float

    def rows(self) -> Iterator[Row]:
        name, unit = next((n, u) for n, u in self.hcd.full.compute_units.items() if kind_of(n, u) == "cpu")
        count = unit.count or 1
        yield self._features(name, unit)
        yield self._at_most(("compute_units", name, "count"), self.figures.cpus)
        yield from self._peak(name, unit, count)
        yield self._clock(name, unit)
        yield from self._two_memories(count)
        memory = self.hcd.stated.memory
        for i, region in enumerate((memory.regions if memory else None) or ()):
            yield from self._region(i, region, count)

    def _features(self, name: str, unit: ComputeUnit) -> Row:
        declared, have = list(unit.isa or ()), self.figures.isa
        path = ("compute_units", name, "isa")
        if have is None:
            return self._row(path, declared, None, UNMEASURED)
        lacks = [f for f in declared if f not in have]
        limit = f"this CPU lacks {', '.join(lacks)}"
        return self._row(path, declared, sorted(have), WRONG if lacks else OK, limit)

    def _peak(self, name: str, unit: ComputeUnit, count: int) -> Iterator[Row]:
        threads = min(count, self.figures.cpus)
        stated = next((k for k in PEAKS if getattr(unit, k) is not None), "peak_gflops")
        scale = 1e12 if stated.startswith("peak_t") else 1e9
        measured = self.figures.peak.get(threads) if stated.endswith("flops") else None
        yield self._near(("compute_units", name, stated), measured, scale)

    def _clock(self, name: str, unit: ComputeUnit) -> Row:
        path = ("compute_units", name, "clock_mhz") if unit.clock_mhz is not None else ("clock_mhz",)
        return self._near(path, self.figures.clock / 1e6)

    def _two_memories(self, count: int) -> Iterator[Row]:
        threads, main = min(count, self.figures.cpus), self.figures.main
        if self.figures.caches:
            last = self.figures.caches[-1]
            yield self._size(("memory", "on_chip_cache", "size_kb"), last)
            yield self._near(("memory", "on_chip_cache", "bandwidth_gb_per_s"), last.read.get(threads), 1e9)
        yield self._at_most(("memory", "off_chip_memory", "size_mb"), main.size and main.size >> 20)
        yield self._near(("memory", "off_chip_memory", "bandwidth_gb_per_s"), main.read.get(threads), 1e9)

    def _region(self, index: int, region: Region, count: int) -> Iterator[Row]:
        path, threads = ("memory", "regions", index), min(count, self.figures.cpus)
        level = self._level(region)
        if level is None:
            yield self._row((*path, "name"), region.name, None, UNMEASURED)
            return
        size: Path_ = (*path, "size_kb")
        yield self._at_most(size, level.size and level.size >> 10) if level is self.figures.main else self._size(size, level)
        for key, rates in (("read_gb_per_s", level.read), ("write_gb_per_s", level.write)):
            yield self._near((*path, key), rates.get(threads), 1e9)
        cycles = None if level.latency is None else level.latency * 1e-9 * self.figures.clock
        yield self._near((*path, "latency_cycles"), cycles)

    def _level(self, region: Region) -> Level | None:
        """Regions l1, l2, ... are caches, one of kind dram is main memory."""
        if region.kind == "dram":
            return self.figures.main
        named = re.fullmatch(r"[lL]([1-9])[dD]?", region.name)
        return next((lv for lv in self.figures.caches if named and lv.name == f"L{named[1]}"), None)

    def _size(self, path: Path_, level: Level) -> Row:
        """Right when it is near to what the system states or to what the curve shows; the one nearer to it is reported."""
        found = [s / 1024 for s in (level.size, level.curve) if s is not None]
        declared = self._stated(path)
        if declared is not None:
            found.sort(key=lambda s: max(s / declared, declared / s))
        return self._near(path, round(found[0]) if found else None)

    def _near(self, path: Path_, found: float | None, scale: float = 1.0) -> Row:
        """``scale`` is the key's unit."""
        declared, measured = self._stated(path), found if found is None or scale == 1.0 else found / scale
        if declared is None or measured is None:
            return self._row(path, declared, measured, UNDECLARED if declared is None else UNMEASURED)
        right = measured <= declared * self.factor and declared <= measured * self.factor
        limit = f"declared {text_of(declared)}, measured {text_of(measured)}, which is off by more than a factor of {self.factor:g}"
        return self._row(path, declared, measured, OK if right else WRONG, limit)

    def _at_most(self, path: Path_, available: int | None) -> Row:
        declared = self._stated(path)
        if declared is None or available is None:
            return self._row(path, declared, available, UNDECLARED if declared is None else UNMEASURED)
        limit = f"declared {declared}, but there are {available}"
        return self._row(path, declared, available, OK if declared <= available else WRONG, limit)

    def _stated(self, path: Path_) -> Any:
        """What the descriptor itself says at a path, None when it says nothing."""
        held: Any = self.hcd.stated
        for key in path:
            held = getattr(held, str(key)) if hasattr(held, str(key)) else held[key]
            if held is None:
                return None
        return held

    def _row(self, path: Path_, declared: Any, measured: Any, verdict: str, limit: str = "") -> Row:
        key = "".join(f"[{p}]" if isinstance(p, int) else f".{p}" for p in path).lstrip(".")
        return Row(key, declared, measured, verdict, "" if verdict == UNDECLARED else self.hcd.origin(*path), limit)
