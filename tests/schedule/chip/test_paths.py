"""The path of a step follows from its shape and the descriptor."""

from __future__ import annotations

import numpy as np
import onnx.helper as oh
import pytest

from flaot.mapping.decisions import Pathed
from flaot.pipeline import Compiled, compile_model
from flaot.plan import durations
from flaot.plan.program import Opcode, Space
from tests.schedule.chip.small import calls, compiled, dmas, model, npu, random, run, tiling, traffic, window

KB = 1024


def matmul(batch: int, rows: int, inner: int, columns: int) -> bytes:
    """A product of two inputs."""
    node = oh.make_node("MatMul", ["a", "b"], ["y"], "product")
    return model([node], {"a": [batch, rows, inner], "b": [batch, inner, columns]}, {"y": [batch, rows, columns]}, {})


def path(done: Compiled) -> Pathed:
    (found,) = (p for p in done.record.paths if "product" in p.node)
    return found


def test_one_large_product_is_resident_and_a_batch_of_them_tiled() -> None:
    """Operands of 1.5 MB each stay in the 8 MB of npu_v3; of 32 such pairs, 101 MB, one row block after the other comes in."""
    one, many = (compile_model(matmul(batch, 1024, 768, 1024), "npu_v3") for batch in (1, 32))
    operands, result = 2 * 1024 * 768 * 2, 1024 * 1024 * 2
    assert path(one).path == "resident" and path(many).path == "tiled"
    assert traffic(one) == operands + result and traffic(many) == 32 * traffic(one)
    assert path(one).reason.startswith("all it reads fits on chip and stays; ")
    assert path(many).reason == f"as a whole it needs {32 * traffic(one)} bytes on chip, 8388608 are free"


def test_pieces_that_stay() -> None:
    """8 kB and 64 kB on a chip of 96: two halves of the one and 16 parts of the other are brought in once, for 32 calls."""
    done = compiled(matmul(1, 64, 64, 512), npu(96, peak=1024))
    assert tiling(done, "product") == ("resident", "rows/2 columns/16")
    brought = dmas(done, "product", Space.device)
    halves = [window(v, (1, 64, 64))[1] for v in brought if v.dims == (1, 32, 64)]
    parts = [window(v, (1, 64, 512))[2] for v in brought if v.dims == (1, 64, 32)]
    assert halves == [(0, 32), (32, 64)] and parts == [(i, i + 32) for i in range(0, 512, 32)]
    assert len(brought) == 18 and len(calls(done, "product")) == 32
    assert traffic(done) == 8 * KB + 64 * KB + 64 * KB
    a, b = random(1, 64, 64, seed=1, scale=1), random(1, 64, 512, seed=2)
    np.testing.assert_allclose(run(done, {"a": a, "b": b})[0], a @ b, atol=0.02)


@pytest.mark.parametrize("dimensions", [3, 2, 1])
def test_a_unit_transposes_where_dma_would_take_a_setup_for_every_element(dimensions: int) -> None:
    """Elements of two axes are three strided axes of a transfer: with so many DMA turns 64 x 128 in one. With two it would take 64 setups,
    with one 8192: runs come in and a unit turns them."""
    nodes = [oh.make_node("Transpose", ["x"], ["t"], "turn", perm=[1, 0]), oh.make_node("Softmax", ["t"], ["y"], "soft")]
    chip = npu(128, 256, 4, f"dma: {{dimensions: {dimensions}, setup_cycles: 200}}\n")
    done = compiled(model(nodes, {"x": [64, 128]}, {"y": [128, 64]}, {}), chip)
    steps = [s for s in done.program.steps if s.opcode is Opcode.dma]
    assert [durations.moves((*s.inputs, *s.outputs), dimensions) for s in steps] == [1] * len(steps)
    assert [s.op for s in steps if "turn" in s.origin] == (["Transpose"] if dimensions == 3 else ["Load"] * len(calls(done, "turn")))
    assert (calls(done, "turn") == []) == (dimensions == 3)
    x = random(64, 128, scale=1)
    e = np.exp(x.T - x.T.max(axis=1, keepdims=True))
    np.testing.assert_allclose(run(done, {"x": x})[0], e / e.sum(axis=1, keepdims=True), atol=0.002)
