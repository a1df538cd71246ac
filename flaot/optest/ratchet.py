"""The ratchet: what each case and probe said once, which later runs may only better.

A file lists per operator the cases that passed, and the verdicts of all others; probes by key.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from flaot.errors import UsageError, printable
from flaot.optest.probes.finding import HOLDS, LIES, UNMEASURED, Finding
from flaot.optest.verdict import PASS, SEVERITY, Verdict

FORMAT = 1
MAX_BYTES = 1 << 24
PROBE = {HOLDS: 0, UNMEASURED: 1, LIES: 2}
"""How bad a finding is."""


@dataclass
class Ratchet:
    """Verdicts by case and findings by key. ``chip`` is the name of the descriptor's chip."""

    chip: str
    cases: dict[str, str] = field(default_factory=dict)
    probes: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, chip: str, verdicts: Iterable[Verdict], findings: Iterable[Finding]) -> Ratchet:
        """What a run gave."""
        return cls(chip, {v.case: v.verdict for v in verdicts}, {f"{f.key} {f.declared}": f.verdict for f in findings})

    @classmethod
    def parse(cls, data: bytes, where: str) -> Ratchet:
        """Raises UsageError for what is no ratchet."""
        try:
            held = json.loads(data)
            if held["format"] != FORMAT:
                raise UsageError(f"a ratchet of format {held['format']}; this flaot reads {FORMAT}", where=printable(where, 200))
            cases = {f"{op}/{n}": PASS for op, names in held["pass"].items() for n in names}
            cases |= {c: v for v, names in held["others"].items() for c in names}
            unknown = sorted({*cases.values()} - set(SEVERITY)) + sorted({*held["probes"].values()} - set(PROBE))
            if unknown:
                raise UsageError(f"unknown verdict '{printable(unknown[0])}'", where=printable(where, 200))
            return cls(str(held["chip"]), cases, dict(held["probes"]))
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            raise UsageError("not a ratchet", where=printable(where, 200), hint="--update-ratchet writes one") from None

    def text(self) -> str:
        """The file: an operator per line."""
        passed: dict[str, list[str]] = {}
        others: dict[str, list[str]] = {}
        for case, verdict in sorted(self.cases.items()):
            operator, _, name = case.partition("/")
            if verdict == PASS:
                passed.setdefault(operator, []).append(name)
            else:
                others.setdefault(verdict, []).append(case)
        body: dict[str, Any] = {"pass": passed, "others": others, "probes": dict(sorted(self.probes.items()))}
        groups = [f'"{name}": {{{_lines(group)}}}' for name, group in body.items()]
        return ",\n".join([f'{{"format": {FORMAT}, "chip": {json.dumps(self.chip)}', *groups]) + "}\n"

    def joined(self, now: Ratchet) -> Ratchet:
        """This one with what a run says that is new or better."""
        worse = {name for name, _, _ in worse_than(self, now)} & (set(self.cases) | set(self.probes))
        fresh = [{n: v for n, v in part.items() if n not in worse} for part in (now.cases, now.probes)]
        return Ratchet(self.chip, self.cases | fresh[0], self.probes | fresh[1])

    def without_gone(self, now: Ratchet) -> Ratchet:
        """This one without what a whole run no longer tries."""
        cases, probes = ({n: v for n, v in a.items() if n in b} for a, b in ((self.cases, now.cases), (self.probes, now.probes)))
        return Ratchet(self.chip, cases, probes)


Change = tuple[str, str, str]
"""A case or key, what it was ("" for a new one), what it is."""


def worse_than(held: Ratchet, now: Ratchet) -> list[Change]:
    """What got worse; cases and keys that are new and fail count as well."""
    return [c for c in _changes(held, now) if _grade(c[2]) > (_grade(c[1]) if c[1] else 1)]


def better_than(held: Ratchet, now: Ratchet) -> list[Change]:
    """What got better."""
    return [c for c in _changes(held, now) if c[1] and _grade(c[2]) < _grade(c[1])]


def gone(held: Ratchet, now: Ratchet) -> list[str]:
    """Cases and keys that a whole run no longer tries."""
    return sorted({*held.cases, *held.probes} - {*now.cases, *now.probes})


def _changes(held: Ratchet, now: Ratchet) -> list[Change]:
    pairs = ((held.cases, now.cases), (held.probes, now.probes))
    return [(name, was.get(name, ""), v) for was, is_ in pairs for name, v in is_.items() if was.get(name) != v]


def _grade(verdict: str) -> int:
    return {**SEVERITY, **PROBE}[verdict]


def _lines(group: dict[str, Any]) -> str:
    return ",".join(f"\n  {json.dumps(k)}: {json.dumps(v)}" for k, v in group.items())
