"""The record of every decision of one compilation: data for ``--explain``, the terminal, and the plan's debug section."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import asdict, dataclass, field
from typing import Any

from flaot.errors import PlanError, printable
from flaot.mapping.compact import Packer, Unpacker
from flaot.mapping.decisions import VERDICTS, Assigned, Candidate, Decision, Fused, Inserted, Missed, Pathed, Powered, Way, at
from flaot.rewrite.trace import Tracer

KINDS = ("Transfer", "Cast", "Relayout")
_ROWS: dict[str, Any] = {
    "decisions": Decision, "inserted": Inserted, "fused": Fused, "missed": Missed, "assigned": Assigned, "paths": Pathed,
    "power": Powered,
}
_KEPT = ("decisions", "inserted", "fused", "assigned", "paths")
"""What plans keep."""


@dataclass
class Record:
    """Everything decided for one model on one chip. The digests are hexadecimal."""

    chip: str = ""
    policy: dict[str, Any] = field(default_factory=dict)
    model_digest: str = ""
    hcd_digest: str = ""
    decisions: list[Decision] = field(default_factory=list)
    inserted: list[Inserted] = field(default_factory=list)
    fused: list[Fused] = field(default_factory=list)
    missed: list[Missed] = field(default_factory=list)
    assigned: list[Assigned] = field(default_factory=list)
    paths: list[Pathed] = field(default_factory=list)
    power: list[Powered] = field(default_factory=list)
    tracer: Tracer = field(default_factory=Tracer)

    def to_json(self) -> dict[str, Any]:
        """Everything, JSON-ready."""
        lists = {name: [asdict(x) for x in getattr(self, name)] for name in _ROWS}
        rules = dict(sorted(self.tracer.counts.items()))
        digests = {"model_digest": self.model_digest, "hcd_digest": self.hcd_digest}
        return {"chip": self.chip, **digests, "policy": self.policy, "summary": self.summary(), **lists, "rules": rules}

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
            "inserted": {k: {"count": kinds[k], "inner": inner[k], "bytes": size[k]} for k in KINDS},
            "fused": len(self.fused),
            "paths": dict(sorted(Counter(p.path for p in self.paths).items())),
        }

    # -- plans ---------------------------------------------------------------------------------------------------------

    def compact(self) -> bytes:
        """The record for a plan's debug section: all but near misses and counts of rules, which :meth:`parse` leaves empty."""
        packer = Packer()
        for text in (self.chip, json.dumps(self.policy, sort_keys=True, separators=(",", ":")), self.model_digest, self.hcd_digest):
            packer.text(text)
        for name in _KEPT:
            packer.rows(getattr(self, name))
        return packer.finish()

    @classmethod
    def parse(cls, data: bytes) -> Record:
        """The inverse of :meth:`compact`. Raises PlanError."""
        try:
            held = Unpacker(data)
            chip, policy, model_digest, hcd_digest = held.text(), json.loads(held.text()), held.text(), held.text()
            lists: dict[str, Any] = {name: held.rows(_ROWS[name], {"Candidate": Candidate, "Way": Way}) for name in _KEPT}
            held.finish()
        except (ValueError, RecursionError) as e:
            raise PlanError(f"the record of decisions cannot be read: {printable(e)}") from None
        return cls(chip, policy, model_digest, hcd_digest, **lists)

    # -- people --------------------------------------------------------------------------------------------------------

    def summary_lines(self) -> list[str]:
        """What a person wants to know after a compilation: verdicts, what left the chip and why, conversions and their remedies."""
        paths = [f"paths: {', '.join(f'{n} x {path}' for path, n in self.summary()['paths'].items())}"] if self.paths else []
        return [*self._verdict_lines(), *self._inserted_lines(), *self._fused_lines(), *paths]

    def node_names(self) -> list[str]:
        """The model's node names that :meth:`about` knows, in order."""
        return list(dict.fromkeys(name for d in self.decisions for name in d.node))

    def about(self, name: str) -> Record:
        """What was decided for the model's node ``name`` alone."""
        decisions = [d for d in self.decisions if name in d.node]
        inserted = [i for i in self.inserted if f"'{printable(name)}'" in i.wanted_by]
        fused = [f for f in self.fused if name in f.nodes]
        paths = [p for p in self.paths if name in p.node]
        return Record(self.chip, self.policy, self.model_digest, self.hcd_digest, decisions, inserted, fused, paths=paths)

    def why(self, name: str) -> list[str]:
        """Everything about the model's node ``name`` in words; empty when it is not known."""
        held = self.about(name)
        lines = [line for d in held.decisions for line in d.lines()]
        lines += [line for p in held.paths for line in p.lines()]
        return [*lines, *(i.line() for i in held.inserted), *(f.line() for f in held.fused)] if lines else []

    def _verdict_lines(self) -> list[str]:
        count = self.summary()["verdicts"]
        lines = [", ".join(f"{count[v]} {v}" for v in VERDICTS if count[v] or v in ("native", "fallback"))]
        reasons: dict[str, list[Decision]] = {}
        for d in self.decisions:
            if d.verdict in ("fallback", "refused"):
                reasons.setdefault(f"{d.op}: {d.reason}{at(d.origin)}", []).append(d)
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
            free = sum(i.zero_copy for i in self.inserted if i.kind == kind)
            moved = f"{held['bytes']} bytes" + (f" ({free} zero-copy: nothing is moved)" if free else "")
            lines.append(f"{held['count']} x {kind}, {moved}, {where}")
            remedies = Counter(i.remedy for i in self.inserted if i.kind == kind and not i.edge)
            lines += [f"  {n} x removed by: {text}" for text, n in remedies.most_common(3)]
        return lines

    def _fused_lines(self) -> list[str]:
        names = Counter(f.name for f in self.fused if f.steps == 1)
        apart = Counter((f.name, f.steps) for f in self.fused if f.steps > 1)
        lines = [f"fused: {', '.join(f'{n} x {name}' for name, n in names.most_common(6))}"] if names else []
        for (name, steps), n in apart.most_common(6):
            lines.append(f"  {n} x {name} runs as {steps} steps, as no kernel takes them as one")
        return lines
