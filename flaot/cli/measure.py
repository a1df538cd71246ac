"""``flaot hcd measure``: what this machine does beside what its descriptor declares."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import click

from flaot.cli import console, progress
from flaot.cli.options import CHIP, FILE, json_option, only
from flaot.errors import FlaotError, ProblemList, UsageError, printable

if TYPE_CHECKING:
    from collections.abc import Callable

    from flaot.hcd import Hcd
    from flaot.measure import Figures, Row

EPILOG = """\b
Examples:
  flaot hcd measure --device host                        this machine beside its bundled descriptor
  flaot hcd measure --hcd my_host.hcd --json
  flaot hcd measure --write my_host.hcd                  a descriptor with the measured figures"""


@click.command("measure", epilog=EPILOG)
@click.option("--device", default="host", show_default=True, type=click.Choice(["host"]), help="What is measured: the CPU this runs on.")
@click.option(
    "--hcd", "chip", default=["host"], show_default="host", type=CHIP, multiple=True, callback=only, metavar="NAME|FILE",
    help="The descriptor it is compared with.",
)
@click.option("--seconds", default=4.0, show_default=True, type=click.FloatRange(0.2, 600), help="About how long to measure.")
@click.option("--factor", default=2.0, show_default=True, type=click.FloatRange(1.01, 100), help="What a declared figure may be off by.")
@click.option("--write", type=FILE, metavar="FILE.hcd", help="Write a descriptor that extends the other one by what was measured.")
@json_option
def measure(device: str, chip: str, seconds: float, factor: float, write: str | None, as_json: bool) -> int:
    """Measure peak, clock, caches, bandwidths and features, and compare them with a descriptor. Exit code 1 when it is contradicted."""
    from flaot.files import check_output, write_file
    from flaot.hcd import load_hcd
    from flaot.measure import compare, contradictions, descriptor, measure_host
    from flaot.targets.cpu import cpu_of

    hcd = load_hcd(chip)
    if hcd.full.chip.device_type != "cpu":
        found = f"describes a chip of device type {hcd.full.chip.device_type}; --device {device} is a cpu"
        raise UsageError(found, where=hcd.source, hint="give a descriptor of device type cpu")
    base = _base(hcd, check_output(write, [str(path) for path in hcd.files])) if write is not None else ""
    cores = next(u.count or 1 for u in hcd.full.compute_units.values() if u.kind == "cpu")
    figures = _measured(lambda begin: measure_host(seconds, cores, cpu_of(hcd).variants, begin), as_json)
    rows = compare(hcd, figures, factor)
    if write is not None:
        write_file(write, descriptor(hcd, base, figures).encode())
    failures = contradictions(rows, figures)
    _say(hcd, figures, rows, factor, failures, as_json)
    for e in failures:
        console.err(f"flaot: error: {e}")
    return failures[0].exit_code if failures else 0


def _measured(work: Callable[[Callable[[int], Callable[[str], None]]], Figures], quiet: bool) -> Figures:
    """Runs it with a progress bar whose length it tells itself."""
    from contextlib import ExitStack

    with ExitStack() as stack:
        return work(lambda total: stack.enter_context(progress.bar(total, quiet)))


def _base(hcd: Hcd, target: str) -> str:
    """What the written descriptor extends: the bundled name, or the way from its folder to the other file. Raises UsageError."""
    from flaot.hcd import bundled

    name = hcd.source.removesuffix(".hcd")
    if name in bundled():
        return name
    way = os.path.relpath(os.path.realpath(hcd.source), os.path.dirname(target))
    if way.startswith(".."):
        raise UsageError(f"--write: {printable(hcd.source, 200)} lies outside the folder of the new file", hint="write it beside that one")
    return way


def _say(hcd: Hcd, figures: Figures, rows: list[Row], factor: float, failures: list[FlaotError], as_json: bool) -> None:
    if as_json:
        document: dict[str, Any] = {"hcd": hcd.source, "factor": factor, "contradicted": len(failures), "measured": figures.to_json()}
        document["comparison"] = [r.to_json() for r in rows]
        console.document({**document, **ProblemList(failures).to_json()} if failures else document)
        return
    from flaot.measure.compare import text_of

    clock, load = figures.clock / 1e6, figures.load
    console.out(f"{figures.cpu}: {figures.cpus} CPUs at {clock:.0f} MHz, {figures.variant} loops, load average {load:.1f}")
    console.out("peak, GFLOP/s: " + ", ".join(f"{p / 1e9:.1f} on {t}" for t, p in figures.peak.items()))
    console.out()
    console.out("Memories, GB/s by number of threads")
    header = ["", "size", "by latency", "ns", *(f"{what} {t}" for what in ("read", "write", "copy") for t in figures.peak)]
    console.table([_level(level) for level in figures.levels], header)
    console.out()
    console.out(f"{hcd.source} declares")
    console.table(
        [[r.key, _short(r.declared), _found(r), text_of(r.ratio), r.verdict, r.origin] for r in rows],
        ["key", "declared", "measured", "ratio", "verdict", "line"],
    )


def _level(level: Any) -> list[str]:
    sizes = ["-" if s is None else f"{s >> 10} kB" if s < 1 << 30 else f"{s >> 20} MB" for s in (level.size, level.curve)]
    rates = [f"{rate / 1e9:.1f}" for kind in (level.read, level.write, level.copy) for rate in kind.values()]
    return [level.name, *sizes, "-" if level.latency is None else f"{level.latency:.1f}", *rates]


def _short(value: Any) -> str:
    from flaot.measure.compare import text_of

    return ", ".join(value) or "none" if isinstance(value, list) else text_of(value)


def _found(row: Row) -> str:
    """What was measured; of a list, only whether it has what is declared."""
    if not isinstance(row.measured, list):
        return _short(row.measured)
    lacks = [f for f in row.declared if f not in row.measured]
    return f"no {', '.join(lacks)}" if lacks else "all there"
