"""A plan as text, for people and for golden tests."""

from __future__ import annotations

from flaot.plan.fields import HOST_QUEUE
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
        m = c.machine
        lines.append(
            f"machine clock_khz {m.clock_khz} on_chip {m.on_chip} peak {m.on_chip_peak}"
            f" rates {m.on_chip_rate} {m.off_chip_rate} {m.link_rate} dimensions {m.dimensions}"
            f" channels {m.channels} depth {m.depth} setup {m.setup_cycles} latency {m.latency_cycles}"
            f" transfer {m.transfer.name} setup {m.link_setup_cycles} bus {m.bus}"
        )
        lines += [f"unit {u.name} count {u.count} launch {u.launch_cycles} rate {u.rate} depth {u.depth}" for u in m.units]
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
    if s.opcode is not Opcode.call:
        return f"{left} = {s.opcode.name}({right}){_command(s)} ; {s.op} {' '.join(map(repr, s.origin))}".rstrip()
    text = f"{left} = {s.kernel}.{s.variant}({right})"
    if s.launch is not None:
        text += f" on {s.device} unit {s.launch.unit} batch {s.launch.batch} sequence {s.launch.sequence} heads {s.launch.heads}"
    if s.params:
        text += f" params {s.params.hex()}"
    if s.scratch:
        text += f" scratch {s.scratch}@{s.scratch_offset}"
    if s.parallel:
        text += " parallel"
    text += _command(s)
    return f"{text} ; {s.op} {' '.join(map(repr, s.origin))}".rstrip()


def _command(s: Step) -> str:
    if s.command is None:
        return ""
    c = s.command
    queue = "host" if c.queue == HOST_QUEUE else str(c.queue)
    hold = f" hold {c.hold}" if c.hold else ""
    return f" queue {queue} waits [{','.join(map(str, c.waits))}] work {c.work}{hold}"


def view_text(v: View) -> str:
    """Space, offset, type and, unless dense, strides: ``arena@64 float32[1,8]``."""
    port = v.buffer.index if v.buffer.space in (Space.input, Space.output, Space.device, Space.on_chip) else ""
    text = f"{v.buffer.space.name}{port}@{v.offset} {v.dtype.name}[{','.join(map(str, v.dims))}]"
    return text if v.is_dense else f"{text} strides [{','.join(map(str, v.strides))}]"
