"""The table of what is supported (``supported.toml``), and the verdict on a version that was found."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

OK, UNTESTED, OUTSIDE, MISSING, ABSENT = "ok", "not tested", "outside", "missing", "not installed"
"""Verdicts: a version the tests ran with, another supported one, one that is not supported, and none: needed, or optional."""

BAD = (OUTSIDE, MISSING)


@dataclass(frozen=True)
class Component:
    """One row: versions from ``lowest`` to before ``below``, or, with ``allowed``, names that what is found begins with."""

    name: str
    use: str
    lowest: str = ""
    below: str = ""
    allowed: tuple[str, ...] = ()
    tested: tuple[str, ...] = ()
    optional: bool = False

    @property
    def supported(self) -> str:
        """The supported versions in words."""
        return ", ".join(self.allowed) if self.allowed else f"{self.lowest} to before {self.below}"

    def verdict(self, found: str | None) -> str:
        """What to say of a version, None when there is none."""
        if found is None:
            return ABSENT if self.optional else MISSING
        tested = any(found == t or found.startswith((f"{t}.", f"{t}+", f"{t} ")) for t in self.tested)
        if self.allowed:
            inside = found.split(" ")[0] in self.allowed
        else:
            inside = numbers(self.lowest) <= numbers(found) and numbers(found) < numbers(self.below)
        return OUTSIDE if not inside else OK if tested else UNTESTED


def numbers(version: str) -> tuple[int, ...]:
    """The leading numbers of a version, without zeros at the end: (2, 13) for 2.13.0+cpu."""
    found = re.match(r"\d+(\.\d+)*", version)
    parts = [int(p) for p in found[0].split(".")] if found else []
    while parts and parts[-1] == 0:
        parts.pop()
    return tuple(parts)


@cache
def table() -> tuple[Component, ...]:
    """All rows in the order of the file."""
    rows: list[dict[str, Any]] = tomllib.loads(Path(__file__).with_name("supported.toml").read_text())["component"]
    return tuple(_component(r) for r in rows)


def _component(row: dict[str, Any]) -> Component:
    return Component(**{**row, "allowed": tuple(row.get("allowed", ())), "tested": tuple(row["tested"])})
