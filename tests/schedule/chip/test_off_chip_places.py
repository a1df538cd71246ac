"""Off-chip places are not reused while what was brought in from them ahead of time is in use: no result waits for a later load."""

from __future__ import annotations

import pytest

from flaot.ir.types import DType, TensorType
from flaot.plan.program import Buffer, Chip, Launch, Machine, Opcode, Program, Space, Step, Unit, View
from flaot.schedule.assign import assign_memory
from flaot.schedule.chip.commands import assign_commands
from flaot.schedule.chip.sequence import LOAD, STORE
from tests.schedule.chip.small import compiled, npu
from tests.schedule.chip.test_tiles import matmul

MACHINE = Machine(1_000_000, (Unit("fp16"),), 4096, 1000, 1000, channels=2)


def held(space: Space, nbytes: int) -> View:
    return View.dense(Buffer(space, nbytes, index=0 if space in (Space.input, Space.output) else 1), TensorType(DType.uint8, (nbytes,)))


def moved(source: View, target: View, op: str) -> Step:
    opcode = Opcode.dma if op in (LOAD, STORE) else Opcode.transfer
    return Step("dma", "", (source,), (target,), op=op, device=1, opcode=opcode)


def called(source: View, target: View) -> Step:
    return Step("relu", "generic", (source,), (target,), device=1, launch=Launch("fp16"))


def test_the_first_result_does_not_lie_where_the_second_operand_does() -> None:
    """Both operands are brought in before the first call. The 512 bytes of the second one are used by the second call (6), so that the
    first result (512 bytes, step 5) lies on the first operand (256 bytes) and beside it; the second result may lie where the second
    operand was."""
    a, b, y, z = (held(Space.device, n) for n in (256, 512, 512, 512))
    a_near, b_near, y_near, z_near = (held(Space.on_chip, n) for n in (256, 512, 512, 512))
    ports = [held(space, n) for space, n in ((Space.input, 256), (Space.input, 512), (Space.output, 512), (Space.output, 512))]
    program = Program(steps=[
        moved(ports[0], a, "Transfer"), moved(ports[1], b, "Transfer"), moved(a, a_near, LOAD), moved(b, b_near, LOAD),
        called(a_near, y_near), moved(y_near, y, STORE), called(b_near, z_near), moved(z_near, z, STORE),
        moved(y, ports[2], "Transfer"), moved(z, ports[3], "Transfer"),
    ], chips=[Chip("npu", "npu", machine=MACHINE)])
    for at, view in zip((0, 256, 768, 1280), (a_near, b_near, y_near, z_near), strict=True):
        view.buffer.offset = at
    assign_memory(program)
    assert program.chips[0].arena == program.chips[0].lower_bound == 1024
    assert z.buffer.offset == b.buffer.offset
    steps = assign_commands(program.steps, [0] * 10, program.chips)
    assert [s.command.waits for s in (steps[5], steps[7]) if s.command is not None] == [(4,), (6,)]


@pytest.mark.parametrize("kb", [128, 256])
def test_stores_of_a_plan_wait_for_no_load_that_is_used_later(kb: int) -> None:
    """On-chip memory holds 64 kB of rows long before they are used."""
    steps = compiled(matmul(512, 64, 64), npu(kb)).program.steps
    last = {id(v.buffer): i for i, s in enumerate(steps) for v in (*s.inputs, *s.outputs)}
    loads = {i for i, s in enumerate(steps) if s.op == LOAD}
    first, *_ = stores = [i for i, s in enumerate(steps) if s.op == STORE]
    assert any(i < first < last[id(steps[i].outputs[0].buffer)] for i in loads)
    for i in stores:
        command = steps[i].command
        assert command is not None
        assert all(last[id(steps[w].outputs[0].buffer)] < i for w in loads.intersection(command.waits))
