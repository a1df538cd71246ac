"""``flaot optest``: what a chip claims, measured."""

from __future__ import annotations

import fnmatch
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from flaot.cli import console, progress
from flaot.cli.options import CHIP, FILE, adapter_option, json_option, only
from flaot.errors import CheckFailed, UsageError, printable
from flaot.files import check_output, make_folder, read_file, write_file

if TYPE_CHECKING:
    from flaot.hcd import Hcd
    from flaot.optest.probes.finding import Finding
    from flaot.optest.ratchet import Ratchet
    from flaot.optest.suite import Outcome

EPILOG = """\b
Examples:
  flaot optest --hcd npu_v3                              every operator it claims, and the probes
  flaot optest --hcd toy.hcd --adapter libtoy.so --report toy.html
  flaot optest --hcd npu_v3 --op Conv --case 'boundary/*' --keep failures
  flaot optest --hcd npu_v3 --probes                     only ask whether the descriptor lies
  flaot optest --hcd npu_v3 --ratchet npu_v3.ratchet     fail when anything got worse"""


@click.command("optest", epilog=EPILOG)
@click.option(
    "--hcd", type=CHIP, required=True, multiple=True, callback=only, metavar="NAME|FILE", help="The chip; see 'flaot hcd list'."
)
@adapter_option
@click.option("--op", "operators", multiple=True, metavar="OP", help="Try only this operator; repeatable.")
@click.option("--case", "pattern", default="", metavar="PATTERN", help="Try only cases of that name, such as 'boundary/*'.")
@click.option("--quick", is_flag=True, help="Leave out the slow cases, which fill a large on-chip memory.")
@click.option("--probes/--no-probes", default=None, help="Only the probes, or none; both probes and cases by default.")
@click.option("--report", type=FILE, metavar="FILE.md|.html", help="Write a page to publish: chip, versions, verdicts, probes.")
@click.option("--keep", type=FILE, metavar="DIR", help="Write model and inputs of every case that is run, to repeat it.")
@click.option("--ratchet", type=FILE, metavar="FILE", help="Verdicts of an earlier run; exit code 1 only when something got worse.")
@click.option("--update-ratchet", is_flag=True, help="Write what is new or better to the ratchet.")
@json_option
def command(
    hcd: str, adapter: str | None, operators: tuple[str, ...], pattern: str, quick: bool, probes: bool | None, report: str | None,
    keep: str | None, ratchet: str | None, update_ratchet: bool, as_json: bool,
) -> int:
    """Measure the operators a chip claims on the chip or its simulator, and probe for a descriptor that lies. Exit code 1 when a claim does
    not hold, 8 or 9 when the device is busy, lost or out of memory: then nothing is reported."""
    if update_ratchet and ratchet is None:
        raise UsageError("--update-ratchet without --ratchet FILE")
    if report is not None and Path(report).suffix not in (".md", ".html"):
        raise UsageError(f"--report {printable(report)}: a name that ends in .md or .html is expected")

    from flaot.hcd import load_hcd
    from flaot.optest.ratchet import Ratchet, gone
    from flaot.optest.report import document

    chip = load_hcd(hcd)
    read = [*map(str, chip.files), *([adapter] if adapter is not None else [])]
    _check_outputs(read, report, ratchet, update_ratchet, keep)
    console.warn(chip.warnings)
    device = _device(chip, adapter)
    held = _held(ratchet, update_ratchet, chip)
    outcome, findings = _run(chip, adapter, operators, pattern, quick, probes, keep, as_json)
    d = document(outcome, findings, device)
    if report is not None:
        _write_report(report, d)
    now = Ratchet.of(chip.name, outcome.verdicts, findings)
    failure = _failure(d, held, now)
    if held is not None:
        whole = not (operators or pattern or quick) and probes is None
        d["ratchet"] = _moved(held, now) | {"gone": gone(held, now) if whole else []}
        if update_ratchet and ratchet is not None:
            joined = held.joined(now)
            write_file(ratchet, (joined.without_gone(now) if whole else joined).text().encode())
    if as_json:
        console.document({**d, **failure.to_json()} if failure is not None else d)
    else:
        _show(d, hcd, adapter)
    if failure is None:
        return 0
    console.err(f"flaot: error: {failure}")
    return failure.exit_code


def _check_outputs(read: list[str], report: str | None, ratchet: str | None, update: bool, keep: str | None) -> None:
    """Refuses before any work what cannot be written. Raises UsageError, FileSystemError."""
    if report is not None:
        check_output(report, [*read, *([ratchet] if ratchet is not None else [])])
        if ratchet is not None and os.path.realpath(report) == os.path.realpath(ratchet):
            raise UsageError(f"--report and --ratchet are one file, '{printable(report, 200)}'")
    if ratchet is not None and update:
        check_output(ratchet, read)
    if keep is not None:
        make_folder(keep)


def _device(chip: Hcd, adapter: str | None) -> str:
    """What runs the cases, in words. Raises PlanError for an adapter of another device type or ABI, DependencyError for one that does not
    load, UsageError for one of a CPU."""
    from flaot.runtime.adapter import SIMULATOR, adapters_for, mismatch

    kind = chip.full.chip.device_type
    if kind == "cpu" and adapter not in (None, SIMULATOR):
        raise UsageError(f"--adapter {printable(adapter, 200)}: {chip.name} is the CPU of the host, which needs none", hint="leave it out")
    if kind == "cpu":
        return "this CPU"
    (found,) = adapters_for([kind], [adapter] if adapter is not None else [])
    wrong = mismatch(found, f"chip {chip.name}", kind)
    if wrong is not None:
        raise wrong
    return "the simulator" if found.source == SIMULATOR else f"adapter {found.name} {found.version}".rstrip()


