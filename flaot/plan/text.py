"""A plan as text, for people and for golden tests."""

from __future__ import annotations

from flaot.plan.program import Opcode, Space, Step, View
from flaot.plan.read import Plan


def dump(plan: Plan) -> str:
    """Header, devices, ports, frozen initializers, steps and inspectable values, one per line."""
    lines = [f"plan {plan.compiler}", f"model {plan.model_digest.hex()}", f"hcd {plan.hcd_digest.hex()}"]
    lines += [f"device {d.name} type {d.device_type} isa {d.isa} alignment {d.alignment}" for d in plan.devices]
    for c in plan.chips:
        limits = f"rank {c.max_rank} batch {c.max_batch} sequence {c.max_sequence} attention {c.max_attention} heads {list(c.heads)}"
        kinds = f"dtypes {','.join(d.name for d in c.dtypes)} layouts {[list(x) for x in c.layouts]} rounding {c.rounding.name}"
        flush = " flush" if c.flush_denormals else ""
        lines.append(f"chip {c.name} {limits} {kinds}{flush} arena {c.arena} lower_bound {c.lower_bound}")
    lines.append(f"arena {plan.arena_bytes} scratch {plan.scratch_bytes} lower_bound {plan.lower_bound} alignment {plan.alignment}")
    for kind, ports in (("input", plan.inputs), ("output", plan.outputs)):
        lines += [f"{kind} {i} {p.name!r} {p.type}" for i, p in enumerate(ports)]
    lines += [f"frozen {f.name!r} {f.type} {f.digest.hex()}" for f in plan.frozen]
    lines += [f"{i}: {step_text(s)}" for i, s in enumerate(plan.steps)]
    lines += [f"name {n.name!r} after {n.step} {view_text(n.view)}" for n in plan.names]
    return "\n".join(lines) + "\n"


def step_text(s: Step) -> str:
    """One step: ``outputs = kernel.variant(inputs) params origin``."""
    left, right = (", ".join(map(view_text, views)) for views in (s.outputs, s.inputs))
    if s.opcode is Opcode.transfer:
        return f"{left} = transfer({right}) ; {s.op} {' '.join(map(repr, s.origin))}".rstrip()
    text = f"{left} = {s.kernel}.{s.variant}({right})"
    if s.launch is not None:
        text += f" on {s.device} unit {s.launch.unit} batch {s.launch.batch} sequence {s.launch.sequence} heads {s.launch.heads}"
    if s.params:
        text += f" params {s.params.hex()}"
    if s.scratch:
        text += f" scratch {s.scratch}@{s.scratch_offset}"
    if s.parallel:
        text += " parallel"
    return f"{text} ; {s.op} {' '.join(map(repr, s.origin))}".rstrip()


def view_text(v: View) -> str:
    """Space, offset, type and, unless dense, strides: ``arena@64 float32[1,8]``."""
    port = v.buffer.index if v.buffer.space in (Space.input, Space.output, Space.device) else ""
    text = f"{v.buffer.space.name}{port}@{v.offset} {v.dtype.name}[{','.join(map(str, v.dims))}]"
    return text if v.is_dense else f"{text} strides [{','.join(map(str, v.strides))}]"
