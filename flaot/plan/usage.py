"""What the chips of a plan do with their time, from its timeline: cycles, traffic, and how busy every queue is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from flaot.plan import durations, energy
from flaot.plan.program import Chip, Machine, Opcode, Power, Space, Step
from flaot.plan.timeline import HOST, Span, Timeline, timeline

PS_PER_US = 1e6
FJ_PER_UJ = 1e9
UW_PER_MW = 1e3


@dataclass(frozen=True)
class QueueUse:
    """A queue of a chip: microseconds it is busy, and the share of the chip's time that is; of the whole run's time for the host link."""

    name: str
    busy_us: float
    utilisation: float


@dataclass(frozen=True)
class Traffic:
    """What one run moves: bytes of DMA steps into and out of on-chip memory, bytes that kernels on DMA queues read and write off chip,
    bytes over the link to and from the host, 0 where transfers are zero-copy; how many launches, DMA steps and transfers that takes."""

    bytes_in: int = 0
    bytes_out: int = 0
    bytes_within: int = 0
    bytes_to_device: int = 0
    bytes_from_device: int = 0
    launches: int = 0
    dmas: int = 0
    copies: int = 0

    @property
    def off_chip_bytes(self) -> int:
        """Bytes over the bus of off-chip memory, without those of the host."""
        return self.bytes_in + self.bytes_out + self.bytes_within


def figure(value: float) -> str:
    """Microseconds or milliwatts as people read them: one decimal, and four digits of what is below 1."""
    return f"{value:.1f}" if value >= 1 or value == 0 else f"{value:.4g}"


@dataclass(frozen=True)
class PowerUse:
    """What a chip takes while it works: microjoules, by what they go to, and milliwatts on average and at most beside its cap, if it has
    one."""

    compute_uj: float
    on_chip_uj: float
    off_chip_uj: float
    idle_uj: float
    average_mw: float
    peak_mw: float
    cap_mw: float | None

    @property
    def energy_uj(self) -> float:
        return self.compute_uj + self.on_chip_uj + self.off_chip_uj + self.idle_uj

    def to_json(self) -> dict[str, Any]:
        """``energy_uj``, ``average_mw``, ``peak_mw``, ``cap_mw`` where there is one, and the parts under ``energy``."""
        parts = {name: getattr(self, name) for name in ("compute_uj", "on_chip_uj", "off_chip_uj", "idle_uj")}
        cap = {} if self.cap_mw is None else {"cap_mw": self.cap_mw}
        return {"energy_uj": self.energy_uj, "average_mw": self.average_mw, "peak_mw": self.peak_mw, **cap, "energy": parts}


@dataclass(frozen=True)
class ChipUse:
    """One chip during one run: cycles and picoseconds in which any of its queues works, as if the host and transfers took no time,
    picoseconds its DMA waits for the bus of its memory, and in the whole run its transfers for one they share with other chips, its traffic
    and its queues, and what it draws when its descriptor says so."""

    cycles: int
    taken: int
    contention: int
    link_contention: int
    traffic: Traffic
    queues: tuple[QueueUse, ...]
    power: PowerUse | None = None


@dataclass(frozen=True)
class Usage:
    """A whole run, the same as if the host and transfers took no time (``alone``), and every chip."""

    whole: Timeline
    alone: Timeline
    chips: tuple[ChipUse, ...]


def usage(chips: Sequence[Chip], steps: Sequence[Step]) -> Usage:
    """Of steps that all have commands."""
    whole, alone = timeline(chips, steps), timeline(chips, steps, alone=True)
    return Usage(whole, alone, tuple(_use(c.machine, d, steps, whole, alone) for d, c in enumerate(chips, 1)))


def queue_names(machine: Machine) -> list[str]:
    """In the order of their numbers."""
    return [*(f"dma{i}" for i in range(machine.channels)), *(u.name for u in machine.units), "link"]


def queue_name(chips: Sequence[Chip], step: Step) -> str:
    """``dma0``, the name of a unit, ``link`` or ``host``; a number that the chip does not have as it is."""
    if step.device == HOST or step.command is None:
        return "host"
    names, queue = queue_names(chips[step.device - 1].machine), step.command.queue
    return names[queue] if queue < len(names) else f"queue {queue}"


def _use(machine: Machine, device: int, steps: Sequence[Step], whole: Timeline, alone: Timeline) -> ChipUse:
    spans = [s for s in alone.spans if s.device == device]
    taken = alone.busy(device)
    queues = []
    for queue, name in enumerate(queue_names(machine)):
        line, total = (whole, whole.end) if queue == machine.link_queue else (alone, taken)
        busy = line.busy(device, queue)
        queues.append(QueueUse(name, busy / PS_PER_US, busy / max(total, 1)))
    contention = sum(s.contention for s in spans if s.queue < machine.channels)
    link = sum(s.contention for s in whole.spans if (s.device, s.queue) == (device, machine.link_queue))
    traffic = traffic_of([s for s in steps if s.device == device], machine)
    power = None if machine.power is None else _power(machine, machine.power, steps, spans, taken)
    return ChipUse(-(-taken * machine.clock_khz // 10**9), taken, contention, link, traffic, tuple(queues), power)


def _power(machine: Machine, power: Power, steps: Sequence[Step], spans: Sequence[Span], taken: int) -> PowerUse:
    each = [energy.energy_of(machine, steps[s.step]) for s in spans]
    total = sum(each, energy.NONE)
    idle = energy.at_rest(power, taken)
    peak = max(uw for _, uw in power_over_time(machine, steps, spans))
    return PowerUse(
        total.compute / FJ_PER_UJ, total.on_chip / FJ_PER_UJ, total.off_chip / FJ_PER_UJ, idle / FJ_PER_UJ,
        (total.total + idle) / max(taken, 1), peak / UW_PER_MW, power.cap / UW_PER_MW if power.cap else None,
    )


def power_over_time(machine: Machine, steps: Sequence[Step], spans: Sequence[Span]) -> list[tuple[int, int]]:
    """Picoseconds and the microwatts that a chip draws from then on, of its spans; nothing when its descriptor does not say."""
    if machine.power is None:
        return []
    even = ((s, energy.draw(energy.energy_of(machine, steps[s.step]).total, s.duration)) for s in spans)
    return energy.levels(machine.power, [(s.drawn or ((s.start, uw),), s.end) for s, uw in even])


def traffic_of(steps: Sequence[Step], machine: Machine) -> Traffic:
    """What steps on one chip move."""
    total = dict.fromkeys(Traffic.__dataclass_fields__, 0)
    for s in steps:
        if s.opcode is Opcode.transfer:
            total["copies"] += 1
            into = s.outputs[0].buffer.space is Space.device
            total["bytes_to_device" if into else "bytes_from_device"] += durations.link_bytes(machine, s)
        elif s.opcode is Opcode.dma:
            total["dmas"] += 1
            total["bytes_in" if s.outputs[0].buffer.space is Space.on_chip else "bytes_out"] += durations.off_chip_bytes(s)
        else:
            total["launches"] += 1
            if s.command is not None and s.command.queue < machine.channels:
                total["bytes_within"] += durations.off_chip_bytes(s)
    return Traffic(**total)
