"""What chips draw, as their descriptors state it."""

from __future__ import annotations

import pytest

from flaot.errors import HcdError
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
    assert power_of(chip("power: {}")) is None


@pytest.mark.parametrize("energies", ["", ", idle_mw: 5", ", energy_pj_per_mac: {float16: 0}, energy_pj_per_byte: {on_chip_cache: 0}"])
def test_a_cap_toward_which_nothing_counts_is_refused(energies: str) -> None:
    with pytest.raises(HcdError) as e:
        chip(f"power: {{cap_mw: 100{energies}}}")
    assert str(e.value) == (
        "c.hcd:9:17: power.cap_mw: 100 mW, and no energy that counts toward it: no schedule can keep to such a cap; "
        "state energy_pj_per_mac and energy_pj_per_byte, or leave cap_mw out"
    )


@pytest.mark.parametrize(("energies", "regions", "missing"), [
    ("energy_pj_per_mac: {float16: 1.5}", "", "energy_pj_per_byte.on_chip_cache and energy_pj_per_byte.off_chip_memory"),
    ("energy_pj_per_byte: {on_chip_cache: 1}", "", "energy_pj_per_mac and energy_pj_per_byte.off_chip_memory"),
    ("energy_pj_per_mac: {float16: 1.5}, energy_pj_per_byte: {off_chip_memory: 20}", "", "energy_pj_per_byte.on_chip_cache"),
    ("energy_pj_per_mac: {float16: 1.5}", REGIONS, ""),
    ("energy_pj_per_mac: {float16: 1.5}, energy_pj_per_byte: {on_chip_cache: 0, off_chip_memory: 20}", "", ""),
])  # fmt: skip
def test_a_cap_toward_which_a_part_counts_gives_a_warning(energies: str, regions: str, missing: str) -> None:
    warnings = [w.partition(": ")[2] for w in chip(f"power: {{cap_mw: 100, {energies}}}", regions).warnings]
    assert warnings == [
        f"power.cap_mw: schedules keep to it without {m}, not stated: the chip may draw more; state them, 0 for what takes none"
        for m in (missing,) if m
    ]  # fmt: skip


def test_a_cap_of_the_host_is_not_used() -> None:
    text = "extends: generic_cpu\npower: {cap_mw: 100}\n"
    assert load(text.encode(), "c.hcd").warnings == (
        "c.hcd:2:9: power.cap_mw: not used: what the host draws is not reckoned; leave it out",
    )


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
