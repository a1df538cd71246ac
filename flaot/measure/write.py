"""A descriptor with measured figures, on top of the one they were compared with."""

from __future__ import annotations

from collections.abc import Iterator

from flaot.hcd import Hcd
from flaot.hcd.rules import PEAKS, kind_of
from flaot.measure.figures import Figures, Level, Rates


def descriptor(hcd: Hcd, base: str, figures: Figures) -> str:
    """The text of a descriptor that extends ``base`` (the bundled name or file of ``hcd``) and states what all cores together do."""
    return "\n".join(_lines(hcd, base, figures)) + "\n"


def _lines(hcd: Hcd, base: str, figures: Figures) -> Iterator[str]:
    name, unit = next((n, u) for n, u in hcd.full.compute_units.items() if kind_of(n, u) == "cpu")
    isa = [f for f in unit.isa or () if figures.isa is None or f in figures.isa]
    key = next((k for k in PEAKS if getattr(unit, k) is not None), "peak_gflops")
    figure = figures.peak[figures.threads] / (1e12 if key.startswith("peak_t") else 1e9)
    peak = f"{key}: {figure:.4f}, " if key.endswith("flops") else ""
    yield f"# Measured by 'flaot hcd measure' on {figures.cpu}, {figures.cpus} CPUs."
    yield "hcd_version: 1"
    yield f"extends: {base}"
    yield f"chip: {{name: {hcd.name.removesuffix('_measured')}_measured}}"
    yield f"clock_mhz: {figures.clock / 1e6:.0f}"
    yield "compute_units:"
    yield f"  {name}: {{count: {figures.threads}, {peak}isa: [{', '.join(isa)}]}}"
    yield "memory:"
    if figures.caches and _size(figures.caches[-1]):
        last = figures.caches[-1]
        yield f"  on_chip_cache: {{size_kb: {_size(last) >> 10}, bandwidth_gb_per_s: {_rate(last.read, figures)}}}"
    size = f"size_mb: {figures.main.size >> 20}, " if figures.main.size else ""
    yield f"  off_chip_memory: {{{size}bandwidth_gb_per_s: {_rate(figures.main.read, figures)}}}"
    yield "  regions:"
    for level in figures.levels:
        if _size(level):
            yield _region(level, figures)


def _region(level: Level, figures: Figures) -> str:
    kind = "dram" if level is figures.main else "sram"
    rates = f"read_gb_per_s: {_rate(level.read, figures)}, write_gb_per_s: {_rate(level.write, figures)}"
    latency = "" if level.latency is None else f", latency_cycles: {level.latency * 1e-9 * figures.clock:.0f}"
    return f"    - {{name: {level.name.lower()}, kind: {kind}, size_kb: {_size(level) >> 10}, {rates}{latency}}}"


def _size(level: Level) -> int:
    return level.size or level.curve or 0


def _rate(rates: Rates, figures: Figures) -> str:
    return f"{rates[figures.threads] / 1e9:.1f}"
