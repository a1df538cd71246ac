"""What one run of a plan takes on its chips: cycles, traffic, utilisation, and the time of every node of the model."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any

from flaot.plan.durations import off_chip_bytes
from flaot.plan.program import Opcode, Step
from flaot.plan.read import Plan
from flaot.plan.scratchpad import Held, on_chip_held, on_chip_use
from flaot.plan.timeline import HOST, Span, Timeline
from flaot.plan.usage import PS_PER_US, Usage, power_over_time, queue_name, queue_names, usage


@dataclass
class NodeUse:
    """The steps of one node, or of several that became one: picoseconds on compute units, in DMA, in transfers and on the host, when the
    first one starts and the last one ends, bytes over off-chip memory, and where they run."""

    nodes: tuple[str, ...]
    unit: int = 0
    dma: int = 0
    link: int = 0
    host: int = 0
    start: int = 0
    end: int = 0
    dma_bytes: int = 0
    calls: int = 0
    dmas: int = 0
    places: dict[str, None] = field(default_factory=dict)

    @property
    def time(self) -> int:
        return self.unit + self.dma + self.link + self.host

    def to_json(self) -> dict[str, Any]:
        times = {f"{name}_us": getattr(self, name) / PS_PER_US for name in ("time", "unit", "dma", "link", "host", "start", "end")}
        counts = {"dma_bytes": self.dma_bytes, "calls": self.calls, "dmas": self.dmas}
        return {"nodes": list(self.nodes), **times, **counts, "runs_on": list(self.places)}


class ChipReport:
    """Of a plan with chips. Raises PlanError for records out of bounds."""

    def __init__(self, plan: Plan) -> None:
        self.plan, self.steps, self.chips = plan, plan.steps, plan.chips
        if not self.chips or any(s.command is None for s in self.steps):
            raise plan.fail("the plan has no commands for chips")

    @cached_property
    def usage(self) -> Usage:
        try:
            return usage(self.chips, self.steps)
        except (ValueError, IndexError, StopIteration, ZeroDivisionError):
            raise self.plan.fail("its commands make no timeline") from None

    @property
    def line(self) -> Timeline:
        return self.usage.whole

    def device_name(self, device: int) -> str:
        return "host" if device == HOST else self.chips[device - 1].name

    def queues(self, device: int) -> list[str]:
        """Names of the queues of a device, in the order of their numbers."""
        return ["host"] if device == HOST else queue_names(self.chips[device - 1].machine)

    def on_chip(self, device: int, line: Timeline | None = None) -> list[tuple[int, int]]:
        """Picoseconds and the bytes of on-chip memory in use from then on; of the whole run unless another timeline is given."""
        return on_chip_use(self.steps, line or self.line, device)

    def power(self, device: int) -> list[tuple[int, int]]:
        """Picoseconds and the microwatts a chip draws from then on; nothing when its descriptor does not say."""
        spans = [s for s in self.line.spans if s.device == device]
        return power_over_time(self.chips[device - 1].machine, self.steps, spans)

    def on_chip_held(self, device: int, line: Timeline | None = None) -> list[Held]:
        """What lies where in on-chip memory, from when to when; of the whole run unless another timeline is given."""
        return on_chip_held(self.steps, line or self.line, device)

    @cached_property
    def nodes(self) -> list[NodeUse]:
        """What takes most time first."""
        found: dict[tuple[str, ...], NodeUse] = {}
        for step, span in zip(self.steps, self.line.spans, strict=True):
            use = found.setdefault(step.origin, NodeUse(step.origin, start=span.start))
            self._count(use, step, span)
        return sorted(found.values(), key=lambda n: -n.time)

    def _count(self, use: NodeUse, step: Step, span: Span) -> None:
        kind = self._kind(step)
        setattr(use, kind, getattr(use, kind) + span.duration)
        use.start, use.end = min(use.start, span.start), max(use.end, span.end)
        if step.opcode is Opcode.call:
            use.calls += 1
            use.places["host" if step.device == HOST else f"{self.device_name(step.device)} {queue_name(self.chips, step)}"] = None
        if kind == "dma":
            use.dmas += 1
            use.dma_bytes += off_chip_bytes(step)

    def _kind(self, step: Step) -> str:
        if step.device == HOST:
            return "host"
        if step.opcode is Opcode.transfer:
            return "link"
        machine, command = self.chips[step.device - 1].machine, step.command
        return "dma" if command is not None and command.queue < machine.channels else "unit"

    def chip_json(self, device: int) -> dict[str, Any]:
        """Cycles, times in microseconds, bytes and queues of one chip."""
        use, chip = self.usage.chips[device - 1], self.chips[device - 1]
        return {
            "chip": chip.name,
            "device_type": chip.device_type,
            "clock_mhz": chip.machine.clock_khz / 1000,
            "transfer": chip.machine.transfer.name,
            "cycles": use.cycles,
            "time_us": use.taken / PS_PER_US,
            "total_us": self.line.end / PS_PER_US,
            "traffic_bytes": use.traffic.off_chip_bytes,
            "traffic": asdict(use.traffic),
            "bus_wait_us": use.contention / PS_PER_US,
            "link_wait_us": use.link_contention / PS_PER_US,
            "on_chip_peak_bytes": chip.machine.on_chip_peak,
            "on_chip_bytes": chip.machine.on_chip,
            "units": [asdict(q) for q in use.queues],
            **(use.power.to_json() if use.power is not None else {}),
        }

    def to_json(self) -> dict[str, Any]:
        """``chips`` and ``nodes``."""
        chips = [self.chip_json(d) for d in range(1, len(self.chips) + 1)]
        return {"chips": chips, "nodes": [n.to_json() for n in self.nodes]}

    def timeline_json(self) -> dict[str, Any]:
        """Every step in time and on-chip memory over time, in microseconds."""
        spans = [self._span_json(step, span) for step, span in zip(self.steps, self.line.spans, strict=True)]
        memory = [self._memory_json(d, c.name) for d, c in enumerate(self.chips, 1)]
        return {"total_us": self.line.end / PS_PER_US, "steps": spans, "on_chip": memory}

    def _memory_json(self, device: int, name: str) -> dict[str, Any]:
        in_use = [[time / PS_PER_US, count] for time, count in self.on_chip(device)]
        held = [[h.low, h.high, h.since / PS_PER_US, h.until / PS_PER_US, h.step] for h in self.on_chip_held(device)]
        return {"chip": name, "in_use": in_use, "held": held}

    def _span_json(self, step: Step, span: Span) -> dict[str, Any]:
        assert step.command is not None
        return {
            "step": span.step,
            "op": step.op,
            "nodes": list(step.origin),
            "device": self.device_name(step.device),
            "queue": queue_name(self.chips, step),
            "issued_us": span.issued / PS_PER_US,
            "start_us": span.start / PS_PER_US,
            "end_us": span.end / PS_PER_US,
            "bus_wait_us": span.contention / PS_PER_US,
            "waits": list(step.command.waits),
        }
