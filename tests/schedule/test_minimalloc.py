"""MiniMalloc's challenge instances: eight of the eleven leave no byte to spare."""

import time

import numpy as np
import pytest

from flaot.schedule.memory import fit, lower_bound, plan
from tests.schedule.minimalloc import Instance, challenges, instances

pytestmark = pytest.mark.skipif(not instances(), reason="FLAOT_MINIMALLOC does not name a folder of instances")

EFFORT = 1_000_000
SECONDS, FITTING = 60, 8


def is_valid(instance: Instance, offsets: list[int]) -> bool:
    """Marks the bytes of every buffer in a picture of memory (by units) over time; no place may be marked twice."""
    times = sorted({b.start for b in instance.blocks} | {b.end + 1 for b in instance.blocks})
    unit = int(np.gcd.reduce([*offsets, *(b.size for b in instance.blocks)]))
    marks = np.zeros((len(times), instance.capacity // unit), np.int32)
    for b, o in zip(instance.blocks, offsets, strict=True):
        if o < 0 or o + b.size > instance.capacity:
            return False
        marks[times.index(b.start) : times.index(b.end + 1), o // unit : (o + b.size) // unit] += 1
    return int(marks.max()) <= 1


def test_there_are_eleven_and_their_bounds_do_not_pass_the_capacity():
    bounds = [lower_bound(i.blocks) for i in challenges()]
    assert (len(bounds), bounds.count(1_048_576), max(bounds)) == (11, 8, 1_048_576)


@pytest.mark.parametrize("name", ["A", "B", "H", "input"])
def test_easy_ones_fit_at_once(name):
    (instance,) = (i for i in instances() if i.name == name)
    offsets = fit(instance.blocks, instance.capacity)
    assert offsets is not None and is_valid(instance, offsets)
    assert fit(instance.blocks, instance.capacity) == offsets


@pytest.mark.parametrize("name", ["A", "B", "K"])
def test_the_planner_reaches_the_bound_without_being_asked_for_effort(name):
    (instance,) = (i for i in instances() if i.name == name)
    assert plan(instance.blocks)[1] == lower_bound(instance.blocks)


@pytest.mark.slow
def test_most_fit_within_a_minute_each():
    fitting, late = [], []
    for instance in challenges():
        begin = time.process_time()
        offsets = fit(instance.blocks, instance.capacity, effort=EFFORT)
        if offsets is None:
            continue
        assert is_valid(instance, offsets), instance.name
        (fitting if time.process_time() - begin <= SECONDS else late).append(instance.name)
    assert len(fitting) >= FITTING, (fitting, late)
