"""Figures of descriptors that are larger than plans hold are refused with the line that states them."""

from __future__ import annotations

from pathlib import Path

import pytest

import flaot
from flaot.errors import HcdError, UsageError
from flaot.hcd import load
from flaot.mapping.orders import ChipLayouts
from flaot.schedule.chip.compose import ChipOptions
from flaot.targets.chip import chip_limits

CHIP = """\
chip: {name: Large, device_type: npu_test}
clock_mhz: 1000
compute_units:
  fp16: {count: 1, peak_gflops: 2, launch_cycles: 3, concurrency: 4, supported_layouts: [NCHW]}
memory: {on_chip_cache: {size_kb: 64, bandwidth_gb_per_s: 1}, off_chip_memory: {bandwidth_gb_per_s: 1}}
tensor: {supported_dtypes: [float16], default_layout: NCHW}
constraints: {max_batch_size: 5, max_sequence_length: 6}
dma: {channels: 7, max_outstanding: 8, setup_cycles: 9}
host: {link_setup_cycles: 10}
"""
MOST = 2**32 - 1
DIGITS = Path(__file__).resolve().parents[2] / "samples" / "mnist" / "digits.onnx"


@pytest.mark.parametrize(("old", "new", "says", "line"), [
    ("count: 1", "count: 4294967296", f"compute_units.fp16.count: a plan would hold 4294967296 as its count; allowed are 1 to {MOST}", 4),
    ("launch_cycles: 3", "launch_cycles: 4294967296", f"as its launch_cycles; allowed are 0 to {MOST}", 4),
    ("concurrency: 4", "concurrency: 4294967296", f"compute_units.fp16.concurrency: .* as its depth; allowed are 0 to {MOST}", 4),
    ("max_batch_size: 5", "max_batch_size: 4294967296", f"constraints.max_batch_size: .* as its max_batch; allowed are 0 to {MOST}", 7),
    ("max_sequence_length: 6", "max_sequence_length: 4294967296", "constraints.max_sequence_length: a plan would hold 4294967296", 7),
    ("channels: 7", "channels: 64", "dma.channels: a plan would hold 64 as its channels; allowed are 1 to 63", 8),
    ("max_outstanding: 8", "max_outstanding: 4294967296", "dma.max_outstanding: a plan would hold 4294967296 as its depth", 8),
    ("setup_cycles: 9", "setup_cycles: 4294967296", "dma.setup_cycles: a plan would hold 4294967296", 8),
    ("link_setup_cycles: 10", "link_setup_cycles: 4294967296", "host.link_setup_cycles: a plan would hold 4294967296", 9),
    ("clock_mhz: 1000", "clock_mhz: 5000000", "clock_mhz: a plan would hold 5000000000 as its clock_khz", 2),
])
def test_too_large(old: str, new: str, says: str, line: int) -> None:
    hcd = load(CHIP.replace(old, new).encode(), "large.hcd")
    with pytest.raises(HcdError, match=says) as caught:
        chip_limits(hcd, ChipLayouts(hcd))
    assert caught.value.origin == f"large.hcd:{line}" and caught.value.exit_code == 4


def test_more_units_than_a_plan_holds() -> None:
    more = "".join(f"  u{i}: {{kind: vector, peak_gflops: 2, supported_layouts: [NCHW]}}\n" for i in range(16))
    hcd = load(CHIP.replace("\nmemory:", f"\n{more}memory:").encode(), "large.hcd")
    with pytest.raises(HcdError, match="a plan would hold 17 as its number of units; allowed are 1 to 16"):
        chip_limits(hcd, ChipLayouts(hcd))


def test_what_a_plan_just_holds_is_kept() -> None:
    hcd = load(CHIP.replace("channels: 7", "channels: 63").replace("count: 1", f"count: {MOST}").encode(), "large.hcd")
    machine = chip_limits(hcd, ChipLayouts(hcd)).machine
    assert (machine.channels, machine.units[0].count) == (63, MOST)


@pytest.mark.parametrize("depth", [0, -1, 2**32])
def test_depths_that_plans_do_not_hold(depth: int) -> None:
    with pytest.raises(UsageError, match=f"queue depth {depth}; allowed are 1 to {MOST}"):
        ChipOptions(depth=depth)


def test_the_largest_depth_is_written() -> None:
    plan = flaot.compile(DIGITS, "npu_v3", flaot.Options(chips=ChipOptions(depth=MOST)))
    assert plan.program.chips[0].machine.depth == MOST
