"""``flaot hcd``: list, show, compare, validate, measure and start hardware descriptors."""

from __future__ import annotations

import click

from flaot.cli import console
from flaot.cli.measure import measure
from flaot.cli.options import CHIP, json_option
from flaot.hcd import bundled, load_hcd
from flaot.hcd.diff import differences
from flaot.hcd.document import json_schema
from flaot.hcd.show import as_json_document, as_lines
from flaot.hcd.template import TEMPLATE

EPILOG = """\b
Examples:
  flaot hcd list
  flaot hcd show host
  flaot hcd new > my_chip.hcd
  flaot hcd validate my_chip.hcd
  flaot hcd diff npu_v2 npu_v3
  flaot hcd measure --device host"""


@click.group("hcd", epilog=EPILOG)
def command() -> None:
    """List, show, compare, validate, measure and start hardware descriptors (HCD)."""


command.add_command(measure)


@command.command("list", epilog="Example:  flaot hcd list")
@json_option
def list_(as_json: bool) -> None:
    """List the bundled descriptors; '*' marks the one that --hcd host picks here."""
    host = load_hcd("host")
    chips = [(name, load_hcd(name)) for name in bundled()]
    if as_json:
        console.document(
            {"host": host.name, "chips": [{"descriptor": n, **h.to_json()["chip"], "digest": h.digest.hex()} for n, h in chips]}
        )
        return
    rows = [
        ["*" if h.digest == host.digest else "", n, h.full.chip.device_type, h.full.chip.vendor or "", h.full.chip.version]
        for n, h in chips
    ]
    console.table(rows, ["", "name", "device type", "vendor", "version"], indent=0)


@command.command("show", epilog="Example:  flaot hcd show npu_v3")
@click.argument("name_or_path", type=CHIP)
@json_option
def show(name_or_path: str, as_json: bool) -> None:
    """Show a descriptor with its derived defaults; NAME_OR_PATH is a bundled name, a file, or 'host'."""
    hcd = load_hcd(name_or_path)
    console.warn(hcd.warnings)
    if as_json:
        console.document(as_json_document(hcd))
        return
    for line in as_lines(hcd):
        console.out(line)


@command.command("validate", epilog="Example:  flaot hcd validate my_chip.hcd other.hcd")
@click.argument("names_or_paths", type=CHIP, nargs=-1, required=True)
@json_option
def validate(names_or_paths: tuple[str, ...], as_json: bool) -> None:
    """Check descriptors; every problem is reported with file:line:column (exit code 4)."""
    from flaot.mapping.audit import audit

    found = [load_hcd(n) for n in names_or_paths]
    warnings = {h.source: (*h.warnings, *audit(h)) for h in found}
    for hcd in found:
        console.warn(warnings[hcd.source])
    if as_json:
        rows = [{"source": h.source, "name": h.name, "digest": h.digest.hex(), "warnings": list(warnings[h.source])} for h in found]
        console.document({"valid": rows})
        return
    for hcd in found:
        console.out(f"{hcd.source}: ok ({hcd.name}, {hcd.full.chip.device_type}, digest {hcd.digest.hex()[:16]})")


@command.command("diff", epilog="Example:  flaot hcd diff npu_v2 npu_v3")
@click.argument("left", type=CHIP)
@click.argument("right", type=CHIP)
@json_option
def diff(left: str, right: str, as_json: bool) -> None:
    """Show what differs between two descriptors by key path, derived defaults included."""
    a, b = load_hcd(left), load_hcd(right)
    found = differences(a, b)
    if as_json:
        changes = [{"path": d.path, "left": d.left, "right": d.right} for d in found]
        console.document({"left": a.source, "right": b.source, "same": not found, "differences": changes})
        return
    for difference in found:
        console.out(str(difference))
    if not found:
        console.out(f"{a.source} and {b.source} describe the same chip")


@command.command("new", epilog="Example:  flaot hcd new > my_chip.hcd")
def new() -> None:
    """Print a commented descriptor to start from; it validates as it stands."""
    for line in TEMPLATE.splitlines():
        console.out(line)


@command.command("schema", epilog="Example:  flaot hcd schema > hcd.schema.json")
def schema() -> None:
    """Print the JSON Schema of descriptors, for editors that complete and check YAML."""
    console.document(json_schema())
