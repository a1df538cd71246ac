"""``flaot doctor``: versions of everything, and whether they are supported together."""

from __future__ import annotations

import click

from flaot.cli import console
from flaot.cli.options import json_option
from flaot.errors import CheckFailed, printable

EPILOG = """\b
Examples:
  flaot doctor
  flaot doctor --json > report.json"""


@click.command("doctor", epilog=EPILOG)
@json_option
def command(as_json: bool) -> int:
    """Show the versions of everything flaot runs with beside those it supports. Exit code 1 when one is outside."""
    from flaot.about.versions import versions

    found = versions()
    bad = [f for f in found if not f.good]
    failure = CheckFailed(f"not supported: {', '.join(f.name for f in bad)}", hint="docs/supported.md lists what is") if bad else None
    if as_json:
        document = {"ok": not bad, "components": [f.to_json() for f in found]}
        console.document(document if failure is None else {**document, **failure.to_json()})
    else:
        rows = [[f.name, printable(f.found, 200) or "-", f.supported, f.verdict] for f in found]
        console.table(rows, ["component", "found", "supported", ""])
    if failure is None:
        return 0
    console.err(f"flaot: error: {failure}")
    return failure.exit_code
