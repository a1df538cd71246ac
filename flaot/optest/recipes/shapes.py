"""Shapes that limits suggest, for operators that take any."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from flaot.optest.limits import Limits

LARGE = 1 << 20
"""Bytes of on-chip memory from which filling it takes so long that only some operators do."""
FILLING = frozenset({
    "Add", "AveragePool", "Concat", "Conv", "Gemm", "LayerNormalization", "MatMul", "MaxPool", "ReduceSum", "Relu", "Softmax", "Transpose",
})  # fmt: skip
"""Operators that fill a large on-chip memory, one at least of each way to be cut into tiles."""


@dataclass(frozen=True)
class Shape:
    """A tensor's sizes, and what the case is about."""

    name: str
    dims: tuple[int, ...]
    layout: str = ""
    slow: bool = False


def shapes(operator: str, limits: Limits, rank: int = 1) -> Iterator[Shape]:
    """Shapes of at least this rank."""
    if limits.max_rank >= 4:
        yield Shape("typical/image", (1, 8, 7, 6))
    yield Shape("typical/rows", (12, 40) if rank < 3 else (2, 12, 40))
    yield Shape(f"boundary/rank_{limits.max_rank}", (2, 3, 2, 3, 2, 3, 2, 3)[: limits.max_rank])
    yield Shape("boundary/odd_sizes", (3, 5, 7))
    yield Shape("boundary/one_element", (1,) * rank)
    yield Shape("boundary/unaligned", (*(1,) * (rank - 2), 3, limits.awkward))
    if limits.max_rank >= 4:
        for layout in limits.layouts:
            yield Shape(f"boundary/layout_{layout}", (2, 5, 3, 4), layout)
    yield from filling(operator, limits, rank)


def filling(operator: str, limits: Limits, rank: int = 1, rows: int = 1 << 20) -> Iterator[Shape]:
    """A tensor that fills the on-chip memory alone, and one that does not fit; of rank 2 with so many ``rows`` at most."""
    if limits.on_chip > LARGE and operator not in FILLING:
        return
    for name, size in (("fills_memory", limits.on_chip), ("beyond_memory", limits.on_chip * 3 // 2)):
        count = size // limits.element
        columns = max(96, count // rows)
        pixels = count // 16
        height = next(h for h in range(math.isqrt(pixels), 0, -1) if pixels % h == 0)
        dims = {1: (count,), 2: (count // columns, columns)}.get(rank, (1, 16, height, pixels // height))
        yield Shape(f"boundary/{name}", dims, slow=limits.on_chip > LARGE)
