"""Defaults of keys a descriptor leaves out, each with the sentence saying where it comes from; ``flaot hcd show`` prints them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from flaot.hcd.rules import FORMAT_VERSION, active_units, kind_of
from flaot.hcd.schema import DTYPES, Constraints, Policy, Schema, Tensor


@dataclass(frozen=True)
class Derived:
    """A value that the file does not state: its path, and what it was derived from."""

    path: tuple[str, ...]
    value: Any
    source: str


def derive(stated: Schema) -> tuple[Schema, tuple[Derived, ...]]:
    """The descriptor with every default filled in, and the list of what was filled in."""
    full = stated.model_copy(
        update={
            "tensor": stated.tensor or Tensor(),
            "constraints": stated.constraints or Constraints(),
            "policy": stated.policy or Policy(),
        }
    )
    filled = tuple(d for d in _defaults(full) if _get(full, d.path) is None)
    for d in filled:
        full = _set(full, d.path, d.value)
    return full, filled


def _defaults(hcd: Schema) -> Iterator[Derived]:
    cpu = hcd.chip.device_type == "cpu"
    active = active_units(hcd)
    layouts = sorted({x for u in active.values() for x in u.supported_layouts or ()})
    common = "the layouts other units state" if layouts else "ONNX's own storage order"
    yield Derived(("hcd_version",), FORMAT_VERSION, "the only version")
    yield Derived(("chip", "version"), "1.0.0", "a first version unless stated")
    for name, unit in hcd.compute_units.items():
        yield Derived(("compute_units", name, "kind"), kind_of(name, unit), "the unit's name")
        yield Derived(("compute_units", name, "enabled"), True, "in use unless stated")
        yield Derived(("compute_units", name, "count"), 1, "one unit unless stated")
        if kind_of(name, unit) == "cpu":
            yield Derived(("compute_units", name, "isa"), (), "portable code only unless stated")
        if kind_of(name, unit) != "attention":
            yield Derived(("compute_units", name, "supported_layouts"), tuple(layouts or ["NCHW"]), common)
    yield Derived(("tensor", "max_rank"), 8 if cpu else 4, "limit of the plan format" if cpu else "an image batch")
    yield Derived(("tensor", "supported_dtypes"), DTYPES, "all that flaot's cpu kernels carry")
    only = layouts[0] if layouts and "NCHW" not in layouts else "NCHW"
    yield Derived(("tensor", "default_layout"), only, "the first supported layout" if only != "NCHW" else "ONNX's own storage order")
    yield Derived(("constraints", "memory_alignment_bytes"), 64, "a cache line")
    attention = [u.max_sequence_length for u in active.values() if u.max_sequence_length]
    if attention:
        yield Derived(("constraints", "max_sequence_length"), max(attention), "the attention unit's limit")
    yield Derived(("policy", "fallback"), "warn", "the documented default")


def _get(section: Any, path: tuple[str, ...]) -> Any:
    for key in path:
        section = section[key] if isinstance(section, dict) else getattr(section, key)
    return section


def _set(section: Any, path: tuple[str, ...], value: Any) -> Any:
    """A copy of the section with the value at ``path`` replaced."""
    key = path[0]
    held = section[key] if isinstance(section, dict) else getattr(section, key)
    inner = value if len(path) == 1 else _set(held, path[1:], value)
    return {**section, key: inner} if isinstance(section, dict) else section.model_copy(update={key: inner})
