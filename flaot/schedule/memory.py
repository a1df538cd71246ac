"""Offsets in one memory: buffers with lifetimes packed so that those alive together do not overlap.

The live-size lower bound of a step order is the largest sum of (aligned) sizes alive at one step. Several deterministic greedy orders
are tried, then a search (:mod:`flaot.schedule.search`) for what they leave above the bound.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from flaot.schedule.search import Outcome, Search

SEARCHED = 2_000
"""Above this many buffers only the greedy orders are tried when no effort is given."""

PLAN_EFFORT, FIT_EFFORT = 16, 4
"""Nodes of search for each block when no effort is given."""


@dataclass(frozen=True)
class Block:
    """A buffer to place: bytes (a multiple of the alignment) and the first and last step it is needed in."""

    size: int
    start: int
    end: int


def align_up(n: int, alignment: int) -> int:
    """The smallest multiple of ``alignment`` not below ``n``."""
    return -(-n // alignment) * alignment


def lower_bound(blocks: Sequence[Block]) -> int:
    """Largest sum of sizes alive at one step, in bytes."""
    if not blocks:
        return 0
    change: dict[int, int] = {}
    for b in blocks:
        change[b.start] = change.get(b.start, 0) + b.size
        change[b.end + 1] = change.get(b.end + 1, 0) - b.size
    live = top = 0
    for _, delta in sorted(change.items()):
        live += delta
        top = max(top, live)
    return top


class _Neighbours:
    """For each block, the blocks alive at the same time as it: rows computed once, in numpy, on first use."""

    def __init__(self, blocks: Sequence[Block]) -> None:
        self.sizes = [b.size for b in blocks]
        self._start = np.array([b.start for b in blocks], np.int64)
        self._end = np.array([b.end for b in blocks], np.int64)
        self._rows: list[list[int] | None] = [None] * len(blocks)

    def of(self, i: int) -> list[int]:
        row = self._rows[i]
        if row is None:
            alive = (self._start <= self._end[i]) & (self._end >= self._start[i])
            row = self._rows[i] = np.flatnonzero(alive).tolist()
        return row


def _place_in_order(near: _Neighbours, order: Sequence[int]) -> list[int]:
    """Each block of ``order`` at the lowest offset where it fits between those placed before it; offsets in bytes."""
    sizes = near.sizes
    offsets = [-1] * len(sizes)
    for i in order:
        taken = sorted((offsets[j], offsets[j] + sizes[j]) for j in near.of(i) if offsets[j] >= 0)
        offsets[i] = _first_gap(taken, sizes[i])
    return offsets


def _first_gap(taken: list[tuple[int, int]], size: int) -> int:
    at = 0
    for low, high in taken:
        if low - at >= size:
            return at
        at = max(at, high)
    return at


_KEYS: tuple[Callable[[Block], tuple[int, ...]], ...] = (
    lambda b: (-b.size, b.start),
    lambda b: (-b.size * (b.end - b.start + 1), b.start),
    lambda b: (-(b.end - b.start), -b.size, b.start),
    lambda b: (b.start, -b.size),
    lambda b: (-b.end, -b.size),
)


def size_of(blocks: Sequence[Block], offsets: Sequence[int]) -> int:
    """The bytes a placement takes: where the highest block ends."""
    return max((o + b.size for o, b in zip(offsets, blocks, strict=True)), default=0)


def greedy(blocks: Sequence[Block], enough: int = 0) -> tuple[list[int], int]:
    """Offsets and size by the best of the greedy orders; the first that takes no more than ``enough`` bytes will do."""
    near = _Neighbours(blocks)
    best: list[int] = []
    lowest = -1
    for key in _KEYS:
        offsets = _place_in_order(near, sorted(range(len(blocks)), key=lambda i: (key(blocks[i]), i)))
        size = size_of(blocks, offsets)
        if lowest < 0 or size < lowest:
            best, lowest = offsets, size
        if lowest <= enough:
            break
    return best, lowest


def plan(blocks: Sequence[Block], effort: int | None = None) -> tuple[list[int], int]:
    """Offsets and the size of the memory in bytes: by the greedy orders, and where these leave a gap above the bound, by search.

    ``effort`` is how many nodes the search may visit, without it a few for each block. It is counted, not timed, so that plans do not
    depend on the machine.
    """
    bound = lower_bound(blocks)
    offsets, size = greedy(blocks, bound)
    if size <= bound:
        return offsets, size
    return _narrow_down(blocks, offsets, bound, _nodes(blocks, PLAN_EFFORT) if effort is None else effort)


def fit(blocks: Sequence[Block], capacity: int, alignment: int = 1, effort: int | None = None) -> list[int] | None:
    """Offsets, multiples of the alignment, with which all blocks end at or below ``capacity`` bytes; None when none were found.

    By search, without ``effort`` (as for :func:`plan`) a quick one, then by the greedy orders.
    """
    wanted = [Block(align_up(b.size, alignment), b.start, b.end) for b in blocks]
    if lower_bound(wanted) > capacity:
        return None
    nodes = _nodes(wanted, FIT_EFFORT) if effort is None else effort
    if nodes:
        found = _search(wanted).within(capacity, nodes)
        if found.outcome is not Outcome.ENDED:
            return found.offsets
    offsets, size = greedy(wanted, capacity)
    return offsets if size <= capacity else None


def _nodes(blocks: Sequence[Block], each: int) -> int:
    return each * len(blocks) if len(blocks) <= SEARCHED else 0


def _search(blocks: Sequence[Block]) -> Search:
    return Search([b.size for b in blocks], [b.start for b in blocks], [b.end for b in blocks])


def _narrow_down(blocks: Sequence[Block], best: list[int], bound: int, effort: int) -> tuple[list[int], int]:
    """Searches at the bound, then halfway between what did not fit and what did, each time with a quarter of the effort that is left."""
    search, size = _search(blocks), size_of(blocks, best)
    low, capacity = bound - 1, bound
    while low < capacity < size and effort > 0:
        found = search.within(capacity, -(-effort // 4))
        effort -= found.nodes
        if found.offsets is None:
            low = capacity
        else:
            best, size = found.offsets, size_of(blocks, found.offsets)
        capacity = (low + size) // 2 // search.unit * search.unit
    return best, size
