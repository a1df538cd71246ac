"""On-chip memory and hazards in the simulator: what queues and waits do not order is a trap, whatever order the steps ran in."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest

from flaot.errors import PlanError, UsageError
from flaot.ir.types import DType, TensorType
from flaot.plan.program import Buffer, Command, Launch, Program, Space, Step, Transfers, View
from flaot.runtime.counters import Counters
from flaot.runtime.session import Session
from tests.plan.devices import (
    ALONE,
    CHIP_LINK,
    DMA,
    F16,
    FP16,
    IMAGE,
    NPU,
    TWO_CHANNELS,
    conv,
    conv_through_scratchpad,
    dma,
    on_chip,
    scratchpad,
    transfer,
)
from tests.plan.programs import arena, plan_of, port

X = np.arange(9, dtype=np.float16).reshape(1, 1, 3, 3)
SUMS = [8, 12, 20, 24]


def outcome(program: Program, x: np.ndarray = X) -> list[float] | str:
    """The values of y, or the trap's sentence behind its step."""
    try:
        (y,) = Session(plan_of(program)).run({"x": x})
    except PlanError as e:
        assert e.exit_code == 6
        return e.what
    return [float(v) for v in y.ravel()]


def test_a_convolution_through_the_scratchpad() -> None:
    session = Session(plan_of(conv_through_scratchpad()))
    for k in (1, 2, 3):
        assert session.run({"x": k * X})[0].ravel().tolist() == [k * v for v in SUMS]


@pytest.mark.parametrize(("step", "waits", "says"), [
    (1, (), "early_read: operand 0 of step 1 on queue 0 reads bytes 0 to 18 of off-chip memory, which step 0 on queue 4 writes"),
    (3, (1,), "early_read: operand 1 of step 3 on queue 2 reads bytes 256 to 264 of on-chip memory, which step 2 on queue 1 writes"),
    (3, (2,), "early_read: operand 0 of step 3 on queue 2 reads bytes 0 to 18 of on-chip memory, which step 1 on queue 0 writes"),
    (4, (2,), "early_read: operand 0 of step 4 on queue 0 reads bytes 512 to 520 of on-chip memory, which step 3 on queue 2 writes"),
    (5, (3,), "early_read: the transfer of step 5 on queue 4 reads bytes 1024 to 1032 of off-chip memory, which step 4 on queue 0 writes"),
])
def test_every_wait_is_needed(step: int, waits: tuple[int, ...], says: str) -> None:
    assert outcome(conv_through_scratchpad({step: waits})) == f"{says}, and does not wait for it"


def test_order_is_inherited_over_queues_and_waits() -> None:
    """The convolution waits for step 2 alone, which waits for step 1; then the loads share a channel."""
    assert outcome(conv_through_scratchpad({2: (1,), 3: (2,)})) == SUMS
    one = conv_through_scratchpad({3: (2,)})
    one.steps[2] = replace(one.steps[2], command=Command(DMA[0], ()))
    assert outcome(one) == SUMS


def with_step(step: Step) -> Program:
    """The convolution through the scratchpad with a step between convolution and store."""
    program = conv_through_scratchpad()
    moved = [
        replace(s, command=replace(s.command, waits=tuple(w + (w > 3) for w in s.command.waits))) for s in program.steps[4:] if s.command
    ]
    program.steps[4:] = [step, *moved]
    return program


OTHER = on_chip(0, IMAGE)


@pytest.mark.parametrize(("step", "says"), [
    (dma(OTHER, scratchpad(0, IMAGE), DMA[1], (1,)),
     "operand 1 of step 4 on queue 1 writes bytes 0 to 18 of on-chip memory, which step 3 on queue 2 reads"),
    (dma(OTHER, scratchpad(512, IMAGE), DMA[1], (1,)),
     "operand 1 of step 4 on queue 1 writes bytes 512 to 520 of on-chip memory, which step 3 on queue 2 writes"),
    (replace(transfer(arena(0, IMAGE), on_chip(0, IMAGE)), command=Command(CHIP_LINK)),
     "the transfer of step 4 on queue 4 writes bytes 0 to 18 of off-chip memory, which step 1 on queue 0 reads"),
])
def test_writing_over_what_is_in_use(step: Step, says: str) -> None:
    assert outcome(with_step(step)) == f"overlap: {says}, and does not wait for it"


def test_waiting_makes_it_right() -> None:
    assert outcome(with_step(dma(OTHER, scratchpad(0, IMAGE), DMA[1], (3,)))) == SUMS


