"""The descriptors that come with flaot."""

from __future__ import annotations

from pathlib import Path


def folder() -> Path:
    """Where the bundled descriptors are: inside the package when installed, beside it in a checkout."""
    inside = Path(__file__).parent / "bundled"
    return inside if inside.is_dir() else Path(__file__).parents[2] / "hcd"


def bundled() -> dict[str, Path]:
    """Bundled descriptors by name, in order of name."""
    return {p.stem: p for p in sorted(folder().glob("*.hcd"))}
