"""Offsets for every buffer and scratch of a program: the host's arena, and the memory of each chip."""

from __future__ import annotations

from flaot.plan.program import Buffer, Opcode, Program, Space, Transfers
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
    used = _last_uses(program) if device else {}
    for i, step in enumerate(program.steps):
        until = _until(program, i, device, used)
        for view in (*step.inputs, *step.outputs):
            b = view.buffer
            if b.space is space and b.index == device:
                _, first, last = spans.get(id(b), (b, i, i))
                spans[id(b)] = (b, first, max(last, until))
    buffers = list(spans.values())
    blocks = [Block(align_up(b.nbytes, unit), first, last) for b, first, last in buffers] + scratch
    offsets, size = plan(blocks, effort)
    for (b, _, _), offset in zip(buffers, offsets, strict=False):
        b.offset = offset
    return offsets[len(buffers) :], size, lower_bound(blocks)


def _until(program: Program, index: int, device: int, used: dict[int, int]) -> int:
    """The last step that may not take the memory which a step uses: while an asynchronous transfer reads that of the host, the host goes
    on with its next step; a chip's holds until what was brought in from it ahead of time is used, lest a result that is put there waits
    for it. ``used`` are the last uses of buffers on chip."""
    step = program.steps[index]
    if device:
        return max((used.get(id(v.buffer), index) for v in step.outputs), default=index) if step.opcode is Opcode.dma else index
    if step.opcode is not Opcode.transfer or program.chips[step.device - 1].machine.transfer is not Transfers.asynchronous:
        return index
    return next((i for i in range(index + 1, len(program.steps)) if not program.steps[i].device), index)


def _last_uses(program: Program) -> dict[int, int]:
    return {id(v.buffer): i for i, s in enumerate(program.steps) for v in (*s.inputs, *s.outputs) if v.buffer.space is Space.on_chip}
