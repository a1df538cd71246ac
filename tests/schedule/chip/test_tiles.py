"""Steps too large for on-chip memory: their tiles, and every byte that moves."""

from __future__ import annotations

from itertools import groupby
from math import prod

import numpy as np
import onnx.helper as oh
import pytest

from flaot.hcd import Hcd
from flaot.plan import durations
from flaot.plan.program import Opcode, Space
from flaot.schedule.chip.tiles import Candidates, Setting
from flaot.targets.chip.machine import machine_of
from tests.schedule.chip.small import calls, compiled, dmas, model, npu, random, run, tiling, traffic, window

KB = 1024


def matmul(rows: int, inner: int, columns: int) -> bytes:
    node = oh.make_node("MatMul", ["x", "w"], ["y"], "product")
    return model([node], {"x": [rows, inner]}, {"y": [rows, columns]}, {"w": random(inner, columns)})


def test_rows_of_a_product_in_tiles() -> None:
    """Weights of 8 kB stay; tiles of 16 rows, 2 kB in and 2 kB out, twice each, fill the other 8."""
    done = compiled(matmul(512, 64, 64), npu(16, peak=1024))
    assert tiling(done, "product") == ("tiled", "rows/32")
    rows = [((a, a + 16), (0, 64)) for a in range(0, 512, 16)]
    assert [window(v, (512, 64)) for v in dmas(done, "product", Space.device)] == rows
    assert [v.dims for v in dmas(done, "product", Space.constant)] == [(64, 64)]
    assert [window(v, (512, 64)) for v in dmas(done, "product", Space.device, out=True)] == rows
    assert traffic(done) == 64 * KB + 8 * KB + 64 * KB
    assert done.report["estimate"]["on_chip_bytes"] == 16 * KB


def test_a_partial_last_tile() -> None:
    done = compiled(matmul(508, 64, 64), npu(16, peak=1024))
    tiles = [s.inputs[0].dims for s in calls(done, "product")]
    assert tiles == [(16, 64)] * 31 + [(12, 64)]
    assert traffic(done) == 508 * 128 + 8 * KB + 508 * 128
    x = random(508, 64, seed=1, scale=1)
    np.testing.assert_allclose(run(done, {"x": x})[0], x @ random(64, 64), atol=0.02)


def test_what_fits_is_not_cut() -> None:
    done = compiled(matmul(32, 64, 64), npu(64, 1024, 1000))
    assert tiling(done, "product") == ("resident", "whole")
    assert [v.dims for v in dmas(done, "product", Space.device)] == [(32, 64)]


@pytest.mark.usefixtures("one_plan")
def test_both_operands_too_large() -> None:
    """The smaller operand comes again for every tile of the larger one, which comes once."""
    done = compiled(matmul(128, 64, 512), npu(16, peak=1024))
    path, label = tiling(done, "product")
    columns, rows = (int(part.split("/")[1]) for part in label.split())
    assert path == "tiled" and label == f"columns/{columns} rows/{rows}"
    assert sum(v.elements for v in dmas(done, "product", Space.constant)) * 2 == 64 * KB
    assert len(dmas(done, "product", Space.device)) == columns * rows
    assert traffic(done) == 64 * KB + columns * 16 * KB + 128 * KB


SETUP = 200


def strided(dimensions: int) -> Hcd:
    return npu(128, 256, 4, f"dma: {{dimensions: {dimensions}, setup_cycles: {SETUP}}}\n")


def product() -> bytes:
    """x of 8 kB times w of 64 kB, neither constant."""
    return model([oh.make_node("MatMul", ["x", "w"], ["y"], "product")], {"x": [64, 64], "w": [64, 512]}, {"y": [64, 512]}, {})


@pytest.mark.parametrize(("dimensions", "label"), [(2, "columns/8"), (1, "rows/8")])
def test_dear_setups_keep_transfers_whole(dimensions: int, label: str) -> None:
    """A part of the columns has a run in every one of 64 rows, which one transfer moves when it has two strided axes. With one it takes 64
    setups, and rows are better, though the first product then waits for all of w. Either way one operand comes as a whole, and eight
    parts of the other and of the result move, with 17 setups."""
    done = compiled(product(), strided(dimensions))
    assert tiling(done, "product")[1] == label
    steps = [s for s in done.program.steps if s.opcode is Opcode.dma]
    assert sum(durations.moves((*s.inputs, *s.outputs), dimensions) for s in steps) == 1 + 8 + 8


