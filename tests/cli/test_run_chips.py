"""``flaot run`` and ``flaot inspect`` on a plan with a chip whose times a person can add up."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from flaot.cli import chips
from flaot.plan.program import Power
from tests.cli.models import write_pair
from tests.plan.programs import plan_of
from tests.plan.queues import FREE, SLOW, softmax_on_chip


@pytest.fixture(autouse=True)
def plans(tmp_path):
    (tmp_path / "chip.flp").write_bytes(plan_of(softmax_on_chip()))
    write_pair(tmp_path)


BLOCK = """\
NPU-V3: 62 cycles, 0.062 us; 0.094 us with host and transfers
  off-chip memory  16 B read, 16 B written
  on-chip memory   272 B of 4.1 kB
  steps            1 launches, 2 by DMA, 2 transfers
  busy             dma0 68 %, vector 32 %, link 34 %
"""


def test_a_run_tells_about_its_chips(run, tmp_path):
    text = run("run", "chip.flp").out
    assert "NPU-V3 was simulated" in text and text.endswith(BLOCK)
    assert not (tmp_path / "chip.trace.json").exists()


def test_a_run_tells_transfers_that_move_nothing(run, tmp_path):
    (tmp_path / "free.flp").write_bytes(plan_of(softmax_on_chip(FREE)))
    told = BLOCK.replace("0.094 us with", "0.062 us with").replace("2 transfers", "2 transfers (zero-copy: nothing is moved)")
    assert run("run", "free.flp").out.endswith(told.replace("link 34 %", "link 0 %"))
    (chip,) = json.loads(run("run", "free.flp", "--json").out)["chips"]
    assert (chip["transfer"], chip["traffic"]["copies"], chip["traffic"]["bytes_to_device"]) == ("zero_copy", 2, 0)
    assert "2 by DMA, 2 transfers (zero-copy: nothing is moved);" in run("inspect", "free.flp").out


def test_a_run_tells_the_energy_of_chips_that_state_power(run, tmp_path):
    """96 + 32 + 96 pJ of bytes at a pJ on chip and five off chip, 6.2 pJ at rest, in 62 ns."""
    program = softmax_on_chip()
    machine = replace(SLOW.machine, power=Power(idle=100, cap=10_000, on_chip=1000, off_chip=5000, macs=(0,) * 24))
    program.chips = [replace(SLOW, machine=machine)]
    (tmp_path / "power.flp").write_bytes(plan_of(program))
    text = run("run", "power.flp", "--trace", "p.json").out
    assert "  energy           0.00023 uJ; 3.7 mW on average, 4.7 of 10.0 mW at most\n" in text
    levels = [e["args"]["mW"] for e in json.loads((tmp_path / "p.json").read_text()) if e["name"] == "power"]
    assert levels == [0.1, 4.672, 1.7, 4.672, 0.1]
    (chip,) = json.loads(run("run", "power.flp", "--json").out)["chips"]
    assert chip["energy"] == {"compute_uj": 0, "on_chip_uj": 64e-6, "off_chip_uj": 160e-6, "idle_uj": 6.2e-6}


def test_profile_tells_nodes_and_writes_the_trace(run, tmp_path):
    text = run("run", "chip.flp", "--profile").out
    lines = [line.split() for line in text.splitlines()]
    assert ["0.062", "0.020", "0.042", "32", "1", "0.016", "0.078", "NPU-V3", "vector", "layer/softmax"] in lines
    assert lines[-1][:4] == ["trace", "saved", "to", "chip.trace.json;"]
    assert {e["ph"] for e in json.loads((tmp_path / "chip.trace.json").read_text())} == {"M", "X", "C"}


def test_trace_goes_where_it_is_told(run, tmp_path):
    text = run("run", "chip.flp", "--trace", "t.json").out
    assert "layer/softmax" not in text and (tmp_path / "t.json").exists()
    run("run", "chip.flp", "--trace", "t", "--outputs", "t").failed(2, "--outputs and the trace are one file, 't'")
    same = run("run", "chip.flp", "--profile", "--outputs", "chip.trace.json")
    same.failed(2, "--outputs and the trace are one file, 'chip.trace.json'; --trace FILE.json names another one")
    run("run", "chip.flp", "--trace", "absent/t.json").failed(8, "its folder does not exist")
    run("run", "p.flp", "--trace", "t.json").failed(2, "the plan runs on the host alone")


def test_json_has_all_of_it(run):
    document = json.loads(run("run", "chip.flp", "--repeat", "3", "--json").out)
    (chip,) = document["chips"]
    assert (chip["cycles"], chip["traffic_bytes"], chip["source"], chip["counted"]) == (62, 32, "simulator", True)
    assert chip["traffic"] == chip["traffic_planned"] and chip["traffic"]["dmas"] == 2
    assert document["nodes"][0]["nodes"] == ["layer/softmax"] and document["nodes"][0]["unit_us"] == 0.02


def test_inspect_lists_queues_and_waits(run):
    lines = [line.split() for line in run("inspect", "chip.flp").out.splitlines()]
    assert ["2", "Softmax", "softmax_f32.generic", "float16[1,8]", "NPU-V3", "vector", "1", "layer/softmax"] in lines
    assert ["3", "Store", "dma", "float16[1,8]", "NPU-V3", "dma0", "2", "layer/softmax"] in lines


def test_inspect_draws_the_timeline(run):
    text = run("inspect", "chip.flp", "--timeline").out
    assert max(map(len, text.splitlines())) <= 100
    assert "NPU-V3 vector |" in text and "0.094 us" in text and "0.062 us" in text
    document = json.loads(run("inspect", "chip.flp", "--timeline", "--json").out)
    assert [(s["queue"], s["start_us"], s["end_us"]) for s in document["steps"]][1:3] == [("dma0", 0.016, 0.037), ("vector", 0.037, 0.057)]
    (memory,) = document["on_chip"]
    assert memory["in_use"] == [[0, 0], [0.016, 16], [0.037, 32], [0.057, 16], [0.078, 0]]
    assert memory["held"] == [[0, 16, 0.016, 0.057, 1], [256, 272, 0.037, 0.078, 2]]
    run("inspect", "p.flp", "--timeline").failed(2, "a timeline shows the queues of chips")


def test_times_of_less_than_a_nanosecond_are_not_printed_as_none() -> None:
    assert [chips._us(t) for t in (0.0, 0.0003125, 0.02, 12.3456)] == ["0.000", "0.000313", "0.020", "12.346"]
