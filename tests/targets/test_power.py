"""What chips draw, as their descriptors state it."""

from __future__ import annotations

import pytest

from flaot.hcd import Hcd, load
from flaot.ir.types import DType
from flaot.targets.chip.power import power_of

CHIP = """
chip: {{name: C, device_type: npu_test}}
compute_units: {{fp16: {{count: 1, peak_gflops: 2}}}}
memory:
  on_chip_cache: {{size_kb: 16, bandwidth_gb_per_s: 1}}
  off_chip_memory: {{bandwidth_gb_per_s: 1}}
{regions}
tensor: {{supported_dtypes: [float16, int8]}}
{power}
"""
REGIONS = """
  regions:
    - {name: tcm, kind: tcm, size_kb: 4, energy_pj_per_byte: 0.25}
    - {name: sram, kind: sram, size_kb: 16}
    - {name: ddr, kind: dram, size_kb: 1024, energy_pj_per_byte: 20}
    - {name: rom, kind: flash, size_kb: 64, energy_pj_per_byte: 30}
    - {name: unfitted, kind: dram, size_kb: 0, energy_pj_per_byte: 99}
"""


def chip(power: str = "", regions: str = "") -> Hcd:
    return load(CHIP.format(power=power, regions=regions).encode(), "c.hcd")


def test_nothing_stated() -> None:
    assert power_of(chip()) is None


def test_figures_in_microwatts_and_femtojoules() -> None:
    power = power_of(chip("power: {energy_pj_per_byte: {on_chip_cache: 0.7, off_chip_memory: 30}, idle_mw: 5.0001, cap_mw: 200.0009}"))
    assert power is not None
    assert (power.idle, power.cap, power.on_chip, power.off_chip, max(power.macs)) == (5001, 200_000, 700, 30_000, 0)


def test_types_without_a_figure_take_the_highest() -> None:
    power = power_of(chip("power: {energy_pj_per_mac: {float16: 1.2, int8: 0.3}}"))
    assert power is not None and (power.idle, power.cap, power.on_chip) == (0, 0, 0)
    assert [power.macs[d] for d in (DType.float16, DType.int8, DType.int32)] == [1200, 300, 1200]


@pytest.mark.parametrize(
    ("power", "expected"),
    [
        ("", (250, 30_000)),
        ("power: {energy_pj_per_byte: {sram: 1.5, rom: 10}}", (1500, 20_000)),
        ("power: {energy_pj_per_byte: {on_chip_cache: 0.1, off_chip_memory: 5, sram: 2}}", (100, 5000)),
    ],
)
def test_memories_take_the_highest_of_their_regions(power: str, expected: tuple[int, int]) -> None:
    found = power_of(chip(power, REGIONS))
    assert found is not None and (found.on_chip, found.off_chip) == expected