@pytest.mark.usefixtures("one_plan")
def test_a_candidate_pays_for_every_setup() -> None:
    """Eight parts of w and of y take 63 setups more each where a transfer has one strided axis; rows lie in one run."""
    done = compiled(product(), npu(1024, 64, 1000))
    setting = Setting(calls(done, "product")[0], frozenset(range(3)), 2 * 64 * 64 * 512, 64)
    two, one = ({t.label: t.time for t in Candidates(machine_of(strided(n))).of(setting, 128 * KB)} for n in (2, 1))
    assert one["columns/8"] - two["columns/8"] == (8 + 8) * 63 * SETUP * 1000
    assert one["rows/8"] == two["rows/8"] and one["whole"] == two["whole"]


@pytest.mark.parametrize(
    ("size", "kernel", "stride", "pads", "dilation"),
    [
        (63, 3, 2, (1, 1), 1), (64, 3, 1, (1, 1), 1), (64, 3, 2, (0, 1), 1), (61, 5, 1, (2, 2), 1), (60, 3, 1, (2, 2), 2),
        (65, 1, 2, (0, 0), 1),
    ],
    ids=str,
)
def test_tiles_of_a_convolution_read_the_rows_they_need(size: int, kernel: int, stride: int, pads: tuple[int, int], dilation: int) -> None:
    """Output o reads inputs o * stride - pad + tap * dilation, as far as there are such, and each tile reads its window once."""
    channels, width = 8, 33
    reach, side = (kernel - 1) * dilation + 1, kernel // 2 * dilation
    out = [1, channels, (size + sum(pads) - reach) // stride + 1, (width + 2 * side - reach) // stride + 1]
    node = oh.make_node(
        "Conv", ["x", "w"], ["y"], "conv", strides=[stride] * 2, dilations=[dilation] * 2, pads=[pads[0], side, pads[1], side],
    )
    x, w = random(1, channels, size, width, seed=1, scale=1), random(channels, channels, kernel, kernel)
    data = model([node], {"x": x.shape}, {"y": out}, {"w": w})
    done = compiled(data, npu(16, peak=1024))
    made = np.zeros(out, int)
    needed = []
    for view in dmas(done, "conv", Space.device, out=True):
        tile = window(view, out)
        made[tuple(slice(*t) for t in tile)] += 1
        read = []
        for (low, high), pad, whole in zip(tile[2:], (pads[0], side), x.shape[2:], strict=True):
            taps = [o * stride - pad + t * dilation for o in (low, high - 1) for t in (0, kernel - 1)]
            read.append((max(min(taps), 0), min(max(taps) + 1, whole)))
        needed.append(((0, 1), (0, channels), *read))
    assert len(needed) > 3 and (made == 1).all()
    assert [window(v, x.shape) for v in dmas(done, "conv", Space.device)] == [w for w, _ in groupby(needed)]
    moved = sum(prod(b - a for a, b in tile) for tile, _ in groupby(needed))
    assert traffic(done) == 2 * (moved + w.size + prod(out))
    whole = compiled(data, npu(1024, 1024, 1000))
    assert tiling(whole, "conv") != tiling(done, "conv")
    assert run(done, {"x": x})[0].tobytes() == run(whole, {"x": x})[0].tobytes()


def test_the_halo_of_stride_two_by_hand() -> None:
    """Four output rows read nine rows, the first tile eight as one is padding; neighbours share one row."""
    node = oh.make_node("Conv", ["x", "w"], ["y"], "conv", strides=[2, 2], pads=[1, 1, 1, 1])
    data = model([node], {"x": [1, 8, 63, 32]}, {"y": [1, 8, 32, 16]}, {"w": random(8, 8, 3, 3)})
    done = compiled(data, npu(16, peak=1024))
    assert tiling(done, "conv") == ("tiled", "height/8")
    assert [window(v, (1, 8, 63, 32))[2] for v in dmas(done, "conv", Space.device)] == [
        (0, 8), (7, 16), (15, 24), (23, 32), (31, 40), (39, 48), (47, 56), (55, 63),
    ]
    assert traffic(done) == (63 + 7) * 8 * 32 * 2 + 8 * 8 * 9 * 2 + 8 * 32 * 16 * 2
