"""What ``flaot run`` tells about the chips of a plan. Imports neither click nor numpy before there are chips."""

from __future__ import annotations

import os

from flaot.cli import console
from flaot.errors import printable
from flaot.files import check_output, write_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from flaot.runtime.counters import Counters
    from flaot.runtime.lean import LeanSession

TOP = 20
"""Nodes listed; the rest are summed."""


def trace_file(plan: str, profile: bool, trace: str | None) -> str | None:
    """Where the trace goes: where ``--trace`` says, with ``--profile`` alone into this folder. Raises UsageError, FileSystemError."""
    if trace is None and profile:
        trace = os.path.basename(plan).removesuffix(".flp") + ".trace.json"
        check_output(trace, [plan])
    return trace


def add(document: dict[str, Any], session: LeanSession, trace: str | None) -> None:
    """Adds ``chips``, ``nodes`` and, when one is written, ``trace`` to what a run of the session tells."""
    from flaot.plan.read import read_plan
    from flaot.report.chips import ChipReport

    report = ChipReport(read_plan(session.data, where=printable(session.path, 200), digest=False))
    found = report.to_json()
    parts = zip(document["chips"], found["chips"], session.counters(), strict=True)
    document["chips"] = [{**ran, **_counted(chip, counters, document["seconds"]["runs"])} for ran, chip, counters in parts]
    document["nodes"] = found["nodes"]
    if trace is not None:
        from flaot.report.trace import trace as events

        write_file(trace, events(report))
        document["trace"] = trace


def _counted(chip: dict[str, Any], counters: Counters, runs: int) -> dict[str, Any]:
    """The chip with the traffic of one run as its adapter counted it, and the plan's own as ``traffic_planned``. What an adapter leaves at
    0 it does not count."""
    if not (counters.launches or counters.dmas or counters.copies):
        return {**chip, "counted": False}
    planned = chip["traffic"]
    traffic = {name: getattr(counters, name, 0) // runs or planned[name] for name in planned}
    bytes_moved = traffic["bytes_in"] + traffic["bytes_out"] + traffic["bytes_within"]
    return {**chip, "traffic_bytes": bytes_moved, "traffic": traffic, "traffic_planned": planned, "counted": True}


def show(d: dict[str, Any], nodes: bool) -> None:
    """The chips and, when asked, the nodes of a run as text."""
    from flaot.plan.usage import figure

    for c in d["chips"]:
        t = c["traffic"]
        times = f"{_us(c['time_us'])} us; {_us(c['total_us'])} us with host and transfers"
        console.out(f"{printable(c['chip'])}: {c['cycles']} cycles, {times}")
        within = f", {console.size(t['bytes_within'])} moved within" if t["bytes_within"] else ""
        wait = f"; waits {_us(c['bus_wait_us'])} us for the bus" if c["bus_wait_us"] else ""
        console.out(f"  off-chip memory  {console.size(t['bytes_in'])} read, {console.size(t['bytes_out'])} written{within}{wait}")
        console.out(f"  on-chip memory   {console.size(c['on_chip_peak_bytes'])} of {console.size(c['on_chip_bytes'])}")
        planned = "" if c["counted"] else ", as planned"
        held = f"; these wait {_us(c['link_wait_us'])} us for a bus that chips share" if c["link_wait_us"] else ""
        passed = f"{transfers(t['copies'], c['transfer'])}{planned}{held}"
        console.out(f"  steps            {t['launches']} launches, {t['dmas']} by DMA, {passed}")
        console.out(f"  busy             {', '.join(_busy(q) for q in c['units'])}")
        if "energy_uj" in c:
            cap = f" of {figure(c['cap_mw'])}" if "cap_mw" in c else ""
            most = f"{figure(c['peak_mw'])}{cap} mW at most"
            console.out(f"  energy           {c['energy_uj']:.3g} uJ; {figure(c['average_mw'])} mW on average, {most}")
    if nodes:
        _nodes(d["nodes"])
    if "trace" in d:
        console.out(f"trace saved to {printable(d['trace'], 200)}; ui.perfetto.dev shows it")


def transfers(count: int, kind: str) -> str:
    """How many there are, and whether they move anything."""
    return f"{count} transfers{' (zero-copy: nothing is moved)' if kind == 'zero_copy' else ''}"


def _busy(queue: dict[str, Any]) -> str:
    return f"{printable(queue['name'])} {100 * queue['utilisation']:.0f} %"


def _nodes(nodes: list[dict[str, Any]]) -> None:
    shown, rest = nodes[:TOP], nodes[TOP:]
    rows = [_row(n, " ".join(printable(x) for x in n["nodes"]) or "(none)") for n in shown]
    if rest:
        names = ("time_us", "unit_us", "dma_us", "dma_bytes", "calls")
        total: dict[str, Any] = {name: sum(n[name] for n in rest) for name in names}
        times = {"start_us": min(n["start_us"] for n in rest), "end_us": max(n["end_us"] for n in rest)}
        rows.append(_row({**total, **times, "runs_on": []}, f"{len(rest)} more"))
    console.out()
    console.table(rows, ["us", "unit us", "dma us", "dma bytes", "calls", "from us", "to us", "runs on", "model nodes"])


def _row(n: dict[str, Any], names: str) -> list[object]:
    times = [_us(n[key]) for key in ("time_us", "unit_us", "dma_us")]
    places = ", ".join(printable(p) for p in n["runs_on"])
    return [*times, n["dma_bytes"], n["calls"], _us(n["start_us"]), _us(n["end_us"]), places, names]


def _us(time: float) -> str:
    return f"{time:.3f}" if time == 0 or time >= 0.001 else f"{time:.3g}"
