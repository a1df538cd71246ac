"""On-chip memory over time, where places are used again and written in strips."""

from __future__ import annotations

from flaot.ir.types import DType, TensorType
from flaot.plan.program import Buffer, Space, Step, View
from flaot.plan.scratchpad import Held, on_chip_held, on_chip_use
from flaot.plan.timeline import Span, Timeline

BYTES = DType.uint8


def place(offset: int, size: int) -> View:
    return View.dense(Buffer(Space.on_chip, 64, index=1), TensorType(BYTES, (offset + size,))).slice(0, offset, size)


Given = tuple[list[View], list[View]]


def run(steps: tuple[Given, ...]) -> tuple[list[Step], Timeline]:
    """Steps that take 10 each, one after the other."""
    made = [Step("", "", tuple(reads), tuple(writes), device=1) for reads, writes in steps]
    return made, Timeline([Span(i, 1, 0, 0, 10 * i, 10 * i + 10) for i in range(len(made))])


def in_use(*steps: Given) -> list[tuple[int, int]]:
    return on_chip_use(*run(steps), 1)


def held(*steps: Given) -> list[Held]:
    return on_chip_held(*run(steps), 1)


def test_a_place_used_again_is_free_between() -> None:
    steps = ([], [place(0, 8)]), ([place(0, 8)], []), ([], []), ([], [place(0, 8)])
    assert in_use(*steps) == [(0, 8), (20, 0), (30, 8), (40, 0)]
    assert held(*steps) == [Held(0, 8, 0, 20, 0), Held(0, 8, 30, 40, 3)]


def test_part_of_a_place_used_again_leaves_the_rest() -> None:
    steps = ([], [place(0, 8)]), ([place(0, 8)], []), ([], [place(4, 8)]), ([place(0, 12)], [])
    assert in_use(*steps) == [(0, 8), (20, 12), (40, 0)]
    assert held(*steps) == [Held(0, 4, 0, 40, 0), Held(4, 8, 0, 20, 0), Held(4, 12, 20, 40, 2)]


def test_in_place_counts_once() -> None:
    assert in_use(([], [place(0, 8)]), ([place(0, 8)], [place(0, 8)])) == [(0, 8), (20, 0)]


def test_strips_of_a_tensor_live_together() -> None:
    left, right = (View.dense(Buffer(Space.on_chip, 64, index=1), TensorType(BYTES, (2, 4))).slice(1, i, 2) for i in (0, 2))
    assert in_use(([], [left]), ([], [right]), ([place(0, 8)], [])) == [(0, 6), (10, 8), (30, 0)]
