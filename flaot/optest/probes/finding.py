"""What a probe found out about one key of a descriptor."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

HOLDS, LIES, UNMEASURED = "holds", "lies", "not measured"


@dataclass(frozen=True)
class Finding:
    """``declared`` and ``measured`` as descriptors write them, ``text`` what the device did, ``hint`` the way out of a lie."""

    probe: str
    key: str
    origin: str
    declared: str
    measured: str
    verdict: str
    text: str = ""
    hint: str = ""

    @property
    def sentence(self) -> str:
        """One line: key, line, both values, what happened, way out."""
        where = f"{self.key} ({self.origin})" if self.origin else self.key
        if self.verdict == UNMEASURED:
            return f"{where}: declared {self.declared}, not measured: {self.text}"
        happened = f": {self.text}" if self.text else ""
        return f"{where}: declared {self.declared}, measured {self.measured}{happened}{f'; {self.hint}' if self.hint else ''}"

    def to_json(self) -> dict[str, Any]:
        return {
            "probe": self.probe, "key": self.key, "origin": self.origin, "declared": self.declared, "measured": self.measured,
            "verdict": self.verdict, "text": self.text, "hint": self.hint,
        }


def holds(probe: str, key: str, origin: str, declared: object) -> Finding:
    """The device does what is declared."""
    return Finding(probe, key, origin, str(declared), str(declared), HOLDS)


def unmeasured(probe: str, key: str, origin: str, declared: object, why: str) -> Finding:
    """There is no way to tell."""
    return Finding(probe, key, origin, str(declared), "", UNMEASURED, why)
