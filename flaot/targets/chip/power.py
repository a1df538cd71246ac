"""What a chip draws, from its descriptor."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from flaot.hcd.memory import FAST
from flaot.ir.types import DType
from flaot.plan.fields import MAX_DTYPES
from flaot.plan.program import Power

if TYPE_CHECKING:
    from flaot.hcd import Hcd
    from flaot.hcd.memory import Region


def power_of(hcd: Hcd) -> Power | None:
    """None where nothing is stated. A memory without a figure of its own takes the highest of its regions, an element type without one the
    highest there is; what is not stated at all counts nothing."""
    stated, memory = hcd.full.power, hcd.full.memory
    regions = [r for r in (memory.regions if memory is not None else None) or () if r.size_kb]
    if (stated is None or not stated.model_dump(exclude_none=True)) and all(r.energy_pj_per_byte is None for r in regions):
        return None
    by_memory = (stated.energy_pj_per_byte if stated is not None else None) or {}
    by_dtype = (stated.energy_pj_per_mac if stated is not None else None) or {}

    def per_byte(name: str, parts: list[Region]) -> int:
        own = by_memory.get(name)
        found = [by_memory.get(r.name, r.energy_pj_per_byte or 0.0) for r in parts] if own is None else [own]
        return _thousandths(max(found, default=0.0))

    macs = {DType[name]: pj for name, pj in by_dtype.items()}
    highest = max(macs.values(), default=0.0)
    per_mac = {int(d): macs.get(d, highest) for d in DType}
    idle, cap = (stated.idle_mw, stated.cap_mw) if stated is not None else (None, None)
    return Power(
        idle=_thousandths(idle or 0.0),
        cap=math.floor((cap or 0.0) * 1000),
        on_chip=per_byte("on_chip_cache", [r for r in regions if r.kind in FAST]),
        off_chip=per_byte("off_chip_memory", [r for r in regions if r.kind not in FAST]),
        macs=tuple(_thousandths(per_mac.get(i, 0.0)) for i in range(MAX_DTYPES)),
    )


def _thousandths(figure: float) -> int:
    return math.ceil(round(figure * 1000, 6))
