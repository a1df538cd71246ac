"""Units that a descriptor takes out of use count nowhere: as if they were not there, but for their lines."""

from __future__ import annotations

from flaot.mapping.cost import ChipCost
from flaot.mapping.orders import ChipLayouts
from flaot.targets.chip import chip_limits
from flaot.targets.chip.machine import machine_of
from tests.mapping.models import chip

SPARE = "compute_units:\n  fp32: {enabled: false, peak_tflops: 512, supported_layouts: [NHCW]}"
TYPES = ("supported_dtypes: [float16,", "supported_dtypes: [float32, float16,")


def test_a_disabled_unit_adds_no_layout_and_no_speed() -> None:
    plain, spare = chip("npu_v2", TYPES), chip("npu_v2", TYPES, ("compute_units:", SPARE))
    assert ChipLayouts(spare).every == ChipLayouts(plain).every == ("NHWC", "NCHW")
    assert "fp32" not in ChipLayouts(spare).by_unit
    assert spare.full.compute_units["attention"].supported_layouts is None
    assert spare.full.compute_units["int8"].supported_layouts == ("NCHW", "NHWC")
    assert ChipCost(spare).peak("attention") == 12_800
    assert machine_of(spare) == machine_of(plain)


def test_a_disabled_attention_unit_limits_nothing() -> None:
    off = chip("npu_v2", ("enabled: true", "enabled: false"), ("max_sequence_length: 4096, ", ""))
    limits = chip_limits(off, ChipLayouts(off))
    assert (limits.heads, limits.max_attention, limits.max_sequence) == ((), 0, 0)
    on = chip("npu_v2", ("max_sequence_length: 4096, ", ""))
    limits = chip_limits(on, ChipLayouts(on))
    assert (limits.heads, limits.max_attention, limits.max_sequence) == ((1, 2, 4, 8), 2048, 2048)
