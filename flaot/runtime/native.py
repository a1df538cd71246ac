"""The native library through ctypes: loading it and calling a single kernel."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import numpy as np

from flaot.errors import DependencyError, InternalError
from flaot.plan.program import View

MAX_RANK = 8


class CTensor(ctypes.Structure):
    """``fl_tensor`` of kernel.h."""

    _fields_ = [
        ("dtype", ctypes.c_uint8),
        ("rank", ctypes.c_uint8),
        ("space", ctypes.c_uint8),
        ("port", ctypes.c_uint8),
        ("reserved", ctypes.c_uint32),
        ("offset", ctypes.c_uint64),
        ("dims", ctypes.c_int32 * MAX_RANK),
        ("strides", ctypes.c_int32 * MAX_RANK),
    ]


def library_path() -> Path:
    """Where the native library is expected; the environment variable FLAOT_LIBRARY overrides it."""
    return Path(os.environ.get("FLAOT_LIBRARY", Path(__file__).parent / "lib" / "libflaot.so"))


@cache
def library() -> ctypes.CDLL:
    """The loaded library. Raises DependencyError when it is missing or does not load."""
    path = library_path()
    try:
        lib = ctypes.CDLL(str(path))
    except OSError as e:
        raise DependencyError(f"the native library does not load: {e}", hint="reinstall flaot, or run 'make native' in a checkout") from e
    lib.fl_status_text.restype = ctypes.c_char_p
    lib.fl_status_text.argtypes = [ctypes.c_int]
    return lib


def status_text(status: int) -> str:
    """The runtime's sentence for a status code."""
    text: bytes = library().fl_status_text(status)
    return text.decode()


def c_tensor(view: View) -> CTensor:
    """A view as the record kernels see."""
    rank = len(view.dims)
    pad = [0] * (MAX_RANK - rank)
    array = ctypes.c_int32 * MAX_RANK
    return CTensor(int(view.dtype), rank, int(view.buffer.space), 0, 0, view.offset, array(*view.dims, *pad), array(*view.strides, *pad))


def call_kernel(
    kernel_id: int, inputs: Sequence[View], outputs: Sequence[View], memory: dict[int, np.ndarray], params: bytes, scratch: int,
    parts: int = 1,
) -> int:
    """Checks and runs one kernel; ``memory`` maps ``id(buffer)`` to the uint8 array holding its bytes. Returns the status code."""
    views = [*inputs, *outputs]
    if len(views) > 32:
        raise InternalError(f"kernel call with {len(views)} operands")
    tensors = [c_tensor(v) for v in views]
    refs = (ctypes.POINTER(CTensor) * len(views))(*[ctypes.pointer(t) for t in tensors])
    base = [memory[id(v.buffer)].ctypes.data + v.offset for v in views]
    pointers = (ctypes.c_void_p * len(views))(*base)
    room = np.zeros(scratch + 64, np.uint8)
    skip = -room.ctypes.data % 64
    blob = ctypes.create_string_buffer(params, max(len(params), 1))
    status: int = library().fl_host_call(
        ctypes.c_uint32(kernel_id), refs, pointers, ctypes.c_uint32(len(inputs)), ctypes.c_uint32(len(outputs)), blob,
        ctypes.c_size_t(len(params)), ctypes.c_void_p(room.ctypes.data + skip), ctypes.c_size_t(scratch), ctypes.c_uint32(parts),
    )
    return status
