"""``flaot inspect``: what a plan holds."""

from __future__ import annotations

import difflib
from typing import Any

import click

from flaot.cli import console
from flaot.cli.chips import transfers
from flaot.cli.options import FILE, json_option
from flaot.errors import UsageError, printable

EPILOG = """\b
Examples:
  flaot inspect model.flp
  flaot inspect model.flp --steps --constants 20
  flaot inspect model.flp --why /encoder/0/Softmax
  flaot inspect model.flp --decisions
  flaot inspect npu.flp --timeline
  flaot inspect model.flp --json | jq '.steps[].op'"""


MAX_FROZEN = 16
"""Frozen initializers listed: old models have all their weights among the inputs."""
MAX_WAITS = 3
"""Steps listed that a step waits for: the last ones."""


@click.command("inspect", epilog=EPILOG)
@click.argument("plan", type=FILE)
@click.option("--steps/--no-steps", default=True, show_default=True, help="List the steps.")
@click.option("--why", metavar="NODE", help="Tell what was decided for a node of the model, and why.")
@click.option("--timeline", is_flag=True, help="Draw what the queues of chips do in time, and on-chip memory.")
@click.option("--decisions", is_flag=True, help="List what was decided for every node.")
@click.option("--constants", default=8, show_default=True, type=click.IntRange(0), help="How many constants to list, largest first.")
@json_option
def command(plan: str, steps: bool, why: str | None, timeline: bool, decisions: bool, constants: int, as_json: bool) -> None:
    """Show header, devices, inputs and outputs, memory, steps and constants of PLAN; its model is not needed."""
    from flaot.report.plan import as_json_document, open_plan, recorded

    opened = open_plan(plan)
    if why is not None or decisions:
        _show_record(recorded(opened), why, as_json)
        return
    if timeline:
        _show_timeline(opened, as_json)
        return
    document = as_json_document(opened)
    if as_json:
        console.document(document)
        return
    head, memory = document["header"], document["memory"]
    console.out(f"{plan}: plan format {head['format']}, ABI {head['abi']}, {console.size(head['bytes'])}, by {head['compiler']}")
    for name in ("digest", "model_digest", "hcd_digest"):
        console.out(f"  {name.replace('_', ' '):13} {head[name]}")
    for d in document["devices"]:
        console.out(f"  device        {d['name']} ({d['device_type']}; needs {', '.join(d['isa']) or 'no instruction-set extension'})")
    console.out(
        f"  memory        arena {console.size(memory['arena_bytes'])} ({memory['ratio']:.3f} times the lower bound),"
        f" constants {console.size(memory['constants_bytes'])}, aligned to {memory['alignment']} bytes"
    )
    for c in document["chips"]:
        counts = f"{c['steps']} launches, {c['dmas']} by DMA, {transfers(c['transfers'], c['transfer'])}"
        console.out(
            f"  on {c['name']:10} {counts}; {', '.join(c['dtypes'])};"
            f" on-chip memory {console.size(c['on_chip_peak_bytes'])} of {console.size(c['on_chip_bytes'])},"
            f" off-chip {console.size(c['arena_bytes'])}, constants {console.size(c['constants_bytes'])}"
        )
    console.out("\nInputs and outputs")
    rows = [[kind[:-1], p["name"], p["type"], console.size(p["bytes"])] for kind in ("inputs", "outputs") for p in document[kind]]
    console.table(rows)
    if document["frozen"]:
        console.out(f"\nInitializers the model lists as inputs too, frozen into the plan ({len(document['frozen'])})")
        console.table([[f["name"], f["type"]] for f in document["frozen"][:MAX_FROZEN]])
        if len(document["frozen"]) > MAX_FROZEN:
            console.out(f"  and {len(document['frozen']) - MAX_FROZEN} more; --json lists them all")
    if steps:
        console.out(f"\nSteps ({len(document['steps'])})")
        rows = [[s["index"], s["op"], s["kernel"], s["output"], *_place(document, s), " ".join(s["nodes"])] for s in document["steps"]]
        console.table(rows, ["#", "op", "kernel", "writes", *(["runs on", "after"] if document["chips"] else []), "model nodes"])
    if constants and document["constants"]:
        console.out(f"\nConstants ({len(document['constants'])}, largest first)")
        shown = document["constants"][:constants]
        console.table(
            [[console.size(c["bytes"]), c["type"], c["op"], " ".join(c["nodes"])] for c in shown],
            ["size", "type", "read by", "model nodes"],
        )


def _place(document: dict[str, Any], step: dict[str, Any]) -> list[str]:
    """Device and queue of a step and what it waits for, in plans with chips."""
    if not document["chips"]:
        return []
    waits = step["waits"]
    more = f" +{len(waits) - MAX_WAITS}" if len(waits) > MAX_WAITS else ""
    place = "host" if step["queue"] == "host" else f"{document['devices'][step['device']]['name']} {step['queue']}"
    return [place, " ".join(map(str, waits[-MAX_WAITS:])) + more]


def _show_timeline(plan: Any, as_json: bool) -> None:
    """The timeline of a plan's chips, drawn or as data."""
    from flaot.report.chips import ChipReport
    from flaot.report.gantt import gantt

    if not plan.chips:
        hint = "flaot run --profile times its steps"
        raise UsageError("the plan runs on the host alone; a timeline shows the queues of chips", where=plan.where, hint=hint)
    report = ChipReport(plan)
    if as_json:
        console.document({"plan": plan.where, **report.timeline_json()})
        return
    for line in gantt(report):
        console.out(printable(line, 200))


def _show_record(record: Any, why: str | None, as_json: bool) -> None:
    """The record of decisions, of one node or of all."""
    if why is not None and why not in record.node_names():
        near = difflib.get_close_matches(why, record.node_names(), 1)
        hint = f"did you mean '{printable(near[0])}'?" if near else "--decisions lists them"
        raise UsageError(f"the plan records no node '{printable(why)}'", hint=hint)
    if as_json:
        held = (record if why is None else record.about(why)).to_json()
        console.document({k: v for k, v in held.items() if k not in ("missed", "rules")})
    elif why is not None:
        for line in record.why(why):
            console.out(printable(line, 2000))
    else:
        for line in record.summary_lines():
            console.out(line)
        head = ["model nodes", "op", "runs as", "verdict", "on", "dtype", "layout", "reason"]
        console.table([_decision(d) for d in record.decisions], head)


def _decision(d: Any) -> list[str]:
    place = f"{d.device}.{d.unit}" if d.unit else d.device
    reason = f"{d.reason} ({d.origin})" if d.origin else d.reason or d.note
    return [printable(" ".join(d.node), 60), d.op, d.step, d.verdict, place, d.dtype, d.layout, reason]
