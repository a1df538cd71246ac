"""The commands of steps that nobody scheduled: one after the other."""

from __future__ import annotations

from collections.abc import Sequence

from flaot.plan.fields import HOST_QUEUE
from flaot.plan.program import Command, Opcode, Program, Step


def waits_in_turn(steps: Sequence[Step], index: int) -> tuple[int, ...]:
    """The step before, and the last one of the same device: what a step of the host or of another chip waited for is nothing to a chip."""
    if index == 0:
        return ()
    own = next((i for i in reversed(range(index)) if steps[i].device == steps[index].device), index - 1)
    return tuple(sorted({own, index - 1}))


def in_turn(program: Program, index: int) -> Command:
    """The command of a step that waits for those before it."""
    step = program.steps[index]
    waits = waits_in_turn(program.steps, index)
    if not step.device:
        return Command(HOST_QUEUE, waits)
    machine = program.chips[step.device - 1].machine
    if step.opcode is Opcode.transfer:
        return Command(machine.link_queue, waits)
    return Command(0 if step.launch is None else machine.unit_queue(step.launch.unit), waits)
