"""Runs one way of computing a convolution on strided tensors surrounded by guards."""

from __future__ import annotations

import numpy as np

from flaot.ir.graph import Graph, Node, Value
from flaot.kernels.base import Implementation, Storage
from flaot.kernels.generate import kernel_id
from flaot.plan.program import Buffer, Space, Step, View
from flaot.runtime import native
from flaot.schedule.lower import Lowering
from flaot.targets.cpu import Cpu
from flaot.targets.devices import Devices
from tests.kernels.conv_cases import Case

GUARD = np.float32(-7.25e30)


class Memory:
    """Buffers by identity, with the guarded ones."""

    def __init__(self) -> None:
        self.bytes: dict[int, np.ndarray] = {}
        self.keep: list[Buffer] = []

    def place(self, array: np.ndarray, value: Value, last: bool, gaps: tuple[int, int]) -> View:
        """``array`` in the value's storage with ``gaps`` = guard floats (after each pixel, after each row) around it."""
        order = [0, *range(2, array.ndim), 1] if last else list(range(array.ndim))
        stored = array.transpose(order)
        pads = [(0, 0)] * stored.ndim
        pads[-1], pads[-2] = (0, gaps[0]), (0, gaps[1])
        full = np.pad(stored, pads, constant_values=GUARD)
        room = np.concatenate([np.full(64, GUARD), full.reshape(-1), np.full(64, GUARD)]).astype(np.float32)
        buffer = Buffer(Space.arena, room.nbytes)
        self.bytes[id(buffer)] = room.view(np.uint8)
        self.keep.append(buffer)
        steps = np.cumprod([1, *full.shape[:0:-1]])[::-1]
        strides = [0] * array.ndim
        for axis, step in zip(order, steps, strict=True):
            strides[axis] = int(step)
        return View(buffer, value.type.dtype, array.shape, tuple(strides), 256)

    def read(self, view: View) -> np.ndarray:
        """The elements of a view; its surroundings must still be guards."""
        room = self.bytes[id(view.buffer)].view(np.float32)
        inside = np.lib.stride_tricks.as_strided(room[view.offset // 4 :], view.dims, [4 * s for s in view.strides])
        result = inside.copy()
        inside[...] = GUARD
        assert (room == GUARD).all(), "written outside the output"
        inside[...] = result
        return result

    def array(self, buffer: Buffer) -> np.ndarray:
        if id(buffer) not in self.bytes:
            data = buffer.data
            self.bytes[id(buffer)] = np.zeros(max(buffer.nbytes, 1), np.uint8) if data is None else np.frombuffer(data.tobytes(), np.uint8)
            self.keep.append(buffer)
        return self.bytes[id(buffer)]


def node_of(c: Case) -> Node:
    """The case as a node with constant weights, bias and slopes."""
    graph = Graph()
    values: list[Value | None] = []
    for slot, array in enumerate(c.inputs):
        value = None if array is None else graph.add_constant(array)
        if value is not None and slot in (0, 3):
            value.data = None
        values.append(value)
    return graph.add_node(c.op, values)


def lower(c: Case, way: Implementation, chip: Cpu, gaps: tuple[int, int], in_place: bool, memory: Memory) -> tuple[list[Step], View]:
    node = node_of(c)
    places: dict[int, View] = {}
    for slot in (0, 3):
        value, array = node.inputs[slot], c.inputs[slot]
        if value is not None and array is not None:
            places[value.id] = memory.place(array, value, way.input_storage(node, slot) is Storage.last, gaps)
    y = node.outputs[0]
    if in_place and node.inputs[3] is not None and 3 in way.in_place(node):
        places[y.id] = places[node.inputs[3].id]
    else:
        places[y.id] = memory.place(np.full(y.type.shape, GUARD, np.float32), y, way.storage(node) is Storage.last, gaps)
    lowering = Lowering(Devices(chip), lambda v: places[v.id])
    lowering.run(node, way)
    return lowering.steps, places[y.id]


def run(c: Case, way: Implementation, chip: Cpu, parts: int = 1, gaps: tuple[int, int] = (0, 0), in_place: bool = False) -> np.ndarray:
    """The output; asserts that nothing around it was written."""
    memory = Memory()
    steps, y = lower(c, way, chip, gaps, in_place, memory)
    for step in steps:
        for v in (*step.inputs, *step.outputs):
            memory.array(v.buffer)
        status = native.call_kernel(
            kernel_id(step.kernel, step.variant), step.inputs, step.outputs, memory.bytes, step.params, step.scratch,
            parts if step.parallel else 1,
        )
        assert status == 0, f"{step.kernel}: {native.status_text(status)}"
    return memory.read(y)
