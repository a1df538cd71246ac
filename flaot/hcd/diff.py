"""What differs between two descriptors, key by key."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from flaot.hcd.loader import Hcd


@dataclass(frozen=True)
class Difference:
    """A key path and its value on either side; None where the side has no such key."""

    path: str
    left: Any
    right: Any

    def __str__(self) -> str:
        if self.left is None:
            return f"+ {self.path}: {json.dumps(self.right)}"
        if self.right is None:
            return f"- {self.path}: {json.dumps(self.left)}"
        return f"~ {self.path}: {json.dumps(self.left)} -> {json.dumps(self.right)}"


def differences(left: Hcd, right: Hcd) -> list[Difference]:
    """Differences of what holds on the two chips, defaults included, in order of path."""
    a, b = (h.full.model_dump(mode="json", exclude_none=True) for h in (left, right))
    return sorted(_between(a, b, ""), key=lambda d: d.path)


def _between(left: Any, right: Any, path: str) -> Iterator[Difference]:
    a, b = _entries(left), _entries(right)
    if a is None or b is None:
        if left != right:
            yield Difference(path, left, right)
        return
    for key in {**a, **b}:
        here = f"{path}{key}" if key.startswith("[") else f"{path}.{key}" if path else key
        if key not in a or key not in b:
            yield Difference(here, a.get(key), b.get(key))
        else:
            yield from _between(a[key], b[key], here)


def _entries(value: Any) -> dict[str, Any] | None:
    """A mapping's keys; a list's entries by name where they have names, which are then distinct."""
    if isinstance(value, dict):
        return value
    if isinstance(value, list) and value and all(isinstance(v, dict) and "name" in v for v in value):
        return {f"[{v['name']}]": v for v in value}
    return None
