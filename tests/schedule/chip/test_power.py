"""Energy of compiled plans by values a person can add up, and schedules that keep to a cap at every instant."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import onnx
import onnx.helper as oh
import pytest

from flaot.hcd import Hcd, load
from flaot.mapping.policy import policy_of
from flaot.pipeline import Compiled, Options, compile_model
from flaot.plan.energy import energy_of
from flaot.plan.fields import Section
from flaot.plan.program import Machine, Program
from flaot.plan.read import read_plan
from flaot.plan.timeline import Timeline, timeline
from flaot.plan.usage import figure, usage

NPU = """
chip: {{name: Meter, device_type: npu_test}}
compute_units: {{fp16: {{count: 1, peak_gflops: 2, launch_cycles: 4, supported_layouts: [NCHW]}}}}
memory: {{on_chip_cache: {{size_kb: {kb}, bandwidth_gb_per_s: 1}}, off_chip_memory: {{bandwidth_gb_per_s: 1}}}}
tensor: {{supported_dtypes: [float16], default_layout: NCHW}}
constraints: {{memory_alignment_bytes: 64}}
{power}
"""
POWER = "power: {{energy_pj_per_mac: {{float16: 3}}, energy_pj_per_byte: {{on_chip_cache: 0.5, off_chip_memory: 20}}, idle_mw: 2{cap}}}"
FREE = POWER.format(cap="")
IN, OUT = 8, 4


def chip(power: str, kb: int = 16) -> Hcd:
    return load(NPU.format(power=power, kb=kb).encode(), "meter.hcd")


def under(cap_mw: float, kb: int = 16) -> Hcd:
    return chip(POWER.format(cap=f", cap_mw: {cap_mw}"), kb)


def product() -> bytes:
    """(1, 8) times (8, 4)."""
    x, y = (oh.make_tensor_value_info(n, onnx.TensorProto.FLOAT, [1, size]) for n, size in (("x", IN), ("y", OUT)))
    w = onnx.numpy_helper.from_array(np.eye(IN, OUT, dtype=np.float32), "w")
    graph = oh.make_graph([oh.make_node("MatMul", ["x", "w"], ["y"], "product")], "g", [x], [y], [w])
    return oh.make_model(graph, opset_imports=[oh.make_opsetid("", 17)], ir_version=8).SerializeToString()


def layers(count: int = 4, size: int = 96) -> bytes:
    """Square products with Relu in between, whose weights do not fit 32 kB together."""
    rng = np.random.default_rng(7)
    names, nodes, weights = [f"v{i}" for i in range(2 * count + 1)], [], []
    for i in range(count):
        weights.append(onnx.numpy_helper.from_array(rng.standard_normal((size, size)).astype(np.float32), f"w{i}"))
        nodes += [oh.make_node("MatMul", [names[2 * i], f"w{i}"], [names[2 * i + 1]], f"p{i}")]
        nodes += [oh.make_node("Relu", [names[2 * i + 1]], [names[2 * i + 2]], f"r{i}")]
    x, y = (oh.make_tensor_value_info(n, onnx.TensorProto.FLOAT, [32, size]) for n in (names[0], names[-1]))
    graph = oh.make_graph(nodes, "g", [x], [y], weights)
    return oh.make_model(graph, opset_imports=[oh.make_opsetid("", 17)], ir_version=8).SerializeToString()


def check_cap(program: Program, line: Timeline, device: int = 1) -> None:
    """Every step draws at least its energy, none more than its time allows, and all together never more than the cap."""
    machine, changes = program.chips[device - 1].machine, dict[int, Fraction]()
    assert machine.power is not None
    for span in line.spans:
        energy = energy_of(machine, program.steps[span.step]).total if span.device == device else 0
        if not energy:
            continue
        pieces = [*span.drawn, (span.end, 0)]
        assert pieces[0][0] == span.start
        used = Fraction(0)
        for (start, uw), (end, _) in zip(pieces, pieces[1:], strict=False):
            assert start <= end
            used += Fraction(uw * (end - start), 1000)
            changes[start] = changes.get(start, Fraction(0)) + uw
            changes[end] = changes.get(end, Fraction(0)) - uw
        assert energy <= used <= energy + Fraction(span.duration, 1000) + Fraction(max(uw for _, uw in pieces), 1000)
    total = Fraction(machine.power.idle)
    for time in sorted(changes):
        total += changes[time]
        assert total <= machine.power.cap, time


def check_plan(program: Program) -> None:
    """Alone, and with the host and its transfers."""
    for alone in (True, False):
        check_cap(program, timeline(program.chips, program.steps, alone))


def test_energy_of_a_product() -> None:
    """32 multiply-accumulates; 16 + 64 bytes in and 8 out over either memory, as many again between on-chip memory and the unit."""
    done = compile_model(product(), chip(FREE))
    e, moved = done.report["estimate"], 2 * (IN + IN * OUT + OUT)
    assert (e["traffic_bytes"], moved) == (88, 88)
    parts = {name: round(uj * 1e6, 6) for name, uj in e["energy"].items()}
    assert parts == {"compute_uj": 32 * 3, "on_chip_uj": 2 * 88 * 0.5, "off_chip_uj": 88 * 20, "idle_uj": round(2 * e["time_us"] * 1e3, 6)}
    assert e["energy_uj"] == pytest.approx((96 + 88 + 1760 + 2 * e["cycles"]) / 1e6)
    assert e["average_mw"] == pytest.approx(1000 * e["energy_uj"] / e["time_us"])
    assert "cap_mw" not in e and "uncapped_us" not in e
    assert any("uJ (compute" in line for line in done.estimates[0].lines())
    (row,) = done.record.to_json()["power"]
    assert (row["device"], row["energy_uj"], row["cap_mw"]) == ("Meter", e["energy_uj"], 0)


def test_a_chip_that_states_no_power_has_no_energy() -> None:
    done = compile_model(product(), chip(""))
    assert not {"energy_uj", "average_mw", "peak_mw", "cap_mw", "energy", "uncapped_us"} & set(done.report["estimate"])
    assert done.record.to_json()["power"] == [] and len(read_plan(done.plan).section(Section.powers)) == 0


def test_a_high_cap_changes_nothing_but_the_record_of_it() -> None:
    """All of the plan but the header, which has the descriptor's digest, the table and what the chip draws."""
    plain, free, high = (read_plan(compile_model(layers(), hcd).plan) for hcd in (chip("", 32), chip(FREE, 32), under(1e6, 32)))
    for section in Section:
        if section is not Section.decisions and section is not Section.powers:
            assert plain.section(section).tobytes() == free.section(section).tobytes() == high.section(section).tobytes(), section.name
    first, *others = [[(s.start, s.end) for s in timeline(p.chips, p.steps).spans] for p in (plain, free, high)]
    assert others == [first, first]