def test_the_host_s_steps_stand_for_the_transfers_before_them() -> None:
    """Step 6, the host's, comes after the transfer of step 5; step 7 waits for it alone and writes over what step 5 read."""
    program = conv_through_scratchpad()
    y_far = program.steps[4].outputs[0]
    host = Step("copy", "generic", (program.inputs[0].view,), (arena(64, IMAGE),), op="Copy", command=Command(0xFFFFFFFF, (5,)))
    again = dma(scratchpad(512, TensorType(F16, (1, 1, 2, 2))), y_far, DMA[1], (6, 3))
    program.steps += [host, again]
    assert outcome(program) == SUMS
    program.steps[7] = replace(again, command=Command(DMA[1], (3,)))
    assert str(outcome(program)).startswith("overlap: operand 1 of step 7 on queue 1 writes bytes 1024 to 1032 of off-chip memory, which")


UNWRITTEN = "early_read: operand 0 of step {} on queue 2 reads bytes"


def test_nothing_is_read_that_this_run_did_not_write() -> None:
    program = conv_through_scratchpad()
    kept = program.steps.pop(1)
    for i in range(1, 5):
        step = program.steps[i]
        assert step.command is not None
        program.steps[i] = replace(step, command=replace(step.command, waits=tuple(w - 1 for w in step.command.waits if w > 1)))
    assert outcome(program) == f"{UNWRITTEN.format(2)} 0 to 18 of on-chip memory, which nothing has written"
    part = replace(kept, outputs=(replace(kept.outputs[0], dims=(1, 1, 2, 3)),), inputs=(replace(kept.inputs[0], dims=(1, 1, 2, 3)),))
    program = conv_through_scratchpad()
    program.steps[1] = part
    assert outcome(program) == f"{UNWRITTEN.format(3)} 12 to 18 of on-chip memory, which nothing has written"


def test_units_compute_on_chip() -> None:
    program = conv_through_scratchpad()
    program.steps[3] = conv((on_chip(0, IMAGE), program.steps[3].inputs[1]), program.steps[3].outputs[0], ALONE)
    program.steps[3] = replace(program.steps[3], command=Command(FP16, (1, 2)))
    assert outcome(program) == "memory: operand 0 of step 3 on unit fp16 lies in off-chip memory, where units do not compute"


@pytest.mark.parametrize(("queue", "says"), [
    (DMA[1], None), (3, "memory: operand 0 of step 4 on unit vector lies in off-chip memory, where units do not compute"),
])
def test_the_dma_engine_moves_elements_off_chip(queue: int, says: str | None) -> None:
    command = Command(queue, (0,))
    step = Step("copy", "generic", (OTHER,), (on_chip(2048, IMAGE),), op="Copy", device=1, launch=Launch("vector"), command=command)
    assert outcome(with_step(step)) == (says or SUMS)


def test_counters_add_up_over_runs() -> None:
    session = Session(plan_of(conv_through_scratchpad()))
    assert session.counters() == [Counters()]
    for runs in (1, 2):
        session.run({"x": X})
        (found,) = session.counters()
        assert found.nanoseconds > 0
        assert replace(found, nanoseconds=0) == Counters(
            launches=runs, dmas=3 * runs, copies=2 * runs, bytes_in=(18 + 8) * runs, bytes_out=8 * runs, bytes_to_device=18 * runs,
            bytes_from_device=8 * runs, on_chip_peak=512 + 8,
        )
    session.close()
    with pytest.raises(UsageError, match="the session is closed"):
        session.counters()


def test_zero_copy_transfers_are_counted_and_their_bytes_are_not() -> None:
    chip = replace(TWO_CHANNELS, machine=replace(TWO_CHANNELS.machine, transfer=Transfers.zero_copy))
    session = Session(plan_of(conv_through_scratchpad(chip=chip)))
    assert session.run({"x": X})[0].ravel().tolist() == SUMS
    (found,) = session.counters()
    assert (found.copies, found.bytes_to_device, found.bytes_from_device, found.bytes_in) == (2, 0, 0, 18 + 8)


WIDE = TensorType(F16, (1, 1, 4, 6))


