"""How fast a chip is, from its descriptor: the rates that a plan carries and every estimate is made from."""

from __future__ import annotations

from typing import TypeVar

from flaot.errors import HcdError
from flaot.hcd import Hcd
from flaot.hcd.rules import active_units
from flaot.hcd.units import ComputeUnit
from flaot.plan.program import Machine, Transfers, Unit
from flaot.targets.chip.power import power_of

T = TypeVar("T")


def machine_of(hcd: Hcd, bus: int = 0) -> Machine:
    """The machine a descriptor states; ``bus`` is the number of the bus of its transfers. Raises HcdError for a descriptor without
    memories."""
    full = hcd.full
    if full.memory is None or full.memory.on_chip_cache is None or full.memory.off_chip_memory is None:
        raise HcdError("no on_chip_cache and off_chip_memory; a chip needs both", origin=hcd.origin("memory"))
    chip, off, dma, host = full.memory.on_chip_cache, full.memory.off_chip_memory, filled(full.dma), filled(full.host)
    mhz = filled(full.clock_mhz)
    return Machine(
        clock_khz=max(1, round(mhz * 1000)),
        units=tuple(_unit(hcd, name, unit, mhz) for name, unit in active_units(full).items()),
        on_chip=chip.size_kb * 1024,
        on_chip_rate=per_kilocycle(chip.bandwidth_gb_per_s * 1e9, mhz),
        off_chip_rate=per_kilocycle(min(off.bandwidth_gb_per_s, filled(dma.gb_per_s)) * 1e9, mhz),
        channels=filled(dma.channels),
        depth=dma.max_outstanding or 0,
        setup_cycles=filled(dma.setup_cycles),
        latency_cycles=_latency(hcd),
        transfer=transfers_of(hcd),
        link_setup_cycles=host.link_setup_cycles or 0,
        link_rate=per_kilocycle((host.link_gb_per_s or off.bandwidth_gb_per_s) * 1e9, mhz),
        bus=bus,
        dimensions=filled(dma.dimensions),
        power=power_of(hcd),
    )


def filled(value: T | None) -> T:
    """A value of a chip's descriptor that :mod:`flaot.hcd.derive` fills in."""
    assert value is not None
    return value


def transfers_of(hcd: Hcd) -> Transfers:
    """How values pass between the host and the chip."""
    return Transfers[filled(filled(hcd.full.host).transfers)]


def per_kilocycle(per_second: float, mhz: float) -> int:
    """A rate per second as a whole number per 1000 cycles, at least 1."""
    return max(1, round(per_second / (mhz * 1e6) * 1000))


def peak(hcd: Hcd, unit: ComputeUnit) -> float:
    """Operations per second of all units of a kind: as stated, by their multiply-accumulates per cycle, or those of the fastest unit."""
    known = _stated(hcd, unit)
    if known is not None:
        return known
    return max((p for u in active_units(hcd.full).values() if (p := _stated(hcd, u)) is not None), default=1e9)


def _stated(hcd: Hcd, unit: ComputeUnit) -> float | None:
    if unit.peak is not None:
        return unit.peak
    if unit.arithmetic:
        mhz = unit.clock_mhz or filled(hcd.full.clock_mhz)
        return 2e6 * max(a.macs_per_cycle for a in unit.arithmetic) * (unit.count or 1) * mhz
    return None


def _unit(hcd: Hcd, name: str, unit: ComputeUnit, mhz: float) -> Unit:
    launch = round(filled(unit.launch_cycles) * mhz / (unit.clock_mhz or mhz))
    return Unit(name, unit.count or 1, launch, per_kilocycle(peak(hcd, unit), mhz), unit.concurrency or 0)


def _latency(hcd: Hcd) -> int:
    """Cycles until the first byte of main memory arrives: that of the slowest dram or flash region."""
    assert hcd.full.memory is not None
    regions = hcd.full.memory.regions or ()
    return max((r.latency_cycles or 0 for r in regions if r.kind in ("dram", "flash")), default=0)
