"""An independent check that queues and waits order every two steps of a program that touch the same byte, one of them writing it.

It shares nothing with the planner: every operand becomes the exact set of its bytes, every memory an array of who touched each byte last.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from flaot.plan.program import Program, Space, Step, View

Queue = tuple[int, int]
SHARED = (Space.arena, Space.output, Space.device, Space.on_chip)


def bytes_of(view: View) -> np.ndarray:
    """Every byte of its memory that a view touches, ascending."""
    places = np.array([view.offset + (view.buffer.offset or 0)], np.int64)
    for d, s in zip(view.dims, view.strides, strict=True):
        places = np.unique(places[:, None] + np.arange(d if s else min(d, 1)) * s * view.dtype.size)
    return (places[:, None] + np.arange(view.dtype.size)).reshape(-1)


class Clocks:
    """Vector clocks: for every step the latest step of each queue that is complete before it starts, itself included."""

    def __init__(self, steps: list[Step]) -> None:
        self.queues: list[Queue] = []
        self.clocks: list[dict[Queue, int]] = []
        latest: dict[Queue, int] = {}
        for i, step in enumerate(steps):
            assert step.command is not None
            queue, clock = (step.device, step.command.queue), dict[Queue, int]()
            for before in (*step.command.waits, *([latest[queue]] if queue in latest else [])):
                assert before < i, f"step {i} waits for step {before}"
                for q, s in self.clocks[before].items():
                    clock[q] = max(clock.get(q, -1), s)
            clock[queue] = latest[queue] = i
            self.queues.append(queue)
            self.clocks.append(clock)

    def ordered(self, a: int, b: int) -> bool:
        """Whether step a is complete before step b starts."""
        return self.clocks[b].get(self.queues[a], -1) >= a


class _Memory:
    def __init__(self, size: int) -> None:
        self.size = size
        self.writers = np.full(size, -1, np.int32)
        self.readers: dict[Queue, np.ndarray] = {}

    def reader(self, queue: Queue) -> np.ndarray:
        return self.readers.setdefault(queue, np.full(self.size, -1, np.int32))


def unordered(program: Program) -> Iterator[str]:
    """A sentence for every two steps that nothing orders."""
    sizes = {(Space.arena, 0): program.arena}
    for device, chip in enumerate(program.chips, 1):
        sizes |= {(Space.device, device): chip.arena, (Space.on_chip, device): chip.machine.on_chip}
    sizes |= {(Space.output, i): p.view.buffer.nbytes for i, p in enumerate(program.outputs)}
    memories = {key: _Memory(size) for key, size in sizes.items()}
    clocks = Clocks(program.steps)
    for i, step in enumerate(program.steps):
        touched = [(memories[v.buffer.space, v.buffer.index], bytes_of(v), w)
                   for views, w in ((step.inputs, False), (step.outputs, True)) for v in views if v.buffer.space in SHARED]
        for memory, places, written in touched:
            before = [("writes", memory.writers), *(("reads", r) for r in memory.readers.values() if written)]
            for what, who in before:
                for other in np.unique(who[places]).tolist():
                    if other >= 0 and not clocks.ordered(other, i):
                        yield f"step {i} {'writes' if written else 'reads'} what step {other} {what}, and is not ordered after it"
            if not written and (memory.writers[places] < 0).any():
                yield f"step {i} reads bytes that nobody wrote"
        for memory, places, written in touched:
            (memory.writers if written else memory.reader(clocks.queues[i]))[places] = i
