"""What is said about damaged machines, units, commands, waits and DMA steps: by the native verifier when a plan is opened to be run, in
the same words without it when a plan is looked at."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from flaot.errors import PlanError
from flaot.ir.types import DType
from flaot.plan.chips import address_problem
from flaot.plan.fields import COMMAND, MACHINE, UNIT, Section
from flaot.plan.program import Command, Launch, Unit, View
from flaot.plan.read import read_plan
from flaot.plan.write import _Writer
from flaot.report.plan import open_plan
from flaot.runtime.session import Session
from tests.plan.devices import CHIP_LINK, DMA, FP16, IMAGE, TWO_CHANNELS, conv_through_scratchpad, copy, dma, on_chip, scratchpad
from tests.plan.programs import arena, plan_of
from tests.runtime.damage import changed, opened, tensor_of

STEPS, STRING, RESERVED, ADDRESS = 0x108, 0x10C, 0x10E, 0x110
BAD_MACHINE, BAD_UNIT, QUEUE, WAIT, BAD_COMMAND = range(0x111, 0x116)
VECTOR, HOST = 3, 0xFFFFFFFF
PLAN = plan_of(conv_through_scratchpad())
"""A transfer (step 0), x and w loaded (1, 2), the convolution (3), y stored (4) and transferred (5)."""

DEPTHS_AND_DELAYS = {"depth", "setup_cycles", "latency_cycles", "link_setup_cycles", "bus"}
MACHINES = [
    ("clock_khz", 0, BAD_MACHINE, "machine 0: clock_khz is 0; allowed are 1 to 4294967295"),
    ("channels", 0, BAD_MACHINE, "channels is 0; allowed are 1 to 63"),
    ("channels", 64, BAD_MACHINE, "channels is 64; allowed are 1 to 63"),
    ("channels", 2**32 - 1, BAD_MACHINE, "channels is 4294967295"),
    ("transfer", 3, BAD_MACHINE, "transfer is 3; allowed are 0 to 2"),
    ("on_chip", 2**63, BAD_MACHINE, "on_chip is 9223372036854775808"),
    ("on_chip", 1023, BAD_MACHINE, "1024 bytes of on-chip memory are used, of 1023"),
    ("on_chip_peak", 4097, BAD_MACHINE, "4097 bytes of on-chip memory are used, of 4096"),
    ("on_chip_peak", 2**64 - 1, BAD_MACHINE, "bytes of on-chip memory are used, of 4096"),
    *((rate, v, BAD_MACHINE, f"{rate} is {v}; allowed are 1 to {2**52}")
      for rate in ("on_chip_rate", "off_chip_rate", "link_rate") for v in (0, 2**52 + 1, 2**64 - 1)),
    ("dimensions", 0, BAD_MACHINE, "dimensions is 0; allowed are 1 to 8"),
    ("dimensions", 9, BAD_MACHINE, "dimensions is 9; allowed are 1 to 8"),
    ("reserved", 1, RESERVED, ""),
]
UNITS = [
    ("device", 0, BAD_UNIT, "unit 1 is of device 0; chips are 1 to 1"),
    ("device", 2, BAD_UNIT, "unit 1 is of device 2; chips are 1 to 1"),
    ("device", 2**32 - 1, BAD_UNIT, "unit 1 is of device 4294967295"),
    ("name", 2**31, STRING, ""),
    ("count", 0, BAD_UNIT, "unit 1: count is 0; allowed are 1 to 4294967295"),
    ("rate", 0, BAD_UNIT, "unit 1: rate is 0; allowed are 1 to 4503599627370496"),
    ("rate", 2**52 + 1, BAD_UNIT, f"unit 1: rate is {2**52 + 1}; allowed are 1 to {2**52}"),
    ("reserved", 1, RESERVED, ""),
]
COMMANDS = [
    (0, "queue", DMA[0], QUEUE, "on queue 0; transfers with the host are on queue 4"),
    (0, "queue", 5, QUEUE, "on queue 5; transfers with the host are on queue 4"),
    (0, "queue", HOST, QUEUE, "on queue 4294967295; transfers with the host are on queue 4"),
    (1, "queue", FP16, QUEUE, "on queue 2; DMA channels are queues 0 to 1"),
    (1, "queue", CHIP_LINK, QUEUE, "on queue 4; DMA channels are queues 0 to 1"),
    (3, "queue", DMA[1], QUEUE, "on DMA queue 1, and its kernel computes; DMA channels only move data"),
    (3, "queue", VECTOR, QUEUE, "on queue 3 of unit 'vector', launched on unit 'fp16'"),
    (3, "queue", CHIP_LINK, QUEUE, "on queue 4; units are queues 2 to 3"),
    (3, "queue", HOST, QUEUE, "on queue 4294967295; units are queues 2 to 3"),
    (1, "first_wait", 1, WAIT, "1 waits from 1 on; those before it end at 0, all at 5"),
    (5, "first_wait", 2**32 - 1, WAIT, "1 waits from 4294967295 on; those before it end at 4"),
    (5, "wait_count", 2, WAIT, "2 waits from 4 on; those before it end at 4, all at 5"),
    (3, "wait_count", 2**32 - 1, WAIT, "4294967295 waits from 1 on"),
    (3, "wait_count", 1, WAIT, "1 waits from 3 on; those before it end at 2, all at 5"),
    (5, "wait_count", 0, WAIT, ""),
    (0, "work", 1, BAD_COMMAND, "work of 1; allowed are 0"),
    (1, "work", 2**63, BAD_COMMAND, "work of 9223372036854775808; allowed are 0"),
    (3, "work", 2**60 + 1, BAD_COMMAND, f"work of {2**60 + 1}; allowed are {2**60}"),
]


def said(plan: bytes, folder: Path) -> tuple[str, str]:
    """The sentences of a session and of opening the file without the native library; "" when it lets the plan pass."""
    with pytest.raises(PlanError) as e:
        Session(plan)
    assert e.value.exit_code == 6 and "\n" not in str(e.value)
    path = folder / "plan.flp"
    path.write_bytes(plan)
    try:
        open_plan(str(path))
    except PlanError as looked:
        return str(e.value), str(looked)
    return str(e.value), ""


def check(plan: bytes, folder: Path, status: int, record: int, says: str) -> None:
    assert opened(plan) == (status, record)
    refused, looked = said(plan, folder)
    assert says in refused
    if says and "kernel computes" not in says:
        assert says in looked


def test_the_plan_itself_is_accepted(tmp_path: Path) -> None:
    assert opened(PLAN)[0] == 0
    (tmp_path / "plan.flp").write_bytes(PLAN)
    assert open_plan(str(tmp_path / "plan.flp")).step_count == 6


@pytest.mark.parametrize(("name", "value", "status", "says"), MACHINES)
def test_machine(name: str, value: int, status: int, says: str, tmp_path: Path) -> None:
    check(changed(PLAN, Section.machines, 0, name, value), tmp_path, status, 0, says)


@pytest.mark.parametrize(("name", "value", "status", "says"), UNITS)
def test_unit(name: str, value: int, status: int, says: str, tmp_path: Path) -> None:
    check(changed(PLAN, Section.units, 1, name, value), tmp_path, status, 1, says)


@pytest.mark.parametrize(("step", "name", "value", "status", "says"), COMMANDS)
def test_command(step: int, name: str, value: int, status: int, says: str, tmp_path: Path) -> None:
    found = 4 if says.startswith("1 waits from 3") else step
    check(changed(PLAN, Section.commands, step, name, value), tmp_path, status, found, says)


@pytest.mark.parametrize("value", [0, 1, 2**32 - 1])
def test_what_is_any_number(value: int) -> None:
    for name in DEPTHS_AND_DELAYS:
        assert opened(changed(PLAN, Section.machines, 0, name, value))[0] == 0
    for name in ("launch_cycles", "depth"):
        assert opened(changed(PLAN, Section.units, 0, name, value))[0] == 0
    assert opened(changed(PLAN, Section.commands, 3, "hold", value))[0] == 0


def test_the_tables_name_every_field() -> None:
    assert {n for n, *_ in MACHINES} | DEPTHS_AND_DELAYS == set(MACHINE.offsets)
    assert {n for n, *_ in UNITS} | {"launch_cycles", "depth"} == set(UNIT.offsets)
    assert {n for _, n, *_ in COMMANDS} | {"hold"} == set(COMMAND.offsets)


@pytest.mark.parametrize(("step", "wait", "value"), [(1, 0, 1), (1, 0, 5), (3, 1, 3), (3, 2, 2**32 - 1), (5, 4, 6)])
def test_waits_are_for_earlier_steps(step: int, wait: int, value: int, tmp_path: Path) -> None:
    check(changed(PLAN, Section.waits, wait, "", value), tmp_path, WAIT, step, f"waits for step {value}, which does not come before it")


def test_units_of_a_chip_have_different_names(tmp_path: Path) -> None:
    twins = replace(TWO_CHANNELS, machine=replace(TWO_CHANNELS.machine, units=(Unit("fp16"), Unit("fp16"))))
    check(plan_of(conv_through_scratchpad(chip=twins)), tmp_path, BAD_UNIT, 1, "unit 1: its chip has another one named 'fp16'")
    sixteen = tuple(Unit(name) for name in ("fp16", *map(str, range(15))))
    many = [replace(TWO_CHANNELS, machine=replace(TWO_CHANNELS.machine, units=sixteen + more)) for more in ((), (Unit("one more"),))]
    programs = [conv_through_scratchpad(chip=chip) for chip in many]
    for program in programs:
        link = program.chips[0].machine.link_queue
        ends = {i: Command(link, () if i == 0 else (4,)) for i in (0, 5)}
        program.steps = [replace(s, command=ends.get(i, s.command)) for i, s in enumerate(program.steps)]
    assert opened(plan_of(programs[0]))[0] == 0
    check(plan_of(programs[1]), tmp_path, BAD_UNIT, 16, "unit 16 is number 17 of its chip; allowed are 16")


def test_the_host_has_a_queue_of_its_own_and_is_not_held(tmp_path: Path) -> None:
    program = conv_through_scratchpad()
    program.steps.insert(0, replace(copy(program.inputs[0].view, arena(0, IMAGE)), command=Command(HOST, (), 17)))
    waits = {2: (1,), 4: (2, 3), 5: (4,), 6: (5,)}
    commands = [replace(s.command, waits=waits.get(i, ())) if s.command else None for i, s in enumerate(program.steps)]
    program.steps = [replace(s, command=c) for s, c in zip(program.steps, commands, strict=True)]
    plan = plan_of(program)
    assert opened(plan)[0] == 0
    check(changed(plan, Section.commands, 0, "queue", 0), tmp_path, QUEUE, 0, "on queue 0; the host's is 0xffffffff")
    check(changed(plan, Section.commands, 0, "hold", 9), tmp_path, BAD_COMMAND, 0, "holds the host for 9 cycles")


def test_kernels_that_only_move_run_on_a_dma_channel() -> None:
    program = conv_through_scratchpad()
    moved = replace(copy(on_chip(0, IMAGE), on_chip(2048, IMAGE)), device=1, launch=Launch("vector"), command=Command(DMA[1], (0,)))
    program.steps.insert(4, moved)
    program.steps[5] = replace(program.steps[5], command=Command(DMA[0], (3,)))
    program.steps[6] = replace(program.steps[6], command=Command(CHIP_LINK, (5,)))
    assert opened(plan_of(program))[0] == 0
    x = np.arange(9, dtype=np.float16).reshape(1, 1, 3, 3)
    assert Session(plan_of(program)).run({"x": x})[0].ravel().tolist() == [8, 12, 20, 24]


@pytest.mark.parametrize(("part", "kept", "status", "says"), [
    ("machines", slice(80, None), BAD_MACHINE, "0 machines for 1 chips"),
    ("commands", slice(24, None), BAD_COMMAND, "5 commands for 6 steps"),
])
def test_every_chip_has_a_machine_and_every_step_a_command(
    part: str, kept: slice, status: int, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = getattr(_Writer, part)
    fewer = (lambda w: whole(w)[kept]) if part == "machines" else (lambda w: (whole(w)[0][kept], whole(w)[1]))
    monkeypatch.setattr(_Writer, part, fewer)
    data = plan_of(conv_through_scratchpad())
    assert opened(data)[0] == status
    refused, looked = said(data, tmp_path)
    assert "the plan is damaged" in refused and says in looked


NEAR, FAR = scratchpad(768, IMAGE), on_chip(2048, IMAGE)
IN_TURN: tuple[int, ...] = (0, 1, 2, 3, 4, 5)


def with_dma(source: View, target: View, **more: object) -> bytes:
    program = conv_through_scratchpad()
    program.steps.append(replace(dma(source, target, DMA[0], IN_TURN), **more))  # type: ignore[arg-type]
    return plan_of(program)


@pytest.mark.parametrize("more", [{"inputs": (FAR, FAR)}, {"outputs": ()}, {"outputs": (NEAR.reshape((9,)),)}], ids=str)
def test_what_does_not_move_one_tensor_is_said_before_anything_reads_it(more: dict[str, object]) -> None:
    plan = read_plan(with_dma(FAR, NEAR, **more))
    assert "; one is moved to one of the same shape" in str(address_problem(plan, len(plan.section(Section.steps)) - 1))


def test_the_dma_step_that_the_table_damages() -> None:
    assert opened(with_dma(FAR, NEAR))[0] == 0 and opened(with_dma(NEAR, FAR))[0] == 0


@pytest.mark.parametrize(("make", "status"), [
    (lambda: with_dma(FAR, on_chip(2560, IMAGE)), STEPS),
    (lambda: with_dma(NEAR, scratchpad(0, IMAGE)), STEPS),
    (lambda: with_dma(FAR, NEAR.reshape((9,))), STEPS),
    (lambda: with_dma(FAR, replace(NEAR, strides=(9, 9, 1, 1))), STEPS),
    (lambda: with_dma(FAR, replace(NEAR, strides=(9, 9, 0, 1))), STEPS),
    (lambda: with_dma(FAR, replace(NEAR, dtype=DType.bfloat16)), STEPS),
    (lambda: with_dma(FAR, scratchpad(64, IMAGE)), ADDRESS),
    (lambda: with_dma(on_chip(64, IMAGE), NEAR), ADDRESS),
    (lambda: with_dma(arena(0, IMAGE), NEAR), ADDRESS),
    (lambda: with_dma(NEAR, arena(0, IMAGE)), ADDRESS),
    (lambda: with_dma(FAR, NEAR, inputs=(FAR, FAR)), STEPS),
    (lambda: with_dma(FAR, NEAR, outputs=()), STEPS),
    (lambda: with_dma(FAR, NEAR, params=bytes(4)), STEPS),
    (lambda: with_dma(FAR, NEAR, scratch=64), STEPS),
    (lambda: with_dma(FAR, NEAR, parallel=True), STEPS),
])
def test_dma_moves_like_tensors_between_a_chip_s_memories(make: Callable[[], bytes], status: int) -> None:
    assert opened(make()) == (status, 6)


@pytest.mark.parametrize(("name", "value", "status"), [
    ("opcode", 3, STEPS), ("opcode", 1, STEPS), ("device", 0, STEPS), ("device", 2, STEPS), ("kernel", 1, STEPS), ("flags", 1, STEPS),
    ("flags", 2, RESERVED), ("operands", 2**32 - 1, STEPS), ("in_count", 0, STEPS), ("out_count", 2, STEPS), ("params_size", 4, STEPS),
    ("scratch_offset", 64, STEPS), ("scratch_size", 64, STEPS), ("reserved", 1, RESERVED),
])
def test_dma_step(name: str, value: int, status: int) -> None:
    assert opened(changed(PLAN, Section.steps, 1, name, value)) == (status, 1)


@pytest.mark.parametrize(("name", "value"), [
    ("port", 0), ("port", 2), ("space", 6), ("space", 255), ("offset", 1024 - 16), ("offset", 2**63),
])
def test_operand_on_chip(name: str, value: int) -> None:
    """x on chip, of 18 bytes, in 1024."""
    tensor = tensor_of(PLAN, 1, 1)
    assert opened(changed(PLAN, Section.tensors, tensor, name, value)) == (0x107, tensor)


def test_on_chip_memory_ends_where_its_peak_is() -> None:
    assert opened(changed(PLAN, Section.machines, 0, "on_chip_peak", 519))[0] == 0x107
    assert opened(changed(PLAN, Section.machines, 0, "on_chip_peak", 520))[0] == 0
