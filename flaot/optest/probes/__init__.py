"""Probes: small plans that show a descriptor lying. They need the descriptor and the adapter, nothing else.

Each probe is a function of a :class:`flaot.optest.probes.bench.Bench` that yields findings, one per key it can tell something about.
"""

from __future__ import annotations

from collections.abc import Callable

from flaot.hcd import Hcd
from flaot.optest.probes.bench import Bench
from flaot.optest.probes.finding import HOLDS, LIES, Finding
from flaot.optest.probes.memory import alignment, on_chip
from flaot.optest.probes.numbers import accumulators, denormals, element_types, rounding
from flaot.optest.probes.opening import opening
from flaot.optest.probes.tensors import layouts, rank

PROBES = {
    "opening": opening, "alignment": alignment, "on-chip memory": on_chip, "element types": element_types, "rounding": rounding,
    "denormals": denormals, "accumulators": accumulators, "layouts": layouts, "rank": rank,
}  # fmt: skip
"""Every probe by name, in the order they run; opening and alignment come first, as the others use what they find to work."""


def run_probes(
    hcd: Hcd, adapter: str | None = None, begin: Callable[[str], None] = lambda name: None, bench: Bench | None = None
) -> list[Finding]:
    """Everything the probes find out about a chip beside the host; nothing about a CPU. ``begin`` is told the name of each.

    Raises DeviceError or LimitError where the device is busy or lost.
    """
    if hcd.full.chip.device_type == "cpu":
        return []
    bench = bench if bench is not None else Bench(hcd, adapter)
    found: list[Finding] = []
    for name, probe in PROBES.items():
        begin(f"probe: {name}")
        if not bench.broken or probe is on_chip:
            known = {f.key: f.measured for f in found if f.verdict == LIES}
            found += [f for f in probe(bench) if f.key not in known or f.verdict != HOLDS and f.measured != known[f.key]]
    return found
