"""What a plan takes on its chips, beside the roofline of the same descriptor.

The roofline of a chip is the larger of the operations of every unit at its peak, summed up, and of moving once over off-chip memory what
enters and leaves the chip, its constants, and twice whatever else is too large to stay on chip. The estimate is the timeline without the
host and without transfers to and from it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace

from flaot.plan import durations
from flaot.plan.program import Chip, Opcode, Program, Space, Step, Transfers
from flaot.plan.usage import PS_PER_US, PowerUse, QueueUse, Usage, figure, usage


@dataclass(frozen=True)
class Estimate:
    """One chip: cycles and microseconds it works, the bound by its peak rates, bytes over off-chip memory, on-chip bytes used and least
    possible, ``units`` the use of every queue. ``total_us`` is the whole plan, host and transfers included, ``transfer`` how the chip's
    pass and ``link_wait_us`` how long they wait for a bus that chips share. ``power`` is there when the descriptor states it, and with a
    cap ``uncapped_us``, what ``time_us`` of the same steps would be without."""

    chip: str
    cycles: int
    time_us: float
    bound_us: float
    ratio: float
    traffic_bytes: int
    on_chip_bytes: int
    on_chip_bound_bytes: int
    on_chip_limit_bytes: int
    total_us: float
    units: tuple[QueueUse, ...]
    transfer: str = Transfers.synchronous.name
    link_wait_us: float = 0.0
    power: PowerUse | None = None
    uncapped_us: float | None = None

    def to_json(self) -> dict[str, object]:
        rows = {name: value for name, value in asdict(self).items() if name != "power" and value is not None}
        return rows | (self.power.to_json() if self.power is not None else {})

    def lines(self) -> list[str]:
        """As a person reads it."""
        kept = f"{self.on_chip_bytes} of {self.on_chip_limit_bytes} bytes on chip"
        busy = ", ".join(f"{u.name} {100 * u.utilisation:.0f} %" for u in self.units if u.busy_us)
        moved = "transfers, zero-copy ones, which move nothing" if self.transfer == Transfers.zero_copy.name else "transfers to and from it"
        held = f"; these wait {figure(self.link_wait_us)} us for a bus that chips share" if self.link_wait_us else ""
        time, bound = figure(self.time_us), figure(self.bound_us)
        return [
            f"{self.chip}: {self.cycles} cycles, {time} us, {self.ratio:.3f} times the bound of {bound} us",
            f"  {self.traffic_bytes} bytes over off-chip memory, {kept}; busy: {busy}",
            f"  {figure(self.total_us)} us with the host's steps and {moved}{held}",
            *self._power_lines(),
        ]

    def _power_lines(self) -> list[str]:
        if self.power is None:
            return []
        p, parts = self.power, ("compute", "on_chip", "off_chip", "idle")
        shares = ", ".join(f"{name.replace('_', ' ')} {getattr(p, f'{name}_uj'):.3g}" for name in parts)
        capped = f" of {figure(p.cap_mw)}" if p.cap_mw is not None else ""
        lines = [f"  {p.energy_uj:.3g} uJ ({shares}); {figure(p.average_mw)} mW on average, {figure(p.peak_mw)}{capped} mW at most"]
        if self.uncapped_us is not None and self.uncapped_us < self.time_us:
            lines.append(f"  {figure(self.uncapped_us)} us for the same steps without the cap on power")
        return lines


Operations = Mapping[tuple[int, str], int]
"""Of all steps of a program, by device and unit, counted before any is cut: parts that compute something twice do not raise the bound."""


def operations(steps: Sequence[Step]) -> Operations:
    """Of whole-tensor steps."""
    total: Counter[tuple[int, str]] = Counter()
    for step in steps:
        if step.launch is not None:
            total[step.device, step.launch.unit] += step.work
    return total


def estimates(program: Program, lower_bounds: Mapping[int, int], work: Operations) -> list[Estimate]:
    """One per chip. ``lower_bounds`` are the bytes alive in on-chip memory at once at most, by device."""
    used, free = usage(program.chips, program.steps), None
    if any(c.machine.power is not None and c.machine.power.cap for c in program.chips):
        free = usage([_uncapped(c) for c in program.chips], program.steps)
    return [_estimate(program, device, used, free, lower_bounds.get(device, 0), work) for device in range(1, len(program.chips) + 1)]


def _uncapped(chip: Chip) -> Chip:
    power = chip.machine.power
    return chip if power is None else replace(chip, machine=replace(chip.machine, power=replace(power, cap=0)))


def _estimate(program: Program, device: int, used: Usage, free: Usage | None, lower_bound: int, work: Operations) -> Estimate:
    chip, use = program.chips[device - 1], used.chips[device - 1]
    machine, bound = chip.machine, roofline(program, device, work)
    return Estimate(
        chip.name, use.cycles, use.taken / PS_PER_US, bound / PS_PER_US, use.taken / bound if bound else 1.0, use.traffic.off_chip_bytes,
        machine.on_chip_peak, lower_bound, machine.on_chip, used.whole.end / PS_PER_US, use.queues,
        machine.transfer.name, use.link_contention / PS_PER_US, use.power,
        free.chips[device - 1].taken / PS_PER_US if free is not None and use.power is not None else None,
    )


def roofline(program: Program, device: int, work: Operations) -> int:
    """Picoseconds below which no schedule can come."""
    machine = program.chips[device - 1].machine
    computing = sum(durations.of_amount(machine, work.get((device, u.name), 0), u.rate) for u in machine.units)
    steps = [s for s in program.steps if s.device == device]
    moved: dict[int, int] = {}
    for step in (s for s in steps if s.opcode is Opcode.transfer):
        for view in (v for v in (*step.inputs, *step.outputs) if v.buffer.space is Space.device):
            moved[id(view.buffer)] = moved.get(id(view.buffer), 0) + durations.touched(view)
    for view in (v for s in steps for v in (*s.inputs, *s.outputs)):
        if view.buffer.space is Space.constant:
            moved[id(view.buffer)] = view.buffer.nbytes
        elif view.buffer.space is Space.device and view.buffer.nbytes > machine.on_chip:
            moved.setdefault(id(view.buffer), 2 * view.buffer.nbytes)
    return max(computing, durations.dma_time(machine, sum(moved.values())))
