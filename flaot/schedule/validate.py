"""Independent check of a program's memory map, written without the planner's code: it trusts nothing but the steps.

Raises InternalError (a bug in flaot) on: a buffer outside the arena or misaligned, two buffers alive together that overlap,
a read of a buffer never written, a write to a constant or input, a view outside its buffer.
"""

from __future__ import annotations

from bisect import bisect_left, insort

from flaot.errors import InternalError
from flaot.plan.program import Buffer, Opcode, Program, Space, Step, View

OF_CHIPS = (Space.device, Space.on_chip)
WRITABLE = (Space.arena, Space.output, *OF_CHIPS)


def validate(program: Program) -> None:
    """Checks the whole program; returns nothing when it holds."""
    spans = _lifetimes(program)
    for i, step in enumerate(program.steps):
        _placed(i, step)
    scratch = []
    for i, step in enumerate(program.steps):
        if step.scratch and not step.device:
            scratch += [(i, 1, step.scratch_offset, step.scratch), (i + 1, 0, step.scratch_offset, step.scratch)]
            _bounds(step.scratch_offset, step.scratch, program.arena, program.alignment, f"scratch of step {i}")
    memories = [(Space.arena, 0, program.arena, program.alignment)]
    for i, c in enumerate(program.chips, 1):
        memories += [(Space.device, i, c.arena, c.alignment), (Space.on_chip, i, c.machine.on_chip_peak, c.alignment)]
        if c.machine.on_chip_peak > c.machine.on_chip:
            raise InternalError(f"{c.machine.on_chip_peak} bytes of on-chip memory; {c.name} has {c.machine.on_chip}")
    for space, device, size, alignment in memories:
        here = [(b, first, last) for b, first, last in spans if b.space is space and b.index == device]
        for buffer, _, _ in here:
            _inside(buffer, size, alignment)
        events = [(first, 1, b.offset or 0, b.nbytes) for b, first, _ in here]
        events += [(last + 1, 0, b.offset or 0, b.nbytes) for b, _, last in here]
        _disjoint(events + scratch if space is Space.arena else events)


def _placed(index: int, step: Step) -> None:
    """Operands lie where the step's device reaches them."""
    views = (*step.inputs, *step.outputs)
    if step.opcode is Opcode.transfer:
        sides = [v.buffer.space is Space.device for v in views]
        if len(views) != 2 or sum(sides) != 1 or step.device != views[sides.index(True)].buffer.index:
            raise InternalError(f"step {index} is no transfer between the host and a chip")
        return
    for view in views:
        on_chip = view.buffer.space in (Space.device, Space.on_chip, Space.constant) and view.buffer.index == step.device
        on_host = view.buffer.space not in OF_CHIPS and (view.buffer.space is not Space.constant or view.buffer.index == 0)
        if not (on_chip if step.device else on_host):
            where = f"'{view.buffer.name}' in {view.buffer.space.name} memory"
            raise InternalError(f"step {index} ({step.kernel}) on device {step.device} uses {where}")


def _lifetimes(program: Program) -> list[tuple[Buffer, int, int]]:
    spans: dict[int, tuple[Buffer, int, int]] = {}
    written: set[int] = set()
    for i, step in enumerate(program.steps):
        for view in step.inputs:
            _fits(view, i)
            space = view.buffer.space
            if space in WRITABLE and id(view.buffer) not in written and view.elements:
                raise InternalError(f"step {i} ({step.kernel}) reads '{view.buffer.name}' before anything is written to it")
        for view in step.outputs:
            _fits(view, i)
            if view.buffer.space not in WRITABLE:
                raise InternalError(f"step {i} ({step.kernel}) writes to {view.buffer.space.name} memory")
            written.add(id(view.buffer))
        for view in (*step.inputs, *step.outputs):
            if view.buffer.space in (Space.arena, *OF_CHIPS):
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


def _inside(buffer: Buffer, size: int, alignment: int) -> None:
    if buffer.offset is None:
        raise InternalError(f"buffer '{buffer.name}' has no offset")
    _bounds(buffer.offset, buffer.nbytes, size, alignment, f"buffer '{buffer.name}'")


def _bounds(offset: int, size: int, arena: int, alignment: int, what: str) -> None:
    if offset < 0 or offset + size > arena:
        raise InternalError(f"{what} ends at {offset + size}, its memory at {arena}")
    if offset % alignment:
        raise InternalError(f"{what} at {offset} is not aligned to {alignment}")


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