@pytest.mark.usefixtures("one_plan")
def test_lower_caps_are_kept_and_cost_time() -> None:
    free = compile_model(layers(), chip(FREE, 32)).report["estimate"]
    last = free["time_us"]
    for share in (1.0, 0.9, 0.8, 0.6, 0.4, 0.2, 0.1):
        cap = round(free["peak_mw"] * share, 3)
        done = compile_model(layers(), under(cap, 32))
        check_plan(done.program)
        e = done.report["estimate"]
        assert e["peak_mw"] <= e["cap_mw"] == cap
        assert e["time_us"] >= last and e["uncapped_us"] == free["time_us"]
        last = e["time_us"]
        moving = e["energy_uj"] - e["energy"]["idle_uj"]
        assert moving == pytest.approx(free["energy_uj"] - free["energy"]["idle_uj"])
        assert e["time_us"] >= 1000 * moving / (cap - 2) * (1 - 1e-6)
    assert last > 3 * free["time_us"]


def test_a_low_cap_may_choose_a_plan_that_moves_less() -> None:
    """Weights, input and output once are what has to move. Without a cap it is faster to bring the weights in twice; under 15 mW it is
    not, and the time without the cap that is told is that of the steps there are."""
    weights, ends = 4 * 96 * 96 * 2, 2 * 32 * 96 * 2
    free, capped = (compile_model(layers(), hcd).report["estimate"] for hcd in (chip(FREE, 32), under(15, 32)))
    assert (free["traffic_bytes"], capped["traffic_bytes"]) == (2 * weights + ends, weights + ends)
    assert capped["uncapped_us"] > free["time_us"] and capped["peak_mw"] <= 15


