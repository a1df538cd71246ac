"""The devices of one plan: the host's CPU and the chips beside it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from flaot.ir.graph import HOST, Graph, Node, Place, Value
from flaot.ir.ops.transfer import Transfer
from flaot.plan.program import Buffer, Space
from flaot.targets.cpu import GENERIC, Cpu, cpu_of, variants_of

if TYPE_CHECKING:
    from flaot.hcd import Board


@dataclass(frozen=True)
class Devices:
    """``host`` is device 0 of the plan; ``chips`` by the name of their descriptor, in the order of the plan's device table.
    ``sums_in_half`` says of a node on a chip whether its sums are kept in float16."""

    host: Cpu = GENERIC
    chips: Mapping[str, Cpu] = field(default_factory=dict)
    sums_in_half: Callable[[Node], bool] = lambda node: False

    def of(self, place: Place) -> Cpu:
        """What runs at a place."""
        return self.host if place.device == HOST.device else self.chips[place.device]

    def used_by(self, graph: Graph) -> Devices:
        """The same without the chips that nothing of the graph runs on."""
        used = {n.op.device if isinstance(n.op, Transfer) else n.place.device for n in graph.nodes()}
        return replace(self, chips={name: cpu for name, cpu in self.chips.items() if name in used})

    def running(self, node: Node) -> Cpu:
        """What kernels are chosen for: the device of the node, with the kernels that sum in float16 where it does so."""
        cpu = self.of(node.place)
        return replace(cpu, variants=(*cpu.variants, "half")) if self.sums_in_half(node) else cpu

    def chip(self, name: str) -> Cpu:
        return self.chips[name]

    def index(self, device: str) -> int:
        """Index in the device table."""
        return 0 if device == HOST.device else 1 + list(self.chips).index(device)

    def buffer(self, value: Value) -> Buffer:
        """Memory for a value where its producer leaves it."""
        return self.memory(memory_of(value), value.stored_type.nbytes, value.name)

    def memory(self, device: str, nbytes: int, name: str = "") -> Buffer:
        """Memory of a device."""
        if device == HOST.device:
            return Buffer(Space.arena, nbytes, name)
        return Buffer(Space.device, nbytes, name, index=self.index(device))


def memory_of(value: Value) -> str:
    """The device in whose memory a value lies: the host's for model inputs and constants."""
    node = value.producer
    if node is None:
        return HOST.device
    return node.op.device if isinstance(node.op, Transfer) else node.place.device


def host_of(board: Board, precision_high: bool = False) -> Cpu:
    """The host of a plan: the CPU that a descriptor of the board describes, else portable kernels and those that the first ``host`` group
    of its chips states."""
    if board.cpu is not None:
        return cpu_of(board.cpu, precision_high)
    host = next((h.stated.host for h in board.chips if h.stated.host is not None), None)
    isa = (host.isa if host is not None else None) or ()
    allowed = host.kernels if host is not None else None
    variants = tuple(v for v in variants_of(isa) if allowed is None or v in allowed or v == "generic")
    return Cpu("host", variants, precision_high=precision_high)


@dataclass(frozen=True)
class HostSpeed:
    """What the host computes and moves per nanosecond: ``flops`` operations and ``bytes`` of its memory, both assumed unless stated."""

    flops: float = 1.0
    bytes: float = 4.0


def speed_of(board: Board) -> HostSpeed:
    """The speed of the host: as the CPU's descriptor states, else as the first chip does whose ``host`` group states it."""
    groups = [h.stated.host for h in board.chips if h.stated.host is not None]
    gflops = next((g.peak_gflops for g in groups if g.peak_gflops is not None), HostSpeed.flops)
    gb_per_s = next((g.bandwidth_gb_per_s for g in groups if g.bandwidth_gb_per_s is not None), HostSpeed.bytes)
    if board.cpu is not None:
        unit = next(u for u in board.cpu.full.compute_units.values() if u.kind == "cpu")
        memory = board.cpu.full.memory.off_chip_memory if board.cpu.full.memory is not None else None
        gflops = unit.peak / 1e9 if unit.peak is not None else gflops
        gb_per_s = memory.bandwidth_gb_per_s if memory is not None else gb_per_s
    return HostSpeed(gflops, gb_per_s)
