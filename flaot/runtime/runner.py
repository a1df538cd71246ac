"""One context and what one run at a time needs around it: port memory, input checks, results."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from flaot.errors import PlanError, RunInputError, printable
from flaot.plan.fields import Section
from flaot.plan.program import Space, View
from flaot.plan.read import Plan, PlanPort
from flaot.runtime.adapter import Adapter, attach
from flaot.runtime.capi import NativeContext, NativePlan, aligned, functions
from flaot.runtime.counters import Counters, read_counters
from flaot.runtime.frozen import check_frozen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from flaot.ir.types import Frozen

STAGED = 32768
"""Ports up to this many bytes are copied through memory of the runner: cheaper than handing numpy's pointer over."""


class Runner:
    """Not for use by two threads at once."""

    def __init__(self, plan: Plan, native: NativePlan, threads: int, adapters: Sequence[Adapter] = ()) -> None:
        lib = functions()
        self._plan, self._inputs, self._outputs = plan, plan.inputs, plan.outputs
        self._context = NativeContext(native, plan.alignment, threads)
        for i, (chip, adapter) in enumerate(zip(plan.chips, adapters, strict=True), 1):
            attach(self._context.pointer, i, chip.name, chip.device_type, adapter)
        self._pointer = self._context.pointer
        self._run, self._begin, self._steps = lib.fl_host_run, lib.fl_host_begin, lib.fl_host_steps
        self._failed_step = lib.fl_host_failed_step
        ports = [*self._inputs, *self._outputs]
        self._ports = (ctypes.c_void_p * max(len(ports), 1))()
        self._ports_at = ctypes.addressof(self._ports)
        self._staging = [_staging(p) if p.type.nbytes <= STAGED else None for p in ports]
        for i, area in enumerate(self._staging):
            if area is not None:
                self._ports[i] = area.ctypes.data
        self._memory: list[np.ndarray | None] = list(self._staging)
        self._specs = [(i, p.name, p.shape, p.dtype, self._staging[i]) for i, p in enumerate(self._inputs)]

    def bind(self, feeds: object) -> None:
        """Checks the feeds and makes them and fresh outputs the ports of the next run."""
        if not isinstance(feeds, Mapping):
            raise self._fail(f"feeds of type {type(feeds).__name__}; they are a mapping from input names to arrays")
        if len(feeds) != len(self._specs) or any(name not in feeds for _, name, _, _, _ in self._specs):
            self._check_names(feeds)
        for i, name, shape, dtype, area in self._specs:
            x = feeds[name]
            if type(x) is not np.ndarray or x.shape != shape or x.dtype is not dtype:
                x = self._accept(self._inputs[i], x)
            if area is not None:
                area[...] = x
            else:
                self._lend(i, x if x.flags.c_contiguous and x.flags.aligned else np.array(x, order="C"))
        for i, port in enumerate(self._outputs, len(self._inputs)):
            if self._staging[i] is None:
                self._lend(i, np.empty(port.shape, port.dtype))

    def run(self) -> int:
        """Runs all steps; the native status."""
        status: int = self._run(self._pointer, self._ports_at)
        return status

    def begin(self) -> int:
        """Prepares a run in pieces; the native status."""
        status: int = self._begin(self._pointer, self._ports_at)
        return status

    def steps(self, first: int, count: int, nanoseconds: ctypes.c_void_p | None = None) -> int:
        """Runs some steps, adding their times to the array given; the native status."""
        status: int = self._steps(self._pointer, first, count, nanoseconds)
        return status

    def failed_step(self) -> int:
        step: int = self._failed_step(self._pointer)
        return step

    def results(self, slots: list[int] | None) -> list[np.ndarray]:
        """Outputs of the last run, all or the ones at ``slots``; they belong to the caller."""
        first = len(self._inputs)
        found = []
        for i in range(len(self._outputs)) if slots is None else slots:
            memory = self._memory[first + i]
            assert memory is not None
            found.append(memory.copy() if self._staging[first + i] is not None else memory)
        return found

    def read(self, view: View) -> np.ndarray:
        """A copy of what a view shows now. Raises PlanError when it does not lie inside its memory."""
        if view.buffer.space in (Space.device, Space.on_chip):
            return self._read_chip(view)
        memory = self._space(view.buffer.space, view.buffer.index)
        strides = [s * view.dtype.size for s in view.strides]
        try:
            return np.ndarray(view.dims, view.dtype.numpy, memory, view.offset, strides).copy()
        except (ValueError, TypeError) as e:
            raise PlanError(f"a named value lies outside its memory: {e}", where=self._plan.where) from e

    def _read_chip(self, view: View) -> np.ndarray:
        low, high = view.extent()
        memory = self._context.peek(view.buffer.index, view.buffer.space is Space.on_chip, low, high - low)
        strides = [s * view.dtype.size for s in view.strides]
        return np.ndarray(view.dims, view.dtype.numpy, memory, view.offset - low, strides).copy()

    def message(self) -> str:
        """What a chip says about its last failure."""
        return self._context.message()

    def counters(self, device: int) -> Counters:
        """What a chip, device 1 and up, has done in the runs of this context."""
        return read_counters(self._pointer, device)

    def release(self) -> None:
        """Lets go of the caller's arrays."""
        for i, area in enumerate(self._staging):
            if area is None:
                self._memory[i] = None

    def _space(self, space: Space, index: int) -> np.ndarray:
        if space is Space.arena:
            return self._context.arena
        if space is Space.constant:
            return self._plan.section(Section.constants)
        memory = self._memory[index if space is Space.input else len(self._inputs) + index]
        assert memory is not None
        return memory.reshape(-1).view(np.uint8)

    def _lend(self, slot: int, array: np.ndarray) -> None:
        self._memory[slot] = array
        self._ports[slot] = array.ctypes.data

    def _fail(self, what: str) -> RunInputError:
        return RunInputError(what, where=self._plan.where)

    def _check_names(self, feeds: Mapping[str, Any]) -> None:
        """Raises RunInputError unless the feeds are the inputs and, beyond them, the plan's frozen initializers unchanged."""
        known = [p.name for p in self._inputs]
        missing = [n for n in known if n not in feeds]
        beyond = [n for n in feeds if n not in known]
        frozen = {f.name: f for f in self._plan.frozen}
        extra = [n for n in beyond if n not in frozen]
        if missing or extra:
            raise self._wrong_names(known, missing, extra)
        for name in beyond:
            self._check_frozen(frozen[name], feeds[name])

    def _wrong_names(self, known: list[str], missing: list[str], extra: list[str]) -> RunInputError:
        parts = [f"no input {printable(n)!r}" for n in extra[:3]] + [f"input {printable(n)!r} is missing" for n in missing[:3]]
        return self._fail(f"{', '.join(parts)}; the plan's inputs are {', '.join(str(printable(n)) for n in known) or 'none'}")

    def _check_frozen(self, frozen: Frozen, x: Any) -> None:
        if not isinstance(x, np.ndarray | np.generic):
            raise self._fail(f"input {printable(frozen.name)!r} is a {type(x).__name__}; a numpy array {frozen.type} is wanted")
        x = np.asarray(x)
        check_frozen(frozen, x.dtype.name, x.shape, lambda: x.astype(x.dtype.newbyteorder("<"), copy=False).tobytes(), self._plan.where)

    def _accept(self, port: PlanPort, x: Any) -> np.ndarray:
        """The feed as an array of the port's shape and dtype in native byte order; RunInputError when it is another."""
        name = printable(port.name)
        if not isinstance(x, np.ndarray | np.generic):
            raise self._fail(f"input {name!r} is a {type(x).__name__}; a numpy array {port.type} is wanted")
        x = np.asarray(x)
        if x.dtype.name == port.type.dtype.name == "bfloat16":
            x = x.view(np.uint16)
        if x.shape != port.shape:
            raise self._fail(f"input {name!r} has shape {list(x.shape)}; the plan wants {list(port.shape)}")
        if x.dtype.newbyteorder("=") != port.dtype:
            raise self._fail(f"input {name!r} has dtype {x.dtype}; the plan wants {port.type.dtype.name}")
        native: np.ndarray = x.astype(port.dtype, copy=False)
        return native


def _staging(port: PlanPort) -> np.ndarray:
    """Aligned memory of a port's shape and dtype."""
    nbytes = port.type.nbytes
    return aligned(nbytes, 64)[:nbytes].view(port.dtype).reshape(port.shape)
