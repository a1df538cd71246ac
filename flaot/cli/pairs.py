"""``NAME=VALUE`` arguments."""

from __future__ import annotations

from flaot.errors import UsageError, printable


def pairs(option: str, given: tuple[str, ...], form: str) -> dict[str, str]:
    """``NAME=VALUE`` flags as a mapping; names may contain '='. ``form`` shows what is expected. Raises UsageError."""
    result: dict[str, str] = {}
    for text in given:
        name, found, value = text.rpartition("=")
        if not found or not name or not value:
            raise UsageError(f"{option} {printable(text)}: expected {form}")
        if name in result:
            raise UsageError(f"{option} {printable(name)} is given twice")
        result[name] = value
    return result
