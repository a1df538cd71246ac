"""Attention at the unit's heads and lengths."""

from __future__ import annotations

from collections.abc import Iterator

from flaot.optest.case import Case, Tensor
from flaot.optest.limits import Limits
from flaot.optest.recipes import recipe

WORK = 1 << 21
"""Products of scores a case may need; a longer sequence is tried with fewer queries."""


@recipe("Attention")
def attention(op: str, limits: Limits) -> Iterator[Case]:
    """Every number of heads, the longest sequence, a mask, and causality."""
    def case(
        name: str, heads: int, length: int = 8, depth: int = 8, keys: int = 0, batch: int = 1, stored: str = "", **attributes: int
    ) -> Case:
        keys = keys or length
        q = Tensor((batch, heads, length, depth))
        kv = Tensor((batch, heads, keys, depth))
        return Case(name, op, (q, kv, kv), attributes, opset=23, stored=stored)

    for heads in limits.heads:
        yield case(f"typical/heads_{heads}", heads)
    few = limits.heads[0]
    yield case("typical/causal", few, is_causal=1)
    yield case("boundary/odd_sizes", few, 7, 5, 11)
    longest = limits.attention
    yield case(f"boundary/sequence_{longest}", few, max(1, min(longest, WORK // longest // 8)), 4, longest)
    yield case(f"boundary/batch_{limits.max_batch}", few, 2, 4, batch=limits.max_batch)
    for stored in limits.floats[1:]:
        yield case(f"precision/in_{stored}", few, stored=stored)
