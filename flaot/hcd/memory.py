"""Memories: the two of the minimal form, and regions one by one."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from flaot.hcd.fields import AS_SET, HUGE, UNORDERED, Amount, Count, Name, Names, Rate, Section, Size, words

REGION_KINDS = ("sram", "tcm", "dram", "flash")
FAST = ("sram", "tcm")
RIGHTS = ("read", "write", "execute")
USES = ("constants", "activations", "io", "scratch")

RegionKind = Annotated[str, *words(REGION_KINDS)]
Right = Annotated[str, *words(RIGHTS)]
Use = Annotated[str, *words(USES)]
Rights = Annotated[tuple[Right, ...], Field(min_length=1), *AS_SET]
Uses = Annotated[tuple[Use, ...], Field(min_length=1), *AS_SET]


class OnChip(Section):
    """The fast memory beside the units."""

    size_kb: Count = Field(description="size in kB of 1024 bytes")
    bandwidth_gb_per_s: Rate = Field(description="bandwidth, 1e9 bytes per second")


class OffChip(Section):
    """The large memory behind the fast one."""

    size_mb: Count | None = Field(default=None, description="size in MB of 1024 kB; unlimited when left out")
    bandwidth_gb_per_s: Rate = Field(description="bandwidth, 1e9 bytes per second")


class Region(Section):
    """One memory of the chip as the planner sees it."""

    name: Name = Field(description="name, as visible_to, dma.paths and power use it")
    kind: RegionKind = Field(description="what it is made of")
    size_kb: Annotated[int, Field(ge=0, le=HUGE)] = Field(description="size in kB of 1024 bytes; 0 for a part that is not fitted")
    base_address: Size | None = Field(default=None, description="address of its first byte")
    rights: Rights | None = Field(default=None, description="what may be done with it; everything when left out")
    read_gb_per_s: Rate | None = Field(default=None, description="read bandwidth, 1e9 bytes per second")
    write_gb_per_s: Rate | None = Field(default=None, description="write bandwidth, 1e9 bytes per second")
    bus_bits: Count | None = Field(default=None, description="width of its bus in bits")
    clock_mhz: Rate | None = Field(default=None, description="clock of its bus in MHz; the chip's when left out")
    transfers_per_cycle: Annotated[int, Field(ge=1, le=64)] | None = Field(
        default=None, description="words per cycle, 2 for DDR; 1 when left out"
    )
    latency_cycles: Size | None = Field(default=None, description="cycles until the first byte arrives")
    burst_bytes: Count | None = Field(default=None, description="bytes of the shortest transfer")
    visible_to: Names | None = Field(default=None, description="compute units that reach it, 'host', 'dma'; all when left out")
    preferred_for: Uses | None = Field(default=None, description="what is put here first")
    energy_pj_per_byte: Amount | None = Field(default=None, description="energy of moving one byte in pJ")


class Memory(Section):
    """The chip's memories."""

    on_chip_cache: OnChip | None = Field(default=None, description="fast memory; required unless the chip is a cpu")
    off_chip_memory: OffChip | None = Field(default=None, description="main memory; required unless the chip is a cpu")
    regions: Annotated[tuple[Region, ...], *UNORDERED] | None = Field(
        default=None, description="all memories one by one, for chips with more than the two above"
    )
