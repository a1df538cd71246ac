"""A chip with less memory takes no less time and moves no fewer bytes; less bandwidth takes no less time, faster units take no more.

A plan for half the memory is a candidate for all of it, so that holds but for plans that move more bytes in up to 2 % less time.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnx.helper as oh
import pytest

from flaot.hcd import load
from flaot.pipeline import Options, compile_model
from flaot.schedule.chip.estimate import Estimate
from tests.models.manifest import folder, models

NPU = """
chip: {{name: Scaled, device_type: npu_test}}
compute_units: {{fp16: {{count: {count}, peak_tflops: {peak}, supported_layouts: [NCHW]}}}}
memory: {{on_chip_cache: {{size_kb: {kb}, bandwidth_gb_per_s: {near}}}, off_chip_memory: {{bandwidth_gb_per_s: {far}}}}}
tensor: {{supported_dtypes: [float16], default_layout: NCHW}}
constraints: {{memory_alignment_bytes: 64}}
"""
BASE = {"count": 64, "peak": 1.0, "kb": 1024, "near": 64.0, "far": 16.0}


def estimate(model: onnx.ModelProto, **changed: float) -> Estimate:
    hcd = load(NPU.format(**(BASE | changed)).encode(), "scaled.hcd")
    return compile_model(model, hcd).estimates[0]


def convolutions() -> onnx.ModelProto:
    """Four convolutions, 3x3, of 32 channels on a 64x64 image: each value takes 256 kB in float16."""
    values = np.random.default_rng(0).standard_normal((4, 32, 32, 3, 3)).astype(np.float32) / 17
    nodes = [oh.make_node("Conv", [f"x{i}", f"w{i}"], [f"x{i + 1}"], f"conv{i}", pads=[1, 1, 1, 1]) for i in range(4)]
    ports = [oh.make_tensor_value_info(n, onnx.TensorProto.FLOAT, (1, 32, 64, 64)) for n in ("x0", "x4")]
    weights = [onnx.numpy_helper.from_array(w, f"w{i}") for i, w in enumerate(values)]
    graph = oh.make_graph(nodes, "convolutions", ports[:1], ports[1:], weights)
    return oh.make_model(graph, opset_imports=[oh.make_opsetid("", 20)], ir_version=9)


def product() -> onnx.ModelProto:
    """A row of 64 with a constant matrix of 64 x 4096, 512 kB in float16: hardly anything is computed."""
    matrix = np.random.default_rng(0).standard_normal((64, 4096)).astype(np.float32)
    ports = [oh.make_tensor_value_info(n, onnx.TensorProto.FLOAT, (1, d)) for n, d in (("x", 64), ("y", 4096))]
    graph = oh.make_graph([oh.make_node("MatMul", ["x", "w"], ["y"], "product")], "product", ports[:1], ports[1:],
                          [onnx.numpy_helper.from_array(matrix, "w")])
    return oh.make_model(graph, opset_imports=[oh.make_opsetid("", 20)], ir_version=9)


def test_less_memory_takes_no_less_time_and_traffic() -> None:
    found = [estimate(convolutions(), kb=kb) for kb in (1024, 512, 256, 128)]
    for larger, smaller in zip(found, found[1:], strict=False):
        assert smaller.cycles >= larger.cycles and smaller.traffic_bytes >= larger.traffic_bytes
    assert estimate(convolutions(), kb=2048).traffic_bytes == found[0].traffic_bytes
    out_and_in_again = 2 * 2**18
    assert found[-1].traffic_bytes >= found[0].traffic_bytes + 3 * out_and_in_again
    assert found[-1].cycles > found[0].cycles


def test_what_fits_into_half_the_memory_moves_the_same() -> None:
    assert estimate(product(), kb=2048).traffic_bytes == estimate(product(), kb=1024).traffic_bytes == (64 + 64 * 4096 + 4096) * 2


def test_half_the_off_chip_bandwidth_doubles_what_only_moves() -> None:
    whole, half = estimate(product()), estimate(product(), far=8.0)
    assert whole.time_us == pytest.approx((64 + 64 * 4096 + 4096) * 2 / 16e3, rel=0.1)
    assert half.cycles / whole.cycles == pytest.approx(2, rel=0.1)
    assert half.traffic_bytes == whole.traffic_bytes


def test_half_the_on_chip_bandwidth_takes_no_less_time() -> None:
    times = [estimate(convolutions(), near=near).cycles for near in (4.0, 2.0, 1.0, 0.5)]
    assert times == sorted(times) and times[-1] > times[0]


def test_twice_the_units_take_no_more_time() -> None:
    times = [estimate(convolutions(), count=64 * n, peak=float(n)).cycles for n in (1, 2, 4, 8)]
    assert times == sorted(times, reverse=True)
    assert times[1] < 0.6 * times[0]


@pytest.mark.slow
@pytest.mark.skipif(folder() is None, reason="FLAOT_MODELS is not set")
@pytest.mark.parametrize("name", ["yunet_n_320", "ultraface_rfb320", "fastestdet", "mlperf_resnet8_fp16", "squeezenet_fp16",
                                  "mtcnn_rnet", "attacut_sc", "atspm_head", "gtcrn_stream_simple", "aecmos_gru"])
def test_real_models(name: str, tmp_path: Path) -> None:
    model = models()[name]

    def npu(text: str = "") -> Estimate:
        path = tmp_path / "derived.hcd"
        path.write_text(f"extends: npu_v3\n{text}\n")
        return compile_model(model.path, path, Options(shapes=model.shapes)).estimates[0]

    base, sizes = npu(), [npu(f"memory: {{on_chip_cache: {{size_kb: {8192 >> i}}}}}") for i in range(1, 6)]
    for larger, smaller in zip([base, *sizes], sizes, strict=False):
        assert smaller.cycles >= larger.cycles and smaller.traffic_bytes >= larger.traffic_bytes
    for slower in ("on_chip_cache: {bandwidth_gb_per_s: 128}", "off_chip_memory: {bandwidth_gb_per_s: 64}"):
        assert npu(f"memory: {{{slower}}}").cycles > base.cycles
    assert npu("compute_units: {fp16: {count: 512, peak_tflops: 51.2}}").cycles <= base.cycles
    assert npu("dma: {channels: 4}").cycles <= base.cycles <= npu("dma: {channels: 1}").cycles
