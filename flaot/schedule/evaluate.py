"""Runs one op on arrays through the kernels: constant folding, and how tests try an op.

Folding uses the portable kernels, which are the same plain IEEE operations in the same order on every machine, so a folded constant
has the same bytes whatever the thread count, BLAS or SIMD level.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from flaot.errors import RunInputError
from flaot.ir.graph import Graph, Value
from flaot.ir.op import Op
from flaot.ir.types import DType, Layout, channels_last, row_major
from flaot.kernels.base import KERNELS, Storage
from flaot.kernels.generate import kernel_id
from flaot.mapping.choice import choose
from flaot.plan.program import Buffer, Space, View
from flaot.runtime import native
from flaot.schedule.lower import Lowering
from flaot.targets.cpu import GENERIC, Cpu
from flaot.targets.devices import Devices


def evaluate(
    op: Op, inputs: Sequence[np.ndarray | None], chip: Cpu = GENERIC, dtypes: Sequence[DType | None] | None = None, parts: int = 1,
    constant: Sequence[int] = (), last: bool = False,
) -> list[np.ndarray]:
    """Outputs of ``op`` on ``inputs``. ``constant`` lists the slots the implementation may see as constants (weights to pack).
    ``last`` says how an implementation that takes either storage gets its tensors: channels last (rank 3 and up).

    Raises OpTypeError for inputs the op refuses, UnsupportedError without a kernel, RunInputError when the data is refused.
    """
    graph = Graph()
    values: list[Value | None] = []
    data: dict[int, np.ndarray] = {}
    memory: dict[int, np.ndarray] = {}
    places: dict[int, View] = {}
    for i, array in enumerate(inputs):
        if array is None:
            values.append(None)
            continue
        value = graph.add_constant(np.asarray(array), dtype=dtypes[i] if dtypes else None)
        if i not in constant:
            data[i], value.data = np.asarray(array), None
        values.append(value)
    node = graph.add_node(op, values)
    way = choose(node, chip)
    for i, array in data.items():
        given = values[i]
        assert given is not None
        given.layout = _order(given.type.rank, way.input_storage(node, i), last)
        places[given.id] = View.dense(Buffer(Space.input, given.type.nbytes), given.type, given.layout)
        memory[id(places[given.id].buffer)] = np.frombuffer(array.transpose(given.layout).tobytes() or b"\0", np.uint8).copy()
    for out in node.outputs:
        out.layout = _order(out.type.rank, way.storage(node), last)
        places[out.id] = View.dense(Buffer(Space.output, out.type.nbytes), out.type, out.layout)
        memory[id(places[out.id].buffer)] = np.zeros(max(out.type.nbytes, 1), np.uint8)
    lowering = Lowering(Devices(chip), lambda v: places[v.id])
    lowering.run(node, way)
    for step in lowering.steps:
        for view in (*step.inputs, *step.outputs):
            if id(view.buffer) not in memory:
                known = view.buffer.data
                room = np.zeros(max(view.buffer.nbytes, 1), np.uint8)
                memory[id(view.buffer)] = np.frombuffer(known.tobytes() or b"\0", np.uint8) if known is not None else room
        assert step.kernel in KERNELS
        status = native.call_kernel(
            kernel_id(step.kernel, step.variant), step.inputs, step.outputs, memory, step.params, step.scratch,
            parts if step.parallel else 1,
        )
        if status:
            raise RunInputError(f"{step.kernel}.{step.variant}: {native.status_text(status)}")
    return [_array(places[v.id], memory, v.storage) for v in node.outputs]


def _order(rank: int, wanted: Storage, last: bool) -> Layout:
    """The layout of a tensor for an implementation that wants this storage."""
    if rank < 3 or wanted is Storage.plain or (wanted is Storage.either and not last):
        return row_major(rank)
    return channels_last(rank)


def _array(view: View, memory: dict[int, np.ndarray], order: Layout) -> np.ndarray:
    stored = memory[id(view.buffer)][: view.buffer.nbytes].view(view.dtype.numpy).reshape([view.dims[a] for a in order])
    return np.ascontiguousarray(stored.transpose(np.argsort(order))).reshape(view.dims)
