"""Rules and fusions of one compilation as JSON-ready rows: which fired where, which nearly did and why not."""

from __future__ import annotations

from typing import Any

from flaot.errors import UsageError, printable
from flaot.hcd.text import nearest
from flaot.rewrite import Tracer


def rule_rows(tracer: Tracer) -> list[dict[str, Any]]:
    """One row per rule that was tried, in the order of the stages: its name, stage, a line about it, how often it fired and nearly did."""
    return [_row(tracer, name) for name in tracer.rules]


def named(tracer: Tracer, word: str) -> list[str]:
    """Rules called ``word``, by full name, class or fusion name, else those that begin with it. Raises UsageError when there is none."""
    names = list(tracer.rules)
    exact = [n for n in names if word in (n, n.rpartition(".")[2])]
    found = exact or [n for n in names if n.startswith(word) or n.rpartition(".")[2].startswith(word)]
    if not found or not word:
        known = sorted({*names, *(n.rpartition(".")[2] for n in names)})
        hint = nearest(word, known)
        way = hint if hint.startswith("did") else "without --rule they are listed"
        raise UsageError(f"--rule {printable(word)}: no rule or fusion of that name", hint=way)
    return found


def detail(tracer: Tracer, name: str) -> dict[str, Any]:
    """The row of a rule with every node it fired at (``fired_at``) and every near miss (``missed_at``)."""
    fired = [{"node": e.where, "nodes": list(e.origin), "device": e.device} for e in tracer.events if e.rule == name]
    missed = [{"node": where, "why": why} for (rule, where), why in tracer.misses.items() if rule == name]
    return {**_row(tracer, name), "fired_at": fired, "missed_at": missed}


def _row(tracer: Tracer, name: str) -> dict[str, Any]:
    offered = tracer.rules[name]
    missed = sum(rule == name for rule, _ in tracer.misses)
    return {"rule": name, "stage": offered.stage, "summary": offered.summary, "fired": tracer.counts[name], "missed": missed}
