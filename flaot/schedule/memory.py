"""Offsets in one arena: buffers with lifetimes packed so that those alive together do not overlap.

The live-size lower bound of a step order is the largest sum of (aligned) sizes alive at one step. Several deterministic greedy orders
are tried, then buffers that end above the bound are moved in the order until it is met or the budget of placements is spent.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

BUDGET = 40_000
"""Buffer placements the search may try; counted, not timed, so that plans do not depend on the machine."""

LARGE = 24
"""How many of the largest buffers may change sides."""

SEARCHED = 2_000
"""Above this many buffers only the greedy orders are tried."""


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


def _place_in_order(near: _Neighbours, order: Sequence[int], hung: frozenset[int] = frozenset(), ceiling: int = 0) -> list[int]:
    """Each block of ``order`` at the lowest offset where it fits between those placed before it; offsets in bytes.

    Blocks in ``hung`` go as high as they fit below ``ceiling`` instead, when they do.
    """
    sizes = near.sizes
    offsets = [-1] * len(sizes)
    for i in order:
        taken = sorted((offsets[j], offsets[j] + sizes[j]) for j in near.of(i) if offsets[j] >= 0)
        high = _last_gap(taken, sizes[i], ceiling) if i in hung else -1
        offsets[i] = high if high >= 0 else _first_gap(taken, sizes[i])
    return offsets


def _first_gap(taken: list[tuple[int, int]], size: int) -> int:
    at = 0
    for low, high in taken:
        if low - at >= size:
            return at
        at = max(at, high)
    return at


def _last_gap(taken: list[tuple[int, int]], size: int, ceiling: int) -> int:
    """The highest offset below the ceiling, -1 when there is none."""
    top = ceiling
    for low, high in sorted(taken, key=lambda t: -t[1]):
        if top - high >= size:
            break
        top = min(top, low)
    return top - size


def _peak(near: _Neighbours, offsets: Sequence[int]) -> int:
    return max((o + size for o, size in zip(offsets, near.sizes, strict=True)), default=0)


_KEYS: tuple[Callable[[Block], tuple[int, ...]], ...] = (
    lambda b: (-b.size, b.start),
    lambda b: (-b.size * (b.end - b.start + 1), b.start),
    lambda b: (-(b.end - b.start), -b.size, b.start),
    lambda b: (b.start, -b.size),
    lambda b: (-b.end, -b.size),
)


def plan(blocks: Sequence[Block]) -> tuple[list[int], int]:
    """Offsets and the arena size in bytes."""
    bound, near = lower_bound(blocks), _Neighbours(blocks)
    best: list[int] = []
    best_order: list[int] = []
    lowest = -1
    for key in _KEYS:
        order = sorted(range(len(blocks)), key=lambda i: (key(blocks[i]), i))
        offsets = _place_in_order(near, order)
        size = _peak(near, offsets)
        if lowest < 0 or size < lowest:
            best, lowest, best_order = offsets, size, order
        if lowest <= bound:
            return best, lowest
    return _improve(near, best_order, best, bound)


def _improve(near: _Neighbours, order: list[int], best: list[int], bound: int) -> tuple[list[int], int]:
    """Seeded search: a block that ends above the bound moves to the front, another to a random place, or a large one changes sides,
    hanging from the bound in place of standing on the floor; kept unless it hurts."""
    count = len(order)
    rounds = BUDGET // count if count <= SEARCHED else 0
    random = np.random.RandomState(1)
    large = sorted(range(count), key=lambda i: (-near.sizes[i], i))[:LARGE]
    hung: frozenset[int] = frozenset()
    offsets, size = best, _peak(near, best)
    lowest = size
    for _ in range(rounds):
        tops = [i for i in range(count) if offsets[i] + near.sizes[i] > bound]
        if not tops:
            break
        trial, sides = order, hung
        kind = random.randint(4)
        if kind == 0:
            sides = hung ^ {large[random.randint(len(large))]}
        else:
            moved = tops[random.randint(len(tops))]
            trial = [i for i in order if i != moved]
            trial.insert(random.randint(count) if kind == 1 else 0, moved)
        placed = _place_in_order(near, trial, sides, bound)
        reached = _peak(near, placed)
        if reached <= size:
            order, hung, offsets, size = trial, sides, placed, reached
        if reached < lowest:
            best, lowest = placed, reached
    return best, lowest