def _held(ratchet: str | None, update: bool, chip: Hcd) -> Ratchet | None:
    from flaot.optest.ratchet import MAX_BYTES, Ratchet

    if ratchet is None:
        return None
    if update and not Path(ratchet).exists():
        return Ratchet(chip.name)
    held = Ratchet.parse(read_file(ratchet, "a ratchet", MAX_BYTES), ratchet)
    if held.chip != chip.name:
        raise UsageError(f"a ratchet of {printable(held.chip)}; --hcd is {chip.name}", where=printable(ratchet, 200))
    return held


def _run(
    chip: Hcd, adapter: str | None, operators: tuple[str, ...], pattern: str, quick: bool, probes: bool | None, keep: str | None,
    quiet: bool,
) -> tuple[Outcome, list[Finding]]:
    from flaot.optest.probes import PROBES, run_probes
    from flaot.optest.suite import Outcome, plan_cases, run_suite

    cases, unexamined = ([], []) if probes else plan_cases(chip, operators, not quick)
    if pattern:
        cases = [c for c in cases if fnmatch.fnmatchcase(c.name, pattern) or fnmatch.fnmatchcase(c.id, pattern)]
        if not cases:
            raise UsageError(f"--case {printable(pattern)}: there is no such case")
    probing = probes or (probes is None and not operators and not pattern)
    with progress.bar(len(cases) + (len(PROBES) if probing else 0), quiet) as begin:
        findings = run_probes(chip, adapter, begin) if probing else []
        outcome = Outcome(chip)
        if cases or unexamined:
            outcome = run_suite(chip, adapter, cases, unexamined, Path(keep) if keep is not None else None, begin)
    return outcome, findings


def _failure(d: dict[str, Any], held: Ratchet | None, now: Ratchet) -> CheckFailed | None:
    from flaot.optest.ratchet import worse_than

    name = d["chip"]["name"]
    if held is not None and (held.cases or held.probes):
        worse = worse_than(held, now)
        shown = "; ".join(f"{case} was {was or 'new'}, is {is_}" for case, was, is_ in worse[:5])
        more = f"; and {len(worse) - 5} more" if len(worse) > 5 else ""
        return CheckFailed(f"{len(worse)} got worse: {printable(shown, 1000)}{more}", where=name) if worse else None
    if held is not None:
        return None
    lies = sum(p["verdict"] == "lies" for p in d["probes"])
    failed = [r for r in d["operators"] if r["verdict"] != "kept"]
    if not lies and not failed:
        return None
    parts = [f"{lies} declared value{'s' * (lies != 1)} measured otherwise"] if lies else []
    parts += [f"{len(failed)} operator{'s' * (len(failed) != 1)} not kept as claimed"] if failed else []
    return CheckFailed(", ".join(parts), where=name, hint="--ratchet FILE accepts what is known")


def _moved(held: Ratchet, now: Ratchet) -> dict[str, Any]:
    from flaot.optest.ratchet import better_than, worse_than

    both = {"worse": worse_than(held, now), "better": better_than(held, now)}
    return {k: [{"name": n, "was": was, "is": is_} for n, was, is_ in v] for k, v in both.items()}


def _write_report(path: str, d: dict[str, Any]) -> None:
    from flaot.optest.report import markdown, page

    write_file(path, (markdown(d) if path.endswith(".md") else page(d)).encode())


def _show(d: dict[str, Any], hcd: str, adapter: str | None) -> None:
    from flaot.optest.report import operator_row

    console.out(f"{d['chip']['name']} on {d['device']}, descriptor digest {d['hcd']['digest'][:16]}")
    if d["operators"]:
        rows = [operator_row(r) for r in d["operators"]]
        console.table([r[:5] for r in rows], ["operator", "verdict", "cases", "passed", "error/bound"])
    for r in d["operators"]:
        first = r["first_failure"]
        if first is not None:
            console.out(f"{r['operator']}: {operator_row(r)[5]}")
            name = first["case"].partition("/")[2]
            run_by = f" --adapter {adapter}" if adapter is not None else ""
            console.out(f"  to repeat: flaot optest --hcd {hcd}{run_by} --op {r['operator']} --case '{name}' --keep DIR")
    for p in d["probes"]:
        if p["verdict"] == "holds":
            console.out(f"holds: {p['key']} ({p['origin']}): {p['declared']}")
    for p in d["probes"]:
        if p["verdict"] != "holds":
            console.out(f"{p['verdict'].upper()}: {_sentence(p)}")
    for change in d.get("ratchet", {}).get("better", []):
        console.out(f"better than the ratchet: {change['name']} was {change['was']}, is {change['is']}")
    for name in d.get("ratchet", {}).get("gone", []):
        console.out(f"in the ratchet, but no longer tried: {name}")
    counts = ", ".join(f"{n} {v}" for v, n in sorted(d["counts"].items(), key=lambda c: -c[1]))
    if d["cases"]:
        count = len(d["operators"])
        console.out(f"{d['cases']} cases of {count} operator{'s' * (count != 1)}: {counts}")
    if d["unexamined"]:
        console.out(f"claimed, but without cases: {', '.join(d['unexamined'])}")


def _sentence(p: dict[str, Any]) -> str:
    from flaot.optest.probes.finding import Finding

    return Finding(**p).sentence
