"""Defaults of keys a descriptor leaves out, each with the sentence saying where it comes from; ``flaot hcd show`` prints them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from flaot.hcd.rules import FORMAT_VERSION, active_units, kind_of
from flaot.hcd.schema import DTYPES, Constraints, Policy, Schema, Tensor
from flaot.hcd.system import Dma, Host

NOMINAL_MHZ = 1000.0
"""Clock of a chip that states none."""

CHANNELS, DIMENSIONS = 2, 3
"""DMA channels and strided axes of one DMA transfer, unless stated."""

LINK_GB_PER_S, LINK_SETUP_NS = 4.0, 1000.0
"""Bandwidth between host and chip and nanoseconds to start a transfer, unless stated."""


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
    if _is_chip(full):
        full = full.model_copy(update={"dma": full.dma or Dma(), "host": full.host or Host()})
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
    if _is_chip(hcd):
        yield from _of_time(hcd)


def _is_chip(hcd: Schema) -> bool:
    """Whether it works beside a host, on memory of its own."""
    return hcd.chip.device_type != "cpu" and hcd.memory is not None and hcd.memory.off_chip_memory is not None


def _of_time(hcd: Schema) -> Iterator[Derived]:
    """What time costs on a chip."""
    assert hcd.memory is not None and hcd.memory.off_chip_memory is not None
    off, mhz = hcd.memory.off_chip_memory.bandwidth_gb_per_s, hcd.clock_mhz or NOMINAL_MHZ
    yield Derived(("clock_mhz",), NOMINAL_MHZ, "cycles are nanoseconds unless stated")
    for name in hcd.compute_units:
        yield Derived(("compute_units", name, "launch_cycles"), 0, "starting takes no time unless stated")
    yield Derived(("dma", "channels"), CHANNELS, "one for what comes ahead of time, one for the rest")
    yield Derived(("dma", "setup_cycles"), 0, "starting takes no time unless stated")
    yield Derived(("dma", "dimensions"), DIMENSIONS, "the most a descriptor may state")
    yield Derived(("dma", "gb_per_s"), off, "the bandwidth of off_chip_memory")
    yield Derived(("host", "transfers"), "synchronous", "the host waits unless stated")
    if hcd.host is None or hcd.host.transfers != "zero_copy":
        yield Derived(("host", "link_gb_per_s"), min(LINK_GB_PER_S, off), f"{LINK_GB_PER_S:g} GB/s, or off_chip_memory's if that is less")
        yield Derived(("host", "link_setup_cycles"), round(LINK_SETUP_NS * mhz / 1000), "a microsecond")


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
