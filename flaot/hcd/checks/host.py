"""Rules on the processor beside a chip and the way values take between the two."""

from __future__ import annotations

from collections.abc import Iterator

from flaot.hcd.rules import Finding, rule
from flaot.hcd.schema import Schema

LINK = ("link_gb_per_s", "link_setup_cycles", "bus")


@rule
def a_cpu_is_its_own_host(hcd: Schema) -> Iterator[Finding]:
    if hcd.host is None or hcd.chip.device_type != "cpu":
        return
    for key in ("peak_gflops", "bandwidth_gb_per_s", "transfers", *LINK):
        if getattr(hcd.host, key) is not None:
            hint = "state the peak of its compute unit and the bandwidth of memory.off_chip_memory"
            yield Finding(("host", key), "not used: a chip of device type cpu is the host", hint, warning=True)


@rule
def zero_copy_needs_no_link(hcd: Schema) -> Iterator[Finding]:
    if hcd.host is None or hcd.host.transfers != "zero_copy":
        return
    for key in LINK:
        if getattr(hcd.host, key) is not None:
            hint = "leave it out, or state synchronous or asynchronous transfers"
            yield Finding(("host", key), "not used: nothing moves where transfers are zero_copy", hint, warning=True)


@rule
def the_link_is_no_faster_than_what_it_fills(hcd: Schema) -> Iterator[Finding]:
    link = hcd.host.link_gb_per_s if hcd.host is not None else None
    off = hcd.memory.off_chip_memory if hcd.memory is not None else None
    if link is not None and off is not None and link > off.bandwidth_gb_per_s:
        what = f"{link:g} GB/s exceed the {off.bandwidth_gb_per_s:g} GB/s of the off-chip memory that transfers fill"
        yield Finding(("host", "link_gb_per_s"), what, warning=True, on_value=True)
