"""When commands run, on a chip that moves a byte and computes an operation in a nanosecond; times are written in nanoseconds."""

from __future__ import annotations

from dataclasses import replace

import pytest

from flaot.ir.types import DType, TensorType
from flaot.plan.fields import HOST_QUEUE
from flaot.plan.program import Chip, Command, Launch, Machine, Opcode, Step, Transfers, Unit, View
from flaot.plan.timeline import Timeline, timeline
from tests.plan.devices import on_chip as off_chip
from tests.plan.devices import scratchpad
from tests.plan.programs import arena

MACHINE = Machine(
    1_000_000, (Unit("mac", launch_cycles=4), Unit("vector", launch_cycles=4)), 4096, 1000, 1000, channels=2, setup_cycles=2,
    latency_cycles=3, transfer=Transfers.asynchronous, link_setup_cycles=7,
)
"""A DMA takes 5 + its bytes, a launch 4 + its operations, a transfer 7 + its bytes."""
DMA0, DMA1, MAC, VECTOR, LINK = range(5)


def bytes_(size: int) -> TensorType:
    return TensorType(DType.uint8, (size,))


def moved(size: int, queue: int, *waits: int, device: int = 1, hold: int = 0) -> Step:
    """A load of so many bytes."""
    views = off_chip(0, bytes_(size)), scratchpad(0, bytes_(size))
    return Step("", "", views[:1], views[1:], device=device, opcode=Opcode.dma, command=Command(queue, waits, 0, hold))


def launched(work: int, queue: int, *waits: int, reads: int = 1, writes: int = 1) -> Step:
    launch = Launch(MACHINE.units[queue - MAC].name)
    views = scratchpad(0, bytes_(reads)), scratchpad(2048, bytes_(writes))
    return Step("k", "", views[:1], views[1:], device=1, launch=launch, command=Command(queue, waits, work))


def sent(size: int, *waits: int, device: int = 1) -> Step:
    """A transfer from the host."""
    views = arena(0, bytes_(size)), off_chip(0, bytes_(size))
    return Step("", "", views[:1], views[1:], device=device, opcode=Opcode.transfer, command=Command(LINK, waits))


def on_host(nanoseconds: int, *waits: int) -> Step:
    view: View = arena(0, bytes_(1))
    return Step("k", "", (view,), (view,), command=Command(HOST_QUEUE, waits, nanoseconds * 1000))


def line_of(*steps: Step, alone: bool = False, machines: tuple[Machine, ...] = (MACHINE,), **changed: object) -> Timeline:
    chips = [Chip(f"C{i}", "npu_test", machine=replace(m, **changed)) for i, m in enumerate(machines)]  # type: ignore[arg-type]
    return timeline(chips, steps, alone)


def times(line: Timeline) -> list[tuple[float, float]]:
    """Start and end of every step."""
    return [(s.start / 1000, s.end / 1000) for s in line.spans]


def test_one_queue_runs_in_order() -> None:
    assert times(line_of(moved(16, DMA0), moved(32, DMA0))) == [(0, 21), (21, 58)]


def test_channels_share_one_bus() -> None:
    """Both set up at once; the second waits for the 100 bytes of the first, and the two take what 200 bytes take."""
    line = line_of(moved(100, DMA0), moved(100, DMA1))
    assert times(line) == [(0, 105), (0, 205)]
    assert [s.contention for s in line.spans] == [0, 100_000]


def test_a_second_channel_hides_setups() -> None:
    """Each channel sets up while the other one moves."""
    one = line_of(*(moved(10, DMA0) for _ in range(4)))
    two = line_of(*(moved(10, (DMA0, DMA1)[i % 2]) for i in range(4)))
    assert one.end == 4 * (5 + 10) * 1000
    assert times(two) == [(0, 15), (0, 25), (15, 35), (25, 45)]


def test_a_short_transfer_takes_a_gap_of_the_bus() -> None:
    """The bus is free from 15 on until step 2 has waited for step 1 and set up; step 3 fits there, step 4 does not."""
    steps = [moved(10, DMA0), launched(26, MAC), moved(10, DMA0, 1), moved(15, DMA1)]
    assert times(line_of(*steps)) == [(0, 15), (0, 30), (30, 45), (0, 30)]
    assert times(line_of(*steps[:3], moved(21, DMA1)))[2:] == [(30, 46), (0, 36)]


def test_waits() -> None:
    """Loads at once, a launch on both, another one that waits for nothing, a store of the first."""
    steps = [moved(20, DMA0), moved(40, DMA1), launched(50, MAC, 0, 1, reads=40), launched(10, VECTOR), moved(8, DMA0, 2)]
    assert times(line_of(*steps)) == [(0, 25), (0, 65), (65, 119), (0, 14), (119, 132)]


