"""What the verifier's status and record number mean, in the plan's own names."""

from __future__ import annotations

from flaot.errors import PlanError, printable
from flaot.plan.fields import ISA_BITS, Section
from flaot.plan.program import Space
from flaot.plan.read import Plan
from flaot.runtime.capi import functions
from flaot.runtime.native import status_text

TENSOR, STEP, KERNEL, PARAMS, PORT = 0x107, 0x108, 0x109, 0x10A, 0x10B
CHIP, ADDRESS = 0x10F, 0x110
DEVICE_ISA = 0x200


def step_where(plan: Plan, index: int) -> str:
    """``step 3 (node 'conv1' (Conv), kernel conv_f32.avx2)``."""
    try:
        kernel, variant, op, origin = plan.step_name(index)
    except (PlanError, IndexError):
        return f"step {index}"
    node = f"node '{printable(origin[0])}' ({op}), " if origin else ""
    return f"step {index} ({node}kernel {printable(kernel)}{'.' if variant else ''}{printable(variant)})"


def explain_refusal(plan: Plan, status: int, record: int) -> str:
    """The sentence for a plan that the native verifier refused."""
    text = status_text(status)
    if status == DEVICE_ISA:
        return _isa_mismatch(plan)
    if status in (STEP, KERNEL, PARAMS):
        return f"{step_where(plan, record)}: {text}"
    if status == ADDRESS:
        return f"{step_where(plan, record)}: {address_problem(plan, record) or text}"
    if status == CHIP:
        return f"{text} (record {record}); the plan is damaged"
    if status == TENSOR:
        return f"tensor {record}: {text}"
    if status == PORT:
        inputs = len(plan.section(Section.inputs))
        return f"{f'input {record}' if record < inputs else f'output {record - inputs}'}: {text}"
    return f"{text} (record {record})"


def address_problem(plan: Plan, index: int) -> str | None:
    """The sentence about the first operand of a step on a chip that lies at a wrong address, or None."""
    step = plan.step(index)
    chip, rows = plan.chips[step.device - 1], plan.section(Section.chips)[step.device - 1]
    windows = plan.windows(index)
    for i, (view, window) in enumerate(zip((*step.inputs, *step.outputs), windows, strict=True)):
        constant = view.buffer.space is Space.constant
        what = f"constant (operand {i})" if constant else f"operand {i}"
        base = view.offset - window - (int(rows["constants_offset"]) if constant else 0)
        if base % chip.alignment:
            return f"{what} at address {base:#x} is not a multiple of {chip.alignment}, which {printable(chip.name)} asks for"
        if not constant and (view.buffer.space is not Space.device or view.buffer.index != step.device):
            return f"{what} does not lie in the memory of {printable(chip.name)}"
    return None


def isa_names(bits: int) -> str:
    """``avx2, avx512``; ``none`` for a CPU without either."""
    return ", ".join(name for name, bit in ISA_BITS.items() if bit and bits & bit) or "none"


def _isa_mismatch(plan: Plan) -> str:
    have = functions().fl_host_isa()
    chips = ", ".join(f"chip {printable(d.name)} ({printable(d.device_type)}) with {isa_names(d.isa)}" for d in plan.devices)
    return f"instruction sets differ: the plan is for {chips}, this CPU has {isa_names(have)}; compile it for this chip"
