"""Calling a single kernel through ctypes."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

import numpy as np

from flaot.errors import InternalError
from flaot.plan.program import View
from flaot.runtime.library import library, library_path, status_text

MAX_RANK = 8

__all__ = ["call_kernel", "c_tensor", "library", "library_path", "status_text"]


class CTensor(ctypes.Structure):
    """``fl_tensor`` of kernel.h."""

    _fields_ = [
        ("dtype", ctypes.c_uint8),
        ("rank", ctypes.c_uint8),
        ("space", ctypes.c_uint8),
        ("port", ctypes.c_uint8),
        ("window", ctypes.c_uint32),
        ("offset", ctypes.c_uint64),
        ("dims", ctypes.c_int32 * MAX_RANK),
        ("strides", ctypes.c_int32 * MAX_RANK),
    ]


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
