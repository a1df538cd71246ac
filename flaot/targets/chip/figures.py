"""Whether plans can hold the limits and the figures of a chip."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from flaot.errors import HcdError
from flaot.hcd import Hcd
from flaot.plan.commands import MACHINES, UNITS
from flaot.plan.fields import CHIP, MACHINE, MAX_UNITS, UNIT, Record
from flaot.plan.program import Chip

ON_CHIP, OFF_CHIP = ("memory", "on_chip_cache"), ("memory", "off_chip_memory")
OF_CHIP = {
    "max_rank": ("tensor", "max_rank"),
    "max_batch": ("constraints", "max_batch_size"),
    "max_sequence": ("constraints", "max_sequence_length"),
    "max_attention": ("compute_units",),
}
"""Keys of the descriptor by the field of a chip that is made of them."""

OF_MACHINE = {
    "clock_khz": ("clock_mhz",),
    "channels": ("dma", "channels"),
    "depth": ("dma", "max_outstanding"),
    "setup_cycles": ("dma", "setup_cycles"),
    "latency_cycles": ("memory", "regions"),
    "link_setup_cycles": ("host", "link_setup_cycles"),
    "on_chip": (*ON_CHIP, "size_kb"),
    "on_chip_rate": (*ON_CHIP, "bandwidth_gb_per_s"),
    "off_chip_rate": (*OFF_CHIP, "bandwidth_gb_per_s"),
    "link_rate": ("host", "link_gb_per_s"),
}
"""Keys of the descriptor by the field of a machine that is made of them."""

OF_UNIT = {"count": "count", "launch_cycles": "launch_cycles", "depth": "concurrency", "rate": ""}
"""Keys of a compute unit by the field of a unit; its peak may be stated by several."""


Figure = tuple[tuple[str, ...], str, int, tuple[int, int]]
"""Path in the descriptor, field of the plan, figure, and the smallest and largest that is allowed."""


def check_figures(hcd: Hcd, chip: Chip) -> None:
    """Raises HcdError for the first limit or figure that is larger than plans hold, with the line of the key that states it."""
    for path, name, found, (low, high) in (*_limits(chip), *_rates(chip)):
        if not low <= found <= high:
            what = f"{'.'.join(path)}: a plan would hold {found} as its {name}; allowed are {low} to {high}"
            raise HcdError(what, origin=hcd.origin(*path))


def _limits(chip: Chip) -> Iterator[Figure]:
    for name, path in OF_CHIP.items():
        yield path, name, getattr(chip, name), _range(CHIP, name)
    yield ("compute_units",), "heads", max(chip.heads, default=0), _range(CHIP, "heads")


def _rates(chip: Chip) -> Iterator[Figure]:
    machine = chip.machine
    yield ("compute_units",), "number of units", len(machine.units), (1, MAX_UNITS)
    for name, path in OF_MACHINE.items():
        yield path, name, getattr(machine, name), MACHINES.get(name, _range(MACHINE, name))
    for unit in machine.units:
        for name, key in OF_UNIT.items():
            yield ("compute_units", unit.name, *([key] if key else [])), name, getattr(unit, name), UNITS.get(name, _range(UNIT, name))


def _range(record: Record, name: str) -> tuple[int, int]:
    return 0, int(np.iinfo(record.dtype[name].base).max)
