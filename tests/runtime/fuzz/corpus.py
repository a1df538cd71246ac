"""A pytest plugin that turns the kernel calls of other tests into one-step plans: ``pytest -p tests.runtime.fuzz.corpus tests/kernels``.

Plans go to the folder FLAOT_CORPUS, a few small ones for every kernel and variant, so that the fuzzer meets every kernel's check.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from flaot.kernels.base import KERNELS
from flaot.plan.fields import ISA_BITS, kernel_id
from flaot.plan.program import Buffer, DeviceRecord, Program, Space, Step, View
from flaot.plan.write import write_plan
from flaot.runtime import native

MOST_BYTES, MOST_BYTES_OF_FIRST = 6000, 600000
"""Operands and scratch of a kept call; the first two calls of a kernel may be larger, for kernels that have no small ones."""
MOST_ELEMENTS = 50000
"""Of one tensor: the fuzzer runs no larger plans."""

PER_KERNEL = int(os.environ.get("FLAOT_CORPUS_CALLS", "12"))
"""Calls kept of a kernel's variant."""


class Recorder:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.seen: set[tuple[object, ...]] = set()
        self.kept: Counter[int] = Counter()
        self.names = {kernel_id(k.name, v): (k.name, v) for k in KERNELS.values() for v in k.variants}
        self.call = native.call_kernel

    def __call__(
        self, kernel: int, inputs: Sequence[View], outputs: Sequence[View], memory: dict[int, np.ndarray], params: bytes, scratch: int,
        parts: int = 1,
    ) -> int:
        status = self.call(kernel, inputs, outputs, memory, params, scratch, parts)
        key = (kernel, params, scratch, *((v.dtype, v.dims, v.strides) for v in (*inputs, *outputs)))
        if status == 0 and key not in self.seen and self.kept[kernel] < PER_KERNEL:
            self.seen.add(key)
            self.keep(kernel, inputs, outputs, memory, params, scratch)
        return status

    def keep(
        self, kernel: int, inputs: Sequence[View], outputs: Sequence[View], memory: dict[int, np.ndarray], params: bytes, scratch: int
    ) -> None:
        buffers = {id(v.buffer) for v in (*inputs, *outputs)}
        limit = MOST_BYTES if self.kept[kernel] > 1 else MOST_BYTES_OF_FIRST
        if scratch + sum(memory[b].nbytes for b in buffers) > limit or any(v.elements > MOST_ELEMENTS for v in (*inputs, *outputs)):
            return
        if kernel not in self.names:
            self.names = {kernel_id(k.name, v): (k.name, v) for k in KERNELS.values() for v in k.variants}
        name, variant = self.names[kernel]
        data = write_plan(one_step(name, variant, inputs, outputs, memory, params, scratch), device=DEVICE)
        (self.folder / f"{name}.{variant}.{self.kept[kernel]}.flp").write_bytes(data)
        self.kept[kernel] += 1


DEVICE = DeviceRecord("fuzz", "cpu", ISA_BITS["avx2"])


def one_step(
    kernel: str, variant: str, inputs: Sequence[View], outputs: Sequence[View], memory: dict[int, np.ndarray], params: bytes, scratch: int
) -> Program:
    """The call as a program: what it reads becomes constants, what it writes lies in the arena, byte by byte packed."""
    written = {id(v.buffer) for v in outputs}
    buffers: dict[int, Buffer] = {}
    top = 0
    for view in (*outputs, *inputs):
        if id(view.buffer) in buffers:
            continue
        data = memory[id(view.buffer)]
        if id(view.buffer) in written:
            buffers[id(view.buffer)] = Buffer(Space.arena, data.nbytes, offset=top)
            top += -(-data.nbytes // 8) * 8
        else:
            buffers[id(view.buffer)] = Buffer(Space.constant, data.nbytes, data=data.copy())
    moved = [View(buffers[id(v.buffer)], v.dtype, v.dims, v.strides, v.offset) for v in (*inputs, *outputs)]
    at = -(-top // 64) * 64
    n = len(inputs)
    step = Step(kernel, variant, tuple(moved[:n]), tuple(moved[n:]), params, scratch, at if scratch else 0, origin=("node",), op="Op")
    return Program(steps=[step], arena=at + scratch)


@pytest.fixture(autouse=True, scope="session")
def record_kernel_calls():
    recorder = Recorder(Path(os.environ["FLAOT_CORPUS"]))
    native.call_kernel = recorder
    yield
    native.call_kernel = recorder.call