def test_hold_prolongs() -> None:
    assert times(line_of(moved(10, DMA0, hold=100), moved(10, DMA0))) == [(0, 100), (100, 115)]


@pytest.mark.parametrize(
    ("writes", "expected"),
    [
        (1, [(0, 14), (14, 28), (28, 42)]),
        (20, [(0, 20), (14, 40), (28, 60)]),
        (40, [(0, 40), (14, 80), (40, 120)]),
    ],
)
def test_results_are_written_while_the_next_launch_runs(writes: int, expected: list[tuple[int, int]]) -> None:
    """Launches of 14; writes are one after the other, and no launch starts before those of the launch before the last are over."""
    assert times(line_of(*(launched(10, MAC, writes=writes) for _ in range(3)))) == expected


def test_who_waits_for_a_launch_waits_for_its_bytes() -> None:
    assert times(line_of(launched(10, MAC, writes=40), launched(10, VECTOR, 0))) == [(0, 40), (40, 54)]


def test_a_full_queue_stalls_the_host() -> None:
    """With room for one command the second is issued when the first ends, and what the host does next comes after that."""
    steps = [moved(10, DMA0), moved(10, DMA0), moved(10, DMA1), on_host(3)]
    free, full = line_of(*steps), line_of(*steps, depth=1)
    assert [s.issued for s in free.spans] == [0, 0, 0, 0]
    assert [s.issued // 1000 for s in full.spans] == [0, 15, 15, 15]
    assert times(full) == [(0, 15), (15, 30), (15, 40), (15, 18)]
    assert line_of(*steps, depth=2).spans == free.spans


def test_units_have_depths_of_their_own() -> None:
    units = (replace(MACHINE.units[0], depth=1), MACHINE.units[1])
    steps = [launched(10, MAC), launched(10, MAC), launched(10, VECTOR), launched(10, VECTOR)]
    assert [s.issued // 1000 for s in line_of(*steps, units=units).spans] == [0, 14, 14, 14]
    assert [s.issued // 1000 for s in line_of(*steps, units=units, depth=1).spans] == [0, 14, 14, 28]


def test_the_host_runs_its_steps_one_after_the_other() -> None:
    steps = [on_host(30), moved(10, DMA0), on_host(20, 1), on_host(5)]
    line = line_of(*steps)
    assert times(line) == [(0, 30), (30, 45), (45, 65), (65, 70)]
    assert [s.issued // 1000 for s in line.spans] == [0, 30, 30, 65]


@pytest.mark.parametrize(
    ("transfers", "expected"),
    [
        (Transfers.synchronous, [(0, 107), (107, 122), (107, 127)]),
        (Transfers.asynchronous, [(0, 107), (0, 15), (0, 20)]),
        (Transfers.zero_copy, [(0, 0), (0, 15), (0, 20)]),
    ],
)
def test_transfers(transfers: Transfers, expected: list[tuple[int, int]]) -> None:
    """100 bytes to the chip, then work on a DMA queue and on the host that needs none of them."""
    assert times(line_of(sent(100), moved(10, DMA0), on_host(20), transfer=transfers)) == expected


def test_alone_the_host_and_transfers_take_no_time() -> None:
    steps = [sent(100), on_host(50), moved(10, DMA0, 0), launched(10, MAC, 2), sent(100, 3)]
    assert times(line_of(*steps)) == [(0, 107), (0, 50), (107, 122), (122, 136), (136, 243)]
    assert times(line_of(*steps, alone=True)) == [(0, 0), (0, 0), (0, 15), (15, 29), (29, 29)]


@pytest.mark.parametrize(("bus", "second"), [(0, (0, 207)), (1, (0, 107))])
def test_chips_share_the_bus_they_name(bus: int, second: tuple[int, int]) -> None:
    both = MACHINE, replace(MACHINE, bus=bus)
    assert times(line_of(sent(100), sent(100, device=2), machines=both)) == [(0, 107), second]


def test_chips_have_memories_of_their_own() -> None:
    assert times(line_of(moved(100, DMA0), moved(100, DMA0, device=2), machines=(MACHINE, MACHINE))) == [(0, 105), (0, 105)]


def test_kernels_on_dma_queues_take_the_bus_for_what_they_read_and_write() -> None:
    views = off_chip(0, bytes_(30)), off_chip(512, bytes_(30))
    step = Step("copy", "", views[:1], views[1:], device=1, command=Command(DMA0))
    assert times(line_of(step, moved(10, DMA1))) == [(0, 65), (0, 75)]


def test_zero_copy_moves_nothing() -> None:
    assert line_of(sent(4096), transfer=Transfers.zero_copy).end == 0


def test_steps_that_wait_for_each_other_are_told() -> None:
    with pytest.raises(ValueError, match="wait for each other"):
        line_of(moved(10, DMA0, 1), moved(10, DMA1, 0))
