"""What the verifier says about plans for a chip that are damaged: nothing reaches a chip that its limits on addresses forbid."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from flaot.errors import PlanError
from flaot.ir.types import TensorType
from flaot.plan import fields
from flaot.plan.fields import HEADER, SECTION, Section
from flaot.plan.program import Opcode, Program, Step, View
from flaot.plan.read import read_plan
from flaot.runtime.session import Session
from tests.plan.devices import F16, NPU, conv_on_chip, on_chip, transfer, weights
from tests.plan.programs import arena, plan_of, seal
from tests.runtime.damage import changed, opened, tensor_of

SECTIONS, STEPS, KERNEL, PARAMS, RESERVED, CHIP, ADDRESS = 0x106, 0x108, 0x109, 0x10A, 0x10E, 0x10F, 0x110
STRING, TENSORS = 0x10C, 0x107


PLAN = plan_of(conv_on_chip())


def test_the_plan_itself_is_accepted() -> None:
    assert opened(PLAN)[0] == 0


def test_moved_constants_are_refused_by_name_and_address() -> None:
    moved = changed(plan_of(conv_on_chip(w=np.ones((1, 1, 3, 3), np.float16))), Section.tensors, 3, "offset", 0)
    two = conv_on_chip(bias=np.zeros(1, np.float16))
    data = plan_of(two)
    index = tensor_of(data, 1, 2)
    offset = int(read_plan(data).section(Section.tensors)[index]["offset"])
    moved = changed(data, Section.tensors, index, "offset", offset - 8)
    assert opened(moved) == (ADDRESS, 1)
    with pytest.raises(PlanError) as e:
        Session(moved)
    assert e.value.exit_code == 6
    assert "step 1 (node 'layer1/conv' (Conv), kernel conv_f32.generic): " in str(e.value)
    assert f"constant (operand 2) at address {256 - 8:#x} is not a multiple of 256" in str(e.value) and "NPU-V3" in str(e.value)


def test_moved_activations_too() -> None:
    moved = changed(PLAN, Section.tensors, tensor_of(PLAN, 1, 2), "offset", 1024 + 64)
    assert opened(moved) == (ADDRESS, 1)
    with pytest.raises(PlanError, match="operand 2 at address 0x440 is not a multiple of 256"):
        Session(moved)


@pytest.mark.parametrize(("name", "value", "at", "status"), [
    ("device", 0, None, CHIP), ("device", 2, None, CHIP), ("rounding", 5, None, CHIP), ("flags", 2, None, RESERVED),
    ("layout_count", fields.MAX_LAYOUTS + 1, None, CHIP), ("layout_count", 3, None, CHIP), ("layouts", 4, 0, CHIP),
    ("head_count", fields.MAX_HEADS + 1, None, CHIP), ("arena", 2**63, None, CHIP), ("arena", 1024, None, TENSORS),
    ("constants_offset", 8, None, CHIP), ("constants_offset", 2**63, None, CHIP), ("constants_size", 2**63, None, CHIP),
    ("constants_size", 4, None, ADDRESS),
])
def test_chip(name: str, value: int, at: int | None, status: int) -> None:
    assert opened(changed(PLAN, Section.chips, 0, name, value, at))[0] == status


@pytest.mark.parametrize(("name", "value", "status"), [
    ("step", 0, CHIP), ("step", 99, CHIP), ("unit", 2**31, STRING), ("reserved", 1, RESERVED),
])
def test_launch(name: str, value: int, status: int) -> None:
    assert opened(changed(PLAN, Section.launches, 0, name, value, 0 if name == "reserved" else None))[0] == status


@pytest.mark.parametrize("alignment", [0, 3, 384, 8192])
def test_alignment_is_a_power_of_two_within_the_plan_s(alignment: int) -> None:
    assert opened(changed(PLAN, Section.devices, 1, "alignment", alignment))[0] == CHIP


@pytest.mark.parametrize(("step", "name", "value", "status"), [
    (0, "opcode", 3, STEPS), (0, "opcode", 2, ADDRESS),
    (0, "opcode", 0, KERNEL), (0, "device", 0, STEPS), (0, "device", 2, STEPS), (0, "kernel", 1, STEPS),
    (0, "flags", 1, STEPS), (0, "scratch_size", 64, STEPS), (0, "params_size", 4, STEPS), (0, "in_count", 0, STEPS),
    (1, "device", 0, STEPS), (1, "opcode", 1, STEPS), (1, "scratch_offset", 64, STEPS), (1, "scratch_size", 0, PARAMS),
    (1, "kernel", 7, KERNEL),
    (1, "flags", 1, STEPS),
])
def test_step(step: int, name: str, value: int, status: int) -> None:
    assert opened(changed(PLAN, Section.steps, step, name, value))[0] == status


@pytest.mark.parametrize(("operand", "name", "value", "status"), [
    (0, "port", 2, TENSORS), (0, "port", 0, TENSORS), (0, "space", 1, TENSORS), (2, "space", 3, TENSORS), (0, "offset", 4096, TENSORS),
    (1, "space", 4, TENSORS), (0, "window", 2, ADDRESS), (1, "window", 2, ADDRESS),
])
def test_operand(operand: int, name: str, value: int, status: int) -> None:
    """Operands of the convolution: x and y on the chip, w among its constants."""
    assert opened(changed(PLAN, Section.tensors, tensor_of(PLAN, 1, operand), name, value))[0] == status


TYPE = TensorType(F16, (1, 1, 3, 3))


def with_step(step: Step) -> Program:
    program = conv_on_chip()
    program.steps.append(step)
    return program


def strided(view: View, *strides: int) -> View:
    return replace(view, strides=strides)


@pytest.mark.parametrize("make", [
    lambda: transfer(on_chip(0, TYPE), on_chip(2048, TYPE)),
    lambda: transfer(arena(0, TYPE), arena(512, TYPE)),
    lambda: transfer(on_chip(0, TYPE), arena(0, TensorType(F16, (1, 1, 9, 1)))),
    lambda: transfer(on_chip(0, TYPE), strided(arena(0, TYPE), 9, 9, 1, 3)),
    lambda: transfer(strided(on_chip(0, TYPE), 9, 9, 6, 1), strided(arena(0, TYPE), 9, 9, 6, 1)),
    lambda: transfer(strided(on_chip(0, TYPE), 0, 0, 0, 1), strided(arena(0, TYPE), 0, 0, 0, 1)),
    lambda: replace(transfer(on_chip(0, TYPE), arena(0, TYPE)), inputs=(on_chip(0, TYPE), on_chip(0, TYPE))),
    lambda: transfer(arena(0, TYPE), weights(np.zeros((1, 1, 3, 3), np.float16))),
])
def test_transfers_move_whole_tensors_between_memories(make: Callable[[], Step]) -> None:
    assert opened(plan_of(with_step(make())))[0] in (STEPS, ADDRESS)


def test_host_steps_do_not_touch_a_chip() -> None:
    for source, target in ((on_chip(0, TYPE), arena(0, TYPE)), (arena(0, TYPE), on_chip(0, TYPE))):
        step = Step("copy", "generic", (source,), (target,), op="Copy")
        assert opened(plan_of(with_step(step))) == (STEPS, 3)


def test_steps_on_a_chip_stay_in_its_memory() -> None:
    program = conv_on_chip()
    first = program.steps[1]
    for outside in (arena(0, TensorType(F16, (1, 1, 2, 2))), program.outputs[0].view):
        program.steps[1] = replace(first, outputs=(outside,))
        assert opened(plan_of(program))[0] == ADDRESS
    program.steps[1] = replace(first, inputs=(program.inputs[0].view, first.inputs[1]))
    assert opened(plan_of(program))[0] == ADDRESS


def test_constants_of_the_host_are_not_the_chip_s() -> None:
    program = conv_on_chip()
    program.steps[1].inputs[1].buffer.index = 0
    assert opened(plan_of(program)) == (ADDRESS, 1)


def test_a_chip_needs_its_record() -> None:
    program = conv_on_chip()
    program.steps = [s for s in program.steps if s.opcode is Opcode.transfer]
    assert opened(plan_of(program))[0] == 0
    program.chips.append(replace(NPU, name="NPU-V4"))
    data = plan_of(program)
    assert opened(data)[0] == 0
    out = bytearray(data)
    table = np.frombuffer(out, SECTION.dtype, int(np.frombuffer(out, HEADER.dtype, 1)["section_count"][0]), HEADER.size)
    table["id"][table["id"] == Section.chips] = 12
    assert opened(seal(bytes(out)))[0] == SECTIONS
