"""Queues of the steps, and what each waits for: every step that wrote what it reads, or used what it writes, unless the order of queues
and other waits sees to that already."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from flaot.plan.fields import HOST_QUEUE, MAX_QUEUES
from flaot.plan.program import Buffer, Chip, Command, Machine, Opcode, Space, Step
from flaot.plan.turns import waits_in_turn
from flaot.schedule.chip.pieces import operands
from flaot.schedule.chip.sequence import LOAD

Queue = tuple[int, int]
Memory = tuple[Space, int]

HELD = (Space.arena, Space.device, Space.on_chip)
"""Spaces whose memory is used again."""


@dataclass
class _Region:
    """A run of memory with the latest step of every queue that wrote and that read it."""

    low: int
    high: int
    writers: dict[Queue, int] = field(default_factory=dict)
    readers: dict[Queue, int] = field(default_factory=dict)


class _Regions:
    """The buffers that lie in one memory now, by their place; a new one takes over what it covers."""

    def __init__(self) -> None:
        self.of: dict[int, _Region] = {}

    def get(self, buffer: Buffer) -> _Region:
        key, low = id(buffer), buffer.offset or 0
        if key in self.of:
            return self.of[key]
        new = _Region(low, low + max(buffer.nbytes, 1))
        for old_key, old in list(self.of.items()):
            if old.low < new.high and new.low < old.high:
                for name in ("writers", "readers"):
                    mine = getattr(new, name)
                    for queue, step in getattr(old, name).items():
                        mine[queue] = max(mine.get(queue, -1), step)
                if new.low <= old.low and old.high <= new.high:
                    del self.of[old_key]
        self.of[key] = new
        return new


def assign_commands(
    steps: Sequence[Step], works: Sequence[int], chips: Sequence[Chip], asynchronous: bool = True, channels: int = MAX_QUEUES,
) -> list[Step]:
    """The steps with their commands; ``works`` are the operations of calls, on the host picoseconds. Without ``asynchronous`` every step
    waits for the one before it; no more than so many DMA ``channels`` are used."""
    return list(_Assigner([c.machine for c in chips], asynchronous, channels).run(steps, works))


class _Assigner:
    def __init__(self, machines: Sequence[Machine], asynchronous: bool, channels: int) -> None:
        self.machines, self.asynchronous, self.channels = machines, asynchronous, channels
        self.memories: dict[Memory, _Regions] = {}
        self.clocks: list[dict[Queue, int]] = []
        self.latest: dict[Queue, int] = {}
        self.turns: Counter[int] = Counter()

    def run(self, steps: Sequence[Step], works: Sequence[int]) -> Iterator[Step]:
        for i, (step, work) in enumerate(zip(steps, works, strict=True)):
            queue = self._queue(step)
            needed = self._needed(i, step, queue)
            waits = self._pruned(i, queue, needed) if self.asynchronous else waits_in_turn(steps, i)
            yield replace(step, command=Command(queue[1], waits, work))

    def _queue(self, step: Step) -> Queue:
        if not step.device:
            return 0, HOST_QUEUE
        machine = self.machines[step.device - 1]
        if step.opcode is Opcode.transfer:
            return step.device, machine.link_queue
        if step.opcode is Opcode.call and all(v.buffer.space is Space.on_chip for v in operands(step)):
            assert step.launch is not None
            return step.device, machine.unit_queue(step.launch.unit)
        return step.device, self._channel(machine, step)

    def _channel(self, machine: Machine, step: Step) -> int:
        """Loads of a chip take its channels in turn, all but the last, which is for the rest."""
        channels = min(machine.channels, self.channels)
        if channels == 1 or step.op != LOAD:
            return channels - 1
        self.turns[step.device] += 1
        return self.turns[step.device] % (channels - 1)

    def _needed(self, index: int, step: Step, queue: Queue) -> set[int]:
        needed: set[int] = set()
        seen = [(v.buffer, False) for v in step.inputs] + [(v.buffer, True) for v in step.outputs]
        regions = []
        for buffer, written in seen:
            if buffer.space not in HELD:
                continue
            device = 0 if buffer.space is Space.arena else buffer.index
            region = self.memories.setdefault((buffer.space, device), _Regions()).get(buffer)
            needed.update(region.writers.values())
            if written:
                needed.update(region.readers.values())
            regions.append((region, written))
        for region, written in regions:
            (region.writers if written else region.readers)[queue] = index
        return needed - {index}

    def _pruned(self, index: int, queue: Queue, needed: set[int]) -> tuple[int, ...]:
        """The needed steps that are not known to be complete, those of other devices all."""
        known = dict(self.clocks[self.latest[queue]]) if queue in self.latest else {}
        waits = []
        for step in sorted(needed, reverse=True):
            clock = self.clocks[step]
            other = next(q for q, s in clock.items() if s == step)
            if known.get(other, -1) >= step:
                continue
            waits.append(step)
            if other[0] == queue[0]:
                for q, s in clock.items():
                    known[q] = max(known.get(q, -1), s)
            else:
                known[other] = step
        known[queue] = index
        self.clocks.append(known)
        self.latest[queue] = index
        return tuple(sorted(waits))
