"""``flaot query``: what a chip can run, and why not."""

from __future__ import annotations

import os
from typing import Any

import click

from flaot.cli import console
from flaot.cli.mapping import board, mapping_options, policy
from flaot.cli.options import CHIP, json_option, shapes
from flaot.errors import UsageError, printable

EPILOG = """\b
Examples:
  flaot query Conv --hcd npu_v3
  flaot query model.onnx --hcd npu_v3
  flaot query model.onnx --hcd npu_v3 --hcd npu_v2
  flaot query model.onnx --hcd npu_v3 --route Softmax=host --json | jq '.nodes[] | select(.verdict != "native")'"""


@click.command("query", epilog=EPILOG)
@click.argument("what", metavar="OP|MODEL")
@click.option("--hcd", type=CHIP, multiple=True, required=True, metavar="NAME|FILE", help="The chip, or those of one plan; repeatable.")
@click.option("--shape", multiple=True, metavar="NAME=SIZES", help="Bind an input's shape or a symbol; repeatable.")
@mapping_options
@json_option
def command(what: str, hcd: tuple[str, ...], shape: tuple[str, ...], as_json: bool, **mapping: Any) -> None:
    """What a chip can do with an operator, or with every node of a model (an ONNX file). Of several chips, what each can do with the
    operator, and which of them every node goes to."""
    chip = board(hcd)
    if os.path.exists(what) or "." in what or os.sep in what:
        _model(what, chip, shapes(shape), mapping, as_json)
    else:
        _operator(what, chip, as_json)


def _operator(name: str, chip: Any, as_json: bool) -> None:
    from flaot.hcd.text import nearest
    from flaot.mapping.describe import describe
    from flaot.mapping.names import known_operators

    known = known_operators()
    if name not in known:
        raise UsageError(f"there is no operator '{printable(name)}' and no such file; {nearest(name, known)}")
    every = {hcd.name: describe(name, hcd) for hcd in chip.all}
    if as_json:
        rows = [{"chip": on, **found.to_json()} for on, found in every.items()]
        console.document({"operator": name, **(rows[0] if len(rows) == 1 else {"chips": rows})})
        return
    for on, found in every.items():
        console.out(f"{name} on {on}: {found.verdict}")
        for line in found.lines():
            console.out(f"  {line}")


def _model(model: str, chip: Any, bindings: Any, mapping: dict[str, Any], as_json: bool) -> None:
    from flaot.pipeline import Options, query_model

    rows = query_model(model, chip, Options(shapes=bindings, precision=mapping["precision"], policy=policy(chip, mapping)))
    counts: dict[str, int] = {}
    for row in rows:
        counts[row["verdict"]] = counts.get(row["verdict"], 0) + 1
    if as_json:
        console.document({"model": model, "chip": chip.name, "verdicts": counts, "nodes": rows})
        return
    head = ("node", "operator", "verdict", "device", "unit", "dtype", "reason")
    table = [head, *(tuple(_cell(row, key) for key in head) for row in rows)]
    widths = [max(len(r[i]) for r in table) for i in range(len(head) - 1)]
    for r in table:
        console.out("  ".join([*(c.ljust(w) for c, w in zip(r, widths, strict=False)), r[-1]]).rstrip())
    console.out(f"{len(rows)} nodes: {', '.join(f'{n} {v}' for v, n in counts.items())}")


def _cell(row: dict[str, Any], key: str) -> str:
    text = str(printable(row[key], 48 if key == "node" else 400))
    return f"{text} ({row['origin']})" if key == "reason" and row["origin"] else text
