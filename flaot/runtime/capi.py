"""The C functions a session calls (``port/host/session.c``), and objects that own what they return."""

from __future__ import annotations

import ctypes

import numpy as np

from flaot.errors import LimitError, PlanError
from flaot.runtime.library import DATA_STATUS, OK, Machine, functions, status_text

__all__ = ["DATA_STATUS", "OK", "Machine", "NativeContext", "NativePlan", "aligned", "functions"]


def aligned(nbytes: int, alignment: int) -> np.ndarray:
    """Fresh bytes whose first one lies at a multiple of ``alignment``. Raises LimitError when there is no memory."""
    try:
        raw = np.empty(max(nbytes, 1) + alignment, np.uint8)
    except (MemoryError, ValueError) as e:
        raise LimitError(f"no memory for {nbytes} bytes") from e
    skip = -raw.ctypes.data % alignment
    return raw[skip : skip + max(nbytes, 1)]


class NativePlan:
    """An opened plan. ``status`` and ``record`` say what the verifier found; ``pointer`` is 0 when it refused."""

    def __init__(self, data: np.ndarray, digest_verified: bool = True) -> None:
        lib, result = functions(), (ctypes.c_uint32 * 2)()
        machine = Machine(lib.fl_host_isa(), digest_verified, None)
        self.data = data
        self._free = lib.fl_host_plan_free
        self.pointer: int = lib.fl_host_plan(data.ctypes.data, data.nbytes, ctypes.byref(machine), result) or 0
        self.status, self.record = int(result[0]), int(result[1])

    def __del__(self) -> None:
        if getattr(self, "pointer", 0):
            self._free(self.pointer)


class NativeContext:
    """One run's memory and threads on an opened plan, with nothing attached to its chips."""

    def __init__(self, plan: NativePlan, alignment: int, threads: int) -> None:
        lib, result = functions(), (ctypes.c_uint32 * 1)()
        self.plan, self.team, self.pointer = plan, 0, 0
        self._free, self._free_team = lib.fl_host_context_free, lib.fl_host_team_free
        need = lib.fl_arena_bytes(plan.pointer, threads)
        self.arena = aligned(need, alignment)
        if threads > 1:
            self.team = lib.fl_host_team(threads) or 0
            if not self.team:
                raise LimitError(f"the system gives no {threads} threads")
        self.pointer = lib.fl_host_context(plan.pointer, self.arena.ctypes.data, need, self.team or None, result) or 0
        if not self.pointer:
            raise LimitError(f"no run context (status {int(result[0]):#x})")

    def message(self) -> str:
        """What a chip says about its last failure."""
        text: bytes = functions().fl_host_message(self.pointer)
        return text.decode(errors="replace")

    def peek(self, device: int, on_chip: bool, offset: int, nbytes: int) -> np.ndarray:
        """A copy of bytes of a chip's memory for activations. Raises PlanError when they lie outside it."""
        data = np.empty(nbytes, np.uint8)
        status = functions().fl_host_peek(self.pointer, device, on_chip, offset, data.ctypes.data, nbytes)
        if status != OK:
            raise PlanError(f"bytes {offset} to {offset + nbytes} of chip {device}: {status_text(status)}")
        return data

    def __del__(self) -> None:
        if getattr(self, "pointer", 0):
            self._free(self.pointer)
        if getattr(self, "team", 0):
            self._free_team(self.team)