HCDS = Path(__file__).resolve().parents[3] / "hcd"
MODELS = os.environ.get("FLAOT_MODELS")
IDLE = 5
"""Milliwatts edge_dsp draws at rest."""


def on_edge_dsp(model: str, routes: Sequence[str] = ()) -> Compiled:
    hcd = load((HCDS / "edge_dsp.hcd").read_bytes(), "edge_dsp.hcd")
    return compile_model(Path(MODELS or "") / f"{model}.onnx", hcd, Options(policy=policy_of(hcd, fallback="allow", routes=routes)))


def under_caps(program: Program, caps: Sequence[int]) -> Iterator[tuple[int, Machine, int]]:
    """The cap (mW), the chip with it, and the picoseconds it works."""
    (chip,) = program.chips
    assert chip.machine.power is not None
    for cap in caps:
        machine = replace(chip.machine, power=replace(chip.machine.power, cap=cap * 1000))
        program.chips = [replace(chip, machine=machine)]
        check_plan(program)
        yield cap, machine, usage(program.chips, program.steps).chips[0].taken


@pytest.mark.slow
@pytest.mark.skipif(not MODELS, reason="FLAOT_MODELS names the folder of models")
@pytest.mark.parametrize(("model", "routes"), [("mlperf_resnet8_fp16", ()), ("squeezenet_fp16", ("conv10_1=host", "conv10_2=host"))])
def test_real_models_keep_to_caps(model: str, routes: Sequence[str]) -> None:
    """Never more than a third longer than without a cap, or than the energy takes at what the cap leaves. Without the last convolution of
    squeezenet, which fits in 64 kB only in many small calls: they make half of all steps."""
    done = on_edge_dsp(model, routes)
    free, last = done.report["estimate"], 0
    assert free["uncapped_us"] == free["time_us"]
    moving = free["energy_uj"] - free["energy"]["idle_uj"]
    for cap, _, taken in under_caps(done.program, (200, 60, 40, 20, 10)):
        assert last <= taken <= 1.33e6 * max(free["time_us"], 1000 * moving / (cap - IDLE))
        last = taken


@pytest.mark.slow
@pytest.mark.skipif(not MODELS, reason="FLAOT_MODELS names the folder of models")
def test_pacing_is_no_slower_than_one_step_after_another() -> None:
    """Each of which takes as long as without a cap, or as its energy takes at what the cap leaves."""
    done = on_edge_dsp("squeezenet_fp16")
    spans = timeline(done.program.chips, done.program.steps, alone=True).spans
    steps = [(step, span.end - span.start) for step, span in zip(done.program.steps, spans, strict=True) if step.device]
    for cap, machine, taken in under_caps(done.program, (200, 60, 50, 40, 30, 20, 10)):
        assert taken <= sum(max(time, energy_of(machine, step).total / (cap - IDLE)) for step, time in steps)


def test_small_figures_are_not_printed_as_none() -> None:
    """The product of 8 and 4 at 1 GHz, under a cap of little more than the chip draws at rest."""
    done = compile_model(product(), under(2.4), Options(policy=policy_of(under(2.4), prefer="Meter")))
    e = done.report["estimate"]
    first, _, _, energy, uncapped = done.estimates[0].lines()
    assert e["bound_us"] < 0.5 and f"times the bound of {e['bound_us']:.4g} us" in first
    assert " of 2.4 mW at most" in energy and f"  {e['uncapped_us']:.4g} us for the same steps without the cap" in uncapped
    assert [figure(v) for v in (0, 0.0005, 0.04, 0.99999, 1, 12.34)] == ["0.0", "0.0005", "0.04", "1", "1.0", "12.3"]
