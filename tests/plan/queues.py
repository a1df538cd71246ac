"""A hand-made plan whose times a person can add up."""

from __future__ import annotations

from dataclasses import replace

from flaot.ir.types import DType, TensorType
from flaot.plan.program import Buffer, Chip, Command, Launch, Machine, Opcode, Program, Space, Step, Transfers, Unit, View
from tests.plan.devices import NPU, transfer
from tests.plan.devices import on_chip as off_chip
from tests.plan.programs import port, softmax_step

ROW = TensorType(DType.float16, (1, 8))
"""16 bytes."""

SLOW = replace(
    NPU,
    machine=Machine(1_000_000, (Unit("vector", launch_cycles=4),), 4096, 1000, 1000, setup_cycles=2, latency_cycles=3, on_chip_peak=272),
)
"""A cycle is a nanosecond; everything moves a byte and computes an operation in one."""


def inside(offset: int, type: TensorType = ROW) -> View:
    """In on-chip memory."""
    return View.dense(Buffer(Space.on_chip, type.nbytes, index=1, offset=offset), type)


FREE = replace(SLOW, machine=replace(SLOW.machine, transfer=Transfers.zero_copy))
"""The same where the host sees the chip's memory."""


def softmax_on_chip(chip: Chip = SLOW) -> Program:
    """y = softmax(x): in over the link (16 ns), on chip (5 + 16), softmax (4 + the 16 it reads), off chip (5 + 16), out (16)."""
    x, y = port(Space.input, 0, "x", ROW), port(Space.output, 0, "y", ROW)
    far_x, far_y, near_x, near_y = off_chip(0, ROW), off_chip(1024, ROW), inside(0), inside(256)
    named = dict(origin=("layer/softmax",), device=1)
    steps = [
        replace(transfer(x.view, far_x), command=Command(2)),
        Step("", "", (far_x,), (near_x,), op="Load", opcode=Opcode.dma, command=Command(0, (0,)), **named),
        softmax_step(near_x, near_y, launch=Launch("vector"), command=Command(1, (1,), 8), **named),
        Step("", "", (near_y,), (far_y,), op="Store", opcode=Opcode.dma, command=Command(0, (2,)), **named),
        replace(transfer(far_y, y.view), command=Command(2, (3,))),
    ]
    return Program([x], [y], steps, arena=0, chips=[chip])
