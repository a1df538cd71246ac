"""The host CPU as a target: which kernel variants a chip's ISA features allow."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from flaot.ir.types import Rounding
from flaot.plan.fields import ISA_BITS
from flaot.plan.program import DeviceRecord

if TYPE_CHECKING:
    from flaot.hcd import Hcd

VARIANT_NEEDS = {"avx2": ("avx2", "fma", "f16c"), "avx512": ("avx2", "fma", "f16c", "avx512f", "avx512bw", "avx512dq", "avx512vl")}
"""ISA features every function of a kernel variant may use, slowest variant first."""


@dataclass(frozen=True)
class Cpu:
    """What CPU implementations and the scheduler need to know of a chip.

    ``variants`` slowest first; ``alignment`` in bytes for every buffer; ``prefer_last`` says that the chip's default layout stores
    channels innermost (NHWC). ``rounding`` and ``flush_denormals`` say how float32 values become float16 or bfloat16 where a chip
    beside the CPU stores them so.
    """

    name: str = "generic_cpu"
    variants: tuple[str, ...] = ("generic",)
    alignment: int = 64
    precision_high: bool = False
    prefer_last: bool = False
    rounding: Rounding = Rounding.half_to_even
    flush_denormals: bool = False


GENERIC = Cpu()
"""Portable kernels only: the chip constants are folded on."""


def variants_of(isa: tuple[str, ...] | frozenset[str]) -> tuple[str, ...]:
    """Kernel variants a CPU with these ISA features runs, slowest first."""
    return ("generic", *(name for name, needs in VARIANT_NEEDS.items() if set(needs) <= set(isa)))


def cpu_of(hcd: Hcd, precision_high: bool = False) -> Cpu:
    """The CPU that a descriptor of device type cpu describes."""
    chip = hcd.full.chip
    isa = next(u.isa or () for u in hcd.full.compute_units.values() if u.kind == "cpu")
    assert hcd.full.constraints is not None and hcd.full.tensor is not None
    alignment = hcd.full.constraints.memory_alignment_bytes or 64
    return Cpu(chip.name, variants_of(isa), alignment, precision_high, hcd.full.tensor.default_layout == "NHWC")


def device_record(cpu: Cpu) -> DeviceRecord:
    """What a plan states about its host."""
    return DeviceRecord(cpu.name, "cpu", sum({ISA_BITS[v] for v in cpu.variants}), cpu.alignment)
