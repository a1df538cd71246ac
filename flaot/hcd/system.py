"""What surrounds the units: DMA, host, limits, power, policy."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from flaot.hcd.fields import DTYPES, FALLBACKS, TRANSFERS, UNORDERED, Amount, Count, Isas, Name, Names, Rate, Section, Size, Text, words

PlainDType = Annotated[str, *words(DTYPES)]
"""Without the leading torch., so that no key is there twice."""

Fallback = Annotated[str, *words(FALLBACKS)]


class DmaPath(Section):
    """A pair of memories between which data is moved, in this direction."""

    source: Name = Field(description="memory read: a region, 'on_chip_cache' or 'off_chip_memory'")
    target: Name = Field(description="memory written: a region, 'on_chip_cache' or 'off_chip_memory'")


class Dma(Section):
    """The engine that moves data between memories."""

    channels: Count | None = Field(default=None, description="transfers at once")
    max_outstanding: Count | None = Field(default=None, description="transfers queued on each channel")
    setup_cycles: Size | None = Field(default=None, description="cycles before the first byte moves")
    dimensions: Annotated[int, Field(ge=1, le=3)] | None = Field(
        default=None, description="dimensions of a transfer: 1 for plain runs of bytes"
    )
    gb_per_s: Rate | None = Field(default=None, description="bandwidth of all channels together, 1e9 bytes per second")
    paths: Annotated[tuple[DmaPath, ...], Field(min_length=1), *UNORDERED] | None = Field(
        default=None, description="between which memories; between all when left out"
    )


class Host(Section):
    """The processor beside the chip, which runs what the chip does not."""

    kernels: Names | None = Field(default=None, description="kernel variants it may run, such as generic or avx2")
    isa: Isas | None = Field(default=None, description="instruction-set features")
    stack_kb: Count | None = Field(default=None, description="stack a step may use, in kB of 1024 bytes")
    peak_gflops: Rate | None = Field(default=None, description="what its kernels reach, 1e9 floating-point operations per second")
    bandwidth_gb_per_s: Rate | None = Field(default=None, description="bandwidth of its memory, 1e9 bytes per second")
    transfers: Annotated[str, *words(TRANSFERS)] | None = Field(
        default=None, description="between host and chip: the host waits, it goes on, or both see the same memory and nothing moves"
    )
    link_gb_per_s: Rate | None = Field(default=None, description="bandwidth of transfers between host and chip, 1e9 bytes per second")
    link_setup_cycles: Size | None = Field(default=None, description="cycles before such a transfer moves its first byte")
    bus: Text | None = Field(default=None, description="bus of those transfers; chips that name the same one share it")


class Limits(Section):
    """Limits on plans."""

    max_steps: Count | None = Field(default=None, description="most steps of a plan")
    max_plan_bytes: Count | None = Field(default=None, description="largest plan in bytes")


class Power(Section):
    """Energy and power."""

    energy_pj_per_mac: dict[PlainDType, Amount] | None = Field(
        default=None, description="energy of one multiply-accumulate in pJ by element type"
    )
    energy_pj_per_byte: dict[Name, Amount] | None = Field(default=None, description="energy of moving one byte in pJ by memory")
    idle_mw: Amount | None = Field(default=None, description="power at rest in mW")
    cap_mw: Rate | None = Field(default=None, description="highest power in mW")


class Policy(Section):
    """What the compiler may do on its own."""

    fallback: Fallback | None = Field(default=None, description="when the chip lacks an operator: error, warn or allow the host to run it")
    max_relayouts: Size | None = Field(default=None, description="most layout conversions the compiler may insert")
    max_relative_error: Amount | None = Field(default=None, description="largest error of a plan's outputs relative to float32")
