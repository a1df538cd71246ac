"""What a run takes on chips: a plan whose times a person can add up (tests/plan/queues.py), and a compiled one."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path

import pytest

import flaot
from flaot.plan.read import Plan, read_plan
from flaot.plan.timeline import Span, Timeline
from flaot.report.chips import ChipReport
from flaot.report.gantt import WIDTH, gantt
from flaot.report.trace import trace
from flaot.runtime.feeds import load_feeds
from flaot.runtime.lean import LeanSession
from tests.plan.programs import plan_of
from tests.plan.queues import FREE, softmax_on_chip

DIGITS = Path(__file__).resolve().parents[2] / "samples" / "mnist" / "digits.onnx"
NS = 1000
"""Picoseconds."""


@pytest.fixture(scope="module")
def small() -> ChipReport:
    return ChipReport(read_plan(plan_of(softmax_on_chip())))


@pytest.fixture(scope="module")
def digits() -> Plan:
    return read_plan(flaot.compile(DIGITS, "npu_v3").plan)


def test_cycles_traffic_and_utilisation(small: ChipReport) -> None:
    chip = small.chip_json(1)
    assert (chip["cycles"], chip["time_us"], chip["total_us"]) == (62, 0.062, 0.094)
    assert (chip["traffic"]["bytes_in"], chip["traffic"]["bytes_out"], chip["traffic_bytes"]) == (16, 16, 32)
    assert (chip["traffic"]["launches"], chip["traffic"]["dmas"], chip["traffic"]["copies"]) == (1, 2, 2)
    busy = {q["name"]: (q["busy_us"], q["utilisation"]) for q in chip["units"]}
    assert busy == {"dma0": (0.042, 42 / 62), "vector": (0.020, 20 / 62), "link": (0.032, 32 / 94)}


def test_zero_copy_transfers_move_nothing() -> None:
    report = ChipReport(read_plan(plan_of(softmax_on_chip(FREE))))
    chip = report.chip_json(1)
    assert (chip["cycles"], chip["total_us"], chip["transfer"]) == (62, 0.062, "zero_copy")
    assert [chip["traffic"][n] for n in ("copies", "bytes_to_device", "bytes_from_device", "bytes_in")] == [2, 0, 0, 16]
    assert chip["units"][-1] == {"name": "link", "busy_us": 0, "utilisation": 0}
    moved = [e for e in json.loads(trace(report)) if e.get("cat") == "Transfer"]
    assert [(e["dur"], e["args"]["bytes"], e["args"]["transfer"]) for e in moved] == [(0, 0, "zero_copy")] * 2
    assert "Transfers of NPU-V3 are zero-copy: nothing is moved" in gantt(report)


def test_transfers_over_the_link_have_bytes(small: ChipReport) -> None:
    moved = [e for e in json.loads(trace(small)) if e.get("cat") == "Transfer"]
    assert [(e["dur"], e["args"]["bytes"], e["args"]["transfer"]) for e in moved] == [(0.016, 16, "synchronous")] * 2
    assert not any("zero-copy" in line for line in gantt(small))


def test_writing_behind_counts_once() -> None:
    spans = [Span(0, 1, 0, 0, 0, 10), Span(1, 1, 0, 0, 8, 14), Span(2, 1, 0, 0, 20, 25), Span(3, 1, 1, 0, 0, 99)]
    assert Timeline(spans).busy(1, 0) == 14 + 5


def test_time_of_nodes(small: ChipReport) -> None:
    softmax, ports = small.nodes
    assert (softmax.nodes, softmax.unit, softmax.dma, softmax.dma_bytes) == (("layer/softmax",), 20 * NS, 42 * NS, 32)
    assert (softmax.start, softmax.end, softmax.calls, list(softmax.places)) == (16 * NS, 78 * NS, 1, ["NPU-V3 vector"])
    assert (ports.nodes, ports.link, ports.start, ports.end) == ((), 32 * NS, 0, 94 * NS)


def test_on_chip_memory_over_time(small: ChipReport) -> None:
    assert small.on_chip(1) == [(0, 0), (16 * NS, 16), (37 * NS, 32), (57 * NS, 16), (78 * NS, 0)]


def test_nodes_of_a_compiled_plan_add_up(digits: Plan) -> None:
    report = ChipReport(digits)
    chip, nodes = report.chip_json(1), report.nodes
    assert sum(n.dma_bytes for n in nodes) == chip["traffic_bytes"]
    assert sum(n.unit for n in nodes) == sum(s.duration for s in report.line.spans if s.device == 1 and 2 <= s.queue < 5)
    assert {"/0/Conv", "/2/MaxPool", "/9/Gemm"} <= {name for n in nodes for name in n.nodes}
    peak = max(n for _, n in report.on_chip(1))
    assert 0 < peak <= chip["on_chip_peak_bytes"] <= chip["on_chip_bytes"]


def test_the_simulator_counts_what_the_plan_states(digits: Plan, tmp_path: Path) -> None:
    (tmp_path / "d.flp").write_bytes(digits.data.tobytes())
    session = LeanSession(str(tmp_path / "d.flp"), 1)
    session.run(load_feeds(session.inputs, None, {}, 0, lambda: session.frozen), repeat=2)
    (counted,) = session.counters()
    stated = ChipReport(digits).usage.chips[0].traffic
    assert stated.bytes_within == 0 and stated.bytes_in > 50_000
    for name in ("bytes_in", "bytes_out", "bytes_to_device", "bytes_from_device", "launches", "dmas", "copies"):
        assert getattr(counted, name) == 2 * getattr(stated, name), name


@pytest.mark.parametrize("which", ["small", "digits"])
def test_traces_keep_to_the_format(which: str, small: ChipReport, digits: Plan) -> None:
    report = small if which == "small" else ChipReport(digits)
    events = json.loads(trace(report))
    names = {(e["pid"], e["tid"]): e["args"]["name"] for e in events if e["name"] == "thread_name"}
    assert [e["args"]["name"] for e in events if e["name"] == "process_name"] == ["host", "NPU-V3"]
    complete = [e for e in events if e["ph"] == "X"]
    assert len(complete) == len(report.steps) and {e["ph"] for e in events} == {"M", "X", "C"}
    free: dict[tuple[int, int], float] = defaultdict(float)
    for e in complete:
        queue = (e["pid"], e["tid"])
        assert queue in names and e["dur"] >= 0 and e["ts"] >= free[queue] - 1e-9, e
        free[queue] = e["ts"] + e["dur"]
        assert {"step", "op", "nodes", "bytes", "waits"} <= set(e["args"])
    levels = [(e["ts"], e["args"]["in use"]) for e in events if e["ph"] == "C"]
    assert levels == [(t / 1e6, n) for t, n in report.on_chip(1)] and levels[-1][1] == 0


def test_the_trace_has_the_times_of_the_timeline(small: ChipReport) -> None:
    found = {e["args"]["step"]: e for e in json.loads(trace(small)) if e["ph"] == "X"}
    times = [(round(1000 * e["ts"]), round(1000 * e["dur"])) for _, e in sorted(found.items())]
    assert times == [(0, 16), (16, 21), (37, 20), (57, 21), (78, 16)]
    assert found[2]["args"]["cycles"] == 20 and found[2]["args"]["waits"] == "1" and found[1]["args"]["bytes"] == 16


def test_the_drawing_fits_and_shows_who_is_busy(small: ChipReport, digits: Plan) -> None:
    for report in (small, ChipReport(digits)):
        assert max(map(len, gantt(report))) <= WIDTH
    rows = [line.split("|")[1] for line in gantt(small, 94 + 13 + 3)[2:6] if "|" in line]
    host, dma, vector, link = rows
    assert not host.strip()
    assert dma == " " * 16 + "#" * 21 + " " * 20 + "#" * 21 + " " * 16
    assert vector == " " * 37 + "#" * 20 + " " * 37
    assert link == "#" * 16 + " " * 62 + "#" * 16
