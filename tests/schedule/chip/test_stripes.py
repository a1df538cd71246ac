"""Chains of convolutions whose images are larger than on-chip memory, run in stripes."""

from __future__ import annotations

import numpy as np
import onnx
import onnx.helper as oh
import pytest

from flaot.hcd import Hcd, load
from flaot.pipeline import Compiled, Options, compile_model
from flaot.plan.program import Space
from flaot.runtime.session import Session
from tests.schedule.chip.small import calls, dmas, run, traffic, window

NPU = """
chip: {name: Stripes, device_type: npu_test}
compute_units: {fp16: {count: 4, peak_gflops: 512, supported_layouts: [NCHW, NHWC]}}
memory: {on_chip_cache: {size_kb: 64, bandwidth_gb_per_s: 64}, off_chip_memory: {bandwidth_gb_per_s: 2}}
tensor: {supported_dtypes: [float16], default_layout: NHWC}
"""
SIDE, CHANNELS, LAYERS = 64, 8, 4
IMAGE = SIDE * SIDE * CHANNELS * 2
"""Bytes of one image: as much as on-chip memory."""


def chain(layers: int = LAYERS, height: int = SIDE) -> bytes:
    """3 x 3 convolutions with padding on 8 channels."""
    rng = np.random.default_rng(1)
    weights = [rng.standard_normal((CHANNELS, CHANNELS, 3, 3)).astype(np.float32) / 9 for _ in range(layers)]
    names = [f"v{i}" for i in range(layers + 1)]
    nodes = [oh.make_node("Conv", [names[i], f"w{i}"], [names[i + 1]], f"conv{i}", pads=[1, 1, 1, 1]) for i in range(layers)]
    type = [1, CHANNELS, height, SIDE]
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


@pytest.mark.parametrize("side", [80, 77])
def test_two_layers_by_hand(npu: Hcd, side: int) -> None:
    """A stripe [a, b) of the second layer takes rows a - 1 to b of the first, which take rows a - 2 to b + 1 of the image, as far as there
    are such rows: every inner edge computes two rows twice and brings in four twice. Weights come once."""
    image = side * SIDE * CHANNELS * 2
    apart, together = (compile_model(chain(2, side), npu, Options(fusion_level=level)) for level in (2, 3))
    (tiling,) = {p.tiling for p in together.record.paths}
    count = int(tiling.split("/")[1].split()[0])
    assert tiling == f"height/{count} of 2 steps" and count > 1
    made = [window(v, (1, CHANNELS, side, SIDE))[2] for v in dmas(together, "conv1", Space.device, out=True)]
    assert len(made) == count and [a for a, _ in made] == [0, *(b for _, b in made[:-1])] and made[-1][1] == side
    first = [(max(a - 1, 0), min(b + 1, side)) for a, b in made]
    assert [s.outputs[0].dims[2] for s in calls(together, "conv0")] == [b - a for a, b in first]
    read = [window(v, (1, CHANNELS, side, SIDE))[2] for v in dmas(together, "conv0", Space.device)]
    assert read == [(max(a - 2, 0), min(b + 2, side)) for a, b in made]
    assert sum(b - a for a, b in first) == side + 2 * (count - 1)
    weights = 2 * CHANNELS * CHANNELS * 9 * 2
    again = 4 * (count - 1) * SIDE * CHANNELS * 2
    assert traffic(together) == image + again + weights + image
    assert traffic(apart) > 4 * image > traffic(together)
    x = np.random.default_rng(2).standard_normal((1, CHANNELS, side, SIDE)).astype(np.float32)
    assert run(apart, {"v0": x})[0].tobytes() == run(together, {"v0": x})[0].tobytes()


def test_no_stripes_where_everything_stays_on_chip(npu: Hcd) -> None:
    """Images of 16 rows: stripes would only compute rows twice."""
    plain, aggressive = (compile_model(chain(2, 16), npu, Options(fusion_level=level)) for level in (2, 3))
    assert plain.report["estimate"] == aggressive.report["estimate"] and {p.path for p in aggressive.record.paths} <= {"resident", "tiled"}
