"""The loops on this machine: figures of the right order, whatever else it is doing."""

from __future__ import annotations

import pytest

from flaot.errors import LimitError
from flaot.hcd.host import features
from flaot.measure.figures import Figures
from flaot.measure.host import CHASE, CLOCK, PEAK, READ, Task, _measure, best_variant, cpus, measure_host, measured


@pytest.fixture(scope="module")
def figures() -> Figures:
    return measure_host(1.0)


def test_figures_make_sense_together(figures: Figures) -> None:
    first, main = figures.levels[0], figures.main
    assert 200e6 < figures.clock < 10e9
    assert figures.peak[1] > figures.clock / 2, "less than half an operation per cycle"
    assert first.read[1] > 2 * main.read[1]
    assert first.latency is not None and main.latency is not None and first.latency * 3 < main.latency
    assert figures.isa is None or figures.isa <= features()
    assert set(figures.peak) == {1, figures.threads}
    assert all(rate > 0 for level in figures.levels for rates in (level.read, level.write, level.copy) for rate in rates.values())


def test_vectors_are_faster_than_portable_code() -> None:
    best = best_variant(("generic", "avx2"))
    if best == "generic":
        pytest.skip("this CPU has no AVX2")
    assert measured(Task("peak", PEAK), 1, 0.1) > 1.3 * measured(Task("peak", PEAK), 0, 0.1)


def test_measurements_that_there_are_not() -> None:
    function = _measure()
    assert function(CHASE + 1, 0, 1, 4096, 0.0) == -3
    assert function(READ, 0, 1, 100, 0.0) == -3
    assert function(CLOCK, 0, 1, 0, float("nan")) == -3
    assert function(CLOCK, 0, 1000, 0, 0.0) == -2
    with pytest.raises(LimitError, match="gives no 1000 threads to measure 'clock'"):
        measured(Task("clock", CLOCK, 1000), 0, 0.0)


def test_no_memory_is_said() -> None:
    with pytest.raises(LimitError, match="gives no memory of 1 x 4611686018427387904 bytes"):
        measured(Task("main read", READ, 1, 1 << 62), 0, 0.0)


def test_threads_keep_to_what_the_process_may_use(figures: Figures) -> None:
    assert figures.cpus == cpus() >= 1
    assert figures.threads == min(cpus(), 64)
