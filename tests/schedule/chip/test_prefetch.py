"""What comes in and goes out while units compute. Times are nanoseconds: a byte moves in one, and every DMA step of the first model takes
8000 more to set up, so that nothing is cut."""

from __future__ import annotations

import onnx.helper as oh
import pytest

from flaot.hcd import Hcd, load
from flaot.pipeline import Compiled, Options, compile_model
from flaot.plan.program import Opcode
from flaot.plan.timeline import Span, timeline
from flaot.schedule.chip.compose import ChipOptions
from tests.schedule.chip.small import compiled, model, npu, random, tiling

SETUP, PIECE = 8000, 64 * 64 * 2
DMA = SETUP + PIECE
"""Of the input, of each of the weights and of the result."""
OPERATIONS = 2 * 64**3


def npu_text(peak: int = 32, kb: int = 256, concurrency: int = 0, outstanding: int = 0) -> str:
    unit, engine = (f", {key}: {n}" if n else "" for key, n in (("concurrency", concurrency), ("max_outstanding", outstanding)))
    return f"""
chip: {{name: Ahead, device_type: npu_test}}
compute_units: {{fp16: {{peak_gflops: {peak}, supported_layouts: [NCHW]{unit}}}}}
memory: {{on_chip_cache: {{size_kb: {kb}, bandwidth_gb_per_s: 64}}, off_chip_memory: {{bandwidth_gb_per_s: 1}}}}
tensor: {{supported_dtypes: [float16], default_layout: NCHW}}
dma: {{channels: 2, setup_cycles: {SETUP}{engine}}}
"""


def chip(peak: int, kb: int = 256) -> Hcd:
    return load(npu_text(peak, kb).encode(), "ahead.hcd")


def three_products() -> bytes:
    nodes = [oh.make_node("MatMul", [f"v{i}", f"w{i}"], [f"v{i + 1}"], f"p{i}") for i in range(3)]
    return model(nodes, {"v0": [64, 64]}, {"v3": [64, 64]}, {f"w{i}": random(64, 64, seed=i) for i in range(3)})


def alone(done: Compiled) -> list[tuple[str, Span]]:
    """Operator and time of every step on the chip, as if host and link took no time."""
    spans = timeline(done.program.chips, done.program.steps, alone=True).spans
    return [(s.op, span) for s, span in zip(done.program.steps, spans, strict=True) if s.device and s.opcode is not Opcode.transfer]


