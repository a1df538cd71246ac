"""A plan as a JSON-ready document, from the file alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from flaot.errors import UsageError, printable
from flaot.files import read_file
from flaot.plan.chips import check_addresses
from flaot.plan.commands import check_commands
from flaot.plan.fields import ISA_BITS, Section
from flaot.plan.program import Opcode, Space, Step, View
from flaot.plan.read import Plan, read_plan
from flaot.plan.usage import queue_name, queue_names

if TYPE_CHECKING:
    from flaot.mapping.record import Record


def open_plan(path: str) -> Plan:
    """Reads a plan file. Raises FileSystemError or PlanError, which names a step on a chip with an operand at a wrong address, on a queue
    that is not its own or waiting for a later one."""
    plan = read_plan(read_file(path, "a plan (.flp)"), where=printable(path, 200))
    check_commands(plan)
    check_addresses(plan)
    return plan


def recorded(plan: Plan) -> Record:
    """The record of decisions a plan holds. Raises UsageError when it holds none, PlanError when it is damaged."""
    from flaot.mapping.record import Record

    if not plan.decisions:
        hint = "plans for a chip beside the host hold them; for a CPU compile with --keep-decisions"
        raise UsageError("the plan holds no record of decisions", where=plan.where, hint=hint)
    return Record.parse(plan.decisions)


def as_json_document(plan: Plan) -> dict[str, Any]:
    """Header, devices, inputs, outputs, frozen initializers, memory, steps and constants. Raises PlanError for records out of bounds."""
    steps = [_step(i, s) | _command(plan, s) for i, s in enumerate(plan.steps)]
    constants = _constants(plan.steps)
    bound = plan.lower_bound
    return {
        "header": {
            "format": int(plan.header["format"]),
            "abi": int(plan.header["abi"]),
            "bytes": len(plan.data),
            "compiler": plan.compiler,
            "digest": plan.digest.hex(),
            "model_digest": plan.model_digest.hex(),
            "hcd_digest": plan.hcd_digest.hex(),
        },
        "devices": [
            {"name": d.name, "device_type": d.device_type, "isa": isa_names(d.isa), "alignment": d.alignment} for d in plan.devices
        ],
        "chips": [_chip(plan, i) for i in range(len(plan.chips))],
        "inputs": [_port(p) for p in plan.inputs],
        "outputs": [_port(p) for p in plan.outputs],
        "frozen": [{"name": f.name, "type": str(f.type), "sha256": f.digest.hex()} for f in plan.frozen],
        "memory": {
            "arena_bytes": plan.arena_bytes,
            "lower_bound_bytes": bound,
            "ratio": plan.arena_bytes / bound if bound else 1.0,
            "scratch_per_thread_bytes": plan.scratch_bytes,
            "constants_bytes": sum(c["bytes"] for c in constants),
            "alignment": plan.alignment,
        },
        "steps": steps,
        "constants": constants,
        "values": [{"name": n.name, "after_step": n.step, "type": str(_type(n.view))} for n in plan.names],
    }


def isa_names(bits: int) -> list[str]:
    """Instruction-set variants a device record asks for."""
    return [name for name, bit in ISA_BITS.items() if bit and bits & bit]


def _chip(plan: Plan, index: int) -> dict[str, Any]:
    """Limits (0: none) and memory of a chip, and the steps that run on it."""
    c, row = plan.chips[index], plan.section(Section.chips)[index]
    on_it = [s for s in plan.steps if s.device == index + 1]
    return {
        "name": c.name,
        "limits": {"rank": c.max_rank, "batch": c.max_batch, "sequence": c.max_sequence, "attention_sequence": c.max_attention},
        "heads": list(c.heads),
        "dtypes": [d.name for d in c.dtypes],
        "layouts": [list(x) for x in c.layouts],
        "rounding": c.rounding.name,
        "flush_denormals": c.flush_denormals,
        "arena_bytes": c.arena,
        "lower_bound_bytes": c.lower_bound,
        "constants_bytes": int(row["constants_size"]),
        "steps": sum(s.opcode is Opcode.call for s in on_it),
        "transfers": sum(s.opcode is Opcode.transfer for s in on_it),
        "transfer": c.machine.transfer.name,
        "dmas": sum(s.opcode is Opcode.dma for s in on_it),
        "on_chip_bytes": c.machine.on_chip,
        "on_chip_peak_bytes": c.machine.on_chip_peak,
        "queues": queue_names(c.machine),
    }


def _port(p: Any) -> dict[str, Any]:
    return {"name": p.name, "dtype": p.type.dtype.name, "shape": list(p.type.shape), "type": str(p.type), "bytes": p.type.nbytes}


def _step(index: int, s: Step) -> dict[str, Any]:
    return {
        "index": index,
        "op": s.op,
        "kernel": s.opcode.name if s.opcode is not Opcode.call else f"{s.kernel}.{s.variant}" if s.variant else s.kernel,
        "device": s.device,
        "unit": s.launch.unit if s.launch else "",
        "nodes": list(s.origin),
        "inputs": [_place(v) for v in s.inputs],
        "outputs": [_place(v) for v in s.outputs],
        "output": " ".join(_type(v) for v in s.outputs),
        "scratch_bytes": s.scratch,
        "parallel": s.parallel,
    }


def _command(plan: Plan, s: Step) -> dict[str, Any]:
    """Queue and waits of a step, in plans with chips."""
    if s.command is None:
        return {}
    return {"queue": queue_name(plan.chips, s), "waits": list(s.command.waits), "work": s.command.work}


def _place(v: View) -> dict[str, Any]:
    return {"space": v.buffer.space.name, "offset": v.offset, "type": _type(v), "strides": list(v.strides)}


def _type(v: View) -> str:
    return f"{v.dtype.name}[{','.join(map(str, v.dims))}]"


def _constants(steps: list[Step]) -> list[dict[str, Any]]:
    """Every constant once, largest first, with the first step that reads it."""
    found: dict[tuple[int, int], dict[str, Any]] = {}
    for index, s in enumerate(steps):
        for v in s.inputs:
            low, high = v.extent()
            if v.buffer.space is Space.constant and (low, high) not in found:
                found[low, high] = {
                    "offset": low,
                    "bytes": high - low,
                    "type": _type(v),
                    "step": index,
                    "op": s.op,
                    "nodes": list(s.origin),
                }
    return sorted(found.values(), key=lambda c: (-c["bytes"], c["offset"]))
