"""Independent check of a program's memory map, written without the planner's code: it trusts nothing but the steps.

Raises InternalError (a bug in flaot) on: a buffer outside the arena or misaligned, two buffers alive together that overlap,
a read of a buffer never written, a write to a constant or input, a view outside its buffer.
"""

from __future__ import annotations

from bisect import bisect_left, insort

from flaot.errors import InternalError
from flaot.plan.program import Buffer, Program, Space, View


def validate(program: Program) -> None:
    """Checks the whole program; returns nothing when it holds."""
    spans = _lifetimes(program)
    for buffer, _, _ in spans:
        _inside(buffer, program)
    events = [(first, 1, b.offset or 0, b.nbytes) for b, first, _ in spans]
    events += [(last + 1, 0, b.offset or 0, b.nbytes) for b, _, last in spans]
    for i, step in enumerate(program.steps):
        if step.scratch:
            events += [(i, 1, step.scratch_offset, step.scratch), (i + 1, 0, step.scratch_offset, step.scratch)]
            _bounds(step.scratch_offset, step.scratch, program, f"scratch of step {i}")
    _disjoint(events)


def _lifetimes(program: Program) -> list[tuple[Buffer, int, int]]:
    spans: dict[int, tuple[Buffer, int, int]] = {}
    written: set[int] = set()
    for i, step in enumerate(program.steps):
        for view in step.inputs:
            _fits(view, i)
            space = view.buffer.space
            if space in (Space.arena, Space.output) and id(view.buffer) not in written and view.elements:
                raise InternalError(f"step {i} ({step.kernel}) reads '{view.buffer.name}' before anything is written to it")
        for view in step.outputs:
            _fits(view, i)
            if view.buffer.space not in (Space.arena, Space.output):
                raise InternalError(f"step {i} ({step.kernel}) writes to {view.buffer.space.name} memory")
            written.add(id(view.buffer))
        for view in (*step.inputs, *step.outputs):
            if view.buffer.space is Space.arena:
                first = spans[id(view.buffer)][1] if id(view.buffer) in spans else i
                spans[id(view.buffer)] = (view.buffer, first, i)
    for port in program.outputs:
        if port.view.elements and id(port.view.buffer) not in written:
            raise InternalError(f"output '{port.name}' is never written")
    return list(spans.values())


def _fits(view: View, step: int) -> None:
    low, high = view.extent()
    if low < 0 or high > view.buffer.nbytes:
        raise InternalError(f"step {step} touches bytes {low} to {high} of '{view.buffer.name}', which has {view.buffer.nbytes}")


def _inside(buffer: Buffer, program: Program) -> None:
    if buffer.offset is None:
        raise InternalError(f"buffer '{buffer.name}' has no offset")
    _bounds(buffer.offset, buffer.nbytes, program, f"buffer '{buffer.name}'")


def _bounds(offset: int, size: int, program: Program, what: str) -> None:
    if offset < 0 or offset + size > program.arena:
        raise InternalError(f"{what} ends at {offset + size}, the arena at {program.arena}")
    if offset % program.alignment:
        raise InternalError(f"{what} at {offset} is not aligned to {program.alignment}")


def _disjoint(events: list[tuple[int, int, int, int]]) -> None:
    """Sweeps over steps, frees before allocations, keeping the live ranges sorted by offset."""
    live: list[tuple[int, int]] = []
    for _, begins, offset, size in sorted(events):
        if not size:
            continue
        if not begins:
            live.remove((offset, offset + size))
            continue
        at = bisect_left(live, (offset, 0))
        if (at > 0 and live[at - 1][1] > offset) or (at < len(live) and live[at][0] < offset + size):
            raise InternalError(f"two live buffers overlap at arena offset {offset}")
        insort(live, (offset, offset + size))
