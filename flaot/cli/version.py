"""``flaot version``."""

from __future__ import annotations

import click

from flaot.cli import console
from flaot.cli.options import json_option
from flaot.version import VERSION


@click.command("version")
@json_option
def command(as_json: bool) -> None:
    """Print the version."""
    if as_json:
        console.document({"version": VERSION})
    else:
        console.out(f"flaot {VERSION}")
