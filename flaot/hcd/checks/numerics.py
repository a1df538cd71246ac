"""Rules on units' arithmetic, quantization and power."""

from __future__ import annotations

from collections.abc import Iterator

from flaot.hcd.fields import INTEGERS
from flaot.hcd.memory import FAST
from flaot.hcd.rules import PEAKS, Finding, active_units, kind_of, rule
from flaot.hcd.schema import Schema
from flaot.hcd.system import Power

HEADROOM_MW = 0.002
"""Least power for steps: two of the microwatts that plans count in, as one is lost in rounding."""


@rule
def peak_agrees_with_the_clock(hcd: Schema) -> Iterator[Finding]:
    for name, unit in active_units(hcd).items():
        clock = unit.clock_mhz or hcd.clock_mhz
        if unit.peak is None or clock is None or kind_of(name, unit) == "cpu":
            continue
        key = next(k for k in PEAKS if getattr(unit, k) is not None)
        cycle = unit.peak / (unit.count or 1) / (clock * 1e6)
        macs = max((a.macs_per_cycle for a in unit.arithmetic or ()), default=0)
        if macs and cycle > 2.02 * macs:
            what = f"{cycle:g} operations per cycle of each unit exceed the {2 * macs} of {macs} multiply-accumulates"
            yield Finding(("compute_units", name, key), what, "check count, clock_mhz and macs_per_cycle", warning=True, on_value=True)
        elif not macs and not 1 <= cycle <= 1e6:
            what = f"{cycle:g} operations per cycle of each of {unit.count or 1} units at {clock:g} MHz are implausible"
            yield Finding(("compute_units", name, key), what, "check the unit in the key, count and clock_mhz", warning=True, on_value=True)


@rule
def factors_are_dtypes_of_the_chip(hcd: Schema) -> Iterator[Finding]:
    dtypes = hcd.tensor.supported_dtypes if hcd.tensor else None
    for name, unit in hcd.compute_units.items():
        for i, pair in enumerate(unit.arithmetic or ()):
            path = ("compute_units", name, "arithmetic", i)
            for k, dtype in enumerate(pair.inputs):
                if dtypes and dtype not in dtypes:
                    listed = ", ".join(sorted(dtypes))
                    yield Finding((*path, "inputs", k), f"{dtype} is not among tensor.supported_dtypes ({listed})", on_value=True)
            if pair.accumulator in INTEGERS and any(d not in INTEGERS for d in pair.inputs):
                yield Finding((*path, "accumulator"), f"{pair.accumulator} for factors of floating point", on_value=True)


@rule
def quantization_is_coherent(hcd: Schema) -> Iterator[Finding]:
    q = hcd.quantization
    if q is None:
        return
    if any(s.startswith("per_channel") for s in q.schemes or ()) and q.channel_axis is None:
        yield Finding(("quantization", "schemes"), "per-channel schemes without 'channel_axis'")
    if q.zero_point_min is not None and q.zero_point_max is not None and q.zero_point_min > q.zero_point_max:
        yield Finding(("quantization", "zero_point_min"), f"{q.zero_point_min} exceeds zero_point_max ({q.zero_point_max})", on_value=True)
    if q.multiplier_bits is not None and q.scale_form != "multiplier_shift":
        yield Finding(("quantization", "multiplier_bits"), "belongs to the scale form multiplier_shift")
    if q.schemes and all(s.endswith("_symmetric") for s in q.schemes) and (q.zero_point_min or q.zero_point_max):
        yield Finding(("quantization", "schemes"), "only symmetric schemes, whose zero point is 0, beside a range of zero points")


@rule
def approximations_declare_an_error(hcd: Schema) -> Iterator[Finding]:
    for name, a in ((hcd.numerics.approximations if hcd.numerics else None) or {}).items():
        if a.max_ulp is None and a.max_relative_error is None and a.max_absolute_error is None:
            yield Finding(("numerics", "approximations", name), "an approximation without its error", "state max_ulp or a maximum error")


@rule
def idle_power_is_below_the_cap(hcd: Schema) -> Iterator[Finding]:
    p = hcd.power
    if p is not None and p.cap_mw is not None and p.cap_mw - (p.idle_mw or 0) < HEADROOM_MW:
        found = f"{p.cap_mw:g} mW do not exceed idle_mw ({p.idle_mw or 0:g}) by {HEADROOM_MW:g}"
        yield Finding(("power", "cap_mw"), found, "a cap of more than the chip draws at rest, or none", on_value=True)


@rule
def a_cap_counts_energies(hcd: Schema) -> Iterator[Finding]:
    p = hcd.power
    if p is None or p.cap_mw is None:
        return
    path = ("power", "cap_mw")
    if hcd.chip.device_type == "cpu":
        yield Finding(path, "not used: what the host draws is not reckoned", "leave it out", warning=True)
        return
    found = _energies(hcd, p)
    missing = [name for name, figures in found.items() if not figures]
    if not any(pj for figures in found.values() for pj in figures):
        what = f"{p.cap_mw:g} mW, and no energy that counts toward it: no schedule can keep to such a cap"
        yield Finding(path, what, "state energy_pj_per_mac and energy_pj_per_byte, or leave cap_mw out", on_value=True)
    elif missing:
        what = f"schedules keep to it without {' and '.join(missing)}, not stated: the chip may draw more"
        yield Finding(path, what, "state them, 0 for what takes none", warning=True)


def _energies(hcd: Schema, power: Power) -> dict[str, list[float]]:
    """The figures of what energy goes to, in pJ, by key."""
    regions = [r for r in (hcd.memory.regions if hcd.memory is not None else None) or () if r.size_kb]
    of = dict(power.energy_pj_per_byte or {})
    of |= {r.name: r.energy_pj_per_byte for r in regions if r.energy_pj_per_byte is not None and r.name not in of}
    near = {"on_chip_cache", *(r.name for r in regions if r.kind in FAST)}
    far = {"off_chip_memory", *(r.name for r in regions if r.kind not in FAST)}
    return {
        "energy_pj_per_mac": list((power.energy_pj_per_mac or {}).values()),
        "energy_pj_per_byte.on_chip_cache": [pj for name, pj in of.items() if name in near],
        "energy_pj_per_byte.off_chip_memory": [pj for name, pj in of.items() if name in far],
    }
