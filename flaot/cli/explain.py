"""``flaot explain``: rules and fusions at work on a model."""

from __future__ import annotations

from typing import Any

import click

from flaot.cli import console
from flaot.cli.mapping import LEVELS, board, chips_option, mapping_options, policy
from flaot.cli.options import FILE, json_option, shapes
from flaot.errors import FlaotError, located, printable

EPILOG = """\b
Examples:
  flaot explain model.onnx --hcd npu_v3
  flaot explain model.onnx --hcd npu_v3 --rule conv.ActivationIntoConv
  flaot explain model.onnx --hcd edge_dsp --rule conv_relu
  flaot explain model.onnx --hcd npu_v3 --hcd npu_v2
  flaot explain model.onnx --rule norm. --json | jq '.rules[].missed_at'"""

MAX_NODES = 40
"""Nodes listed per rule; --json lists all."""


@click.command("explain", epilog=EPILOG)
@click.argument("model", type=FILE)
@chips_option
@click.option("--rule", metavar="NAME", help="Rule or fusion of the chip, or the beginning of its name: where it fired, where not and why.")
@click.option("--shape", multiple=True, metavar="NAME=SIZES", help="Bind an input's shape or a symbol; repeatable.")
@mapping_options
@click.option("--fusion-level", type=click.Choice(LEVELS), default="balanced", show_default=True, help="Fusions of the chip to use.")
@json_option
def command(
    model: str, hcd: tuple[str, ...], rule: str | None, shape: tuple[str, ...], fusion_level: str, as_json: bool, **mapping: Any
) -> None:
    """Compile MODEL (an ONNX file) and tell which rules fired, which nearly did, and why not; no plan is written."""
    bindings = shapes(shape)

    from flaot.pipeline import Options, compile_model
    from flaot.report.rules import detail, named, rule_rows

    chip = board(hcd, "host")
    options = Options(bindings, mapping["precision"], policy(chip, mapping), LEVELS.index(fusion_level))
    try:
        tracer = compile_model(model, chip, options).record.tracer
    except FlaotError as e:
        raise located(e, printable(model, 300)) from e.__cause__
    rows = rule_rows(tracer) if rule is None else [detail(tracer, name) for name in named(tracer, rule)]
    if as_json:
        console.document({"model": model, "chip": chip.name, "rules": rows})
    elif rule is None:
        head = ["stage", "rule", "fired", "nearly", ""]
        console.table([[r["stage"], r["rule"], r["fired"], r["missed"], r["summary"]] for r in rows], head, indent=0)
    else:
        for row in rows:
            _show(row)


def _show(row: dict[str, Any]) -> None:
    console.out(f"{row['rule']} ({row['stage']}): {row['summary']}")
    console.out(f"  fired {row['fired']} times{':' if row['fired_at'] else ''}")
    _list([f"{e['node']} on {e['device']}" for e in row["fired_at"]])
    if row["missed_at"]:
        console.out(f"  nearly fired {row['missed']} times:")
        _list([f"{m['node']}: {m['why']}" for m in row["missed_at"]])


def _list(lines: list[str]) -> None:
    for line in lines[:MAX_NODES]:
        console.out(f"    {line}")
    if len(lines) > MAX_NODES:
        console.out(f"    and {len(lines) - MAX_NODES} more; --json lists them all")
