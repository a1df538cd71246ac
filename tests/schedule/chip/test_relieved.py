"""What is taken out of on-chip memory because it crowds other steps, at the very times that this saves and costs."""

from __future__ import annotations

from dataclasses import replace

import onnx.helper as oh
import pytest

from flaot.plan.program import Program
from flaot.schedule import build
from flaot.schedule.chip.compose import ChipOptions, Composed, compose
from flaot.schedule.chip.residency import Settler
from flaot.schedule.chip.tiles import Tiling
from tests.schedule.chip.small import compiled, model, npu, random

KB = 1024
RELU, WIDE, NARROW, SUM = 2, 3, 4, 5
"""Steps of the program."""

BEFORE = 163_840_000 + 4_096_000 + 128_000 + 31 * 100_000
"""The narrow product in 4 times 8 parts: b comes in 4 times and w2 once, 163,840 bytes at 1 a nanosecond; the first 4 kB of b before that;
4096 ns of computing (reading 8 kB of w2 at 64 a nanosecond, 32 times) over 32 calls after it; 100 ns for every further call."""

AFTER = 73_728_000 + 2_048_000 + 512_000 + 512_000 + 15 * 100_000
"""In 16 parts of 4 rows: b, w2 and c once; the first rows of b; the last of c; 8192 ns of computing (32 kB, 16 times) over 16 calls."""

SUM_BEFORE = 8_192_000 + 1_024_000 + 16_000 + 7 * 100_000
"""y goes out in 8 parts; 128 ns of computing over 8 calls."""

SUM_AFTER = 16_384_000 + 512_000 + 512_000 + 8_000 + 15 * 100_000
"""c comes in and y goes out in 16 parts."""


def settler(kb: int, monkeypatch: pytest.MonkeyPatch) -> Settler:
    """Of y = a + c where a = relu(x), b = a @ w1 and c = b @ w2. a, c, x and y take 8 kB, b, w1 and w2 32 kB."""
    seen: list[Program] = []

    def spy(program: Program, options: ChipOptions) -> Composed:
        seen.append(replace(program, steps=list(program.steps)))
        return compose(program, options)

    monkeypatch.setattr(build, "compose", spy)
    nodes = [
        oh.make_node("Relu", ["x"], ["a"], "relu"), oh.make_node("MatMul", ["a", "w1"], ["b"], "wide"),
        oh.make_node("MatMul", ["b", "w2"], ["c"], "narrow"), oh.make_node("Add", ["a", "c"], ["y"], "sum"),
    ]
    weights = {"w1": random(64, 256), "w2": random(256, 64, seed=1)}
    compiled(model(nodes, {"x": [64, 64]}, {"y": [64, 64]}, weights), npu(kb, peak=4096), level=0)
    (program,) = seen
    assert [program.steps[i].op for i in (RELU, WIDE, NARROW, SUM)] == ["Relu", "MatMul", "MatMul", "Add"]
    return Settler(program, 1, program.chips[0].machine, 64, kb * KB)


def only(settled: Settler, *names: str) -> list[int]:
    """Keeps just these on chip; bytes of them at every step."""
    settled.residents = {key: u for key, u in settled.residents.items() if u.buffer.name in names}
    live = settled._live()
    settled.calls = settled._calls(live)
    return live


def gains(settled: Settler, live: list[int]) -> dict[str, int]:
    return {u.buffer.name: settled._gain(u, live) for u in list(settled.residents.values())}


def test_what_a_step_loses_is_what_it_gains_from_room(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a and c on chip the narrow product has 32 kB, too little for w2 and tiles of b."""
    settled = settler(48, monkeypatch)
    live = only(settled, "a", "c")
    assert [live[i] for i in (RELU, WIDE, NARROW, SUM)] == [8 * KB, 8 * KB, 16 * KB, 16 * KB]
    assert [settled._time(i, 32 * KB) for i in (NARROW, SUM)] == [BEFORE, SUM_BEFORE]
    assert gains(settled, live)["c"] == BEFORE + SUM_BEFORE - AFTER - SUM_AFTER == 83_880_000


def test_the_one_that_saves_most_is_taken_out_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    settled = settler(48, monkeypatch)
    live = only(settled, "a", "c")
    assert 0 < gains(settled, live)["a"] < 83_880_000
    after = settled._relieved(live)
    assert [u.buffer.name for u in settled.residents.values()] == ["a"]
    assert [after[i] for i in (RELU, WIDE, NARROW, SUM)] == [8 * KB] * 4
    assert [settled._time(i, 40 * KB) for i in (NARROW, SUM)] == [AFTER, SUM_AFTER]


@pytest.mark.parametrize("kb", [40, 56])
def test_nothing_is_taken_out_for_no_gain(kb: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """In 56 kB everything has room; in 40 kB there is too little with one of them gone too."""
    settled = settler(kb, monkeypatch)
    live = only(settled, "a", "c")
    assert max(gains(settled, live).values()) < 0
    assert settled._relieved(live) == live


def test_no_gain_where_a_step_would_have_no_room(monkeypatch: pytest.MonkeyPatch) -> None:
    """The narrow product seems faster without c, but then needs 2 kB more than there are."""
    settled = settler(48, monkeypatch)
    live = only(settled, "a", "c")
    known = settled._tilings

    def tilings(index: int) -> list[Tiling]:
        tight = index == NARROW and all(u.buffer.name != "c" for u in settled.residents.values())
        return [replace(t, memory=42 * KB) for t in known(index)] if tight else known(index)

    monkeypatch.setattr(settled, "_tilings", tilings)
    assert gains(settled, live)["c"] == 0
    assert gains(settled, live)["a"] > 0
