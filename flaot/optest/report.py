"""What a run found, as one document: for ``--json``, and as a page a vendor can publish, in Markdown or HTML that needs no other file."""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import Any

from flaot.optest.probes.finding import Finding
from flaot.optest.suite import Outcome, table
from flaot.version import VERSION

Rows = Sequence[Sequence[str]]

STYLE = (
    "body{font:15px/1.5 system-ui,sans-serif;max-width:72rem;margin:2rem auto;padding:0 1rem;color:#222}"
    "table{border-collapse:collapse;width:100%;margin:1rem 0}th,td{text-align:left;padding:.3rem .6rem;border-bottom:1px solid #ddd;"
    "vertical-align:top}th{background:#f4f4f4}td.good{color:#176b2c}td.bad{color:#a3161c;font-weight:600}code{font-size:90%}"
)
GOOD, BAD = ("kept", "holds"), ("not kept", "kept in part", "lies")
HEAD = ("operator", "verdict", "cases", "passed", "worst error / bound", "first failure")
PROBE_HEAD = ("key", "line", "declared", "measured", "verdict", "what happened")


def document(outcome: Outcome, findings: Sequence[Finding], device: str) -> dict[str, Any]:
    """Everything, JSON-ready. ``device`` says what ran the cases."""
    chip = outcome.hcd.full.chip
    rows = table(outcome)
    return {
        "chip": {"name": chip.name, "vendor": chip.vendor or "", "version": chip.version or "", "device_type": chip.device_type},
        "hcd": {"source": outcome.hcd.source.rsplit("/", 1)[-1], "digest": outcome.hcd.digest.hex()},
        "flaot": VERSION,
        "device": device,
        "cases": len(outcome.verdicts),
        "counts": outcome.counts(),
        "operators": rows,
        "unexamined": outcome.unexamined,
        "probes": [f.to_json() for f in findings],
        "verdicts": [v.to_json() for v in outcome.verdicts],
    }


def markdown(d: dict[str, Any]) -> str:
    """The page as Markdown."""
    parts = [f"# Operators of {d['chip']['name']}, measured", "\n".join(f"- {name}: {value}" for name, value in _facts(d))]
    for title, head, rows in _tables(d):
        lines = [" | ".join(head), " | ".join("---" for _ in head), *(" | ".join(c.replace("|", "\\|") for c in r) for r in rows)]
        parts += [f"## {title}", "\n".join(f"| {line} |" for line in lines)]
    return "\n\n".join([*parts, _note()]) + "\n"


def page(d: dict[str, Any]) -> str:
    """The page as HTML."""
    title = html.escape(f"Operators of {d['chip']['name']}, measured")
    facts = "".join(f"<li>{html.escape(n)}: {html.escape(v)}</li>" for n, v in _facts(d))
    tables = "".join(f"<h2>{html.escape(t)}</h2>{_html_table(head, rows)}" for t, head, rows in _tables(d))
    head = f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{title}</title><style>{STYLE}</style>'
    return f"{head}<h1>{title}</h1><ul>{facts}</ul>{tables}<p>{html.escape(_note())}</p></html>\n"


def _facts(d: dict[str, Any]) -> list[tuple[str, str]]:
    chip = d["chip"]
    counts = ", ".join(f"{n} {v}" for v, n in sorted(d["counts"].items(), key=lambda c: -c[1]))
    facts = [
        ("chip", " ".join(x for x in (chip["vendor"], chip["name"], chip["version"], f"({chip['device_type']})") if x)),
        ("descriptor", f"{d['hcd']['source']}, digest {d['hcd']['digest']}"),
        ("run by", d["device"]),
        ("flaot", d["flaot"]),
        ("cases", f"{d['cases']}: {counts}" if d["cases"] else "none"),
    ]
    return facts + ([("operators without cases", ", ".join(d["unexamined"]))] if d["unexamined"] else [])


def _tables(d: dict[str, Any]) -> list[tuple[str, Sequence[str], Rows]]:
    found: list[tuple[str, Sequence[str], Rows]] = []
    if d["probes"]:
        rows = [[p["key"], p["origin"], p["declared"], p["measured"] or "-", p["verdict"], p["text"] or "-"] for p in d["probes"]]
        found.append(("Probes of the descriptor", PROBE_HEAD, rows))
    if d["operators"]:
        found.append(("Operators", HEAD, [operator_row(r) for r in d["operators"]]))
    return found


def operator_row(r: dict[str, Any]) -> list[str]:
    """An operator's row as text, in the order of :data:`HEAD`."""
    first = r["first_failure"]
    said = ""
    if first is not None:
        line = f" ({first['origin']})" if first["origin"] else ""
        said = f"{first['case'].partition('/')[2]} {first['verdict']}: {first['text']}{line}"
    worst = f"{r['worst']:.3f}" if r["worst"] else "exact"
    return [r["operator"], r["verdict"], str(r["cases"]), str(r["passed"]), worst if r["passed"] else "-", said or "-"]


def _html_table(head: Sequence[str], rows: Rows) -> str:
    cells = "".join(f"<tr>{''.join(f'<td{_colour(c)}>{html.escape(c)}</td>' for c in r)}</tr>" for r in rows)
    return f"<table><thead><tr>{''.join(f'<th>{html.escape(h)}</th>' for h in head)}</tr></thead><tbody>{cells}</tbody></table>"


def _colour(text: str) -> str:
    return ' class="good"' if text in GOOD else ' class="bad"' if text in BAD else ""


def _note() -> str:
    return (
        "A case is one operator compiled for the chip, run on the device and compared with onnxruntime under the operator's tolerance. "
        "Worst error / bound is that of the cases that passed. Cases that the descriptor rules out are not counted."
    )
