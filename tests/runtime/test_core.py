"""The C interface called with wrong, tight and dirty memory."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator

import numpy as np
import pytest

from flaot.plan.program import Program
from flaot.runtime.capi import Machine, NativePlan, aligned, functions
from flaot.runtime.runner import Runner
from flaot.runtime.session import Session
from tests.plan.programs import plan_of, seal, softmax_of_constant, two_softmaxes

NULL, ALIGN, ARENA, PORT, OVERLAP, STATE = range(0x300, 0x306)


class Core:
    """The C functions on one plan, with a context in memory of our own."""

    def __init__(self, program: Program) -> None:
        self.lib = ctypes.CDLL(functions()._name)
        for name in ("fl_arena_bytes", "fl_input_name"):
            getattr(self.lib, name).restype = ctypes.c_size_t
        data = plan_of(program)
        self.data = aligned(len(data), 4096)[: len(data)]
        self.data[:] = np.frombuffer(data, np.uint8)
        self.plan = NativePlan(self.data)
        assert self.plan.status == 0
        self.handle = ctypes.c_void_p(self.plan.pointer)
        self.need = int(self.lib.fl_arena_bytes(self.handle, 1))
        self.context = np.full(4096, 0xAA, np.uint8)

    def init(self, arena: np.ndarray, shift: int = 0, size: int | None = None) -> int:
        at, size = ctypes.c_void_p(arena.ctypes.data + shift), self.need if size is None else size
        return int(self.lib.fl_context_init(at_of(self.context), self.handle, at, ctypes.c_size_t(size), None))

    def set(self, kind: str, index: int, array: np.ndarray, shift: int = 0, size: int | None = None) -> int:
        function = getattr(self.lib, f"fl_set_{kind}")
        at = ctypes.c_void_p(array.ctypes.data + shift)
        return int(function(at_of(self.context), index, at, ctypes.c_size_t(array.nbytes if size is None else size)))

    def run(self) -> int:
        return int(self.lib.fl_run(at_of(self.context)))


def at_of(array: np.ndarray) -> ctypes.c_void_p:
    return ctypes.c_void_p(array.ctypes.data)


@pytest.fixture
def core() -> Iterator[Core]:
    made = Core(two_softmaxes())
    yield made
    assert (made.context[-8:] == 0xAA).all(), "fl_context has outgrown the room for it here"


X = np.random.default_rng(1).standard_normal((2, 8)).astype(np.float32)


def test_tight_arena(core: Core) -> None:
    arena = aligned(core.need + 64, 64)
    for size in range(core.need):
        assert core.init(arena, size=size) == ARENA
    for size in range(core.need, core.need + 64):
        assert core.init(arena, size=size) == 0
    for shift in range(1, 64):
        assert core.init(arena, shift) == ALIGN
    assert core.lib.fl_context_init(at_of(core.context), core.handle, None, ctypes.c_size_t(core.need), None) == NULL
    assert core.init(core.data, size=core.need) == OVERLAP


def test_uninitialised_context(core: Core) -> None:
    assert core.run() == STATE
    assert core.set("input", 0, X) == STATE


def test_detaching_needs_no_plan(core: Core) -> None:
    """Whatever collects garbage may free the plan before the context."""
    assert core.init(aligned(core.need, 64)) == 0
    core.context[:8] = 0  # the pointer to the plan
    core.lib.fl_detach(at_of(core.context))


def test_ports(core: Core) -> None:
    y = np.zeros_like(X)
    assert core.init(aligned(core.need, 64)) == 0
    assert core.run() == PORT
    assert core.set("input", 0, X, size=63) == PORT and core.set("input", 0, X, size=65) == PORT
    assert core.set("input", 1, X) == PORT and core.set("output", 1, X) == PORT
    assert core.set("input", 0, X, shift=1) == ALIGN
    assert core.lib.fl_set_input(at_of(core.context), 0, None, ctypes.c_size_t(64)) == NULL
    assert core.set("input", 0, X) == 0
    assert core.run() == PORT
    assert core.set("output", 0, y) == 0
    assert core.run() == 0 and y.any()


def test_overlapping_ports(core: Core) -> None:
    arena, both = aligned(core.need, 64), np.zeros(31, np.float32)
    assert core.init(arena) == 0
    assert core.set("input", 0, both[:16]) == 0
    assert core.set("output", 0, both[15:]) == 0
    assert core.run() == OVERLAP
    assert core.set("output", 0, arena, size=64) == 0
    assert core.run() == OVERLAP
    assert core.set("output", 0, np.zeros(16, np.float32)) == 0
    assert core.set("input", 0, arena, size=64) == 0
    assert core.run() == OVERLAP


def test_plan_pointer_must_be_aligned() -> None:
    data = np.frombuffer(plan_of(two_softmaxes()), np.uint8)
    room = aligned(len(data) + 8, 64)
    for shift in range(1, 8):
        room[shift : shift + len(data)] = data
        assert NativePlan(room[shift : shift + len(data)]).status == ALIGN


def test_own_sha256_agrees_with_hashlib() -> None:
    lib, result, machine = functions(), (ctypes.c_uint32 * 2)(), Machine(0, False, None)
    data = plan_of(softmax_of_constant())
    for extra in range(0, 130):
        longer = bytearray(data + bytes(extra))
        longer[8:16] = len(longer).to_bytes(8, "little")
        for resealed, want in ((seal(bytes(longer)), 0x100 if extra else 0), (bytes(longer), 0x105 if extra else 0)):
            room = aligned(len(resealed), 64)[: len(resealed)]
            room[:] = np.frombuffer(resealed, np.uint8)
            pointer = lib.fl_host_plan(room.ctypes.data, room.nbytes, ctypes.byref(machine), result)
            assert result[0] == want, f"{extra} bytes appended"
            lib.fl_host_plan_free(pointer)


@pytest.mark.parametrize("threads", [1, 3])
def test_dirty_arena_gives_the_same_bytes(threads: int) -> None:
    session = Session(plan_of(two_softmaxes(40)), threads)
    x = np.random.default_rng(1).standard_normal((40, 8)).astype(np.float32)
    want = session.run({"x": x})[0]
    (runner,) = session._idle
    assert isinstance(runner, Runner)
    for fill in (0x00, 0xFF, 0x7F):
        runner._context.arena[...] = fill
        np.testing.assert_array_equal(session.run({"x": x})[0], want)


def test_nothing_is_written_behind_the_arena(core: Core) -> None:
    arena, y = aligned(core.need + 64, 64), np.zeros_like(X)
    arena[...] = 0x5A
    assert core.init(arena) == 0
    assert core.set("input", 0, X) == 0 and core.set("output", 0, y) == 0
    assert core.run() == 0
    assert (arena[core.need : core.need + 64] == 0x5A).all()
