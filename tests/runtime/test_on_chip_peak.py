"""The simulator's on-chip memory holds what the plan says it needs and not a byte more; plans that say more are refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import flaot
from flaot.errors import PlanError
from flaot.ir.types import TensorType
from flaot.pipeline import Options, compile_model
from flaot.plan.fields import Section
from flaot.plan.read import read_plan
from flaot.runtime.session import Session
from flaot.schedule.chip.compose import ChipOptions
from tests.plan.devices import F16, TWO_CHANNELS, conv_through_scratchpad, scratchpad
from tests.plan.programs import plan_of
from tests.runtime.test_command_refusals import BAD_MACHINE
from tests.runtime.test_device_refusals import TENSORS, changed, opened, tensor_of

DIGITS = Path(__file__).resolve().parents[2] / "samples" / "mnist" / "digits.onnx"
PLAN = plan_of(conv_through_scratchpad())
"""Its last on-chip tensor begins at byte 512 of 1024 and has 8."""


def feeds(session: Session) -> dict[str, np.ndarray]:
    return {i.name: np.zeros(i.shape, np.float32) for i in session.get_inputs()}


@pytest.mark.parametrize("chip", ["npu_v2", "npu_v3"])
def test_the_peak_counted_is_the_one_planned(chip: str) -> None:
    data = flaot.compile(DIGITS, chip).plan
    row = read_plan(data).section(Section.machines)[0]
    planned, size = int(row["on_chip_peak"]), int(row["on_chip"])
    assert 0 < planned <= size == flaot.load_hcd(chip).full.memory.on_chip_cache.size_kb * 1024
    with Session(data) as session:
        session.run(None, feeds(session))
        (counted,) = session.counters()
    alignment = flaot.load_hcd(chip).full.constraints.memory_alignment_bytes
    assert planned - alignment < counted.on_chip_peak <= planned


def test_a_pool_limits_what_is_counted() -> None:
    hcd = flaot.load_hcd("npu_v3")
    for pool in (64 * 1024, 32 * 1024):
        done = compile_model(DIGITS, hcd, Options(chips=ChipOptions(pool=pool)))
        with Session(done.plan) as session:
            session.run(None, feeds(session))
            assert 0 < session.counters()[0].on_chip_peak <= pool


def test_more_than_the_chip_has_is_refused() -> None:
    size = TWO_CHANNELS.machine.on_chip
    assert opened(changed(PLAN, Section.machines, 0, "on_chip_peak", size))[0] == 0
    assert opened(changed(PLAN, Section.machines, 0, "on_chip_peak", size + 1))[0] == BAD_MACHINE
    assert opened(changed(PLAN, Section.machines, 0, "on_chip", 1023))[0] == BAD_MACHINE
    with pytest.raises(PlanError):
        Session(changed(PLAN, Section.machines, 0, "on_chip_peak", size + 1))


def test_tensors_beyond_the_peak_are_refused() -> None:
    result = tensor_of(PLAN, 3, 2)
    assert opened(changed(PLAN, Section.tensors, result, "offset", 768))[0] == 0
    assert opened(changed(PLAN, Section.tensors, result, "offset", 1024))[0] == TENSORS
    assert opened(changed(PLAN, Section.machines, 0, "on_chip_peak", 519))[0] == TENSORS
    assert opened(changed(PLAN, Section.machines, 0, "on_chip_peak", 520))[0] == 0


def test_a_step_that_leaves_the_peak_is_refused() -> None:
    program = conv_through_scratchpad()
    wide = scratchpad(1022, TensorType(F16, (1, 1, 2, 2)))
    program.steps[3] = replace(program.steps[3], outputs=(wide,))
    assert opened(plan_of(program))[0] == TENSORS
