"""What stays on chip, and what of it is taken out where that leaves no room: every byte that moves is counted."""

from __future__ import annotations

import onnx.helper as oh
import pytest

from flaot.pipeline import Compiled
from flaot.plan.program import Opcode, Space
from tests.schedule.chip.small import compiled, model, npu, random, run, tiling, traffic

KB = 1024
SIZES = {"x": 8 * KB, "a": 8 * KB, "b": 32 * KB, "c": 8 * KB, "y": 8 * KB}
WEIGHTS = (64 * 64 + 64 * 256 + 256 * 64) * 2
"""Bytes of the three constants: 8, 32 and 32 kB."""


def diamond() -> bytes:
    """y = a + c where a = x @ w1, b = a @ w2 and c = b @ w3; b is four times as large as the others."""
    nodes = [
        oh.make_node("MatMul", ["x", "w1"], ["a"], "one"), oh.make_node("MatMul", ["a", "w2"], ["b"], "two"),
        oh.make_node("MatMul", ["b", "w3"], ["c"], "three"), oh.make_node("Add", ["a", "c"], ["y"], "sum"),
    ]
    weights = {"w1": random(64, 64, seed=1), "w2": random(64, 256, seed=2), "w3": random(256, 64, seed=3, scale=16)}
    return model(nodes, {"x": [64, 64]}, {"y": [64, 64]}, weights)


def on(kb: int) -> Compiled:
    return compiled(diamond(), npu(kb, peak=1024), level=0)


def moved(done: Compiled, name: str) -> tuple[int, int]:
    """Bytes of a value that are taken out and brought in."""
    steps = [s for s in done.program.steps if s.opcode is Opcode.dma]
    out, into = (sum(v.elements * 2 for (v,) in views if v.buffer.name == name and v.buffer.space is Space.device)
                 for views in ([s.outputs for s in steps], [s.inputs for s in steps]))
    return out, into


@pytest.mark.parametrize("kb", [128, 64])
def test_with_room_only_ports_and_constants_move(kb: int) -> None:
    """a, b and c take 48 kB together; 64 also hold two tiles of 16 columns of w3, 8 kB each."""
    done = on(kb)
    assert {n: moved(done, n) for n in "abc"} == dict.fromkeys("abc", (0, 0))
    assert traffic(done) == SIZES["x"] + WEIGHTS + SIZES["y"]


def test_the_largest_one_makes_room() -> None:
    """a, b, c and two tiles of w3 do not fit in 56 kB. Without b all else does, w3 as a whole too, so that b goes out and in once."""
    done = on(56)
    assert {n: moved(done, n) for n in "abc"} == {"a": (0, 0), "b": (32 * KB, 32 * KB), "c": (0, 0)}
    assert tiling(done, "three")[1].startswith("rows/")
    assert traffic(done) == SIZES["x"] + WEIGHTS + SIZES["y"] + 2 * SIZES["b"]


def test_what_comes_in_again_is_counted_again() -> None:
    """In 40 kB w3 cannot be held beside a and c: it comes in columns, and b once for each part of them."""
    done = on(40)
    path, label = tiling(done, "three")
    assert path == "tiled" and label.startswith("columns/4 rows/")
    assert {n: moved(done, n) for n in "abc"} == {"a": (0, 0), "b": (32 * KB, 4 * 32 * KB), "c": (0, 0)}
    assert traffic(done) == SIZES["x"] + WEIGHTS + SIZES["y"] + (1 + 4) * SIZES["b"]


def test_less_memory_never_moves_less() -> None:
    found = [traffic(on(kb)) for kb in (128, 64, 56, 48, 40, 32, 24, 20)]
    assert found == sorted(found)


def test_values_do_not_depend_on_it() -> None:
    x = random(64, 64, seed=9, scale=1)
    assert len({run(on(kb), {"x": x})[0].tobytes() for kb in (128, 56, 40, 20)}) == 1


def test_what_only_passes_through_is_not_held() -> None:
    """An input of one step and its result lie on chip in tiles, never both as a whole."""
    node = oh.make_node("MatMul", ["x", "w"], ["y"], "product")
    done = compiled(model([node], {"x": [512, 64]}, {"y": [512, 64]}, {"w": random(64, 64)}), npu(256, peak=1024))
    assert traffic(done) == 64 * KB + 8 * KB + 64 * KB
    assert done.report["estimate"]["on_chip_bytes"] < traffic(done)
