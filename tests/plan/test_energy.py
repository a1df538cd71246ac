"""What steps take in energy and when they run under a cap, by values a person can add up: a byte moves, an operation is computed and a
cycle passes in a nanosecond, in which a femtojoule is a microwatt."""

from __future__ import annotations

from dataclasses import replace

import pytest

from flaot.errors import PlanError
from flaot.ir.types import DType, TensorType
from flaot.plan.energy import Energy, Governor, energy_of, levels
from flaot.plan.program import Chip, Command, Launch, Power, Step
from flaot.plan.read import read_plan
from flaot.plan.timeline import Timeline, timeline
from flaot.plan.usage import usage
from flaot.report.chips import ChipReport
from tests.plan.devices import on_chip as off_chip
from tests.plan.devices import scratchpad
from tests.plan.programs import plan_of
from tests.plan.queues import SLOW, softmax_on_chip
from tests.plan.test_timeline import DMA0, DMA1, MAC, MACHINE, bytes_, launched, moved, sent

MACS = tuple(4 if d == DType.float16 else 6 for d in range(24))
DRAWS = Power(idle=100, cap=0, on_chip=1000, off_chip=5000, macs=MACS)
METERED = replace(MACHINE, power=DRAWS)
HALVES = TensorType(DType.float16, (8,))


def capped(uw: int, *steps: Step, alone: bool = False) -> Timeline:
    """Nothing at rest; a load takes 6000 fJ a byte, a launch 2000 fJ for the byte it reads and the one it writes. DMA needs no setup."""
    power = Power(cap=uw, on_chip=1000, off_chip=5000, macs=(0,) * 24)
    return timeline([Chip("C", "npu_test", machine=replace(MACHINE, setup_cycles=0, latency_cycles=0, power=power))], steps, alone)


def times(line: Timeline) -> list[tuple[float, float]]:
    return [(s.start / 1000, s.end / 1000) for s in line.spans]


