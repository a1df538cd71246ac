"""Two chips of one plan: what each takes by itself, and what they take from each other on a bus they share."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest

import flaot
from flaot.hcd import Hcd, board_of
from flaot.ir.types import DType, TensorType
from flaot.mapping.policy import policy_of
from flaot.pipeline import Compiled, Options, compile_model
from flaot.plan.program import Chip, Machine, Opcode, Step, Transfers, Unit
from flaot.plan.read import read_plan
from flaot.plan.usage import usage
from flaot.report.chips import ChipReport
from flaot.report.gantt import gantt
from flaot.schedule.chip.commands import assign_commands
from flaot.schedule.chip.sequence import LOAD
from tests.mapping.models import model, node, small, weights
from tests.plan.devices import on_chip as off_chip
from tests.plan.devices import scratchpad

RATE = "transfers: asynchronous, link_gb_per_s: 0.05, link_setup_cycles: 0"
BYTES = 64 * 64 * 2
"""Of one value in float16: 163.84 us of the bus."""


def side_by_side() -> onnx.ModelProto:
    """Two products and two Softmaxes that have nothing to do with each other."""
    nodes = [node("MatMul", f"x{i} w", f"a{i}") for i in range(2)] + [node("Softmax", f"z{i}", f"b{i}", axis=-1) for i in range(2)]
    inputs = {f"{n}{i}": (64, 64) for i in range(2) for n in "xz"}
    return model(nodes, inputs, ["a0", "a1", "b0", "b1"], {"w": weights(64, 64)})


def alternating() -> onnx.ModelProto:
    nodes = [node("MatMul", "x w", "a"), node("Sigmoid", "a", "b"), node("MatMul", "b w", "c"), node("Sigmoid", "c", "y")]
    return model(nodes, {"x": (64, 64)}, ["y"], {"w": weights(64, 64)})


def compiled(m: onnx.ModelProto, *chips: Hcd) -> Compiled:
    """Every node on the chip that lists it."""
    board = board_of(chips)
    routes = [f"{operator}={c.name}" for c in chips for operator in c.full.operators or ()]
    return compile_model(m, board, Options(policy=policy_of(board, fallback="error", routes=routes)))


def on_buses(first: str, second: str) -> Compiled:
    chips = small("ONE", "MatMul", host=f"{RATE}, bus: {first}"), small("TWO", "Softmax", host=f"{RATE}, bus: {second}")
    return compiled(side_by_side(), *chips)


def test_transfers_wait_for_those_of_another_chip_on_one_bus(tmp_path: Path) -> None:
    """Eight values pass, four of either chip: on one bus one after the other, on two of them at the same time."""
    shared, apart = on_buses("pci", "pci"), on_buses("left", "right")
    taken = BYTES / 0.05 / 1000
    assert shared.estimates[0].total_us > 8 * taken > apart.estimates[0].total_us > 4 * taken
    assert [e.link_wait_us for e in apart.estimates] == [0, 0]
    assert sum(e.link_wait_us for e in shared.estimates) > 2 * taken
    assert [(e.cycles, e.traffic_bytes) for e in shared.estimates] == [(e.cycles, e.traffic_bytes) for e in apart.estimates]
    assert "for a bus that chips share" in "".join(shared.estimates[0].lines())
    drawn = [[line for line in gantt(ChipReport(read_plan(c.plan))) if " link " in line][:2] for c in (shared, apart)]
    assert ["-" in "".join(lines) for lines in drawn] == [True, False]
    path = tmp_path / "m.onnx"
    path.write_bytes(side_by_side().SerializeToString())
    assert flaot.verify(shared.plan, str(path)).ok


def test_reports_tell_the_wait_that_the_spans_have() -> None:
    report = ChipReport(read_plan(on_buses("pci", "pci").plan))
    for device, name in ((1, "ONE"), (2, "TWO")):
        steps = report.timeline_json()["steps"]
        waits = [s["bus_wait_us"] for s in steps if (s["device"], s["queue"]) == (name, "link")]
        assert report.chip_json(device)["link_wait_us"] == pytest.approx(sum(waits))


@pytest.mark.usefixtures("one_plan")
def test_a_chip_s_cycles_are_its_own() -> None:
    """TWO works while ONE waits and the other way round: each takes what it takes alone."""
    chips = small("ONE", "MatMul"), small("TWO", "Sigmoid")
    both = compiled(alternating(), *chips)
    product = model([node("MatMul", "x w", "y")], {"x": (64, 64)}, ["y"], {"w": weights(64, 64)})
    sigmoid = model([node("Sigmoid", "x", "y")], {"x": (64, 64)}, ["y"])
    first, second = (compiled(m, c).estimates[0] for m, c in ((product, chips[0]), (sigmoid, chips[1])))
    weight = 64 * 64 * 2
    assert both.estimates[0].cycles <= 2 * first.cycles and both.estimates[1].cycles == 2 * second.cycles
    assert both.estimates[0].traffic_bytes in (2 * first.traffic_bytes, 2 * first.traffic_bytes - weight)
    for chip in usage(both.program.chips, both.program.steps).chips:
        assert max(q.utilisation for q in chip.queues) <= 1 and chip.taken <= sum(q.busy_us for q in chip.queues) * 1e6


@pytest.mark.parametrize("chips", [1, 2])
def test_loads_of_every_chip_take_its_channels_in_turn(chips: int) -> None:
    machine = Machine(1_000_000, (Unit("mac"),), 4096, 1000, 1000, channels=3, transfer=Transfers.asynchronous)
    far, near = (v(0, TensorType(DType.uint8, (16,))) for v in (off_chip, scratchpad))
    loads = [Step("", "", (far,), (near,), op=LOAD, device=1 + i % chips, opcode=Opcode.dma) for i in range(4 * chips)]
    done = assign_commands(loads, [0] * len(loads), [Chip(f"C{i}", "npu", machine=machine) for i in range(chips)])
    queues = [s.command.queue for s in done if s.device == 1 and s.command is not None]
    assert queues == [1, 0, 1, 0]
