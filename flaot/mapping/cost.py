"""What computing and moving costs, in nanoseconds, from the figures of the descriptors.

A node on a chip takes the longer of its operations over the unit's peak and its bytes over the memory's bandwidth, plus the launch; on the
host its operations over the host's peak and its bytes over its bandwidth, one after the other. Where a descriptor is silent, assumed
figures stand in; they matter only for where cheap nodes between host nodes go.

A tensor passes between host and chip in ``setup + bytes * sharers / rate``: ``host.link_setup_cycles`` and ``host.link_gb_per_s`` of the
chip, and how many chips of the plan that run some of the model name the same ``host.bus``, as each of them gets its part of it. The
setup of asynchronous transfers is hidden behind what the host does meanwhile; zero-copy ones cost nothing and leave the bus to others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from typing import TYPE_CHECKING

from flaot.hcd import Board, Hcd
from flaot.hcd.rules import active_units
from flaot.ir.graph import HOST, Node, Place
from flaot.ir.types import DType, TensorType
from flaot.plan.program import Transfers
from flaot.targets.chip.machine import filled, transfers_of
from flaot.targets.devices import HostSpeed, speed_of

if TYPE_CHECKING:
    from flaot.mapping.placement import Option

BANDWIDTH = 4.0
"""Bytes per nanosecond of a chip's main memory, where none is stated."""

EMULATION = 3.0
"""How many operations stand for one of an element type that a unit only emulates."""

FREE = ("Reshape", "Identity")
"""Ops that move nothing when their storage allows."""


@dataclass(frozen=True)
class ChipCost:
    """Costs on one chip; ``sharers`` is the number of chips that transfer over its bus."""

    hcd: Hcd
    sharers: int = 1

    def node(self, node: Node, place: Place, emulated: bool = False) -> float:
        """Nanoseconds the node takes on a unit."""
        work = node.op.cost(node.input_types, node.output_types)
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
        return memory.off_chip_memory.bandwidth_gb_per_s if memory is not None and memory.off_chip_memory is not None else BANDWIDTH

    def launch(self, unit: str) -> float:
        """Nanoseconds from the start of a step to its first result."""
        stated = self.hcd.full.compute_units[unit]
        return nanoseconds(stated.launch_cycles, stated.clock_mhz or self.hcd.full.clock_mhz)

    def transfer(self, type: TensorType) -> float:
        """Nanoseconds to bring a tensor, as stored, from the host's memory to the chip's or back."""
        if self.zero_copy:
            return 0.0
        setup = 0.0 if transfers_of(self.hcd) is Transfers.asynchronous else self._link_setup
        return setup + type.nbytes * self.sharers / self._link_rate

    @property
    def zero_copy(self) -> bool:
        """Whether transfers move nothing."""
        return transfers_of(self.hcd) is Transfers.zero_copy

    @cached_property
    def _link_rate(self) -> float:
        return filled(filled(self.hcd.full.host).link_gb_per_s)

    @cached_property
    def _link_setup(self) -> float:
        return nanoseconds(filled(self.hcd.full.host).link_setup_cycles, self.hcd.full.clock_mhz)


@dataclass(frozen=True)
class CostModel:
    """Costs on a host and its chips. ``users`` names the chips that may run some of the model (None: all)."""

    board: Board
    users: frozenset[str] | None = None

    @cached_property
    def chips(self) -> dict[str, ChipCost]:
        """By the chip's name."""
        buses = dict(zip((h.name for h in self.board.chips), self.board.buses, strict=True))
        alone = {h.name: ChipCost(h) for h in self.board.chips}
        using = [buses[name] for name, chip in alone.items() if not chip.zero_copy and (self.users is None or name in self.users)]
        return {name: replace(chip, sharers=max(1, using.count(buses[name]))) for name, chip in alone.items()}

    @cached_property
    def host(self) -> HostSpeed:
        return speed_of(self.board)

    def used_by(self, options: Mapping[int, Sequence[Option]]) -> CostModel:
        """The same for a model whose nodes have these options."""
        return replace(self, users=frozenset(o.place.device for held in options.values() for o in held))

    def uses(self, device: str) -> bool:
        """Whether the model may run on it: the host, and chips that are not left out."""
        return self.users is None or device == HOST.device or device in self.users

    def fewer(self) -> list[CostModel]:
        """The same for fewer chips, where several share a bus: for every set of them, larger ones first."""
        if all(c.sharers == 1 for c in self.chips.values()):
            return []
        names = [n for n in self.chips if self.uses(n)]
        sets = [s for size in range(len(names) - 1, 0, -1) for s in combinations(names, size)]
        return [replace(self, users=frozenset(s)) for s in sets]

    def node(self, node: Node, place: Place, emulated: bool = False) -> float:
        """Nanoseconds the node takes at a place."""
        if node.op.name in FREE:
            return 0.0
        if place.device == HOST.device:
            work = node.op.cost(node.input_types, node.output_types)
            return work.flops / self.host.flops + work.bytes / self.host.bytes
        return self.chips[place.device].node(node, place, emulated)

    def bandwidth(self, device: str) -> float:
        """Bytes per nanosecond of a device's main memory."""
        return self.host.bytes if device == HOST.device else self.chips[device].bandwidth

    def transfer(self, type: TensorType, device: str) -> float:
        """Nanoseconds to bring a tensor, as stored, from the host's memory to a chip's or back."""
        return self.chips[device].transfer(type)

    def recast(self, elements: int, source: DType, target: DType, device: str) -> float:
        """Nanoseconds to store a tensor in another element type."""
        return elements * (source.size + target.size) / self.bandwidth(device)


def nanoseconds(cycles: int | None, clock_mhz: float | None) -> float:
    """Cycles as time; 0 where one of the two is not stated."""
    return cycles * 1e3 / clock_mhz if cycles and clock_mhz else 0.0
