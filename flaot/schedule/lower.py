"""Nodes to steps: the Builder that implementations lower with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from flaot.errors import InternalError
from flaot.ir.graph import HOST, Node, Place, Value
from flaot.ir.types import DType, TensorType, dense_strides
from flaot.kernels.base import KERNELS, Implementation, Kernel
from flaot.plan.program import Buffer, Launch, Opcode, Space, Step, View
from flaot.schedule.narrow import narrow
from flaot.targets.cpu import Cpu
from flaot.targets.devices import Devices

SAMPLES = 64
"""Bytes of a constant that are compared before all of them are."""


class Lowering:
    """Collects the steps of one program. ``locate`` says where a non-constant value lies.

    On a chip that stores float32 values in another type, constants and temporaries are stored in it as well.
    """

    def __init__(self, devices: Devices, locate: Callable[[Value], View]) -> None:
        self.devices = devices
        self.steps: list[Step] = []
        self._locate = locate
        self._constants: dict[tuple[int, int, int, bytes], list[tuple[Buffer, np.ndarray]]] = {}
        self._stored: dict[tuple[int, Place], View] = {}
        self._origin: tuple[str, ...] = ()
        self._op = ""
        self._place = HOST
        self._node: Node | None = None

    @property
    def chip(self) -> Cpu:
        """What the node being lowered runs on."""
        return self.devices.of(self._place) if self._node is None else self.devices.running(self._node)

    def run(self, node: Node, way: Implementation) -> None:
        """Lowers one node."""
        self._origin, self._op, self._place, self._node = node.origin, node.op.name, node.place, node
        first = len(self.steps)
        way.lower(node, self)
        self._share(node.op.cost(node.input_types, node.output_types).flops, self.steps[first:])

    @staticmethod
    def _share(flops: float, steps: Sequence[Step]) -> None:
        """Divides the operations of a node among its steps that compute, by the elements they write."""
        computing = [s for s in steps if s.opcode is Opcode.call and not KERNELS[s.kernel].moves]
        written = [sum(v.elements for v in s.outputs) for s in computing]
        for step, elements in zip(computing, written, strict=True):
            step.work = round(flops * elements / max(sum(written), 1))

    def on_host(self, *origin: str) -> None:
        """Names what the next steps, on the host, are for when they belong to no node."""
        self._origin, self._op, self._place, self._node = origin, "Copy", HOST, None

    def view(self, value: Value | None) -> View:
        if value is None:
            raise InternalError("view of an absent input")
        if value.data is None:
            return self._locate(value)
        key = value.id, self._place
        if key not in self._stored:
            order = value.storage
            stored = self.constant(value.data.transpose(order), value.type.dtype)
            strides = dense_strides(value.type.shape, order)
            self._stored[key] = View(stored.buffer, stored.dtype, value.type.shape, strides, stored.offset)
        return self._stored[key]

    def constant(self, data: np.ndarray, dtype: DType | None = None) -> View:
        array = np.ascontiguousarray(data)
        type = TensorType(dtype if dtype is not None else DType.of(array.dtype), np.shape(data))
        if type.dtype is DType.float32 and self._place.dtype is not DType.float32:
            array, type = narrow(array, self._place.dtype, self.chip.rounding), type.with_dtype(self._place.dtype)
        flat, device = array.reshape(-1).view(np.uint8), self.devices.index(self._place.device)
        alike = self._constants.setdefault((device, flat.size, type.dtype.size, flat[:: max(1, flat.size // SAMPLES)].tobytes()), [])
        for buffer, known in alike:
            if np.array_equal(known, flat):
                return View.dense(buffer, type)
        alike.append((Buffer(Space.constant, array.nbytes, data=array, index=device), flat))
        return View.dense(alike[-1][0], type)

    def temp(self, dtype: DType, dims: Sequence[int]) -> View:
        type = TensorType(self._place.dtype if dtype is DType.float32 else dtype, tuple(dims))
        return View.dense(self.devices.memory(self._place.device, type.nbytes), type)

    def variant(self, kernel: Kernel) -> str:
        fits = [v for v in self.chip.variants if v in kernel.variants]
        if not fits:
            raise InternalError(f"kernel {kernel.name} has no variant for {self.chip.name}")
        return fits[-1]

    def step(
        self, kernel: Kernel, inputs: Sequence[View], outputs: Sequence[View], *, scratch: int = 0, parallel: bool = False,
        variant: str | None = None, **params: Any,
    ) -> None:
        device = self.devices.index(self._place.device)
        self.steps.append(
            Step(
                kernel.name, variant if variant is not None else self.variant(kernel), tuple(inputs), tuple(outputs),
                kernel.pack(**params), scratch=scratch, parallel=parallel and not device, origin=self._origin, op=self._op, device=device,
                launch=self._launch() if device else None,
            )
        )

    def _launch(self) -> Launch:
        assert self._node is not None
        known = self._node.facts
        return Launch(self._place.unit, known.batch, known.sequence, known.heads)

    def copy(self, source: View, target: View) -> None:
        from flaot.kernels.copy import copy

        copy(self, source, target)

    def transfer(self, source: View, target: View) -> None:
        device = next(v.buffer.index for v in (source, target) if v.buffer.space is Space.device)
        self.steps.append(
            Step("transfer", "", (source,), (target,), device=device, opcode=Opcode.transfer, origin=self._origin, op=self._op)
        )

    def dense(self, view: View) -> View:
        if view.is_dense:
            return view
        target = self.temp(view.dtype, view.dims)
        self.copy(view, target)
        return target
