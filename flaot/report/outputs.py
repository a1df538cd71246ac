"""Arrays as a person wants to see them: range, mean, top classes; without numpy."""

from __future__ import annotations

import struct
from typing import Any

from flaot.runtime.npy import Array

CODES = {
    "float32": "f", "uint8": "B", "int8": "b", "uint16": "H", "int16": "h", "int32": "i", "int64": "q", "bool": "?",
    "float64": "d", "uint32": "I", "uint64": "Q",
}  # fmt: skip
FEW = 8
"""Arrays of at most this many elements are shown whole."""
CLASSES = (5, 100_000)
"""Lengths of a vector that may be scores of classes."""


def values(array: Array) -> Any:
    """The elements in row-major order, as an indexable sequence of numbers."""
    count = len(array.data) // {"float16": 2, "bfloat16": 2}.get(array.dtype, 1)
    if array.dtype == "float16":
        return struct.unpack(f"<{count}e", array.data)
    if array.dtype == "bfloat16":
        return struct.unpack(f"<{count}f", b"".join(b"\0\0" + array.data[i : i + 2] for i in range(0, len(array.data), 2)))
    return memoryview(array.data).cast(CODES[array.dtype]) if array.data else ()  # type: ignore[call-overload]


def summary(name: str, array: Array) -> dict[str, Any]:
    """Name, dtype, shape and what the elements are like, JSON-ready."""
    v = values(array)
    found: dict[str, Any] = {"name": name, "dtype": array.dtype, "shape": list(array.shape)}
    if len(v) == 0:
        return found
    total = float(sum(v))
    if total - total != 0:
        finite = [x for x in v if x - x == 0]
        found["nan"] = sum(x != x for x in v)
        found["infinite"] = len(v) - len(finite) - found["nan"]
        v = finite
        total = float(sum(v))
    if len(v):
        found |= {"min": min(v), "max": max(v), "mean": total / len(v)}
    if array.dtype != "bool" and max(array.shape, default=1) == len(v) and CLASSES[0] <= len(v) <= CLASSES[1]:
        best = sorted(range(len(v)), key=lambda i: (-v[i], i))[:5]
        found["top"] = [[i, v[i]] for i in best]
    if 0 < len(v) <= FEW:
        found["values"] = list(v)
    return found


def as_line(s: dict[str, Any]) -> str:
    """The summary as text: type, then range and mean, or the values."""
    text = f"{s['dtype']}[{','.join(map(str, s['shape']))}]"
    if "values" in s:
        text += f"  {' '.join(number(x) for x in s['values'])}"
    elif "min" in s:
        text += f"  min {number(s['min'])}  max {number(s['max'])}  mean {number(s['mean'])}"
    for key in ("nan", "infinite"):
        if s.get(key):
            text += f"  {key} {s[key]}"
    return text


def top_line(s: dict[str, Any]) -> str:
    """``7 (0.981), 2 (0.011), ...``."""
    return ", ".join(f"{i} ({number(x)})" for i, x in s["top"])


def number(x: Any) -> str:
    """Five significant digits for floats, integers as they are."""
    return f"{x:.5g}" if isinstance(x, float) else str(x).lower()
