"""``flaot devices``: what plans can run on here."""

from __future__ import annotations

import click

from flaot.cli import console
from flaot.cli.options import FILE, json_option
from flaot.errors import printable

EPILOG = """\b
Examples:
  flaot devices
  flaot devices --adapter build/libtoy_adapter.so"""


@click.command("devices", epilog=EPILOG)
@click.option("--adapter", type=FILE, multiple=True, metavar="LIB.so", help="Also the adapter in this library; repeatable.")
@json_option
def command(adapter: tuple[str, ...], as_json: bool) -> None:
    """List the host, the simulator, the adapters of installed packages and those of --adapter."""
    from flaot.about.devices import devices

    found = devices(adapter)
    console.warn([f"{printable(d.source, 200)}: {d.problem}" for d in found if d.problem])
    if as_json:
        console.document({"devices": [d.to_json() for d in found]})
        return
    rows = [
        [printable(d.name), ", ".join(map(printable, d.device_types)) or "any", printable(d.adapter), printable(d.version), d.abi or "-",
         printable(d.source, 200), "cannot be used" if d.problem else d.detail]
        for d in found
    ]
    console.table(rows, ["device", "device types", "adapter", "version", "ABI", "from", ""])
