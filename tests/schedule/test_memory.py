"""The arena planner: bound, placements without overlap, determinism."""

import random

import pytest

from flaot.schedule.memory import Block, align_up, lower_bound, plan


def overlaps(blocks, offsets):
    for i, a in enumerate(blocks):
        for j in range(i):
            b = blocks[j]
            alive = a.start <= b.end and b.start <= a.end
            if alive and offsets[i] < offsets[j] + b.size and offsets[j] < offsets[i] + a.size:
                return True
    return False


def test_lower_bound_is_the_largest_live_sum():
    assert lower_bound([Block(64, 0, 1), Block(128, 1, 2), Block(64, 2, 3)]) == 192
    assert lower_bound([]) == 0


def test_two_that_never_meet_share_their_bytes():
    offsets, size = plan([Block(64, 0, 1), Block(64, 2, 3)])
    assert (offsets, size) == ([0, 0], 64)


def test_chain_of_equal_buffers_needs_two():
    assert plan([Block(64, i, i + 1) for i in range(50)])[1] == 128


@pytest.mark.parametrize("seed", range(20))
def test_random_placements_do_not_overlap_and_stay_near_the_bound(seed):
    rng = random.Random(seed)
    blocks = []
    for _ in range(60):
        start = rng.randrange(100)
        blocks.append(Block(64 * rng.randint(1, 40), start, min(99, start + rng.choice([1, 1, 2, 3, 30]))))
    offsets, size = plan(blocks)
    assert not overlaps(blocks, offsets)
    assert size <= 1.25 * lower_bound(blocks)
    assert plan(blocks)[0] == offsets


def test_align_up():
    assert [align_up(n, 64) for n in (0, 1, 64, 65)] == [0, 64, 64, 128]
