"""Offsets in one arena: buffers with lifetimes packed so that those alive together do not overlap.

The live-size lower bound of a step order is the largest sum of (aligned) sizes alive at one step. Several deterministic greedy orders
are tried, then the buffers at the peak are moved forward in the order until the bound is met or the budget of placements is spent.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

BUDGET = 400_000
"""Buffer placements the search may try; counted, not timed, so that plans do not depend on the machine."""


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
    change = np.zeros(max(b.end for b in blocks) + 2, np.int64)
    for b in blocks:
        change[b.start] += b.size
        change[b.end + 1] -= b.size
    return int(np.cumsum(change).max())


def place_in_order(blocks: Sequence[Block], order: Sequence[int]) -> np.ndarray:
    """Each block of ``order`` at the lowest offset where it fits between those placed before it; offsets in bytes."""
    n = len(blocks)
    offsets = np.zeros(n, np.int64)
    start, end, low, high = (np.zeros(n, np.int64) for _ in range(4))
    for k, i in enumerate(order):
        b = blocks[i]
        live = np.flatnonzero((start[:k] <= b.end) & (end[:k] >= b.start))
        live = live[np.argsort(low[live], kind="stable")]
        at = _first_gap(low[live].tolist(), high[live].tolist(), b.size)
        offsets[i] = at
        start[k], end[k], low[k], high[k] = b.start, b.end, at, at + b.size
    return offsets


def _first_gap(low: list[int], high: list[int], size: int) -> int:
    at = 0
    for lo, hi in zip(low, high, strict=True):
        if lo - at >= size:
            return at
        at = max(at, hi)
    return at


def peak(blocks: Sequence[Block], offsets: np.ndarray) -> int:
    """Bytes of arena that a placement needs."""
    return max((int(offsets[i]) + b.size for i, b in enumerate(blocks)), default=0)


_KEYS: tuple[Callable[[Block], tuple[int, ...]], ...] = (
    lambda b: (-b.size, b.start),
    lambda b: (-b.size * (b.end - b.start + 1), b.start),
    lambda b: (-(b.end - b.start), -b.size, b.start),
    lambda b: (b.start, -b.size),
    lambda b: (-b.end, -b.size),
)


def plan(blocks: Sequence[Block]) -> tuple[np.ndarray, int]:
    """Offsets and the arena size in bytes."""
    if not blocks:
        return np.zeros(0, np.int64), 0
    bound = lower_bound(blocks)
    best_order: list[int] = []
    best, lowest = np.zeros(len(blocks), np.int64), -1
    for key in _KEYS:
        order = sorted(range(len(blocks)), key=lambda i: (key(blocks[i]), i))
        offsets = place_in_order(blocks, order)
        size = peak(blocks, offsets)
        if lowest < 0 or size < lowest:
            best, lowest, best_order = offsets, size, order
        if lowest == bound:
            return best, lowest
    return _improve(blocks, best_order, best, lowest, bound)


def _improve(blocks: Sequence[Block], order: list[int], best: np.ndarray, lowest: int, bound: int) -> tuple[np.ndarray, int]:
    """Moves blocks that reach the peak to the front (or a deterministic pseudo-random place) of the order while it helps."""
    rounds = max(0, BUDGET // (len(blocks) * max(1, len(blocks) // 200)))
    rng = np.random.RandomState(1)
    current, offsets = list(order), best
    for _ in range(min(rounds, 2000)):
        if lowest == bound:
            break
        tops = [i for i, b in enumerate(blocks) if int(offsets[i]) + b.size > bound]
        if not tops:
            break
        moved = tops[rng.randint(len(tops))]
        trial = [i for i in current if i != moved]
        trial.insert(rng.randint(trial.index(trial[-1]) + 1) if rng.randint(3) == 0 else 0, moved)
        placed = place_in_order(blocks, trial)
        size = peak(blocks, placed)
        if size <= peak(blocks, offsets):
            current, offsets = trial, placed
        if size < lowest:
            best, lowest = placed, size
    return best, lowest
