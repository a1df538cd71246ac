"""Random graphs on chips with tiny memories: everything that shares bytes is ordered, the simulator traps nothing, and results are those of
a chip with room for all, bit for bit."""

from __future__ import annotations

import random

import numpy as np
import pytest

from flaot.hcd import Hcd, load
from flaot.mapping.policy import policy_of
from flaot.pipeline import Compiled, Options, compile_model
from flaot.runtime.session import Session
from flaot.schedule.chip.compose import PLAIN, ChipOptions
from tests.random_graphs import RandomModel
from tests.schedule.chip.ordering import unordered

NPU = """
chip: {{name: Tiny, device_type: npu_test}}
compute_units:
  fp16: {{count: 4, peak_gflops: 64, supported_layouts: [NCHW, NHWC]}}
  vector: {{count: 1, peak_gflops: 16, supported_layouts: [NCHW, NHWC]}}
memory: {{on_chip_cache: {{size_kb: {kb}, bandwidth_gb_per_s: 64}}, off_chip_memory: {{bandwidth_gb_per_s: 4}}}}
dma: {{channels: {channels}, setup_cycles: 20}}
tensor: {{supported_dtypes: [float16], default_layout: {layout}}}
constraints: {{memory_alignment_bytes: {alignment}}}
"""
ROOMY = 65536


def chip(kb: int, channels: int, alignment: int, layout: str) -> Hcd:
    return load(NPU.format(kb=kb, channels=channels, alignment=alignment, layout=layout).encode(), "tiny.hcd")


def places(compiled: Compiled) -> list[tuple[tuple[str, ...], str]]:
    return [(d.node, d.device) for d in compiled.record.decisions]


def check(seed: int, size: int) -> None:
    rng = random.Random(seed)
    model = RandomModel(seed).build(size)
    kb, rest = rng.choice([16, 16, 32, 64, 256]), (rng.randint(1, 3), rng.choice([1, 16, 64, 256]), rng.choice(["NCHW", "NHWC"]))
    limits = ChipOptions(depth=rng.choice([None, 1, 2, 4]), asynchronous=rng.random() < 0.7)
    level, data = rng.choice([0, 2, 3]), np.random.RandomState(seed)
    feeds = {i.name: data.randn(*[d.dim_value for d in i.type.tensor_type.shape.dim]).astype(np.float32) for i in model.graph.input}
    results = []
    for size_kb, options in ((kb, limits), (ROOMY, PLAIN)):
        hcd = chip(size_kb, *rest)
        done = compile_model(model, hcd, Options(policy=policy_of(hcd, fallback="allow"), fusion_level=level, chips=options))
        assert next(unordered(done.program), "") == ""
        assert all(c.machine.on_chip_peak <= size_kb * 1024 for c in done.program.chips)
        with Session(done.plan) as session:
            results.append((places(done), session.run(None, feeds)))
    if results[0][0] == results[1][0]:
        for small, large, port in zip(results[0][1], results[1][1], model.graph.output, strict=True):
            assert small.tobytes() == large.tobytes(), port.name


@pytest.mark.parametrize("seed", range(6))
def test_small_graphs(seed: int) -> None:
    check(seed, 4 + seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2000, 2016))
def test_larger_graphs(seed: int) -> None:
    check(seed, 25)
