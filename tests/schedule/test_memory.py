"""The memory planner: bound, placements without overlap, what fits and what does not, determinism."""

import itertools
import random

import pytest

from flaot.schedule.memory import Block, align_up, fit, greedy, lower_bound, plan, size_of
from flaot.schedule.search import Outcome, Search

MISSED = [Block(3, 4, 4), Block(3, 3, 4), Block(4, 2, 3), Block(3, 4, 4)]
"""Nine bytes live at most; every greedy order needs ten."""

BEYOND = [Block(2, 0, 0), Block(3, 0, 1), Block(1, 1, 2), Block(2, 2, 3), Block(1, 1, 3), Block(2, 3, 4), Block(3, 4, 4)]
"""Five bytes live in every step, and no placement in five: it needs six."""


def overlaps(blocks, offsets):
    return any(
        a.start <= b.end and b.start <= a.end and x < y + b.size and y < x + a.size
        for (a, x), (b, y) in itertools.combinations(zip(blocks, offsets, strict=True), 2)
    )


def random_blocks(seed, count, steps, largest, unit=1):
    rng = random.Random(seed)
    blocks = []
    for _ in range(count):
        start = rng.randrange(steps)
        blocks.append(Block(unit * rng.randint(1, largest), start, min(steps - 1, start + rng.choice([0, 1, 1, 2, 3, steps // 3]))))
    return blocks


def smallest(blocks):
    """The least size of all placements: some order of placing each block at its lowest free offset reaches it."""
    best = sum(b.size for b in blocks)
    for order in itertools.permutations(range(len(blocks))):
        placed = []
        for i in order:
            at = 0
            for low, high, j in sorted((o, o + blocks[j].size, j) for j, o in placed):
                if blocks[j].start <= blocks[i].end and blocks[i].start <= blocks[j].end and low < at + blocks[i].size:
                    at = max(at, high)
            placed.append((i, at))
        best = min(best, max(o + blocks[j].size for j, o in placed))
    return best


def search(blocks):
    return Search([b.size for b in blocks], [b.start for b in blocks], [b.end for b in blocks])


def test_lower_bound_is_the_largest_live_sum():
    assert lower_bound([Block(64, 0, 1), Block(128, 1, 2), Block(64, 2, 3)]) == 192
    assert lower_bound([]) == 0


def test_two_that_never_meet_share_their_bytes():
    offsets, size = plan([Block(64, 0, 1), Block(64, 2, 3)])
    assert (offsets, size) == ([0, 0], 64)


def test_chain_of_equal_buffers_needs_two():
    assert plan([Block(64, i, i + 1) for i in range(50)])[1] == 128


@pytest.mark.parametrize("seed", range(20))
def test_random_placements_do_not_overlap_and_take_little_more_than_the_bound(seed):
    blocks = random_blocks(seed, 60, 100, 40, unit=64)
    offsets, size = plan(blocks)
    assert not overlaps(blocks, offsets)
    assert size == size_of(blocks, offsets) <= 1.02 * lower_bound(blocks)
    assert plan(blocks) == (offsets, size)


@pytest.mark.parametrize("seed", range(20))
def test_search_knows_the_least_size_of_small_problems(seed):
    blocks = random_blocks(seed, 7, 5, 6)
    least = smallest(blocks)
    assert search(blocks).within(least - 1, 100_000).outcome is Outcome.NONE
    found = search(blocks).within(least, 100_000)
    assert found.outcome is Outcome.FITS and found.offsets is not None
    assert not overlaps(blocks, found.offsets) and size_of(blocks, found.offsets) == least
    assert plan(blocks, 100_000)[1] == least


def test_search_fits_what_the_greedy_orders_miss():
    assert (lower_bound(MISSED), greedy(MISSED)[1]) == (9, 10)
    assert plan(MISSED)[1] == 9


def test_a_bound_that_no_placement_meets_is_refuted():
    assert (lower_bound(BEYOND), smallest(BEYOND), plan(BEYOND)[1]) == (5, 6, 6)
    assert search(BEYOND).within(5, 1000).outcome is Outcome.NONE


def test_parts_that_share_no_step_are_solved_one_by_one():
    late = [Block(b.size, b.start + 5, b.end + 5) for b in BEYOND]
    found = search(MISSED + late).within(9, 1000)
    assert found.outcome is Outcome.FITS and found.nodes <= 20


def test_more_effort_never_takes_more_memory():
    blocks = random_blocks(3, 40, 30, 1000)
    sizes = [plan(blocks, effort)[1] for effort in (0, 100, 10_000)]
    assert sizes == sorted(sizes, reverse=True)
    assert plan(blocks, 0) == greedy(blocks, lower_bound(blocks))


def test_search_spends_no_more_nodes_than_given():
    blocks = random_blocks(1, 60, 100, 40)
    found = search(blocks).within(lower_bound(blocks), 30)
    assert (found.outcome, found.offsets, found.nodes) == (Outcome.ENDED, None, 30)


def test_fit_aligns_every_offset_and_keeps_to_the_capacity():
    blocks = random_blocks(5, 200, 300, 3000)
    capacity = lower_bound([Block(align_up(b.size, 256), b.start, b.end) for b in blocks])
    offsets = fit(blocks, capacity, alignment=256)
    assert offsets is not None and {o % 256 for o in offsets} == {0}
    assert not overlaps(blocks, offsets) and size_of(blocks, offsets) <= capacity
    assert fit(blocks, capacity - 1, alignment=256) is None
    assert fit(blocks, capacity, alignment=256) == offsets


def test_fit_of_nothing_and_of_empty_blocks():
    assert fit([], 0) == []
    assert fit([Block(0, 0, 3), Block(8, 1, 2), Block(0, 2, 2)], 8) == [0, 0, 0]
    assert fit([Block(8, 0, 0)], 7) is None


def test_many_blocks_are_left_to_the_greedy_orders():
    blocks = [Block(64, i, i + 1) for i in range(3000)]
    assert size_of(blocks, fit(blocks, 128) or []) == plan(blocks)[1] == 128
    assert fit(blocks, 127) is None


def test_align_up():
    assert [align_up(n, 64) for n in (0, 1, 64, 65)] == [0, 64, 64, 128]
