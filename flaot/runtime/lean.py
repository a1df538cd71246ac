"""A session for one process and one caller that needs no numpy: what ``flaot run`` uses. Others use :class:`flaot.Session`."""

from __future__ import annotations

import ctypes
import mmap
import os
import stat
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from flaot.errors import FileSystemError, FlaotError, LimitError, PlanError, printable
from flaot.plan.fields import HEADER, MAGIC
from flaot.plan.lean import LeanPlan, LeanPort
from flaot.runtime.library import OK, Machine, functions, run_error, status_text
from flaot.runtime.npy import Array

TYPE_CHECKING = False
if TYPE_CHECKING:
    from flaot.ir.types import Frozen
    from flaot.runtime.adapter import Adapter
    from flaot.runtime.counters import Counters


class Memory:
    """Zeroed bytes of the process, aligned to a page."""

    def __init__(self, nbytes: int) -> None:
        try:
            self.map = mmap.mmap(-1, max(nbytes, 1))
        except (OSError, OverflowError, MemoryError, ValueError) as e:
            raise LimitError(f"no memory for {nbytes} bytes") from e
        self.address = ctypes.addressof(ctypes.c_char.from_buffer(self.map))
        self.nbytes = nbytes

    def bytes(self) -> bytes:
        return self.map[: self.nbytes]


class LeanSession:
    """A plan file opened for running on ``threads`` threads. Raises PlanError, FileSystemError or LimitError."""

    def __init__(self, path: str, threads: int, adapters: Sequence[str] = ()) -> None:
        self.path, self._where = path, printable(path, 200)
        self._lib = functions()
        self._data = _read(path, self._where)
        self._handle = self._open()
        self._plan = LeanPlan(self.data)
        self.inputs: list[LeanPort] = self._plan.inputs
        self.outputs: list[LeanPort] = self._plan.outputs
        self.adapters: list[Adapter] = []
        self._context = self._start(threads, adapters)

    @property
    def chips(self) -> list[tuple[str, str]]:
        """Name and device type of every chip of the plan; ``adapters`` run them."""
        return self._plan.chips

    @property
    def data(self) -> memoryview:
        """The plan's bytes."""
        return memoryview(self._data.map)[: self._data.nbytes]

    @property
    def frozen(self) -> list[Frozen]:
        """Initializers that the model lists as inputs too. Raises PlanError."""
        try:
            return self._plan.frozen
        except PlanError as e:
            raise e.at(self._where) from None

    def run(
        self, feeds: Mapping[str, Array], repeat: int = 1, profile: bool = False, done: Callable[[int], None] = lambda runs: None
    ) -> tuple[dict[str, Array], list[float], list[Any]]:
        """Outputs by name, the seconds of every run, and with ``profile`` one record per step with its mean time.

        ``done`` is told after each run how many there have been.
        """
        ports = [Memory(p.nbytes) for p in (*self.inputs, *self.outputs)]
        for port, memory in zip(self.inputs, ports, strict=False):
            memory.map[: port.nbytes] = feeds[port.name].data
        table = (ctypes.c_void_p * max(len(ports), 1))(*[m.address for m in ports])
        times = (ctypes.c_uint64 * max(self._plan.step_count, 1))()
        seconds = []
        for _ in range(repeat):
            begin = time.perf_counter()
            status = self._timed(table, times) if profile else self._lib.fl_host_run(self._context, table)
            seconds.append(time.perf_counter() - begin)
            if status != OK:
                raise self._failed(status)
            done(len(seconds))
        results = {p.name: Array(p.dtype, p.shape, m.bytes()) for p, m in zip(self.outputs, ports[len(self.inputs) :], strict=True)}
        return results, seconds, self._steps(times, repeat) if profile else []

    def counters(self) -> list[Counters]:
        """What every chip has done since the session was opened."""
        from flaot.runtime.counters import read_counters

        return [read_counters(self._context, device) for device in range(1, len(self.chips) + 1)]

    def _open(self) -> int:
        result = (ctypes.c_uint32 * 2)()
        machine = Machine(self._lib.fl_host_isa(), False, None)
        handle = self._lib.fl_host_plan(self._data.address, self._data.nbytes, ctypes.byref(machine), result)
        if not handle:
            _explain(self.path)
            raise PlanError(status_text(result[0]), where=self._where)
        return int(handle)

    def _start(self, threads: int, adapters: Sequence[str]) -> int:
        need = self._lib.fl_arena_bytes(self._handle, threads)
        if need > 1 << 47:
            raise LimitError(f"the plan wants an arena of {need} bytes", where=self._where)
        self._arena = Memory(need)
        team = self._lib.fl_host_team(threads) if threads > 1 else None
        if threads > 1 and not team:
            raise LimitError(f"the system gives no {threads} threads")
        result = (ctypes.c_uint32 * 1)()
        context = self._lib.fl_host_context(self._handle, self._arena.address, need, team, result)
        if not context:
            raise LimitError(f"no run context: {status_text(result[0])}", where=self._where)
        chips = self._plan.chips
        if chips or adapters:
            self._attach(int(context), chips, adapters)
        return int(context)

    def _attach(self, context: int, chips: list[tuple[str, str]], given: Sequence[str]) -> None:
        from flaot.runtime.adapter import adapters_for, attach

        self.adapters = adapters_for([device_type for _, device_type in chips], given)
        for device, ((name, device_type), adapter) in enumerate(zip(chips, self.adapters, strict=True), 1):
            attach(context, device, name, device_type, adapter)

    def _timed(self, table: Any, times: Any) -> int:
        status: int = self._lib.fl_host_begin(self._context, table)
        return status if status != OK else int(self._lib.fl_host_steps(self._context, 0, self._plan.step_count, times))

    def _failed(self, status: int) -> FlaotError:
        step: int = self._lib.fl_host_failed_step(self._context)
        names = self._plan.step_names
        where = f"{self._where}: step {step}"
        if step < len(names):
            where += f" (node '{printable(names[step].nodes[0] if names[step].nodes else '')}' ({printable(names[step].op)}))"
        message: bytes = self._lib.fl_host_message(self._context)
        return run_error(status, message.decode(errors="replace"), where)

    def _steps(self, times: Any, repeat: int) -> list[dict[str, Any]]:
        names = self._plan.step_names
        records = []
        for i in range(self._plan.step_count):
            n = names[i] if i < len(names) else None
            named = {"op": n.op, "kernel": n.kernel, "nodes": list(n.nodes)} if n else {"op": "", "kernel": "", "nodes": []}
            records.append({"step": i, **named, "nanoseconds": times[i] // repeat})
        return records


def _explain(path: str) -> None:
    """Opens a refused plan the long way, which raises the detailed error."""
    from flaot.runtime.session import Session

    Session(path)


def _read(path: str, shown: str) -> Memory:
    """The file in memory of its own: what happens to the file later does no harm."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, ValueError) as e:
        raise FileSystemError((getattr(e, "strerror", None) or str(e)).lower(), where=shown) from None
    info = os.fstat(fd)
    if not stat.S_ISREG(info.st_mode):
        os.close(fd)
        raise FileSystemError("is not a regular file; expected a plan (.flp)", where=shown)
    with open(fd, "rb", buffering=0) as file:
        head = file.read(HEADER.size)
        if head[:4] != MAGIC.to_bytes(4, "little") or head[8:16] != info.st_size.to_bytes(8, "little"):
            _explain(path)
        file.seek(0)
        memory = Memory(info.st_size)
        view, done = memoryview(memory.map), 0
        while done < info.st_size and (got := file.readinto(view[done : info.st_size])):
            done += got
        memory.nbytes = done
    return memory