def test_columns_written_apart_and_read_by_rows() -> None:
    """Two channels bring in three columns each of a buffer of 4 rows of 12 bytes; bytes of one granule have different writers."""
    x, y = port(Space.input, 0, "x", WIDE), port(Space.output, 0, "y", WIDE)
    far, near, back = on_chip(0, WIDE), scratchpad(0, WIDE), on_chip(1024, WIDE)
    halves = [dma(far.slice(3, at, 3), near.slice(3, at, 3), queue, (0,)) for at, queue in ((0, DMA[0]), (3, DMA[1]))]
    rows = [dma(near.slice(2, at, 2), back.slice(2, at, 2), DMA[0], waits) for at, waits in ((0, (2,)), (2, ()))]
    first, last = transfer(x.view, far), transfer(back, y.view)
    steps = [replace(first, command=Command(CHIP_LINK)), *halves, *rows, replace(last, command=Command(CHIP_LINK, (4,)))]
    values = np.arange(24, dtype=np.float16).reshape(WIDE.shape)
    assert outcome(Program([x], [y], steps, chips=[TWO_CHANNELS]), values) == list(range(24))
    steps[3] = replace(steps[3], command=Command(DMA[0], ()))
    assert outcome(Program([x], [y], steps, chips=[TWO_CHANNELS]), values) == (
        "early_read: operand 0 of step 3 on queue 0 reads bytes 6 to 12 of on-chip memory, which step 2 on queue 1 writes, "
        "and does not wait for it"
    )


def random_view(draw: random.Random, buffer: Buffer, dims: tuple[int, ...]) -> View:
    """Elements of one byte that lie apart, anywhere in the buffer."""
    while True:
        order, strides, reach = draw.sample(range(len(dims)), len(dims)), [0] * len(dims), 0
        for axis in order:
            strides[axis] = draw.choice((1, 1, -1)) * (reach + draw.choice((1, 1, 2, 5)))
            reach += abs(strides[axis]) * (dims[axis] - 1)
        low = sum(min(0, s * (d - 1)) for s, d in zip(strides, dims, strict=True))
        if reach < buffer.nbytes:
            return View(buffer, DType.int8, dims, tuple(strides), draw.randrange(buffer.nbytes - reach) - low)


def bytes_of(view: View) -> set[int]:
    at = np.full(view.dims, view.offset)
    for axis, (d, s) in enumerate(zip(view.dims, view.strides, strict=True)):
        at = at + (np.arange(d) * s).reshape([-1 if i == axis else 1 for i in range(len(view.dims))])
    return {int(v) for v in at.ravel()}


def first_hazard(steps: list[Step]) -> int | None:
    """The first step with a hazard, byte by byte and with every pair of steps compared."""
    before: list[set[int]] = []
    used: list[list[tuple[Space, set[int], bool]]] = []
    for i, step in enumerate(steps):
        assert step.command is not None
        known: set[int] = set()
        for j in {*step.command.waits, *(j for j in range(i) if steps[j].command.queue == step.command.queue)}:  # type: ignore[union-attr]
            known |= before[j] | {j}
        before.append(known)
        mine = [(v.buffer.space, bytes_of(v), v is step.outputs[0]) for v in (*step.inputs, *step.outputs) if v.buffer.index]
        for space, touched, writes in mine:
            earlier = [(j, s & touched, w) for j in range(i) for o, s, w in used[j] if o is space]
            written = set().union(*(s for _, s, w in earlier if w))
            if not writes and touched - written or any(s and (w or writes) and j not in known for j, s, w in earlier):
                return i
        used.append(mine)
    return None


@pytest.mark.parametrize("seed", range(8))
def test_random_transfers_trap_where_bytes_collide(seed: int) -> None:
    draw, type = random.Random(seed), TensorType(DType.int8, (256,))
    x = port(Space.input, 0, "x", type)
    chip = replace(NPU, machine=replace(NPU.machine, channels=3, on_chip_peak=256))
    far, near = (Buffer(space, 256, index=1, offset=0) for space in (Space.device, Space.on_chip))
    found = 0
    for _ in range(60):
        queues = range(draw.choice((1, 2, 3)))
        steps = [replace(transfer(x.view, View.dense(far, type)), command=Command(5))]
        steps.append(dma(View.dense(far, type), View.dense(near, type), 0, (0,)))
        for i in range(2, 12):
            dims = tuple(draw.choice((1, 2, 3, 5)) for _ in range(draw.choice((1, 2, 3))))
            source, target = (far, near) if draw.random() < 0.6 else (near, far)
            waits = tuple(sorted({i - 1 if draw.random() < 0.5 else draw.randrange(1, i) for _ in range(draw.choice((1, 1, 2)))}))
            steps.append(dma(random_view(draw, source, dims), random_view(draw, target, dims), draw.choice(queues), waits))
        where = first_hazard(steps)
        found += where is not None
        session = Session(plan_of(Program([x], [], steps, chips=[chip])))
        try:
            session.run({"x": np.arange(256, dtype=np.int64).astype(np.int8)})
            assert where is None
        except PlanError as e:
            assert f"of step {where} on queue" in e.what
    assert 0 < found < 60
