"""What does not fit with two pieces of everything is cut more finely, and has one piece of everything where that does not do; it is refused
with what it needs in truth."""

from __future__ import annotations

import numpy as np
import onnx.helper as oh
import pytest

from flaot.errors import UnsupportedError, UsageError
from flaot.hcd import Hcd
from flaot.hcd.board import board_of
from flaot.mapping.policy import policy_of
from flaot.pipeline import Compiled, Options, compile_model
from flaot.schedule.chip.compose import ChipOptions
from tests.schedule.chip.small import calls, model, npu, random, run, tiling

KB = 1024
DEEP = 6000
"""Length of a sum: 12,000 bytes of either operand, 12,032 at an alignment of 64. With a result of 64 bytes one piece of each
takes 24,128."""


def product(rows: int, inner: int, columns: int) -> bytes:
    node = oh.make_node("MatMul", ["x", "w"], ["y"], "product")
    return model([node], {"x": [rows, inner]}, {"y": [rows, columns]}, {"w": random(inner, columns)})


def on(data: bytes, chip: Hcd, pool: int | None = None, fallback: str = "error") -> Compiled:
    return compile_model(data, chip, Options(policy=policy_of(board_of(chip), fallback=fallback), chips=ChipOptions(pool=pool)))


def same_as_with_room(data: bytes, done: Compiled, *shape: int) -> bool:
    """Whether the result has the bits of the one on a chip that holds everything."""
    x = {"x": random(*shape, seed=3, scale=1)}
    return run(done, x)[0].tobytes() == run(on(data, npu(16384)), x)[0].tobytes()


@pytest.mark.parametrize("pool", [24 * KB, 24128])
def test_one_piece_of_everything_at_a_time(pool: int) -> None:
    data = product(4, DEEP, 8)
    done = on(data, npu(32), pool)
    path, label = tiling(done, "product")
    assert path == "tiled" and label in ("rows/4 columns/8 in turn", "columns/8 rows/4 in turn")
    assert 24128 <= done.report["estimate"]["on_chip_bytes"] <= pool
    x = random(4, DEEP, seed=3, scale=1)
    exact = x.astype(np.float16).astype(np.float64) @ random(DEEP, 8).astype(np.float16).astype(np.float64)
    np.testing.assert_allclose(run(done, {"x": x})[0], exact, rtol=1e-3, atol=0.01)
    assert same_as_with_room(data, done, 4, DEEP)


def test_two_pieces_are_held_where_they_fit() -> None:
    """One panel of 16 columns and two rows take 216 kB; one piece of everything would do with less."""
    assert "in turn" not in tiling(on(product(4, DEEP, 16), npu(212)), "product")[1]


def test_a_byte_less_is_refused_with_what_is_needed() -> None:
    with pytest.raises(UnsupportedError, match="needs 24128 bytes on chip at once, however it is cut; Small may use 24127 "):
        on(product(4, DEEP, 8), npu(32), 24127)


def test_more_calls_than_are_liked() -> None:
    """In 256 calls 16 rows and 16 columns of 1 kB each, and 512 bytes of results, are the least: 33,280 bytes."""
    data = product(256, 512, 256)
    done = on(data, npu(32))
    assert 256 < len(calls(done, "product")) <= 1024
    assert same_as_with_room(data, done, 256, 512)


def test_three_axes() -> None:
    """Softmax of 2048 rows of 1 kB: 256 calls along two axes take 8 kB in and 8 kB out."""
    data = model([oh.make_node("Softmax", ["x"], ["y"], "soft", axis=-1)], {"x": [8, 16, 16, 512]}, {"y": [8, 16, 16, 512]}, {})
    done = on(data, npu(8))
    assert 256 < len(calls(done, "soft")) <= 1024
    assert same_as_with_room(data, done, 8, 16, 16, 512)


def test_what_would_take_too_many_calls_is_refused_with_what_the_most_need() -> None:
    """Four rows and eight columns of 128 bytes and a result of 64 make 1024 calls."""
    with pytest.raises(UnsupportedError, match=r"needs 1600 bytes on chip at once, in the 1024 calls .* at most; Small has 1024 "):
        on(product(64, 64, 512), npu(1))


def test_the_option_is_named_where_it_is_what_limits() -> None:
    with pytest.raises(UnsupportedError, match=r"Small may use 16384 \(--memory-pool-size 16\); .*--fallback warn"):
        on(product(4, DEEP, 8), npu(32), 16 * KB)
    with pytest.raises(UnsupportedError, match=r"Small has 16384 \(small\.hcd:4\)"):
        on(product(4, DEEP, 8), npu(16))
    done = on(product(4, DEEP, 8), npu(32), 16 * KB, "warn")
    (taken,) = done.record.decisions
    assert (taken.device, taken.origin) == ("host", "--memory-pool-size 16")


def test_more_than_the_chip_has_is_refused() -> None:
    assert on(product(4, 64, 8), npu(32), 32 * KB).plan == on(product(4, 64, 8), npu(32)).plan
    with pytest.raises(UsageError, match=r"^--memory-pool-size 33; Small has 32 kB on chip \(small\.hcd:4\); allow at most that"):
        on(product(4, 64, 8), npu(32), 33 * KB)
