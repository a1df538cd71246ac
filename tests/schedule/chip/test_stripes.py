"""Chains of convolutions whose images are larger than on-chip memory, run in stripes."""

from __future__ import annotations

import numpy as np
import onnx
import onnx.helper as oh
import pytest

from flaot.hcd import Hcd, load
from flaot.pipeline import Compiled, Options, compile_model
from flaot.runtime.session import Session

NPU = """
chip: {name: Stripes, device_type: npu_test}
compute_units: {fp16: {count: 4, peak_gflops: 512, supported_layouts: [NCHW, NHWC]}}
memory: {on_chip_cache: {size_kb: 64, bandwidth_gb_per_s: 64}, off_chip_memory: {bandwidth_gb_per_s: 2}}
tensor: {supported_dtypes: [float16], default_layout: NHWC}
"""
SIDE, CHANNELS, LAYERS = 64, 8, 4
IMAGE = SIDE * SIDE * CHANNELS * 2
"""Bytes of one image: as much as on-chip memory."""


def chain() -> bytes:
    """Four 3 x 3 convolutions with padding on 8 channels."""
    rng = np.random.default_rng(1)
    weights = [rng.standard_normal((CHANNELS, CHANNELS, 3, 3)).astype(np.float32) / 9 for _ in range(LAYERS)]
    names = [f"v{i}" for i in range(LAYERS + 1)]
    nodes = [oh.make_node("Conv", [names[i], f"w{i}"], [names[i + 1]], f"conv{i}", pads=[1, 1, 1, 1]) for i in range(LAYERS)]
    type = [1, CHANNELS, SIDE, SIDE]
    x, y = (oh.make_tensor_value_info(n, onnx.TensorProto.FLOAT, type) for n in (names[0], names[-1]))
    graph = oh.make_graph(nodes, "chain", [x], [y], [onnx.numpy_helper.from_array(w, f"w{i}") for i, w in enumerate(weights)])
    return oh.make_model(graph, opset_imports=[oh.make_opsetid("", 17)], ir_version=8).SerializeToString()


@pytest.fixture(scope="module")
def npu() -> Hcd:
    return load(NPU.encode(), "stripes.hcd")


@pytest.fixture(scope="module")
def balanced(npu: Hcd) -> Compiled:
    return compile_model(chain(), npu)


@pytest.fixture(scope="module")
def aggressive(npu: Hcd) -> Compiled:
    return compile_model(chain(), npu, Options(fusion_level=3))


def test_only_the_aggressive_level_runs_stripes(balanced: Compiled, aggressive: Compiled) -> None:
    assert "striped" not in {p.path for p in balanced.record.paths}
    assert {p.path for p in aggressive.record.paths} == {"striped"}


def test_what_the_layers_hand_on_stays_on_chip(balanced: Compiled, aggressive: Compiled) -> None:
    """Three images between four layers go out and in again; in stripes only the first and last image and a few rows twice move."""
    apart, together = (c.report["estimate"]["traffic_bytes"] for c in (balanced, aggressive))
    assert apart > 8 * IMAGE
    assert 2 * IMAGE < together < 3 * IMAGE


def test_on_chip_memory_is_kept(balanced: Compiled, aggressive: Compiled) -> None:
    for compiled in (balanced, aggressive):
        assert 0 < compiled.report["estimate"]["on_chip_bytes"] <= 64 * 1024


def test_the_same_bits(balanced: Compiled, aggressive: Compiled) -> None:
    x = np.random.default_rng(2).standard_normal((1, CHANNELS, SIDE, SIDE)).astype(np.float32)
    first, second = (Session(c.plan).run(None, {"v0": x})[0] for c in (balanced, aggressive))
    assert np.array_equal(first, second) and np.abs(first).max() > 0.1


def test_values_within_stripes_are_not_named(aggressive: Compiled) -> None:
    assert {n.name for n in aggressive.program.names} & {"v1", "v2", "v3"} == set()
