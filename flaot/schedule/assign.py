"""Arena offsets for every buffer and scratch of a program."""

from __future__ import annotations

from flaot.plan.program import Buffer, Program, Space
from flaot.schedule.memory import Block, align_up, lower_bound, plan


def assign_memory(program: Program) -> None:
    """Sets the offset of every arena buffer and scratch, ``program.arena`` and ``program.lower_bound`` (bytes, sizes aligned)."""
    spans: dict[int, tuple[Buffer, int, int]] = {}
    for i, step in enumerate(program.steps):
        for view in (*step.inputs, *step.outputs):
            b = view.buffer
            if b.space is Space.arena:
                spans[id(b)] = (b, spans[id(b)][1] if id(b) in spans else i, i)
    buffers = list(spans.values())
    steps = [(i, s) for i, s in enumerate(program.steps) if s.scratch]
    unit = program.alignment
    blocks = [Block(align_up(b.nbytes, unit), first, last) for b, first, last in buffers]
    blocks += [Block(align_up(s.scratch, unit), i, i) for i, s in steps]
    offsets, program.arena = plan(blocks)
    program.lower_bound = lower_bound(blocks)
    for (b, _, _), offset in zip(buffers, offsets, strict=False):
        b.offset = offset
    for (_, s), offset in zip(steps, offsets[len(buffers) :], strict=True):
        s.scratch_offset = offset