def test_operations_are_half_multiply_accumulates_of_their_type() -> None:
    for type, fj in ((HALVES, 4), (bytes_(16), 6)):
        views = scratchpad(0, type), scratchpad(64, type)
        step = Step("k", "", views[:1], views[1:], device=1, launch=Launch("mac"), command=Command(MAC, (), 101))
        assert energy_of(METERED, step) == Energy(-(-101 * fj // 2), 32 * 1000, 0)


def test_a_load_moves_its_bytes_over_both_memories() -> None:
    assert energy_of(METERED, moved(10, DMA0)) == Energy(0, 10_000, 50_000)


def test_kernels_on_dma_queues_read_and_write_off_chip() -> None:
    views = off_chip(0, bytes_(30)), off_chip(512, bytes_(30))
    assert energy_of(METERED, Step("copy", "", views[:1], views[1:], device=1, command=Command(DMA0))) == Energy(0, 0, 300_000)


def test_transfers_are_the_hosts_and_other_chips_state_nothing() -> None:
    assert energy_of(METERED, sent(100)) == energy_of(MACHINE, moved(100, DMA0)) == Energy()


def test_power_over_time() -> None:
    """Two steps that overlap for 2 of their 4 and 6 ps."""
    assert levels(Power(idle=7), [(((0, 10),), 4), (((2, 5),), 8)]) == [(0, 17), (2, 22), (4, 12), (8, 7)]


def test_a_step_alone_takes_as_long_as_its_energy_needs() -> None:
    """100 fJ in 10 ps are 10 mW."""
    assert Governor(Power(cap=10_000)).run(0, 10, 100) == (10, ((0, 10_000),))
    assert Governor(Power(cap=5000, idle=1000)).run(0, 10, 100) == (25, ((0, 4000),))


def test_a_step_draws_what_is_left_and_more_when_others_end() -> None:
    """10 mW until 10; the second wants 8 of 15: 5 until then, and after 25 of its 80 fJ 8 for the rest."""
    governor = Governor(Power(cap=15_000))
    assert governor.run(0, 10, 100) == (10, ((0, 10_000),))
    assert governor.run(5, 15, 80) == (17, ((5, 5000), (10, 8000)))
    assert governor.first(6) == 10
    assert governor.run(10, 20, 140) == (24, ((10, 7000), (17, 14_000)))


def test_without_a_cap_nothing_changes() -> None:
    steps = [moved(20, DMA0), moved(40, DMA1), launched(50, MAC, 0, 1, reads=40), moved(8, DMA0, 2), sent(5)]
    plain, metered = (timeline([Chip("C", "npu_test", machine=m)], steps) for m in (MACHINE, METERED))
    high = timeline([Chip("C", "npu_test", machine=replace(METERED, power=replace(DRAWS, cap=10**9)))], steps)
    assert plain == metered and times(plain) == times(high)


@pytest.mark.parametrize(("uw", "end"), [(6000, 10), (3000, 20), (1000, 60), (1, 60_000)])
def test_a_low_cap_makes_a_load_longer(uw: int, end: int) -> None:
    """Ten bytes of 6000 fJ in 10 ns are 6000 uW."""
    assert times(capped(uw, moved(10, DMA0))) == [(0, end)]


def test_a_load_draws_what_a_launch_leaves() -> None:
    """The launch takes 2000 fJ in 14 ns, 143 uW; the load wants 6000 of 3143 uW: 3000 until 14, 42 of its 60 pJ, then 3143."""
    line = capped(3143, launched(10, MAC), moved(10, DMA0))
    assert times(line)[0] == (0, 14)
    assert [uw for _, uw in line.spans[1].drawn] == [3000, 3143]
    assert line.spans[1].end == 14_000 + -(-18_000_000 // 3143)


def test_a_step_starts_when_power_is_left() -> None:
    """The first load draws the whole cap until 20, and the bus is free from 10 on."""
    assert times(capped(3000, moved(10, DMA0), moved(10, DMA1))) == [(0, 20), (20, 40)]
    assert times(capped(6000, moved(10, DMA0), moved(10, DMA1))) == [(0, 10), (10, 20)]


def test_the_queue_of_a_slower_launch_is_free_later() -> None:
    """Two launches of 16 ns and 125 uW at 100 uW: 20 ns each."""
    assert times(capped(100, launched(12, MAC), launched(12, MAC))) == [(0, 20), (20, 40)]


def test_what_a_run_takes() -> None:
    """softmax_on_chip: two moves of 16 bytes at 96 pJ in 21 ns, a launch of 8 operations and 32 bytes in 20 ns, and 62 ns at rest."""
    program = softmax_on_chip()
    program.chips = [replace(SLOW, machine=replace(SLOW.machine, power=DRAWS))]
    plan = read_plan(plan_of(program))
    assert plan.chips[0].machine.power == DRAWS
    power = ChipReport(plan).usage.chips[0].power
    assert power is not None and power.cap_mw is None
    parts = power.compute_uj, power.on_chip_uj, power.off_chip_uj, power.idle_uj
    assert [round(p * 1e9) for p in parts] == [8 * 4 // 2, 64 * 1000, 32 * 5000, 100 * 62]
    assert power.average_mw == (16 + 64_000 + 160_000 + 6200) / 62_000
    assert power.peak_mw == pytest.approx((96_000 / 21 + 100) / 1000, abs=0.001)
    assert {"energy_uj", "average_mw", "peak_mw", "energy"} <= set(ChipReport(plan).chip_json(1))


def test_chips_that_state_nothing_report_nothing() -> None:
    program = softmax_on_chip()
    assert usage(program.chips, program.steps).chips[0].power is None
    assert not {"energy_uj", "average_mw", "peak_mw", "cap_mw"} & set(ChipReport(read_plan(plan_of(program))).chip_json(1))


def test_a_plan_with_a_cap_below_rest_is_refused() -> None:
    program = softmax_on_chip()
    program.chips = [replace(SLOW, machine=replace(SLOW.machine, power=replace(DRAWS, cap=100)))]
    with pytest.raises(PlanError, match="draws 100 uW at rest under a cap of 100 uW"):
        _ = read_plan(plan_of(program)).chips
