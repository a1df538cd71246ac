"""Chips through the C interface: attaching adapters, and what the simulator says about launches that no plan can ask for."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator

import numpy as np
import pytest

from flaot.ir.types import TensorType
from flaot.plan.fields import kernel_id
from flaot.plan.program import View
from flaot.runtime.capi import NativeContext, NativePlan, aligned, functions
from flaot.runtime.native import CTensor, c_tensor
from tests.plan.devices import F16, conv_on_chip, on_chip
from tests.plan.programs import plan_of

MISSING, STATE = 0x202, 0x305
DEVICE_MEMORY, TRAP_ALIGN, TRAP_ADDRESS, TRAP_MEMORY = 0x204, 0x280, 0x281, 0x288

POINTER, U32, U64, SIZE = ctypes.c_void_p, ctypes.c_uint32, ctypes.c_uint64, ctypes.c_size_t


class CChip(ctypes.Structure):
    """``fl_chip``."""

    _fields_ = [
        ("name", ctypes.c_char_p), ("device_type", ctypes.c_char_p), ("alignment", U32), ("max_rank", U32), ("max_batch", U32),
        ("max_sequence", U32), ("max_attention", U32), ("dtypes", U32), ("rounding", U32), ("flush", ctypes.c_bool), ("layout_count", U32),
        ("layouts", POINTER), ("head_count", U32), ("heads", POINTER), ("on_chip", U64), ("channels", U32), ("queues", U32),
        ("zero_copy", ctypes.c_bool), ("unit_count", U32), ("units", POINTER * 32),
    ]


class CCommand(ctypes.Structure):
    """``fl_command``."""

    _fields_ = [("step", U32), ("queue", U32), ("waits", POINTER), ("wait_count", U32), ("work", U64)]


class CCounters(ctypes.Structure):
    """``fl_counters``."""

    _fields_ = [(name, U64) for name in (
        "launches", "dmas", "copies", "bytes_in", "bytes_out", "bytes_to_device", "bytes_from_device", "on_chip_peak", "nanoseconds",
    )]


class CLaunch(ctypes.Structure):
    """``fl_launch``."""

    _fields_ = [
        ("command", CCommand), ("kernel", U32), ("unit", ctypes.c_char_p), ("batch", U32), ("sequence", U32), ("heads", U32),
        ("t", POINTER),
        ("address", POINTER), ("n_in", U32), ("n_out", U32), ("params", POINTER), ("params_size", SIZE), ("scratch_size", SIZE),
    ]


class CAdapter(ctypes.Structure):
    """``fl_adapter``."""

    _fields_ = [
        ("abi", U32), ("device_type", ctypes.c_char_p), ("name", ctypes.c_char_p), ("version", ctypes.c_char_p), ("self", POINTER),
        ("open", ctypes.CFUNCTYPE(ctypes.c_int, POINTER, ctypes.POINTER(CChip), ctypes.POINTER(POINTER))),
        ("alloc", ctypes.CFUNCTYPE(ctypes.c_int, POINTER, ctypes.c_int, U64, U32, ctypes.POINTER(U64))),
        ("copy", ctypes.CFUNCTYPE(ctypes.c_int, POINTER, POINTER, ctypes.c_int, U64, POINTER, U64)),
        ("dma", ctypes.CFUNCTYPE(ctypes.c_int, POINTER, POINTER)),
        ("launch", ctypes.CFUNCTYPE(ctypes.c_int, POINTER, ctypes.POINTER(CLaunch))),
        ("sync", ctypes.CFUNCTYPE(ctypes.c_int, POINTER)),
        ("close", ctypes.CFUNCTYPE(None, POINTER)),
        ("message", ctypes.CFUNCTYPE(ctypes.c_char_p, POINTER)),
        ("counters", ctypes.CFUNCTYPE(None, POINTER, ctypes.POINTER(CCounters))),
    ]


class Simulator:
    """The simulator opened as a chip with an alignment of 256 that takes float16, a DMA channel, 1024 bytes on chip, and 4096 bytes of its
    memory."""

    def __init__(self, on_chip: int = 1024) -> None:
        self.adapter = CAdapter.in_dll(functions(), "fl_npu_sim")
        self.chip = CChip(b"NPU-V3", b"npu_v3", 256, dtypes=1 << 10, on_chip=on_chip, channels=1, queues=2)
        self.device, address = POINTER(), U64()
        assert self.adapter.open(None, ctypes.byref(self.chip), ctypes.byref(self.device)) == 0
        assert self.adapter.alloc(self.device, 0, 4096, 256, ctypes.byref(address)) == 0
        self.memory = address.value

    def launch(self, x: View, y: View, shift: int = 0) -> int:
        """Copies x to y, both ``shift`` bytes behind their places."""
        tensors = [c_tensor(v) for v in (x, y)]
        refs = (ctypes.POINTER(CTensor) * 2)(*[ctypes.pointer(t) for t in tensors])
        addresses = (U64 * 2)(*[self.memory + (v.buffer.offset or 0) + v.offset + shift for v in (x, y)])
        at = {"t": ctypes.addressof(refs), "address": ctypes.addressof(addresses)}
        waits = (U32 * 1)(6)
        job = CLaunch(CCommand(7, 0, ctypes.addressof(waits), 1), kernel_id("copy", "generic"), b"dma", n_in=1, n_out=1, **at)
        return int(self.adapter.launch(self.device, ctypes.byref(job)))

    def store(self, offset: int, data: np.ndarray) -> None:
        """A transfer to the chip before the launch, on the last queue."""
        command = CCommand(6, 1)
        at = self.memory + offset
        assert self.adapter.copy(self.device, ctypes.addressof(command), 0, at, data.ctypes.data, data.nbytes) == 0

    def message(self) -> str:
        return str(self.adapter.message(self.device).decode())


@pytest.fixture
def simulator() -> Iterator[Simulator]:
    found = Simulator()
    yield found
    found.adapter.close(found.device)


def eight(offset: int) -> View:
    return on_chip(offset, TensorType(F16, (8,)))


def test_memory_is_aligned_and_bytes_come_back(simulator: Simulator) -> None:
    assert simulator.memory % 256 == 0
    data, back = np.arange(8, dtype=np.float16), np.zeros(8, np.float16)
    simulator.store(0, data)
    assert simulator.launch(eight(0), eight(256)) == 0 and simulator.message() == ""
    assert simulator.adapter.copy(simulator.device, None, 1, simulator.memory + 256, back.ctypes.data, 16) == 0
    assert back.tolist() == list(range(8))


def test_alignment_is_trapped(simulator: Simulator) -> None:
    assert simulator.launch(eight(0), eight(256), shift=64) == TRAP_ALIGN
    found = simulator.memory + 64
    assert simulator.message() == f"alignment: operand 0 of step 7 on unit dma at {found:#x} is not a multiple of 256"


def test_addresses_outside_the_memory_are_trapped(simulator: Simulator) -> None:
    for offset in (4096, 8192, 1 << 40):
        assert simulator.launch(eight(0), eight(offset)) == TRAP_ADDRESS
        assert simulator.message() == f"address: an operand at {simulator.memory + offset:#x} leaves the chip's memory"
    wide = on_chip(3840, TensorType(F16, (129,)))
    assert simulator.launch(wide, eight(0)) == TRAP_ADDRESS
    byte = np.zeros(1, np.uint8)
    for direction in (0, 1):
        assert simulator.adapter.copy(simulator.device, None, direction, simulator.memory + 4096, byte.ctypes.data, 1) == TRAP_ADDRESS
        assert simulator.adapter.copy(simulator.device, None, direction, simulator.memory - 1, byte.ctypes.data, 1) == TRAP_ADDRESS


def test_on_chip_memory_is_as_large_as_the_chip_s(simulator: Simulator) -> None:
    address = U64()
    assert simulator.adapter.alloc(simulator.device, 1, 1025, 256, ctypes.byref(address)) == TRAP_MEMORY
    assert simulator.message() == "on_chip: the plan uses 1025 bytes, the chip has 1024"
    assert simulator.adapter.alloc(simulator.device, 1, 768, 256, ctypes.byref(address)) == 0 and simulator.message() == ""
    assert simulator.adapter.alloc(simulator.device, 1, 512, 256, ctypes.byref(address)) == TRAP_MEMORY
    assert simulator.message() == "on_chip: the plan uses 1280 bytes, the chip has 1024"


def test_a_simulated_scratchpad_is_filled_with_ones_and_kept_within_reason() -> None:
    large = Simulator()
    address, back = U64(), np.zeros(768, np.uint8)
    assert large.adapter.alloc(large.device, 1, 768, 256, ctypes.byref(address)) == 0
    assert large.adapter.copy(large.device, None, 1, address.value, back.ctypes.data, 768) == 0
    assert (back == 0xFF).all()
    large.adapter.close(large.device)
    huge = Simulator(on_chip=1 << 40)
    assert huge.adapter.alloc(huge.device, 1, 1 << 31, 256, ctypes.byref(address)) == DEVICE_MEMORY
    assert huge.message() == f"on_chip: the simulator has at most {1 << 30} bytes, the plan uses {1 << 31}"
    huge.adapter.close(huge.device)


def test_a_step_on_a_chip_without_an_adapter() -> None:
    data = plan_of(conv_on_chip())
    room = aligned(len(data), 4096)[: len(data)]
    room[:] = np.frombuffer(data, np.uint8)
    lib, plan = functions(), NativePlan(room)
    context = NativeContext(plan, 256, 1)
    x, y = np.zeros(9, np.float16), np.zeros(4, np.float16)
    ports = (POINTER * 2)(x.ctypes.data, y.ctypes.data)
    assert lib.fl_host_run(context.pointer, ctypes.addressof(ports)) == MISSING
    assert lib.fl_host_attach(context.pointer, 0, None) == MISSING and lib.fl_host_attach(context.pointer, 2, None) == MISSING
    assert lib.fl_host_attach(context.pointer, 1, None) == 0
    assert lib.fl_host_attach(context.pointer, 1, None) == STATE
    assert lib.fl_host_run(context.pointer, ctypes.addressof(ports)) == 0
