"""How long single commands take on a chip whose rates are whole bytes and operations per cycle."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from flaot.hcd import load
from flaot.ir.types import TensorType
from flaot.plan import durations
from flaot.plan.program import Machine, Space, Transfers, View
from flaot.targets.chip.machine import machine_of
from tests.plan.devices import F16, dma, on_chip, scratchpad, transfer, weights
from tests.plan.programs import port, softmax_step

CHIP = """
chip: {name: Plain, device_type: npu_test}
clock_mhz: 500
compute_units:
  fp16:
    count: 4
    arithmetic: [{inputs: [float16, float16], accumulator: float32, macs_per_cycle: 16}]
    supported_layouts: [NCHW]
    launch_cycles: 20
  slow: {kind: vector, peak_gflops: 8, supported_layouts: [NCHW], clock_mhz: 250, launch_cycles: 20}
memory:
  on_chip_cache: {size_kb: 64, bandwidth_gb_per_s: 8}
  off_chip_memory: {bandwidth_gb_per_s: 4}
  regions:
    - {name: pad, kind: sram, size_kb: 64, latency_cycles: 3}
    - {name: ddr, kind: dram, size_kb: 1024, latency_cycles: 40}
tensor: {supported_dtypes: [float16], default_layout: NCHW}
dma: {channels: 2, setup_cycles: 10, dimensions: 1}
host: {link_gb_per_s: 1, link_setup_cycles: 100, transfers: asynchronous}
"""
CYCLE = 2000
"""Picoseconds, at 500 MHz."""
NEAR, FAR, LINK = 16, 8, 2
"""Bytes per cycle: 8, 4 and 1 GB/s."""


@pytest.fixture(scope="module")
def machine() -> Machine:
    return machine_of(load(CHIP.encode(), "plain.hcd"))


def kilobyte(place: int = 0) -> View:
    return on_chip(place, TensorType(F16, (32, 16)))


def test_rates_are_per_thousand_cycles(machine: Machine) -> None:
    assert (machine.on_chip_rate, machine.off_chip_rate, machine.link_rate) == (NEAR * 1000, FAR * 1000, LINK * 1000)
    assert (machine.clock_khz, machine.on_chip, machine.channels, machine.dimensions) == (500_000, 64 * 1024, 2, 1)
    fp16, slow = machine.units
    assert fp16.rate == 4 * 16 * 2 * 1000 and fp16.launch_cycles == 20
    assert slow.rate == 16 * 1000 and slow.launch_cycles == 40


def test_a_dma_takes_setup_latency_and_its_bytes(machine: Machine) -> None:
    step = dma(kilobyte(), scratchpad(0, TensorType(F16, (32, 16))), 0)
    assert durations.dma_setup(machine, step) == (10 + 40) * CYCLE
    assert durations.off_chip_bytes(step) == 1024
    assert durations.dma_time(machine, 1024) == 1024 // FAR * CYCLE


@pytest.mark.parametrize(
    ("columns", "dimensions", "transfers"), [(16, 1, 1), (8, 1, 32), (8, 2, 1), (1, 1, 32), (16, 3, 1)], ids=str,
)
def test_what_has_more_axes_than_a_transfer_takes_several_setups(machine: Machine, columns: int, dimensions: int, transfers: int) -> None:
    part = kilobyte().slice(1, 0, columns)
    step = dma(part, scratchpad(0, TensorType(F16, part.dims)), 0)
    able = replace(machine, dimensions=dimensions)
    assert durations.moves((*step.inputs, *step.outputs), dimensions) == transfers
    assert durations.dma_setup(able, step) == (10 * transfers + 40) * CYCLE
    assert durations.off_chip_bytes(step) == 32 * columns * 2


@pytest.mark.parametrize(
    ("axis", "length", "dimensions", "transfers"),
    [(1, 8, 1, 1), (1, 4, 1, 24), (1, 4, 2, 1), (2, 3, 1, 1), (3, 2, 1, 6), (3, 2, 2, 1)],
    ids=str,
)
def test_axes_count_in_the_order_they_are_stored_in(axis: int, length: int, dimensions: int, transfers: int) -> None:
    image = on_chip(0, TensorType(F16, (1, 8, 6, 4)))
    stored = View(image.buffer, F16, image.dims, (192, 1, 32, 8)).slice(axis, 0, length)
    strides = {1: (24 * length, 1, 4 * length, length), 2: (32 * length, 1, 32, 8), 3: (48 * length, 1, 8 * length, 8)}[axis]
    copy = View(image.buffer, F16, stored.dims, strides)
    assert durations.moves((stored, copy), dimensions) == transfers


def test_elements_that_repeat_move_once() -> None:
    row = weights(np.ones((1, 16), np.float16))
    assert durations.touched(row.broadcast((32, 16))) == row.dtype.size * 16


def test_a_launch_takes_its_launch_cycles_and_its_operations(machine: Machine) -> None:
    macs = 8 * 16 * 32
    assert durations.unit_time(machine, "fp16", 2 * macs, [256, 1024]) == (20 + macs // (4 * 16)) * CYCLE


def test_a_launch_takes_at_least_the_reading_of_its_largest_operand(machine: Machine) -> None:
    assert durations.unit_time(machine, "fp16", 128, [256, 1024]) == (20 + 1024 // NEAR) * CYCLE
    assert durations.unit_time(machine, "slow", 128, [256, 1024]) == (40 + 1024 // NEAR) * CYCLE
    assert durations.unit_time(machine, "slow", 16 * 100, [256, 1024]) == (40 + 100) * CYCLE


def test_hold_is_the_least_it_takes(machine: Machine) -> None:
    assert durations.unit_time(machine, "fp16", 128, [16], hold=500) == 500 * CYCLE
    assert durations.unit_time(machine, "fp16", 128 * 1000, [16], hold=500) == 1020 * CYCLE


def test_an_operand_read_twice_and_what_lies_off_chip_take_no_port(machine: Machine) -> None:
    type = TensorType(F16, (8, 8))
    x, y = scratchpad(0, type), scratchpad(256, type)
    twice = replace(softmax_step(x, y), inputs=(x, x, on_chip(0, type)))
    assert durations.on_chip_bytes(twice) == ([128], 128)
    assert durations.write_time(machine, 128) == 128 // NEAR * CYCLE


def test_a_transfer_takes_the_link(machine: Machine) -> None:
    step = transfer(port(Space.input, 0, "x", TensorType(F16, (32, 16))).view, kilobyte())
    assert durations.link_time(machine, durations.touched(step.inputs[0])) == (100 * CYCLE, 1024 // LINK * CYCLE)
    assert durations.link_time(replace(machine, transfer=Transfers.zero_copy), 1024) == (0, 0)


def test_parts_of_a_picosecond_count_whole() -> None:
    odd = Machine(clock_khz=3_000_000, units=(), on_chip=0, on_chip_rate=1000, off_chip_rate=7000)
    assert durations.of_cycles(odd, 1) == 334 and durations.of_cycles(odd, 3) == 1000
    assert durations.dma_time(odd, 21) == 1000 and durations.dma_time(odd, 1) == 48
