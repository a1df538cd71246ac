"""The whole suite on one device."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from flaot.errors import UsageError, printable
from flaot.hcd import Hcd
from flaot.hcd.text import nearest
from flaot.mapping.names import known_operators
from flaot.optest.case import Case
from flaot.optest.conformance import vector_cases
from flaot.optest.limits import claims, limits_of
from flaot.optest.recipes import RECIPES, cases_of
from flaot.optest.run import Device, temporary
from flaot.optest.verdict import OUTSIDE, PASS, Verdict
from flaot.verify.server import ReferenceServer

Begin = Callable[[str], None]


@dataclass
class Outcome:
    """What the suite found. ``unexamined`` are claimed operators without a recipe."""

    hcd: Hcd
    verdicts: list[Verdict] = field(default_factory=list)
    unexamined: list[str] = field(default_factory=list)

    @property
    def operators(self) -> dict[str, list[Verdict]]:
        """Verdicts by operator, in order."""
        found: dict[str, list[Verdict]] = {}
        for v in self.verdicts:
            found.setdefault(v.operator, []).append(v)
        return found

    def counts(self) -> dict[str, int]:
        """How often each verdict was given."""
        found: dict[str, int] = {}
        for v in self.verdicts:
            found[v.verdict] = found.get(v.verdict, 0) + 1
        return found


def plan_cases(hcd: Hcd, operators: Sequence[str] = (), slow: bool = True) -> tuple[list[Case], list[str]]:
    """The cases of the operators asked for (all that are claimed), and claimed operators that have none.

    Raises UsageError for an operator that does not exist or is not claimed.
    """
    claimed, known = claims(hcd), known_operators()
    for name in operators:
        if name not in known:
            raise UsageError(f"--op {printable(name)}: no such operator; {nearest(name, known)}")
        if name not in claimed:
            raise UsageError(f"--op {printable(name)}: {hcd.name} does not claim it", hint=f"'flaot query {name} --hcd ...' says why")
    chosen = list(operators) or claimed
    made = {name: cases_of(name, limits_of(hcd, name)) for name in chosen}
    vectors = vector_cases(hcd)
    cases = [c for name in chosen for c in (*made[name], *(v for v in vectors if v.operator == name))]
    return [c for c in cases if slow or not c.slow], [name for name in made if name not in RECIPES]


def run_suite(hcd: Hcd, adapter: str | None, cases: Sequence[Case], unexamined: Sequence[str], keep: Path | None, begin: Begin) -> Outcome:
    """Runs the cases; ``begin`` is told the name of each. Claims of which not one case runs on the chip count as not kept. Raises what
    ``Device.run`` does."""
    outcome = Outcome(hcd, unexamined=list(unexamined))
    with temporary() as folder, ReferenceServer() as reference:
        device = Device(hcd, adapter, reference, Path(folder), keep)
        for case in cases:
            begin(case.id)
            outcome.verdicts.append(device.run(case))
    return outcome


def table(outcome: Outcome) -> list[dict[str, Any]]:
    """A row per operator: cases within the claim, passed, worst error over bound, and the first failure, or the first case where none is
    within the claim."""
    rows = []
    for name, found in outcome.operators.items():
        within = [v for v in found if v.verdict != OUTSIDE]
        first = next((v for v in within if v.failed), None if within else found[0])
        passed = sum(v.verdict == PASS for v in within)
        rows.append({
            "operator": name, "cases": len(within), "passed": passed, "outside": len(found) - len(within),
            "worst": max((v.ratio for v in within if v.verdict == PASS), default=0.0), "verdict": verdict_of(within, passed),
            "first_failure": first.to_json() if first is not None else None,
        })  # fmt: skip
    return rows


def verdict_of(within: Sequence[Verdict], passed: int) -> str:
    """An operator in a word: the claim is kept, kept in part, or not."""
    if passed == len(within) and within:
        return "kept"
    return "kept in part" if passed else "not kept"
