"""A plan as text, for people and for golden tests."""

from __future__ import annotations

from flaot.plan.program import Space, Step, View
from flaot.plan.read import Plan


def dump(plan: Plan) -> str:
    """Header, devices, ports, frozen initializers, steps and inspectable values, one per line."""
    lines = [f"plan {plan.compiler}", f"model {plan.model_digest.hex()}", f"hcd {plan.hcd_digest.hex()}"]
    lines += [f"device {d.name} type {d.device_type} isa {d.isa} alignment {d.alignment}" for d in plan.devices]
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
    text = f"{left} = {s.kernel}.{s.variant}({right})"
    if s.params:
        text += f" params {s.params.hex()}"
    if s.scratch:
        text += f" scratch {s.scratch}@{s.scratch_offset}"
    if s.parallel:
        text += " parallel"
    return f"{text} ; {s.op} {' '.join(map(repr, s.origin))}".rstrip()


def view_text(v: View) -> str:
    """Space, offset, type and, unless dense, strides: ``arena@64 float32[1,8]``."""
    port = v.buffer.index if v.buffer.space in (Space.input, Space.output) else ""
    text = f"{v.buffer.space.name}{port}@{v.offset} {v.dtype.name}[{','.join(map(str, v.dims))}]"
    return text if v.is_dense else f"{text} strides [{','.join(map(str, v.strides))}]"
