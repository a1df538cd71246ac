"""Synchronous, asynchronous and zero-copy transfers of one model, with times a person can add up.

y = a + b, 1000 elements each. The host casts a and b (6000 bytes at 4 per nanosecond), each passes over the link (100 ns, and 2000 bytes at
one per nanosecond), the chip takes 2 ns to load, to add and to store, and y goes back the same way.
"""

from __future__ import annotations

import numpy as np
import pytest

from flaot.hcd import load
from flaot.pipeline import Compiled, compile_model
from flaot.plan.read import read_plan
from flaot.report.chips import ChipReport
from flaot.runtime.session import Session
from tests.mapping.models import model, node

CHIP = """
chip: {name: C, vendor: v, device_type: npu}
clock_mhz: 1000
compute_units: {fp16: {peak_gflops: 1000}}
memory: {on_chip_cache: {size_kb: 64, bandwidth_gb_per_s: 1000}, off_chip_memory: {bandwidth_gb_per_s: 1000}}
tensor: {supported_dtypes: [float16]}
host: {transfers: %s}
"""
pytestmark = pytest.mark.usefixtures("one_plan")

LINK = ", link_gb_per_s: 1, link_setup_cycles: 100"
KINDS = {"synchronous": f"synchronous{LINK}", "asynchronous": f"asynchronous{LINK}", "zero_copy": "zero_copy"}


def compiled(kind: str) -> Compiled:
    add = model([node("Add", "a b", "y")], {"a": (1, 1000), "b": (1, 1000)}, ["y"])
    return compile_model(add, load((CHIP % KINDS[kind]).encode(), "c.hcd"))


def line_of(done: Compiled) -> dict[str, list[tuple[int, int]]]:
    """When steps of each kind start and end, nanoseconds."""
    report = ChipReport(read_plan(done.plan))
    found: dict[str, list[tuple[int, int]]] = {}
    for step, span in zip(report.steps, report.line.spans, strict=True):
        found.setdefault(step.op, []).append((span.start // 1000, span.end // 1000))
    return found


@pytest.mark.parametrize(("kind", "casts", "transfers", "loads"), [
    ("synchronous", [(0, 1500), (3600, 5100), (9306, 10806)], [(1500, 3600), (5100, 7200), (7206, 9306)], [(3600, 3602), (7200, 7202)]),
    ("asynchronous", [(0, 1500), (1500, 3000), (7806, 9306)], [(1500, 3600), (3600, 5700), (5706, 7806)], [(3600, 3602), (5700, 5702)]),
    ("zero_copy", [(0, 1500), (1500, 3000), (3006, 4506)], [(1500, 1500), (3000, 3000), (3006, 3006)], [(1500, 1502), (3000, 3002)]),
])
def test_three_timelines(
    kind: str, casts: list[tuple[int, int]], transfers: list[tuple[int, int]], loads: list[tuple[int, int]]
) -> None:
    """The host waits for the transfer of a, or casts b meanwhile into other memory, or there is nothing to wait for."""
    line = line_of(compiled(kind))
    assert (line["Recast"], line["Transfer"], line["Load"]) == (casts, transfers, loads)


@pytest.mark.parametrize(("kind", "arena"), [("synchronous", 2048), ("asynchronous", 4096), ("zero_copy", 2048)])
def test_only_what_overlaps_takes_memory(kind: str, arena: int) -> None:
    done = compiled(kind)
    assert (done.program.arena, done.program.lower_bound) == (arena, arena)


@pytest.mark.parametrize(("kind", "total", "bytes_moved", "text", "summary"), [
    ("synchronous", 10.806, 6000, "10.8 us with the host's steps and transfers to and from it", "3 x Transfer, 6000 bytes, all"),
    ("zero_copy", 4.506, 0, "4.5 us with the host's steps and transfers, zero-copy ones, which move nothing",
     "3 x Transfer, 0 bytes (3 zero-copy: nothing is moved), all"),
])
def test_what_a_compilation_tells(kind: str, total: float, bytes_moved: int, text: str, summary: str) -> None:
    done = compiled(kind)
    (estimate,) = done.estimates
    assert (estimate.total_us, estimate.transfer) == (total, kind) and any(text in line for line in estimate.lines())
    moved = [i for i in done.record.inserted if i.kind == "Transfer"]
    assert sum(i.nbytes for i in moved) == bytes_moved and {i.zero_copy for i in moved} == {kind == "zero_copy"}
    assert {i.cost_ns for i in moved} == ({0.0} if kind == "zero_copy" else {2100.0})
    assert any(line.startswith(summary) for line in done.record.summary_lines())
    assert done.record.summary()["inserted"]["Transfer"] == {"count": 3, "inner": 0, "bytes": bytes_moved}
    assert ("zero-copy: nothing is moved" in moved[0].line()) == (kind == "zero_copy")


@pytest.mark.parametrize(("kind", "counted"), [("asynchronous", (3, 4000, 2000)), ("zero_copy", (3, 0, 0))])
def test_plan_and_simulator_count_the_same(kind: str, counted: tuple[int, int, int]) -> None:
    data = compiled(kind).plan
    planned = ChipReport(read_plan(data)).usage.chips[0].traffic
    session = Session(data)
    (y,) = session.run({"a": np.full((1, 1000), 1, np.float32), "b": np.full((1, 1000), 2, np.float32)})
    assert (y == 3).all()
    for c in (planned, *session.counters()):
        assert (c.copies, c.bytes_to_device, c.bytes_from_device) == counted
    assert planned.off_chip_bytes == 6000
