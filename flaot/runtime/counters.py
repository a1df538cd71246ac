"""What a plan's chips have done, as their adapters count it."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable
from dataclasses import asdict, dataclass

from flaot.errors import PlanError
from flaot.runtime.library import OK, functions, status_text


@dataclass(frozen=True)
class Counters:
    """What one chip has done since the session was opened; 0 where its adapter does not count.

    ``copies`` are transfers between host and chip, of ``bytes_to_device`` and ``bytes_from_device`` (0 where they are zero-copy), constants
    aside; ``dmas`` move ``bytes_in`` and ``bytes_out`` of the on-chip memory, of which ``on_chip_peak`` bytes, from the first one on, were
    touched at most. ``nanoseconds`` is the time the adapter worked, which is the simulator's own and says nothing of the chip's.
    """

    launches: int = 0
    dmas: int = 0
    copies: int = 0
    bytes_in: int = 0
    bytes_out: int = 0
    bytes_to_device: int = 0
    bytes_from_device: int = 0
    on_chip_peak: int = 0
    nanoseconds: int = 0


class CCounters(ctypes.Structure):
    """``fl_counters`` of adapter.h."""

    _fields_ = [(name, ctypes.c_uint64) for name in Counters.__dataclass_fields__]


def read_counters(context: int, device: int) -> Counters:
    """Of a device of a context's plan, 1 and up. Raises PlanError when nothing is attached to it."""
    raw = CCounters()
    status: int = functions().fl_host_counters(context, device, ctypes.byref(raw))
    if status != OK:
        raise PlanError(f"counters of chip {device}: {status_text(status)}")
    return Counters(**{name: int(getattr(raw, name)) for name in Counters.__dataclass_fields__})


def total(parts: Iterable[Counters]) -> Counters:
    """What several contexts of one plan did together; of the peak, the highest."""
    rows = [asdict(p) for p in parts]
    sums = {name: sum(r[name] for r in rows) for name in Counters.__dataclass_fields__}
    return Counters(**sums | {"on_chip_peak": max((r["on_chip_peak"] for r in rows), default=0)})
