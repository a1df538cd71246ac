"""``flaot ops``: every operator on one or several chips."""

from __future__ import annotations

import click

from flaot.cli import console
from flaot.cli.options import CHIP, json_option

EPILOG = """\b
Examples:
  flaot ops --hcd npu_v3
  flaot ops --hcd npu_v2 --hcd npu_v3 --hcd edge_dsp --markdown > operators.md"""


@click.command("ops", epilog=EPILOG)
@click.option("--hcd", type=CHIP, multiple=True, required=True, metavar="NAME|FILE", help="A chip; repeatable.")
@click.option("--markdown", is_flag=True, help="Print the table as Markdown.")
@json_option
def command(hcd: tuple[str, ...], markdown: bool, as_json: bool) -> None:
    """The whole table of operators: how each chip runs them."""
    from flaot.hcd import load_hcd
    from flaot.mapping.audit import audit
    from flaot.mapping.describe import markdown_table, table

    chips = [load_hcd(h) for h in hcd]
    console.warn([sentence for c in chips for sentence in (*c.warnings, *audit(c))])
    if as_json:
        console.document({"operators": table(chips)})
    elif markdown:
        console.out(markdown_table(chips).rstrip("\n"))
    else:
        rows = table(chips)
        head = ["operator", *(c.name for c in chips)]
        lines = [head, *([r["operator"], *(r["chips"][c.name]["text"] for c in chips)] for r in rows)]
        widths = [max(len(line[i]) for line in lines) for i in range(len(head))]
        for line in lines:
            console.out("  ".join(c.ljust(w) for c, w in zip(line, widths, strict=True)).rstrip())
