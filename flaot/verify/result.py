"""What a comparison found."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

from flaot.errors import printable


@dataclass(frozen=True)
class Comparison:
    """One tensor against the reference.

    ``max_rel`` is relative to the larger of \\|want\\| and a hundredth of the tensor's largest magnitude. ``snr_db`` is None for equal
    tensors. ``worst`` is the index of the element furthest beyond (or nearest to) what is allowed, with its values.
    """

    name: str
    type: str
    op: str
    nodes: tuple[str, ...]
    ok: bool
    max_abs: float
    max_rel: float
    snr_db: float | None
    worst: tuple[int, ...] = ()
    got: float = 0.0
    want: float = 0.0
    allowed: float = 0.0
    note: str = ""
    widened: bool = False
    """True when only the reference's own sensitivity to rounding makes the difference acceptable (or does not)."""
    beyond: str = ""
    """The type a chip stores values in, when the reference loses numbers at the same places once it stores its own in it."""

    def to_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "type": self.type,
            "op": self.op,
            "nodes": list(self.nodes),
            "verdict": "DIFFERS" if not self.ok else "ok*" if self.widened else "ok",
            "max_abs": self.max_abs,
            "max_rel": self.max_rel,
            "snr_db": self.snr_db,
            "worst": {"index": list(self.worst), "got": self.got, "want": self.want, "allowed": self.allowed},
            "note": self.note,
            "beyond": self.beyond,
        }

    @property
    def sentence(self) -> str:
        """Why it differs."""
        source = f" of {self.op} '{printable(self.nodes[0])}'" if self.nodes else ""
        detail = self.note or f"at {list(self.worst)} got {self.got:.7g}, want {self.want:.7g}, allowed difference {self.allowed:.3g}"
        return f"'{printable(self.name)}'{source} differs: {detail}"


@dataclass
class Result:
    """Outcome of a verification: outputs, and with ``layers`` every surviving intermediate in order of execution."""

    outputs: list[Comparison]
    layers: list[Comparison] = field(default_factory=list)
    not_compared: list[str] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        return all(c.ok for c in (*self.layers, *self.outputs))

    @property
    def first_difference(self) -> Comparison | None:
        """The first tensor beyond tolerance, in order of execution."""
        return next((c for c in (*self.layers, *self.outputs) if not c.ok), None)

    @property
    def hint(self) -> str:
        """The way out of the first difference, where one is known."""
        first = self.first_difference
        if first is None or not first.worst or math.isfinite(first.max_abs):
            return ""
        ways = [] if self.layers else ["--layers names the first such value"]
        return "; ".join([*ways, *(["compile with --route NODE=host for the nodes that make it"] if first.beyond else [])])

    @property
    def sentence(self) -> str:
        """One line for the user."""
        first = self.first_difference
        if first is None:
            worst = min((c.snr_db for c in (*self.layers, *self.outputs) if c.snr_db is not None), default=None)
            figure = "bit for bit" if worst is None else f"signal-to-noise ratio at least {worst:.1f} dB"
            count, layers = len(self.outputs), self.layers
            subject = f"{count} output{'s' * (count != 1)}"
            if layers:
                subject += f" and {len(layers)} intermediate{'s' * (len(layers) != 1)}"
            verb = "agrees" if count + len(layers) == 1 else "agree"
            return f"verified: {subject} {verb} with onnxruntime ({figure})"
        kind = "first difference in order of execution: " if self.layers else ""
        return f"{kind}{first.sentence}"

    def to_json(self) -> dict[str, Any]:
        return {
            "ok": self.ok,
            "summary": self.sentence,
            "outputs": [c.to_json() for c in self.outputs],
            "layers": [c.to_json() for c in self.layers],
            "not_compared": self.not_compared,
        }
