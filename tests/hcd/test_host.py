"""What the host group may say."""

from __future__ import annotations

import pytest

from flaot.hcd import load
from tests.mapping.models import small

CPU = "chip: {{name: c, vendor: v, device_type: cpu}}\ncompute_units: {{cpu: {{}}}}\nhost: {{{host}}}\n"


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("link_gb_per_s: 32", "host.link_gb_per_s: 32 GB/s exceed the 16 GB/s of the off-chip memory that transfers fill"),
        ("transfers: zero_copy, link_gb_per_s: 8", "host.link_gb_per_s: not used: nothing moves where transfers are zero_copy"),
        ("transfers: zero_copy, bus: pci", "host.bus: not used: nothing moves"),
        ("transfers: zero_copy, link_setup_cycles: 8", "host.link_setup_cycles: not used: nothing moves"),
    ],
)
def test_implausible_links_are_warnings(host: str, expected: str) -> None:
    (warning,) = small("ONE", "Relu", host=host).warnings
    assert warning.startswith("one.hcd:") and expected in warning


def test_plausible_links_are_none() -> None:
    assert not small("ONE", "Relu", host="peak_gflops: 4, transfers: asynchronous, link_gb_per_s: 16, bus: pci").warnings


def test_a_cpu_has_no_host() -> None:
    (warning,) = load(CPU.format(host="peak_gflops: 8").encode(), "c.hcd").warnings
    assert "host.peak_gflops: not used: a chip of device type cpu is the host" in warning
    assert not load(CPU.format(host="stack_kb: 8").encode(), "c.hcd").warnings
