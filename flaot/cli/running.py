"""What ``flaot run`` does, behind either parser. Imports neither click nor numpy."""

from __future__ import annotations

import os

from flaot.cli import chips, console, progress
from flaot.cli.pairs import pairs
from flaot.errors import UsageError, printable
from flaot.files import check_output, write_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def run_plan(
    plan: str,
    inputs: str | None,
    single: tuple[str, ...],
    seed: int,
    outputs: str | None,
    threads: int,
    repeat: int,
    profile: bool,
    as_json: bool,
    adapter: tuple[str, ...] = (),
    trace: str | None = None,
) -> None:
    """Runs a plan file and shows its outputs."""
    files = pairs("--input", single, "NAME=X.npy")
    read = [plan, *([inputs] if inputs else []), *files.values(), *adapter]
    for path in (outputs, trace):
        if path is not None:
            check_output(path, read)

    from flaot.report.outputs import summary
    from flaot.runtime.feeds import load_feeds
    from flaot.runtime.lean import LeanSession

    session = LeanSession(plan, threads, adapter)
    if trace is not None and not session.chips:
        raise UsageError("--trace shows the queues of chips; the plan runs on the host alone", where=plan, hint="--profile times its steps")
    trace = chips.trace_file(plan, profile, trace) if session.chips else None
    if outputs is not None and trace is not None and os.path.realpath(outputs) == os.path.realpath(trace):
        raise UsageError(f"--outputs and the trace are one file, '{printable(trace, 200)}'", hint="--trace FILE.json names another one")
    feeds = load_feeds(session.inputs, inputs, files, seed, lambda: session.frozen)
    with progress.counter("run", repeat, as_json) as done:
        results, seconds, steps = session.run(feeds, repeat, profile, done)
    if outputs is not None:
        from flaot.runtime.npy import to_npz

        write_file(outputs, to_npz(results))
    document: dict[str, Any] = {
        "plan": plan,
        "threads": threads,
        "random_inputs": [p.name for p in session.inputs if p.name not in files and inputs is None],
        "outputs": [summary(name, array) for name, array in results.items()],
        "seconds": {"min": min(seconds), "median": sorted(seconds)[len(seconds) // 2], "runs": len(seconds)},
    }
    if session.chips:
        run_by = zip(session.chips, session.adapters, strict=True)
        document["chips"] = [{"chip": name, "device_type": kind, **a.to_json()} for (name, kind), a in run_by]
    if profile:
        document["steps"] = steps
    if session.chips:
        chips.add(document, session, trace)
    if as_json:
        console.document(document)
    else:
        _show(document, outputs)


def _show(d: dict[str, Any], saved: str | None) -> None:
    from flaot.report.outputs import as_line, top_line

    width = max((len(s["name"]) for s in d["outputs"]), default=0)
    for s in d["outputs"]:
        console.out(f"{s['name']:{width}}  {as_line(s)}")
        if "top" in s:
            console.out(f"{'':{width}}  top 5: {top_line(s)}")
    for c in d.get("chips", []):
        console.out(_who_ran(c))
    if saved is not None:
        console.out(f"saved to {saved}")
    t = d["seconds"]
    if t["runs"] > 1:
        console.out(
            f"{t['runs']} runs on {d['threads']} thread{'s' * (d['threads'] > 1)}: min {_ms(t['min'])} ms, median {_ms(t['median'])} ms"
        )
    if "chips" in d:
        chips.show(d, "steps" in d)
    elif "steps" in d:
        _show_steps(d["steps"])


def _who_ran(c: dict[str, Any]) -> str:
    name = printable(c["chip"])
    if c["source"] == "simulator":
        return f"{name} was simulated: no adapter for device type {printable(c['device_type'])} was named or is installed"
    return f"{name} was run by {printable(c['adapter'])} {printable(c['version'])} ({c['source']})"


def _show_steps(steps: list[dict[str, Any]]) -> None:
    total = sum(s["nanoseconds"] for s in steps) or 1
    rows = [
        [s["step"], s["op"], s["kernel"], f"{s['nanoseconds'] / 1000:.1f}", f"{100 * s['nanoseconds'] / total:.1f}", " ".join(s["nodes"])]
        for s in steps
    ]
    console.out()
    console.table(rows, ["step", "op", "kernel", "us", "%", "model nodes"])
    console.out(f"  all steps: {total / 1000:.1f} us")


def _ms(seconds: float) -> str:
    return f"{seconds * 1000:.4g}"
