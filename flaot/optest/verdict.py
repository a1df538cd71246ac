"""What running a case showed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

PASS, WRONG, TRAPPED, ELSEWHERE, REFUSED, OUTSIDE, UNKNOWN, BUG = (
    "pass", "wrong", "trapped", "not on the chip", "refused", "outside the claim", "no reference", "bug in flaot",
)  # fmt: skip
SEVERITY = {PASS: 0, OUTSIDE: 1, UNKNOWN: 1, REFUSED: 2, ELSEWHERE: 2, TRAPPED: 3, WRONG: 4, BUG: 4}
"""How bad a verdict is; a case is worse than it was when this grew."""


@dataclass(frozen=True)
class Verdict:
    """``error`` and ``bound`` are those of the element furthest beyond (or nearest to) what is allowed; ``text`` says what happened where
    it is no pass, ``origin`` is the line of the descriptor it rests on."""

    case: str
    operator: str
    kind: str
    verdict: str
    text: str = ""
    origin: str = ""
    error: float = 0.0
    bound: float = 0.0
    exact: bool = True
    dtype: str = ""
    slow: bool = False

    @property
    def failed(self) -> bool:
        return SEVERITY[self.verdict] > 1

    @property
    def ratio(self) -> float:
        """Error over bound; 0 for results that are equal to the reference."""
        return self.error / self.bound if self.bound else float("inf") if self.error else 0.0

    def to_json(self) -> dict[str, Any]:
        return {
            "case": self.case, "operator": self.operator, "kind": self.kind, "verdict": self.verdict, "text": self.text,
            "origin": self.origin, "error": self.error, "bound": self.bound, "dtype": self.dtype, "slow": self.slow,
        }
