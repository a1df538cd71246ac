"""The record of every decision of one compilation: data for ``--explain``, the terminal, and the plan's debug section."""

from __future__ import annotations

import json
import zlib
from collections import Counter
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from flaot.errors import PlanError, printable
from flaot.rewrite.trace import Tracer

VERDICTS = ("native", "expanded", "fallback", "refused")


@dataclass(frozen=True)
class Candidate:
    """A place a node could have had, and what it would have cost there in nanoseconds."""

    place: str
    dtype: str
    cost_ns: float
    chosen: bool


@dataclass
class Decision:
    """Where one node of the graph went: ``node`` are the model's node names, ``op`` the model's operator, ``step`` what runs. ``origin``
    is the line of the descriptor the reason rests on."""

    node: tuple[str, ...]
    op: str
    step: str
    verdict: str
    device: str = ""
    unit: str = ""
    dtype: str = ""
    layout: str = ""
    reason: str = ""
    origin: str = ""
    note: str = ""
    candidates: tuple[Candidate, ...] = ()


@dataclass(frozen=True)
class Inserted:
    """A Transfer, Cast or Relayout that the model does not hold: the value, its bytes as they are read, estimated nanoseconds, the device
    (Transfer), element type (Cast) or layout (Relayout) on both sides, where it runs, who wanted it, and what would remove it.
    ``edge`` says that one side is an input or output of the model."""

    kind: str
    value: str
    nbytes: int
    cost_ns: float
    source: str
    target: str
    where: str
    wanted_by: str
    remedy: str
    edge: bool = False


@dataclass(frozen=True)
class Fused:
    """Nodes that became one step: the rule, or the fusion of the descriptor with its level and line."""

    name: str
    nodes: tuple[str, ...]
    level: int = 0
    origin: str = ""
    steps: int = 1


@dataclass(frozen=True)
class Missed:
    """A rule or fusion that nearly applied at a node, and the sentence why not."""

    name: str
    node: str
    why: str


@dataclass(frozen=True)
class Assigned:
    """One labelling problem: nodes, energy in nanoseconds, and whether no labelling is better for certain."""

    stage: str
    nodes: int
    energy_ns: float
    exact: bool


