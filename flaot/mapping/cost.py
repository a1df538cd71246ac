"""What computing and moving costs, in nanoseconds, from the figures of a descriptor.

A node takes the longer of its operations over the unit's peak and its bytes over the memory's bandwidth, plus the launch. Where the
descriptor is silent the constants below stand in; they matter only for where cheap nodes between host nodes go.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from flaot.hcd import Hcd
from flaot.hcd.rules import active_units
from flaot.ir.graph import HOST, Node, Place
from flaot.ir.types import DType, TensorType

HOST_FLOPS = 1.0
"""Operations per nanosecond of the host's portable kernels."""

HOST_BYTES = 4.0
"""Bytes per nanosecond of the host's memory."""

LAUNCH = 1000.0
"""Nanoseconds to start a transfer, where the descriptor states no DMA setup."""

EMULATION = 3.0
"""How many operations stand for one of an element type that a unit only emulates."""

FREE = ("Reshape", "Identity")
"""Ops that move nothing when their storage allows."""


@dataclass(frozen=True)
class CostModel:
    """Costs on one chip and its host."""

    hcd: Hcd

    def node(self, node: Node, place: Place, emulated: bool = False) -> float:
        """Nanoseconds the node takes at a place."""
        work = node.op.cost(node.input_types, node.output_types)
        if node.op.name in FREE:
            return 0.0
        if place.device == HOST.device:
            return work.flops / HOST_FLOPS + work.bytes / HOST_BYTES
        bytes = work.bytes * place.dtype.size / DType.float32.size
        factor = EMULATION if emulated else 1.0
        return self.launch(place.unit) + max(factor * work.flops / self.peak(place.unit), bytes / self.bandwidth)

    def peak(self, unit: str) -> float:
        """Operations per nanosecond of all units of this name; an attention unit without a figure is as fast as the fastest
        unit for floating point."""
        stated = self.hcd.full.compute_units[unit].peak
        return (stated if stated is not None else self._fastest) / 1e9

    @cached_property
    def _fastest(self) -> float:
        units = active_units(self.hcd.full).values()
        floats = [u.peak for u in units if u.peak is not None and (u.peak_gflops is not None or u.peak_tflops is not None)]
        return max(floats, default=1e9)

    @cached_property
    def bandwidth(self) -> float:
        """Bytes per nanosecond between the units and main memory."""
        memory = self.hcd.full.memory
        return memory.off_chip_memory.bandwidth_gb_per_s if memory is not None and memory.off_chip_memory is not None else HOST_BYTES

    def launch(self, unit: str) -> float:
        """Nanoseconds from the start of a step to its first result."""
        stated = self.hcd.full.compute_units[unit]
        return nanoseconds(stated.launch_cycles, stated.clock_mhz or self.hcd.full.clock_mhz)

    def transfer(self, type: TensorType) -> float:
        """Nanoseconds to bring a tensor, as stored, from the host's memory to the chip's or back."""
        dma = self.hcd.full.dma
        setup = nanoseconds(dma.setup_cycles, self.hcd.full.clock_mhz) if dma is not None and dma.setup_cycles is not None else LAUNCH
        rate = min(self.bandwidth, (dma.gb_per_s if dma is not None else None) or self.bandwidth, HOST_BYTES)
        return setup + type.nbytes / rate

    def recast(self, elements: int, source: DType, target: DType, device: str) -> float:
        """Nanoseconds to store a tensor in another element type."""
        rate = HOST_BYTES if device == HOST.device else self.bandwidth
        return elements * (source.size + target.size) / rate


def nanoseconds(cycles: int | None, clock_mhz: float | None) -> float:
    """Cycles as time; 0 where one of the two is not stated."""
    return cycles * 1e3 / clock_mhz if cycles and clock_mhz else 0.0