def test_weights_come_while_the_product_before_is_computed() -> None:
    """Products of 16,384 take longer than the weights of the next one: only the first load of input and weights and the store show."""
    done = compile_model(three_products(), chip(32))
    compute = OPERATIONS // 32
    assert compute == 16384 > DMA
    found = alone(done)
    assert sorted(op for op, _ in found) == ["Load"] * 4 + ["MatMul"] * 3 + ["Store"]
    loads, products = ([(s.start // 1000, s.end // 1000) for op, s in found if op == kind] for kind in ("Load", "MatMul"))
    assert loads == [(i * DMA, (i + 1) * DMA) for i in range(4)]
    assert products == [(2 * DMA + i * compute, 2 * DMA + (i + 1) * compute) for i in range(3)]
    assert done.report["estimate"]["cycles"] == 2 * DMA + 3 * compute + DMA


def test_products_wait_for_weights_that_come_slower() -> None:
    done = compile_model(three_products(), chip(128))
    compute = OPERATIONS // 128
    assert compute == 4096 < DMA
    assert [s.end // 1000 for op, s in alone(done) if op == "MatMul"] == [(2 + i) * DMA + compute for i in range(3)]
    assert done.report["estimate"]["cycles"] == 4 * DMA + compute + DMA


def test_without_asynchronous_commands_nothing_overlaps() -> None:
    done = compile_model(three_products(), chip(32), Options(chips=ChipOptions(asynchronous=False)))
    assert done.report["estimate"]["cycles"] == 5 * DMA + 3 * OPERATIONS // 32


@pytest.mark.usefixtures("one_plan")
def test_a_full_queue_of_loads_holds_the_host_up() -> None:
    """With room for one command the host issues a load when the one before has ended, and the first product after the last load."""
    done = compile_model(three_products(), chip(32), Options(chips=ChipOptions(depth=1)))
    found = alone(done)
    assert [s.issued // 1000 for op, s in found if op == "Load"] == [0, DMA, 2 * DMA, 3 * DMA]
    compute = OPERATIONS // 32
    assert [s.start // 1000 for op, s in found if op == "MatMul"] == [3 * DMA, 3 * DMA + compute, 3 * DMA + 2 * compute]
    assert done.report["estimate"]["cycles"] == 3 * DMA + 3 * compute + DMA


def test_a_plan_for_less_memory_is_taken_where_it_is_faster() -> None:
    """32 kB of the 256 have no room for the last weights until the first product is done: it is issued before their load, which it had
    to wait for."""
    done = compile_model(three_products(), chip(32), Options(chips=ChipOptions(depth=1)))
    compute = OPERATIONS // 32
    products = [s.start // 1000 for op, s in alone(done) if op == "MatMul"]
    assert products == [2 * DMA, 2 * DMA + compute, 2 * DMA + 2 * compute]
    whole, best = 4 * DMA + 3 * compute, 2 * DMA + 3 * compute + DMA
    assert done.report["estimate"]["cycles"] == best
    (reason,) = {row["reason"].split("; in ")[1] for row in done.record.to_json()["paths"]}
    assert reason == f"1/8 of on-chip memory: {best / 1000:.2f} us and 40960 bytes, with all of it {whole / 1000:.2f} us and 40960 bytes"


@pytest.mark.parametrize("kb", [32, 24])
def test_what_does_not_fit_ahead_comes_later(kb: int) -> None:
    """Never more on chip than there is, never faster than with room."""
    done = compile_model(three_products(), chip(32, kb))
    assert done.report["estimate"]["on_chip_bytes"] <= kb * 1024
    assert done.report["estimate"]["cycles"] >= 2 * DMA + 3 * OPERATIONS // 32 + DMA


def test_tiles_are_double_buffered() -> None:
    """32 tiles of 16 rows, 2048 in and 2048 out, 4096 each to compute, beside weights of 8192: loads and stores hide behind computing but
    for the first tile, the weights and the last result; half of them would not if a tile waited for the store of the one before."""
    node = oh.make_node("MatMul", ["x", "w"], ["y"], "product")
    data = model([node], {"x": [512, 64]}, {"y": [512, 64]}, {"w": random(64, 64)})
    done = compiled(data, npu(16, peak=32, off=2))
    assert tiling(done, "product")[1] == "rows/32"
    assert done.report["estimate"]["cycles"] == (2048 + 8192) // 2 + 32 * 4096 + 2048 // 2


def test_moving_alone_decides_where_it_takes_longer() -> None:
    """The bus never rests: all bytes over its rate, which is the roofline."""
    node = oh.make_node("MatMul", ["x", "w"], ["y"], "product")
    data = model([node], {"x": [512, 64]}, {"y": [512, 64]}, {"w": random(64, 64)})
    estimate = compiled(data, npu(16, peak=512, off=2)).report["estimate"]
    assert estimate["cycles"] == (2 * 512 * 64 * 2 + 64 * 64 * 2) // 2
    assert estimate["ratio"] == 1


def test_queue_depth_goes_before_what_the_descriptor_states() -> None:
    stated = load(npu_text(concurrency=4, outstanding=8).encode(), "deep.hcd")
    for depth, expected in ((None, (8, 4)), (2, (2, 2)), (16, (16, 16))):
        done = compile_model(three_products(), stated, Options(chips=ChipOptions(depth=depth)))
        machine = done.program.chips[0].machine
        assert (machine.depth, machine.units[0].depth or machine.depth) == expected
