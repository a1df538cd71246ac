"""Rules on memory regions, DMA and energy figures that name memories."""

from __future__ import annotations

from collections.abc import Iterator

from flaot.hcd.fields import DTYPE_BYTES
from flaot.hcd.memory import FAST, Region
from flaot.hcd.rules import Finding, active_units, repeated, rule, unknown
from flaot.hcd.schema import Schema

TWO = ("on_chip_cache", "off_chip_memory")


def _regions(hcd: Schema) -> tuple[Region, ...]:
    return (hcd.memory.regions if hcd.memory else None) or ()


def memories(hcd: Schema) -> list[str]:
    """Names by which other groups refer to memories."""
    return [n for n in TWO if getattr(hcd.memory, n, None) is not None] + [r.name for r in _regions(hcd)]


def _at(i: int, *rest: str) -> tuple[str | int, ...]:
    return ("memory", "regions", i, *rest)


@rule
def region_names_are_distinct(hcd: Schema) -> Iterator[Finding]:
    for i, name in repeated([*TWO, *(r.name for r in _regions(hcd))]):
        yield Finding(_at(i - len(TWO), "name"), f"a second memory named {name}", on_value=True)


@rule
def regions_do_not_overlap(hcd: Schema) -> Iterator[Finding]:
    placed = sorted((r.base_address, i, r) for i, r in enumerate(_regions(hcd)) if r.base_address is not None and r.size_kb)
    for k, (start, i, region) in enumerate(placed):
        for base, _, other in placed[:k]:
            apart = region.visible_to and other.visible_to and not set(region.visible_to) & set(other.visible_to)
            if start < base + other.size_kb * 1024 and not apart:
                yield Finding(
                    _at(i, "base_address"),
                    f"{region.name} at {start} overlaps {other.name}, which ends at {base + other.size_kb * 1024}",
                    on_value=True,
                )


@rule
def preferred_regions_hold_something(hcd: Schema) -> Iterator[Finding]:
    for i, region in enumerate(_regions(hcd)):
        if region.preferred_for and not region.size_kb:
            yield Finding(_at(i, "preferred_for"), f"{region.name} is preferred for {', '.join(region.preferred_for)} and has a size of 0")
        written = [u for u in region.preferred_for or () if u != "constants"]
        if written and region.rights and "write" not in region.rights:
            yield Finding(_at(i, "preferred_for"), f"{region.name} is preferred for {', '.join(written)} and cannot be written")


@rule
def alignment_fits_the_regions(hcd: Schema) -> Iterator[Finding]:
    alignment = (hcd.constraints.memory_alignment_bytes if hcd.constraints else None) or 1
    for i, region in enumerate(_regions(hcd)):
        if 0 < region.size_kb * 1024 < alignment:
            yield Finding(
                ("constraints", "memory_alignment_bytes"), f"{alignment} bytes exceed the region {region.name} of {region.size_kb} kB"
            )
        if region.base_address is not None and region.base_address % alignment:
            yield Finding(
                _at(i, "base_address"),
                f"{region.base_address} is not a multiple of constraints.memory_alignment_bytes ({alignment})",
                on_value=True,
            )


@rule
def bandwidth_fits_the_bus(hcd: Schema) -> Iterator[Finding]:
    for i, region in enumerate(_regions(hcd)):
        clock = region.clock_mhz or hcd.clock_mhz
        if region.bus_bits is None or clock is None:
            continue
        most = region.bus_bits / 8 * clock * (region.transfers_per_cycle or 1) / 1e3
        for key in ("read_gb_per_s", "write_gb_per_s"):
            if (getattr(region, key) or 0) > most * 1.001:
                yield Finding(
                    _at(i, key),
                    f"{getattr(region, key):g} GB/s exceed the {most:g} GB/s of {region.bus_bits} bits at {clock:g} MHz",
                    "state transfers_per_cycle for a double data rate",
                    on_value=True,
                )


@rule
def regions_are_reachable(hcd: Schema) -> Iterator[Finding]:
    known = [*hcd.compute_units, "host", "dma"]
    moved = {n for p in (hcd.dma.paths if hcd.dma else None) or () for n in (p.source, p.target)}
    for i, region in enumerate(_regions(hcd)):
        yield from unknown(_at(i, "visible_to"), region.visible_to, known, "compute unit, 'host' or 'dma'")
        seen = {n for n in region.visible_to or known if n in active_units(hcd) or n == "host"}
        by_dma = hcd.dma is not None and (not hcd.dma.paths or region.name in moved)
        if region.size_kb and not seen and not by_dma:
            yield Finding(_at(i), f"the region {region.name} cannot be reached: no unit in use sees it and no DMA path leads there")


@rule
def a_tile_fits_the_fast_memory(hcd: Schema) -> Iterator[Finding]:
    sizes = [r.size_kb for r in _regions(hcd) if r.kind in FAST]
    sizes += [hcd.memory.on_chip_cache.size_kb] if hcd.memory and hcd.memory.on_chip_cache else []
    for name, unit in active_units(hcd).items():
        tile = unit.tile
        if not sizes or tile is None or not (tile.rows and tile.columns and tile.depth):
            continue
        for i, pair in enumerate(unit.arithmetic or ()):
            left, right, result = (DTYPE_BYTES[d] for d in (*pair.inputs, pair.accumulator))
            need = tile.depth * (tile.rows * left + tile.columns * right) + tile.rows * tile.columns * result
            if need > max(sizes) * 1024:
                yield Finding(
                    ("compute_units", name, "arithmetic", i),
                    f"one tile takes {need} bytes; the largest fast memory has {max(sizes) * 1024}",
                )


@rule
def dma_paths_name_memories(hcd: Schema) -> Iterator[Finding]:
    for i, path in enumerate((hcd.dma.paths if hcd.dma else None) or ()):
        for key in ("source", "target"):
            yield from unknown(("dma", "paths", i, key), (getattr(path, key),), memories(hcd), "memory", one=True)
        if path.source == path.target:
            yield Finding(("dma", "paths", i), f"a path from {path.source} to itself")


@rule
def dma_covers_the_spill_path(hcd: Schema) -> Iterator[Finding]:
    if hcd.dma is None or not hcd.dma.paths:
        return
    fitted = [r for r in _regions(hcd) if r.size_kb and "write" in (r.rights or ("write",))]
    fast, slow = ([r.name for r in fitted if (r.kind in FAST) == quick and r.kind != "flash"] for quick in (True, False))
    if not _regions(hcd) and len(memories(hcd)) == len(TWO):
        fast, slow = [TWO[0]], [TWO[1]]
    paths = {(p.source, p.target) for p in hcd.dma.paths}
    for name in fast if slow else ():
        if not any((name, far) in paths and (far, name) in paths for far in slow):
            yield Finding(
                ("dma", "paths"), f"nothing spills from {name}: no pair of paths to {' or '.join(slow)} and back", "add both directions"
            )


@rule
def energies_name_memories(hcd: Schema) -> Iterator[Finding]:
    for name in (hcd.power.energy_pj_per_byte if hcd.power else None) or {}:
        yield from unknown(("power", "energy_pj_per_byte", name), (name,), memories(hcd), "memory", one=True)
