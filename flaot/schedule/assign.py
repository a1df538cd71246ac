"""Offsets for every buffer and scratch of a program: the host's arena, and the memory of each chip."""

from __future__ import annotations

from flaot.plan.program import Buffer, Program, Space
from flaot.schedule.memory import Block, align_up, lower_bound, plan


def assign_memory(program: Program, effort: int | None = None) -> None:
    """Sets the offset of every buffer and scratch, and arena and lower bound (bytes, sizes aligned) of the program and its chips;
    ``effort`` is that of :func:`flaot.schedule.memory.plan`, for each memory."""
    steps = [(i, s) for i, s in enumerate(program.steps) if s.scratch and not s.device]
    scratch = [Block(align_up(s.scratch, program.alignment), i, i) for i, s in steps]
    offsets, program.arena, program.lower_bound = _pack(program, Space.arena, 0, program.alignment, scratch, effort)
    for (_, s), offset in zip(steps, offsets, strict=True):
        s.scratch_offset = offset
    for device, chip in enumerate(program.chips, 1):
        _, chip.arena, chip.lower_bound = _pack(program, Space.device, device, chip.alignment, [], effort)


def _pack(program: Program, space: Space, device: int, unit: int, scratch: list[Block], effort: int | None) -> tuple[list[int], int, int]:
    """Places the buffers of one memory; offsets of the scratch blocks, size of the memory, lower bound."""
    spans: dict[int, tuple[Buffer, int, int]] = {}
    for i, step in enumerate(program.steps):
        for view in (*step.inputs, *step.outputs):
            b = view.buffer
            if b.space is space and b.index == device:
                spans[id(b)] = (b, spans[id(b)][1] if id(b) in spans else i, i)
    buffers = list(spans.values())
    blocks = [Block(align_up(b.nbytes, unit), first, last) for b, first, last in buffers] + scratch
    offsets, size = plan(blocks, effort)
    for (b, _, _), offset in zip(buffers, offsets, strict=False):
        b.offset = offset
    return offsets[len(buffers) :], size, lower_bound(blocks)
