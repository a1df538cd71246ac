"""``flaot new``: files to start an op, a chip or an adapter from."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from flaot.cli import console
from flaot.cli.options import json_option

if TYPE_CHECKING:
    from collections.abc import Callable

    from flaot.scaffold import Made

EPILOG = """\b
Examples:
  flaot new chip My-NPU                    my_npu.hcd and a test that compiles and runs a small model for it
  flaot new adapter My-NPU                 my_npu/: adapter in C, Makefile, descriptor and test
  flaot new op HardShrink --into flaot     in a checkout: op, reader, kernel and test"""

into_option = click.option("--into", default=".", metavar="DIR", type=click.Path(), help="Where; the current folder unless stated.")


@click.group("new", epilog=EPILOG)
def command() -> None:
    """Make the files that a new op, chip or adapter starts from. They pass their own tests as they stand; no file is overwritten."""


@command.command("op", epilog="Example:  flaot new op HardShrink --into path/to/flaot")
@click.argument("name")
@into_option
@json_option
def op(name: str, into: str, as_json: bool) -> None:
    """Start an op NAME in a checkout of flaot: attributes, inference, cost, ONNX reader, portable kernel, test with onnxruntime.

    NAME is 2 to 40 letters and digits, a capital first."""
    from flaot import scaffold

    _make(scaffold.op, name, into, as_json)


@command.command("chip", epilog="Example:  flaot new chip My-NPU --into my_npu")
@click.argument("name")
@into_option
@json_option
def chip(name: str, into: str, as_json: bool) -> None:
    """Start a chip NAME: a commented descriptor, and a test that compiles a small model for it and runs that in the simulator.

    NAME is 2 to 40 letters, digits, - and _, a letter first; in lower case, with _ for -, it is the device type."""
    from flaot import scaffold

    _make(scaffold.chip, name, into, as_json)


@command.command("adapter", epilog="Example:  flaot new adapter My-NPU")
@click.argument("name")
@into_option
@json_option
def adapter(name: str, into: str, as_json: bool) -> None:
    """Start an adapter for a chip NAME, in a folder of its own: C against flaot/adapter.h with one kernel bound to a stand-in for the
    vendor's SDK, a Makefile, a descriptor, and a test that builds it and runs a small plan on it.

    NAME is as for 'new chip', or that of a chip that comes with flaot, such as npu_v3, whose device type the adapter then serves."""
    from flaot import scaffold

    _make(scaffold.adapter, name, into, as_json)


def _make(maker: Callable[[str, Path], Made], name: str, into: str, as_json: bool) -> None:
    made = maker(name, Path(into))
    if as_json:
        console.document({"folder": str(made.folder), "files": list(made.files), "next": list(made.next)})
        return
    for path in made.files:
        console.out(f"wrote {made.folder / path}")
    console.out()
    console.out("Next:")
    for sentence in made.next:
        console.out(f"  {sentence}")
