"""The commands of steps that nobody scheduled: one after the other."""

from __future__ import annotations

from flaot.plan.fields import HOST_QUEUE
from flaot.plan.program import Command, Opcode, Program


def in_turn(program: Program, index: int) -> Command:
    """The command of a step that waits for the one before it."""
    step = program.steps[index]
    waits = (index - 1,) if index else ()
    if not step.device:
        return Command(HOST_QUEUE, waits)
    machine = program.chips[step.device - 1].machine
    if step.opcode is Opcode.transfer:
        return Command(machine.link_queue, waits)
    return Command(0 if step.launch is None else machine.unit_queue(step.launch.unit), waits)
