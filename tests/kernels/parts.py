"""Runs the steps of an op whole and in parts, each part where its operands lie and on copies of just what it is given."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

import numpy as np

from flaot.ir.graph import Graph, Value
from flaot.ir.op import Op
from flaot.ir.types import DType, Layout, TensorType, channels_last, row_major
from flaot.kernels.base import KERNELS, Storage, load_all
from flaot.kernels.tiling import Cut, Part, part_of
from flaot.mapping.choice import choose
from flaot.plan.fields import kernel_id
from flaot.plan.program import Buffer, Space, Step, View
from flaot.runtime import native
from flaot.schedule.lower import Lowering
from flaot.targets.cpu import Cpu
from flaot.targets.devices import Devices

load_all()

Memory = dict[int, np.ndarray]
"""The bytes of buffers by identity."""


def check_op(op: Op, inputs: Sequence[np.ndarray | None], variants: tuple[str, ...] = ("generic",), last: bool = False) -> list[str]:
    """Checks every step of an op; ``last`` stores tensors channels last where the kernels take that. The names of all cuts tried."""
    steps, memory = lowered(op, inputs, variants, last)
    names = []
    for step in steps:
        names += check(step, memory)
        run(step, memory)
    return names


def check(step: Step, memory: Memory, fewer: bool = False) -> list[str]:
    """Asserts that a step in parts, along each of its cuts and along each two of them, gives the bits it gives as a whole and nothing
    around them. A part is run where its operands lie, and apart on copies of them, as a chip does. ``fewer`` tries one size of parts
    instead of several. The names of its cuts."""
    whole = {k: a.copy() for k, a in memory.items()}
    run(step, whole)
    cuts = KERNELS[step.kernel].cuts(step)
    choices: list[list[tuple[Cut, int]]] = [[(c, n)] for c in cuts for n in lengths(c.size, fewer)]
    choices += [[(a, lengths(a.size, True)[0]), (b, lengths(b.size, True)[0])] for a, b in itertools.combinations(cuts, 2)]
    for chosen in choices:
        apart, there = ({k: a.copy() for k, a in memory.items()} for _ in range(2))
        for part in parts(step, chosen):
            run_apart(part, memory, apart)
            run(part, there)
        for pieces, view in itertools.product((apart, there), step.outputs):
            told = f"{step.kernel} in parts of {[(c.name, n) for c, n in chosen]}"
            np.testing.assert_array_equal(bits(whole[id(view.buffer)], view.dtype), bits(pieces[id(view.buffer)], view.dtype), told)
    return [c.name for c in cuts]


def lengths(size: int, fewer: bool) -> list[int]:
    """Sizes of parts to try: two uneven parts, single elements and three parts or more."""
    uneven = size // 2 + 1
    return [min(uneven, size)] if fewer else sorted({1, max(size // 3, 1), min(uneven, size), max(size - 1, 1)})


def parts(step: Step, chosen: Sequence[tuple[Cut, int]]) -> Iterator[Step]:
    """The parts of a step along these cuts, each with the length of its parts."""
    ranges = [[Part(cut, a, min(a + n, cut.size)) for a in range(0, cut.size, n)] for cut, n in chosen]
    for combination in itertools.product(*ranges):
        yield part_of(step, KERNELS[step.kernel], combination)


def run(step: Step, memory: Memory) -> None:
    status = native.call_kernel(kernel_id(step.kernel, step.variant), step.inputs, step.outputs, memory, step.params, step.scratch)
    assert status == 0, f"{step.kernel}: {native.status_text(status)}"


def run_apart(part: Step, source: Memory, target: Memory) -> None:
    """Runs a part on copies of its operands, as a chip does, and puts the results into ``target``."""
    own: Memory = {}
    filled = len(part.inputs) + (len(part.outputs) if KERNELS[part.kernel].updates else 0)
    views = []
    for i, view in enumerate((*part.inputs, *part.outputs)):
        type = TensorType(view.dtype, view.dims)
        copy = View.dense(Buffer(Space.arena, type.nbytes), type)
        own[id(copy.buffer)] = np.full(max(type.nbytes, 1), 0xA5, np.uint8)
        if i < filled and view.elements:
            array(copy, own)[...] = array(view, source)
        views.append(copy)
    count = len(part.inputs)
    status = native.call_kernel(kernel_id(part.kernel, part.variant), views[:count], views[count:], own, part.params, part.scratch)
    assert status == 0, f"{part.kernel}: {native.status_text(status)}"
    for copy, view in zip(views[count:], part.outputs, strict=True):
        if view.elements:
            array(view, target)[...] = array(copy, own)


def array(view: View, memory: Memory) -> np.ndarray:
    """The elements of a view that has some, as bits: a window on its bytes."""
    kind = np.dtype(f"u{view.dtype.size}")
    first = memory[id(view.buffer)][view.offset : view.offset + kind.itemsize].view(kind)
    return np.lib.stride_tricks.as_strided(first, view.dims, [s * kind.itemsize for s in view.strides])


def bits(data: np.ndarray, dtype: DType) -> np.ndarray:
    """Bytes as the bits of elements, all NaN alike: which of two NaN an operation returns is not defined."""
    usable = data[: len(data) // dtype.size * dtype.size]
    elements, known = usable.view(dtype.numpy), usable.view(f"u{dtype.size}").copy()
    if dtype in (DType.float32, DType.float64):
        known[np.isnan(elements)] = 1
    return known


def lowered(op: Op, inputs: Sequence[np.ndarray | None], variants: tuple[str, ...], last: bool) -> tuple[list[Step], Memory]:
    """The steps of an op by its portable way, and the bytes of what they read and write."""
    chip, graph, memory = Cpu(variants=variants), Graph(), {}
    values: list[Value | None] = [None if a is None else graph.add_constant(np.asarray(a)) for a in inputs]
    for value in values:
        if value is not None:
            value.data = None
    node = graph.add_node(op, values)
    way = choose(node, chip)
    places: dict[int, View] = {}
    stored = [(v, way.input_storage(node, i), a) for i, (v, a) in enumerate(zip(values, inputs, strict=True)) if v is not None]
    for value, storage, data in (*stored, *((v, way.storage(node), None) for v in node.outputs)):
        value.layout = _order(value.type.rank, storage, last)
        places[value.id] = View.dense(Buffer(Space.arena, value.type.nbytes), value.type, value.layout)
        raw = np.zeros(value.type.nbytes, np.uint8) if data is None else np.frombuffer(data.transpose(value.layout).tobytes(), np.uint8)
        memory[id(places[value.id].buffer)] = np.append(raw, np.zeros(max(1 - raw.size, 0), np.uint8))
    lowering = Lowering(Devices(chip), lambda v: places[v.id])
    lowering.run(node, way)
    for view in (v for s in lowering.steps for v in (*s.inputs, *s.outputs)):
        if id(view.buffer) not in memory:
            data = view.buffer.data if view.buffer.data is not None else np.zeros(view.buffer.nbytes, np.uint8)
            memory[id(view.buffer)] = np.frombuffer(data.tobytes(), np.uint8)
    return lowering.steps, memory


def _order(rank: int, wanted: Storage, last: bool) -> Layout:
    return channels_last(rank) if rank > 2 and wanted is Storage.either and last else row_major(rank)
