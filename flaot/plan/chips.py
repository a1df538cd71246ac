"""What a plan asks of chips beside the host, checked without the native library: addresses of the steps that run there."""

from __future__ import annotations

from flaot.errors import PlanError, printable
from flaot.plan.fields import Section
from flaot.plan.program import Opcode, Space
from flaot.plan.read import Plan


def step_where(plan: Plan, index: int) -> str:
    """``step 3 (node 'conv1' (Conv), kernel conv_f32.avx2)``."""
    try:
        kernel, variant, op, origin = plan.step_name(index)
    except (PlanError, IndexError):
        return f"step {index}"
    node = f"node '{printable(origin[0])}' ({op}), " if origin else ""
    return f"step {index} ({node}kernel {printable(kernel)}{'.' if variant else ''}{printable(variant)})"


def check_addresses(plan: Plan) -> None:
    """Raises PlanError for the first step on a chip with an operand at an address of the wrong alignment or in another memory."""
    if not plan.chips:
        return
    for index in range(plan.step_count):
        problem = address_problem(plan, index)
        if problem:
            raise PlanError(problem, where=f"{plan.where}: {step_where(plan, index)}")


def address_problem(plan: Plan, index: int) -> str | None:
    """The sentence about the first operand of a step on a chip that lies at a wrong address, or about what does not move one tensor, or
    None. Raises PlanError."""
    step = plan.step(index)
    if step.device == 0:
        return None
    if step.device > len(plan.chips):
        raise plan.fail(f"step {index} runs on device {step.device} of {len(plan.devices)}")
    if step.opcode is not Opcode.call and (len(step.inputs) != 1 or [v.dims for v in step.inputs] != [v.dims for v in step.outputs]):
        return f"moves {len(step.inputs)} tensors to {len(step.outputs)}; one is moved to one of the same shape"
    chip, row = plan.chips[step.device - 1], plan.section(Section.chips)[step.device - 1]
    begin, size = int(row["constants_offset"]), int(row["constants_size"])
    for i, (view, window) in enumerate(zip((*step.inputs, *step.outputs), plan.windows(index), strict=True)):
        space = view.buffer.space
        if step.opcode is Opcode.transfer and space is not Space.device:
            continue
        constant = space is Space.constant
        what = f"constant (operand {i})" if constant else f"operand {i}"
        low, high = view.extent()
        if constant and not begin <= low <= high <= begin + size:
            return f"{what} lies outside the constants of {printable(chip.name)}"
        if not constant and (space not in (Space.device, Space.on_chip) or view.buffer.index != step.device):
            return f"{what} does not lie in the memory of {printable(chip.name)}"
        base = view.offset - window - (begin if constant else 0)
        if base < 0 or chip.alignment and base % chip.alignment:
            return f"{what} at address {base:#x} is not a multiple of {chip.alignment}, which {printable(chip.name)} asks for"
    return None
