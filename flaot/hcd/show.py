"""A descriptor for people and as JSON: what it states, what was derived, and from what."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from flaot.hcd.loader import Hcd


def as_json_document(hcd: Hcd) -> dict[str, Any]:
    """Digest, stated keys, all keys with defaults, and where each default comes from."""
    return {
        "source": hcd.source,
        "extends": list(hcd.bases),
        "digest": hcd.digest.hex(),
        "stated": hcd.to_json(),
        "full": hcd.full.model_dump(mode="json", exclude_none=True),
        "derived": [{"path": ".".join(d.path), "value": d.value, "from": d.source} for d in hcd.derived],
        "warnings": list(hcd.warnings),
    }


def as_lines(hcd: Hcd) -> list[str]:
    """YAML that loads again: every key on its line, derived ones with a comment saying what they come from."""
    sources = {d.path: d.source for d in hcd.derived}
    head = [f"# {hcd.source}", *(f"# extends {base}" for base in hcd.bases), f"# digest {hcd.digest.hex()}"]
    return head + list(_lines(hcd.full.model_dump(mode="json", exclude_none=True), (), sources))


def _lines(section: dict[str, Any], path: tuple[str, ...], sources: dict[tuple[str, ...], str]) -> Iterator[str]:
    pad = "  " * len(path)
    for key, value in section.items():
        here = (*path, key)
        if isinstance(value, dict):
            if value:
                yield f"{pad}{_text(key)}:"
                yield from _lines(value, here, sources)
            continue
        if isinstance(value, list) and value and isinstance(value[0], dict):
            yield f"{pad}{_text(key)}:"
            yield from (f"{pad}  - {_scalar(entry)}" for entry in value)
            continue
        note = f"  # derived: {sources[here]}" if here in sources else ""
        yield f"{pad}{_text(key)}: {_scalar(value)}{note}"


def _scalar(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return f"[{', '.join(_scalar(v) for v in value)}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{_text(k)}: {_scalar(v)}' for k, v in value.items())}}}"
    if isinstance(value, float):
        digits = 30 if 0 < abs(value) < 1e-6 else 10
        return f"{value:.{digits}f}".rstrip("0").rstrip(".")
    return _text(value) if isinstance(value, str) else str(value)


def _text(value: str) -> str:
    from flaot.hcd.text import plain_scalar

    try:
        plain = isinstance(plain_scalar(value), str) and all(c.isalnum() or c in " ._-+/" for c in value) and value == value.strip()
    except ValueError:
        plain = False
    return value if plain else '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
