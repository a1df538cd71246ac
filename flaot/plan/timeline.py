"""When every step of a plan runs: a pure function of its commands and of the rates of its chips.

The host issues steps in the order of the plan and runs its own. It stalls while a queue is full, and until a synchronous transfer is over.
A command starts when it is issued, those before it on its queue are over, and what it waits for is complete. Buses are taken one transfer
after the other: the first gap that is long enough. Units write results behind: while the last bytes of one launch are written the next
one runs already, but not the one after that. On a chip with a cap on power a command draws what those that started before it leave: with
less than it can use it takes longer, with nothing it starts later.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from flaot.plan import durations, energy
from flaot.plan.program import Chip, Command, Machine, Opcode, Step, Transfers

HOST = 0


@dataclass(frozen=True)
class Span:
    """One step in time, picoseconds: issued, started, ended; ``contention`` is how long it waited for its bus from ``ready`` on, ``drawn``
    what it draws under a cap on power."""

    step: int
    device: int
    queue: int
    issued: int
    start: int
    end: int
    contention: int = 0
    drawn: energy.Draws = ()
    ready: int = 0

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

    def busy(self, device: int, queue: int | None = None) -> int:
        """Picoseconds that a queue of a device, or any of them, is taken; while one command writes behind the next one runs, which counts
        once."""
        busy, last = 0, 0
        mine = (s for s in self.spans if s.device == device and queue in (None, s.queue))
        for s in sorted(mine, key=lambda s: s.start):
            busy += max(s.end - max(s.start, last), 0)
            last = max(last, s.end)
        return busy


class _Bus:
    """Intervals during which a bus is taken, sorted."""

    def __init__(self) -> None:
        self._taken: list[tuple[int, int]] = []

    def gap(self, earliest: int, length: int) -> int:
        """Begin of the first gap of that length."""
        if length == 0:
            return earliest
        i = bisect_right(self._taken, (earliest, -1))
        start = max(earliest, self._taken[i - 1][1]) if i else earliest
        while i < len(self._taken) and self._taken[i][0] < start + length:
            start = max(start, self._taken[i][1])
            i += 1
        return start

    def take(self, start: int, length: int) -> None:
        """Takes a gap of that length."""
        if length:
            insort(self._taken, (start, start + length))


def timeline(chips: Sequence[Chip], steps: Sequence[Step], alone: bool = False) -> Timeline:
    """The timeline of steps that all have commands; ``alone``: as if the host and transfers to and from it took no time."""
    return _Clock([c.machine for c in chips], alone).run(steps)


Queue = tuple[int, int]


class _Course(NamedTuple):
    """What a command does from its start on: when its queue is free, when it is over, when it is set up for its bus, and when and for how
    long it takes that."""

    free: int
    end: int
    bus: _Bus | None = None
    ready: int = 0
    begin: int = 0
    length: int = 0


class _Clock:
    """Runs commands in the order of their start: that is the order in which buses serve them."""

    def __init__(self, machines: Sequence[Machine], alone: bool) -> None:
        self.machines, self.alone = machines, alone
        self.now, self.next, self.blocker = 0, 0, -1
        self.issued: list[int] = []
        self.waiting: dict[Queue, deque[int]] = {}
        self.flying: dict[Queue, deque[int]] = {}
        self.free: dict[Queue, int] = {}
        self.written: dict[Queue, int] = {}
        self.delayed: dict[int, int] = {}
        self.drawn: dict[int, energy.Draws] = {}
        self.governors = [energy.governor_of(m) for m in machines]
        self.memory = [_Bus() for _ in machines]
        self.links: dict[int, _Bus] = {}
        self.spans: list[Span | None] = []

    def run(self, steps: Sequence[Step]) -> Timeline:
        self.steps, self.spans = steps, [None] * len(steps)
        while self.next < len(steps) or any(self.waiting.values()):
            if not self._issue():
                self._start()
        return Timeline([s for s in self.spans if s is not None])

    def _ready(self, index: int) -> int | None:
        """When all that a step waits for is complete; None while that is not known."""
        latest, command = 0, self.steps[index].command
        assert command is not None
        for w in command.waits:
            span = self.spans[w]
            if span is None:
                return None
            latest = max(latest, span.end)
        return latest

    # -- the host ------------------------------------------------------------------------------------------------------

    def _issue(self) -> bool:
        """Issues the next step, unless that has to wait for something whose end is not known yet."""
        if self.blocker >= 0:
            span = self.spans[self.blocker]
            if span is None:
                return False
            self.now, self.blocker = max(self.now, span.end), -1
        if self.next == len(self.steps):
            return False
        index, step = self.next, self.steps[self.next]
        if not (self._host(index, step) if step.device == HOST else self._enqueue(index, step)):
            return False
        self.next += 1
        return True

    def _host(self, index: int, step: Step) -> bool:
        ready = self._ready(index)
        if ready is None:
            return False
        assert step.command is not None
        start = max(self.now, ready)
        span = Span(index, HOST, step.command.queue, self.now, start, start + (0 if self.alone else step.command.work))
        self.spans[index], self.now = span, span.end
        self.issued.append(span.issued)
        return True

    def _enqueue(self, index: int, step: Step) -> bool:
        assert step.command is not None
        machine, key = self.machines[step.device - 1], (step.device, step.command.queue)
        unit = key[1] - machine.channels
        depth = (machine.units[unit].depth if 0 <= unit < len(machine.units) else 0) or machine.depth
        flying = self.flying.setdefault(key, deque())
        while depth and len(flying) >= depth:
            oldest = self.spans[flying[0]]
            if oldest is None:
                return False
            self.now = max(self.now, oldest.end)
            flying.popleft()
        flying.append(index)
        self.waiting.setdefault(key, deque()).append(index)
        self.issued.append(self.now)
        if step.opcode is Opcode.transfer and machine.transfer is Transfers.synchronous:
            self.blocker = index
        return True

    # -- queues --------------------------------------------------------------------------------------------------------

    def _start(self) -> None:
        """Starts the command at the head of a queue that can start first."""
        best: tuple[int, int, Queue] | None = None
        for key, waiting in self.waiting.items():
            ready = self._ready(waiting[0]) if waiting else None
            if ready is not None:
                start = max(ready, self.issued[waiting[0]], self.free.get(key, 0), self.delayed.get(waiting[0], 0))
                best = min(best, (start, waiting[0], key)) if best is not None else (start, waiting[0], key)
        if best is None:
            raise ValueError("steps wait for each other")
        start, index, key = best
        governor, drawn, end = self.governors[key[0] - 1], 0, 0
        if governor is not None:
            drawn = energy.energy_of(self.machines[key[0] - 1], self.steps[index]).total
            later = governor.first(start) if drawn else start
            if later > start:
                self.delayed[index] = later
                return
            end, self.drawn[index] = governor.run(start, self._course(index, key, start).end, drawn)
        self.waiting[key].popleft()
        self.spans[index] = self._span(index, key, start, end)

    def _span(self, index: int, key: Queue, start: int, least: int) -> Span:
        """Runs a command from ``start`` on for as long as it takes, but not less than until ``least``."""
        course, contention = self._course(index, key, start), 0
        end = max(course.end, least)
        self.free[key] = course.free + end - course.end
        if course.bus is not None:
            course.bus.take(course.begin, course.length)
            contention = course.begin - course.ready
        else:
            self.free[key] = max(self.free[key], self.written.get(key, 0))
            self.written[key] = end
        return Span(index, *key, self.issued[index], start, end, contention, self.drawn.get(index, ()), course.ready)

    def _course(self, index: int, key: Queue, start: int) -> _Course:
        step, machine = self.steps[index], self.machines[key[0] - 1]
        assert step.command is not None
        launched = step.opcode is Opcode.call and key[1] >= machine.channels
        return self._launch(machine, step, step.command, key, start) if launched else self._move(machine, step, step.command, start)

    def _launch(self, machine: Machine, step: Step, command: Command, key: Queue, start: int) -> _Course:
        """It is over when its result is written, after that of the launch before; the one after the next starts no earlier."""
        assert step.launch is not None
        reads, writes = durations.on_chip_bytes(step)
        over = start + durations.unit_time(machine, step.launch.unit, command.work, reads, command.hold)
        return _Course(over, max(over, max(start, self.written.get(key, 0)) + durations.write_time(machine, writes)))

    def _move(self, machine: Machine, step: Step, command: Command, start: int) -> _Course:
        if step.opcode is Opcode.transfer:
            setup, length = (0, 0) if self.alone else durations.link_time(machine, durations.link_bytes(machine, step))
            bus = self.links.setdefault(machine.bus, _Bus())
        else:
            setup, length = durations.dma_setup(machine, step), durations.dma_time(machine, durations.off_chip_bytes(step))
            bus = self.memory[step.device - 1]
        begin = bus.gap(start + setup, length)
        end = max(begin + length, start + durations.of_cycles(machine, command.hold))
        return _Course(end, end, bus, start + setup, begin, length)
