"""The native library: loading it, its prototypes, its status codes. Imports no numpy."""

from __future__ import annotations

import ctypes
import os
from functools import cache

from flaot.errors import DependencyError, DeviceError, FlaotError, InternalError, LimitError, PlanError, RunInputError, printable
from flaot.runtime.loading import located

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

OK = 0
DATA_STATUS = 0x400
"""Statuses from here on are the fault of the input data."""
CHIP_STATUS, CALL_STATUS = 0x202, 0x300
"""First status about a chip that runs (missing, failed, trapped), and the first one after them."""

DEVICE_MEMORY, DEVICE_FAILED = 0x204, 0x205

CHIP_HINT = "compile the model again for this chip"
FAILED_HINT = "--adapter simulator runs the plan without the chip"
BUILD_HINT = "reinstall flaot, or run 'make native' in a checkout"


def library_path() -> str:
    """Where the native library is expected; the environment variable FLAOT_LIBRARY overrides it."""
    return os.environ.get("FLAOT_LIBRARY") or os.path.join(os.path.dirname(__file__), "lib", "libflaot.so")


class _Library(ctypes.CDLL):
    """The library; asking for a function it does not have raises DependencyError, as it was built from an older flaot."""

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            if not name.startswith("fl_"):
                raise
            raise DependencyError(f"the native library is older than this flaot: it has no {name}", hint=BUILD_HINT) from None


@cache
def library() -> ctypes.CDLL:
    """The loaded library. Raises DependencyError when it is missing, does not load or is older than this flaot."""
    try:
        lib = _Library(located(library_path()))
    except OSError as e:
        raise DependencyError(f"the native library does not load: {e}", hint=BUILD_HINT) from e
    lib.fl_status_text.restype = ctypes.c_char_p
    lib.fl_status_text.argtypes = [ctypes.c_int]
    return lib


def status_text(status: int) -> str:
    """The runtime's sentence for a status code."""
    text: bytes = library().fl_status_text(status)
    return text.decode()


def run_error(status: int, message: str, where: str) -> FlaotError:
    """What to raise for a run that ended with ``status``; ``message`` is what the chip says about it, or ""."""
    text = printable(message, 300) if message and status >= CHIP_STATUS else status_text(status)
    if status >= DATA_STATUS:
        return RunInputError(text, where=where)
    if status == DEVICE_FAILED:
        return DeviceError(text, where=where, hint=FAILED_HINT)
    if status == DEVICE_MEMORY:
        return LimitError(text, where=where, hint=FAILED_HINT)
    chip = CHIP_STATUS <= status < CALL_STATUS
    return PlanError(text, where=where, hint=CHIP_HINT) if chip else InternalError(text, where=where)


class Machine(ctypes.Structure):
    """``fl_machine`` of flaot.h."""

    _fields_ = [("isa", ctypes.c_uint32), ("digest_verified", ctypes.c_bool), ("device_type", ctypes.c_char_p)]


@cache
def functions() -> ctypes.CDLL:
    """The library with the prototypes of the host functions set."""
    lib = library()
    pointer, size, u32, result = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_uint32, ctypes.POINTER(ctypes.c_uint32)
    for name, returns, *arguments in (
        ("fl_host_isa", u32),
        ("fl_host_plan", pointer, pointer, size, ctypes.POINTER(Machine), result),
        ("fl_host_plan_free", None, pointer),
        ("fl_arena_bytes", size, pointer, u32),
        ("fl_host_team", pointer, u32),
        ("fl_host_team_free", None, pointer),
        ("fl_host_context", pointer, pointer, pointer, size, pointer, result),
        ("fl_host_context_free", None, pointer),
        ("fl_host_run", ctypes.c_int, pointer, pointer),
        ("fl_host_begin", ctypes.c_int, pointer, pointer),
        ("fl_host_steps", ctypes.c_int, pointer, u32, u32, pointer),
        ("fl_host_failed_step", u32, pointer),
        ("fl_host_attach", ctypes.c_int, pointer, u32, pointer),
        ("fl_host_message", ctypes.c_char_p, pointer),
        ("fl_host_counters", ctypes.c_int, pointer, u32, pointer),
        ("fl_host_peek", ctypes.c_int, pointer, u32, ctypes.c_bool, ctypes.c_uint64, pointer, ctypes.c_uint64),
    ):
        function = getattr(lib, name)
        function.restype, function.argtypes = returns, arguments
    return lib
