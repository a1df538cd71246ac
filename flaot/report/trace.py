"""The timeline of a plan as a Chrome trace: a process per device, a thread per queue, and counters of on-chip memory and power.

The JSON array format of the Trace Event Format, which chrome://tracing and ui.perfetto.dev read; ``ts`` and ``dur`` are microseconds.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from flaot.plan.durations import link_bytes, off_chip_bytes, touched
from flaot.plan.program import Opcode, Step
from flaot.plan.timeline import HOST, Span
from flaot.plan.usage import PS_PER_US, UW_PER_MW
from flaot.report.chips import ChipReport


def trace(report: ChipReport) -> bytes:
    """The file."""
    return ("[\n" + ",\n".join(json.dumps(e, ensure_ascii=False) for e in events(report)) + "\n]\n").encode()


def events(report: ChipReport) -> Iterator[dict[str, Any]]:
    """Names first, then what every queue does in order of time, then memory."""
    for device in range(len(report.chips) + 1):
        yield _name("process_name", device, 0, report.device_name(device))
        for queue, name in enumerate(report.queues(device)):
            yield _name("thread_name", device, queue, name)
            yield {"name": "thread_sort_index", "ph": "M", "pid": device, "tid": queue, "args": {"sort_index": queue}}
    yield from _complete(report)
    for device in range(1, len(report.chips) + 1):
        for time, in_use in report.on_chip(device):
            yield {"name": "on-chip bytes", "ph": "C", "pid": device, "ts": time / PS_PER_US, "args": {"in use": in_use}}
        for time, uw in report.power(device):
            yield {"name": "power", "ph": "C", "pid": device, "ts": time / PS_PER_US, "args": {"mW": uw / UW_PER_MW}}


def _name(kind: str, device: int, queue: int, name: str) -> dict[str, Any]:
    return {"name": kind, "ph": "M", "pid": device, "tid": queue, "args": {"name": name}}


def _complete(report: ChipReport) -> Iterator[dict[str, Any]]:
    """A unit writes behind while its next launch runs, but events of a thread may not overlap: one is shown until the next one starts."""
    order = sorted(report.line.spans, key=lambda s: (s.device, s.queue, s.start, s.step))
    for span, after in zip(order, [*order[1:], None], strict=True):
        step = report.steps[span.step]
        same = after is not None and (after.device, after.queue) == (span.device, span.queue)
        end = min(span.end, after.start) if same and after is not None else span.end
        yield {
            "name": " ".join(step.origin) or step.op,
            "cat": step.op,
            "ph": "X",
            "pid": span.device,
            "tid": 0 if span.device == HOST else span.queue,
            "ts": span.start / PS_PER_US,
            "dur": (end - span.start) / PS_PER_US,
            "args": _details(report, step, span),
        }


def _details(report: ChipReport, step: Step, span: Span) -> dict[str, Any]:
    assert step.command is not None
    found: dict[str, Any] = {"step": span.step, "op": step.op, "nodes": " ".join(step.origin)}
    if step.kernel:
        found["kernel"] = f"{step.kernel}.{step.variant}"
    found["bytes"] = _bytes(report, step)
    if step.device != HOST:
        machine = report.chips[step.device - 1].machine
        found["cycles"] = -(-span.duration * machine.clock_khz // 10**9)
        if step.opcode is Opcode.transfer:
            found["transfer"] = machine.transfer.name
        found["end_us"] = span.end / PS_PER_US
    found |= {"issued_us": span.issued / PS_PER_US, "bus_wait_us": span.contention / PS_PER_US}
    return found | {"waits": " ".join(map(str, step.command.waits))}


def _bytes(report: ChipReport, step: Step) -> int:
    """What a step moves, or what a call reads and writes."""
    match step.opcode:
        case Opcode.transfer:
            return link_bytes(report.chips[step.device - 1].machine, step)
        case Opcode.dma:
            return off_chip_bytes(step)
    return sum(touched(v) for v in (*step.inputs, *step.outputs))
