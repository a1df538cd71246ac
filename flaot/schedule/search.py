"""Offsets below a capacity by search: what heuristics leave open, decided in the native library (``csrc/pack.h``).

The search counts the nodes it visits, not seconds, so its answer is the same on every machine.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import IntEnum
from functools import cache

import numpy as np

from flaot.runtime.library import library


class Outcome(IntEnum):
    """What a search came to (``fl_pack_result``): there is no solution, here is one, the nodes were spent before either was known, or the
    machine's memory was."""

    NONE = 0
    FITS = 1
    ENDED = 2
    MEMORY = 3


@dataclass(frozen=True)
class Found:
    """``offsets`` (bytes) when the outcome is ``FITS``; ``nodes`` is how many were visited."""

    outcome: Outcome
    offsets: list[int] | None
    nodes: int


class Search:
    """Blocks of the given sizes, alive from one step to another, both inclusive; any capacity may be asked of them.

    ``unit`` divides all sizes and with them the offsets, in bytes.
    """

    def __init__(self, sizes: Sequence[int], starts: Sequence[int], ends: Sequence[int]) -> None:
        exact = np.array(sizes, np.int64)
        self._count, self._filled = len(exact), np.flatnonzero(exact)
        exact, first, last = (np.array(a, np.int64)[self._filled] for a in (exact, starts, ends))
        self.unit = max(1, int(np.gcd.reduce(exact)))
        self._sizes = exact // self.unit
        moments = _moments(first, last)
        self._first = np.searchsorted(moments, first).astype(np.uint32)
        self._last = (np.searchsorted(moments, last, "right") - 1).astype(np.uint32)

    def within(self, capacity: int, nodes: int) -> Found:
        """Looks for offsets with which every block ends at or below ``capacity`` bytes, visiting ``nodes`` nodes at most.

        Raises MemoryError when the search does not get the memory it needs.
        """
        if not len(self._sizes):
            return Found(Outcome.FITS, [0] * self._count, 0)
        offsets, spent, outcome = np.zeros(len(self._sizes), np.int64), ctypes.c_uint64(), Outcome.ENDED
        with self._opened(capacity // self.unit, nodes) as problem:
            while outcome is Outcome.ENDED and spent.value < nodes:
                outcome = Outcome(_functions().fl_pack_advance(problem, offsets.ctypes.data, ctypes.byref(spent)))
        if outcome is Outcome.MEMORY:
            raise MemoryError
        return Found(outcome, self._all(offsets) if outcome is Outcome.FITS else None, spent.value)

    @contextmanager
    def _opened(self, capacity: int, nodes: int) -> Iterator[int]:
        arrays = (a.ctypes.data for a in (self._sizes, self._first, self._last))
        problem = _functions().fl_pack_open(len(self._sizes), *arrays, capacity, nodes)
        if not problem:
            raise MemoryError
        try:
            yield problem
        finally:
            _functions().fl_pack_close(problem)

    def _all(self, offsets: np.ndarray) -> list[int]:
        """Offsets in bytes of all blocks; empty ones are at 0."""
        every = np.zeros(self._count, np.int64)
        every[self._filled] = offsets * self.unit
        found: list[int] = every.tolist()
        return found


def _moments(first: np.ndarray, last: np.ndarray) -> np.ndarray:
    """Steps in which a largest set of blocks is alive: last steps of blocks, when another has started since the one before."""
    ends = np.unique(last)
    started = np.searchsorted(np.unique(first), ends, "right")
    found: np.ndarray = ends[np.diff(started, prepend=0) > 0]
    return found


@cache
def _functions() -> ctypes.CDLL:
    """The library with the prototypes of ``pack.h`` set."""
    lib, pointer = library(), ctypes.c_void_p
    lib.fl_pack_open.restype = pointer
    lib.fl_pack_open.argtypes = [ctypes.c_uint32, pointer, pointer, pointer, ctypes.c_int64, ctypes.c_uint64]
    lib.fl_pack_advance.restype = ctypes.c_int
    lib.fl_pack_advance.argtypes = [pointer, pointer, pointer]
    lib.fl_pack_close.restype = None
    lib.fl_pack_close.argtypes = [pointer]
    return lib
