"""A chip beside the host as a target: portable kernels on operands stored as the chip stores them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from flaot.hcd.rules import active_units
from flaot.ir.types import DType, Rounding
from flaot.plan.program import Chip
from flaot.targets.chip.figures import check_figures
from flaot.targets.chip.machine import machine_of
from flaot.targets.cpu import Cpu

if TYPE_CHECKING:
    from flaot.hcd import Hcd
    from flaot.mapping.orders import ChipLayouts


def chip_cpu(hcd: Hcd) -> Cpu:
    """What choosing kernels needs to know of a chip: portable ones only."""
    numerics, constraints = hcd.full.numerics, hcd.full.constraints
    assert constraints is not None
    flush = numerics is not None and numerics.denormals == "flush"
    return Cpu(hcd.name, ("generic",), constraints.memory_alignment_bytes or 64, rounding=rounding_of(hcd), flush_denormals=flush)


def rounding_of(hcd: Hcd) -> Rounding:
    """How the chip rounds to float16 and bfloat16; half to even unless stated."""
    stated = hcd.full.numerics.rounding if hcd.full.numerics is not None else None
    return Rounding[stated] if stated is not None else Rounding.half_to_even


def chip_limits(hcd: Hcd, layouts: ChipLayouts, bus: int = 0) -> Chip:
    """The limits a plan states, which launches on the chip are held to; ``bus`` is the number of the bus of its transfers. Raises
    HcdError where a plan cannot hold them."""
    full = hcd.full
    tensor, constraints, numerics = full.tensor, full.constraints, full.numerics
    assert tensor is not None and constraints is not None
    attention = [u for u in active_units(full).values() if u.supported_heads or u.max_sequence_length]
    chip = Chip(
        hcd.name, full.chip.device_type, constraints.memory_alignment_bytes or 64, tensor.max_rank or 0, constraints.max_batch_size or 0,
        constraints.max_sequence_length or 0, max((u.max_sequence_length or 0 for u in attention), default=0),
        tuple(sorted({h for u in attention for h in u.supported_heads or ()})),
        tuple(sorted(DType[d.removeprefix("torch.")] for d in tensor.supported_dtypes or ())),
        tuple(layouts.order(n, 4) for n in layouts.every),
        rounding_of(hcd),
        numerics is not None and numerics.denormals == "flush",
        machine=machine_of(hcd, bus=bus),
    )
    check_figures(hcd, chip)
    return chip