@dataclass
class Record:
    """Everything decided for one model on one chip."""

    chip: str = ""
    policy: dict[str, Any] = field(default_factory=dict)
    decisions: list[Decision] = field(default_factory=list)
    inserted: list[Inserted] = field(default_factory=list)
    fused: list[Fused] = field(default_factory=list)
    missed: list[Missed] = field(default_factory=list)
    assigned: list[Assigned] = field(default_factory=list)
    tracer: Tracer = field(default_factory=Tracer)

    def to_json(self) -> dict[str, Any]:
        """Everything, JSON-ready."""
        lists = {name: [asdict(x) for x in getattr(self, name)] for name in _ROWS}
        rules = dict(sorted(self.tracer.counts.items()))
        return {"chip": self.chip, "policy": self.policy, "summary": self.summary(), **lists, "rules": rules}

    def summary(self) -> dict[str, Any]:
        """Counts of verdicts, and number and bytes of what was inserted."""
        verdicts = Counter(d.verdict for d in self.decisions)
        kinds = Counter(i.kind for i in self.inserted)
        inner = Counter(i.kind for i in self.inserted if not i.edge)
        size = Counter[str]()
        for i in self.inserted:
            size[i.kind] += i.nbytes
        return {
            "verdicts": {v: verdicts[v] for v in VERDICTS},
            "inserted": {k: {"count": kinds[k], "inner": inner[k], "bytes": size[k]} for k in ("Transfer", "Cast", "Relayout")},
            "fused": len(self.fused),
        }

    def compact(self) -> bytes:
        """The record for a plan's debug section: decisions, conversions and fusions without candidates, near misses and rule counts."""
        lists = {name: list(getattr(self, name)) for name in _ROWS}
        lists["decisions"], lists["missed"] = [_without_candidates(d) for d in self.decisions], []
        held = {"chip": self.chip, "policy": self.policy, **{name: [_row(x) for x in rows] for name, rows in lists.items()}}
        return zlib.compress(json.dumps(held, separators=(",", ":")).encode(), 9)

    @classmethod
    def parse(cls, data: bytes) -> Record:
        """The inverse of :meth:`compact`. Raises PlanError."""
        try:
            held = json.loads(zlib.decompressobj().decompress(data, MAX_BYTES))
            lists: dict[str, Any] = {name: [kind(*map(_tuples, row)) for row in held[name]] for name, kind in _ROWS.items()}
            return cls(held["chip"], held["policy"], **lists)
        except (zlib.error, ValueError, KeyError, TypeError, RecursionError) as e:
            raise PlanError(f"the record of decisions cannot be read: {printable(e)}") from None

    def summary_lines(self) -> list[str]:
        """What a person wants to know after a compilation: verdicts, what left the chip and why, conversions and their remedies."""
        return [*self._verdict_lines(), *self._inserted_lines(), *self._fused_lines()]

    def why(self, name: str) -> list[str]:
        """Everything about the model's node ``name``; empty when it is not known."""
        lines: list[str] = []
        for d in self.decisions:
            if name in d.node:
                lines += decision_lines(d)
        lines += [_inserted_line(i) for i in self.inserted if lines and f"'{name}'" in i.wanted_by]
        for f in self.fused:
            if name in f.nodes:
                lines.append(f"fused by {f.name}{_at(f.origin)} with {', '.join(n for n in f.nodes if n != name)}")
        return lines

    def _verdict_lines(self) -> list[str]:
        count = self.summary()["verdicts"]
        lines = [", ".join(f"{count[v]} {v}" for v in VERDICTS if count[v] or v in ("native", "fallback"))]
        reasons: dict[str, list[Decision]] = {}
        for d in self.decisions:
            if d.verdict in ("fallback", "refused"):
                reasons.setdefault(f"{d.op}: {d.reason}{_at(d.origin)}", []).append(d)
        for text, held in sorted(reasons.items(), key=lambda r: -len(r[1])):
            first = printable(held[0].node[0] if held[0].node else held[0].step, 40)
            lines.append(f"  on the host: {len(held)} x {text}; first '{first}'")
        notes = Counter(d.note for d in self.decisions if d.note)
        return lines + [f"  {n} x {text}" for text, n in notes.most_common()]

    def _inserted_lines(self) -> list[str]:
        lines = []
        for kind, held in self.summary()["inserted"].items():
            if not held["count"]:
                continue
            where = f"{held['inner']} inside the model" if held["inner"] else "all at the model's inputs and outputs"
            lines.append(f"{held['count']} x {kind}, {held['bytes']} bytes, {where}")
            remedies = Counter(i.remedy for i in self.inserted if i.kind == kind and not i.edge)
            lines += [f"  {n} x removed by: {text}" for text, n in remedies.most_common(3)]
        return lines

    def _fused_lines(self) -> list[str]:
        names = Counter(f.name for f in self.fused)
        return [f"fused: {', '.join(f'{n} x {name}' for name, n in names.most_common(6))}"] if names else []


def decision_lines(d: Decision) -> list[str]:
    """One decision as a person reads it."""
    place = f"{d.device}.{d.unit}" if d.unit else d.device
    form = " ".join(x for x in (d.dtype, d.layout) if x)
    lines = [f"{d.op} -> {d.step}: {d.verdict}, on {place or 'nothing'}{f' in {form}' if form else ''}"]
    if d.reason:
        lines.append(f"  because {d.reason}{_at(d.origin)}")
    if d.note:
        lines.append(f"  note: {d.note}")
    for c in d.candidates:
        lines.append(f"  {'chosen' if c.chosen else 'could be'}: {c.place} {c.dtype}, {c.cost_ns:.0f} ns")
    return lines


def _inserted_line(i: Inserted) -> str:
    return f"{i.kind} of '{i.value}' from {i.source} to {i.target}, {i.nbytes} bytes, {i.cost_ns:.0f} ns; removed by: {i.remedy}"


def _at(origin: str) -> str:
    return f" ({origin})" if origin else ""


MAX_BYTES = 1 << 28
_ROWS: dict[str, Any] = {"decisions": Decision, "inserted": Inserted, "fused": Fused, "missed": Missed, "assigned": Assigned}


def _without_candidates(d: Decision) -> Decision:
    return Decision(**{f.name: getattr(d, f.name) for f in fields(Decision) if f.name != "candidates"})


def _row(x: Any) -> list[Any]:
    return [getattr(x, f.name) for f in fields(x)]


def _tuples(x: Any) -> Any:
    return tuple(map(_tuples, x)) if isinstance(x, list) else x
