"""The host CPU as a target: which kernel variants a chip's ISA features allow."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Cpu:
    """What CPU implementations and the scheduler need to know of a chip.

    ``variants`` slowest first; ``alignment`` in bytes for every buffer.
    """

    name: str = "generic_cpu"
    variants: tuple[str, ...] = ("generic",)
    alignment: int = 64
    precision_high: bool = False


GENERIC = Cpu()
"""Portable kernels only: the chip constants are folded on."""
