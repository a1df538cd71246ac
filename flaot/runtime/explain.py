"""What the verifier's status and record number mean, in the plan's own names."""

from __future__ import annotations

from collections.abc import Callable

from flaot.errors import printable
from flaot.plan.chips import address_problem, step_where
from flaot.plan.commands import amount_problem, machine_problem, queue_problem, unit_problem, wait_problem
from flaot.plan.fields import ISA_BITS, Section
from flaot.plan.read import Plan
from flaot.runtime.capi import functions
from flaot.runtime.native import status_text

TENSOR, STEP, KERNEL, PARAMS, PORT = 0x107, 0x108, 0x109, 0x10A, 0x10B
CHIP, ADDRESS, MACHINE, UNIT, QUEUE, WAIT, COMMAND = range(0x10F, 0x116)
DEVICE_ISA = 0x200


def explain_refusal(plan: Plan, status: int, record: int) -> str:
    """The sentence for a plan that the native verifier refused."""
    text = status_text(status)
    if status == DEVICE_ISA:
        return _isa_mismatch(plan)
    if status in (STEP, KERNEL, PARAMS):
        return f"{step_where(plan, record)}: {text}"
    if status == ADDRESS:
        return f"{step_where(plan, record)}: {address_problem(plan, record) or text}"
    if status in PROBLEMS:
        return _of_commands(plan, status, record) or f"{text} (record {record}); the plan is damaged"
    if status == CHIP:
        return f"{text} (record {record}); the plan is damaged"
    if status == TENSOR:
        return f"tensor {record}: {text}"
    if status == PORT:
        inputs = len(plan.section(Section.inputs))
        return f"{f'input {record}' if record < inputs else f'output {record - inputs}'}: {text}"
    return f"{text} (record {record})"


def _of_commands(plan: Plan, status: int, record: int) -> str | None:
    """The sentence about a machine, unit or command; None when their number is wrong."""
    section, problem = PROBLEMS[status]
    if record >= len(plan.section(section)):
        return None
    found = problem(plan, record)
    return f"{step_where(plan, record)}: {found}" if found and section is Section.commands else found


def _queue_problem(plan: Plan, step: int) -> str:
    queue = int(plan.section(Section.commands)[step]["queue"])
    return queue_problem(plan, step) or f"on DMA queue {queue}, and its kernel computes; DMA channels only move data"


def _wait_problem(plan: Plan, step: int) -> str | None:
    rows = plan.section(Section.commands)[:step]
    return wait_problem(plan, step, int(rows["wait_count"].sum()))


def isa_names(bits: int) -> str:
    """``avx2, avx512``; ``none`` for a CPU without either."""
    return ", ".join(name for name, bit in ISA_BITS.items() if bit and bits & bit) or "none"


def _isa_mismatch(plan: Plan) -> str:
    have = functions().fl_host_isa()
    chips = ", ".join(f"chip {printable(d.name)} ({printable(d.device_type)}) with {isa_names(d.isa)}" for d in plan.devices)
    return f"instruction sets differ: the plan is for {chips}, this CPU has {isa_names(have)}; compile it for this chip"


PROBLEMS: dict[int, tuple[Section, Callable[[Plan, int], str | None]]] = {
    MACHINE: (Section.machines, machine_problem),
    UNIT: (Section.units, unit_problem),
    QUEUE: (Section.commands, _queue_problem),
    WAIT: (Section.commands, _wait_problem),
    COMMAND: (Section.commands, amount_problem),
}
