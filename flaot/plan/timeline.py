"""When every step of a plan runs: a pure function of its commands and of the rates of its chips.

The host issues steps in the order of the plan and runs its own. It stalls while a queue is full, and until a synchronous transfer is over. A command
starts when it is issued, those before it on its queue are complete, and what it waits for is. Buses are taken one transfer after the
other: the first gap that is long enough.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from flaot.plan import durations
from flaot.plan.program import Chip, Command, Machine, Opcode, Step, Transfers

HOST = 0


@dataclass(frozen=True)
class Span:
    """One step in time, picoseconds: issued, started, ended; ``contention`` is how long it waited for its bus."""

    step: int
    device: int
    queue: int
    issued: int
    start: int
    end: int
    contention: int = 0

    @property
    def duration(self) -> int:
        return self.end - self.start


@dataclass
class Timeline:
    """All spans, in the order of the steps."""

    spans: list[Span] = field(default_factory=list)

    @property
    def end(self) -> int:
        """Picoseconds until the last step is complete."""
        return max((s.end for s in self.spans), default=0)

    def busy(self, device: int, queue: int) -> int:
        """Picoseconds that a queue of a device is taken."""
        return sum(s.duration for s in self.spans if s.device == device and s.queue == queue)

    def chip_time(self) -> int:
        """Picoseconds during which some chip computes or moves: what is left of the end when the host's own steps cost nothing."""
        spans = sorted((s.start, s.end) for s in self.spans if s.device != HOST)
        total, reached = 0, 0
        for start, end in spans:
            total += max(end - max(start, reached), 0)
            reached = max(reached, end)
        return total


class _Bus:
    """Intervals during which a bus is taken, sorted."""

    def __init__(self) -> None:
        self._taken: list[tuple[int, int]] = []

    def reserve(self, earliest: int, length: int) -> int:
        """Begin of the first gap of that length; takes it."""
        if length == 0:
            return earliest
        i = bisect_right(self._taken, (earliest, -1))
        start = max(earliest, self._taken[i - 1][1]) if i else earliest
        while i < len(self._taken) and self._taken[i][0] < start + length:
            start = max(start, self._taken[i][1])
            i += 1
        insort(self._taken, (start, start + length))
        return start


def timeline(chips: Sequence[Chip], steps: Sequence[Step]) -> Timeline:
    """The timeline of steps that all have commands."""
    return _Clock([c.machine for c in chips]).run(steps)


class _Clock:
    def __init__(self, machines: Sequence[Machine]) -> None:
        self.machines = machines
        self.now = 0
        self.free: dict[tuple[int, int], int] = {}
        self.held: dict[tuple[int, int], deque[int]] = {}
        self.memory = [_Bus() for _ in machines]
        self.links: dict[int, _Bus] = {}
        self.done = Timeline()

    def run(self, steps: Sequence[Step]) -> Timeline:
        for i, step in enumerate(steps):
            assert step.command is not None
            span = self._host(i, step.command) if step.device == HOST else self._chip(i, step, step.command)
            self.done.spans.append(span)
        return self.done

    def _ready(self, command: Command) -> int:
        return max((self.done.spans[w].end for w in command.waits), default=0)

    def _host(self, index: int, command: Command) -> Span:
        start = max(self.now, self._ready(command))
        span = Span(index, HOST, command.queue, self.now, start, start + command.work)
        self.now = span.end
        return span

    def _chip(self, index: int, step: Step, command: Command) -> Span:
        machine, key = self.machines[step.device - 1], (step.device, command.queue)
        self._issue(machine, key)
        issued = self.now
        start = max(issued, self._ready(command), self.free.get(key, 0))
        end, contention = self._finish(machine, step, command, start)
        self.free[key] = end
        self.held[key].append(end)
        if step.opcode is Opcode.transfer and machine.transfer is Transfers.synchronous:
            self.now = end
        return Span(index, step.device, command.queue, issued, start, end, contention)

    def _issue(self, machine: Machine, key: tuple[int, int]) -> None:
        """Waits until the queue has room."""
        unit = key[1] - machine.channels
        own = machine.units[unit].depth if 0 <= unit < len(machine.units) else 0
        depth, held = own or machine.depth, self.held.setdefault(key, deque())
        while depth and len(held) >= depth:
            self.now = max(self.now, held.popleft())

    def _finish(self, machine: Machine, step: Step, command: Command, start: int) -> tuple[int, int]:
        """End of a command that starts at ``start``, and how long its bus keeps it waiting."""
        if step.opcode is Opcode.transfer:
            setup, length = durations.link_time(machine, durations.touched(step.inputs[0]))
            bus = self.links.setdefault(machine.bus, _Bus())
        elif command.queue < machine.channels:
            setup, length = durations.dma_setup(machine, step), durations.dma_time(machine, durations.off_chip_bytes(step))
            bus = self.memory[step.device - 1]
        else:
            assert step.launch is not None
            reads, writes = durations.on_chip_bytes(step)
            return start + durations.unit_time(machine, step.launch.unit, command.work, reads, writes, command.hold), 0
        begin = bus.reserve(start + setup, length)
        return max(begin + length, start + durations.of_cycles(machine, command.hold)), begin - start - setup
