"""One graph on chips with more and more on-chip memory: other tiles, the same bits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import onnx
import onnx.helper as oh
import pytest

from flaot.hcd import Hcd, load
from flaot.mapping.policy import policy_of
from flaot.pipeline import Options, compile_model
from flaot.plan.program import Opcode
from tests.schedule.chip.small import model, random, run

NPU = """
chip: {{name: Sized, device_type: npu_test}}
compute_units:
  fp16: {{count: 4, peak_gflops: 64, supported_layouts: [NCHW, NHWC]}}
  vector: {{count: 1, peak_gflops: 16, supported_layouts: [NCHW, NHWC]}}
memory: {{on_chip_cache: {{size_kb: {kb}, bandwidth_gb_per_s: 64}}, off_chip_memory: {{bandwidth_gb_per_s: 4}}}}
tensor: {{supported_dtypes: [float16, int8, uint8, int32, float32], default_layout: {layout}}}
{operators}
"""
INTEGER = "operators: {QLinearConv: {units: [vector]}, QLinearMatMul: {units: [vector]}, MatMulInteger: {units: [vector]}}"
SIZES = (16, 20, 32, 96, 4096)
"""kB on chip; the last one holds all."""


def chip(kb: int, layout: str = "NCHW", operators: str = "") -> Hcd:
    return load(NPU.format(kb=kb, layout=layout, operators=operators).encode(), "sized.hcd")


def image_model() -> bytes:
    """Convolutions (plain, strided with uneven pads, depthwise, dilated, transposed), pools, a residual sum, Softmax over channels."""
    nodes = [
        oh.make_node("Conv", ["x", "w0", "b0"], ["a"], "stem", strides=[2, 2], pads=[0, 0, 1, 1]), oh.make_node("Relu", ["a"], ["ar"]),
        oh.make_node("Conv", ["ar", "w1"], ["b"], "depthwise", group=16, pads=[1, 1, 1, 1]),
        oh.make_node("Add", ["ar", "b"], ["c"], "residual"),
        oh.make_node("Conv", ["c", "w2"], ["d"], "dilated", dilations=[2, 2], pads=[2, 2, 2, 2]),
        oh.make_node("MaxPool", ["d"], ["e"], "pool", kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1]),
        oh.make_node("ConvTranspose", ["e", "w3"], ["f"], "up", strides=[2, 2]),
        oh.make_node("AveragePool", ["f"], ["g"], "mean", kernel_shape=[2, 2]), oh.make_node("Softmax", ["g"], ["y"], "soft", axis=1),
    ]
    weights = {
        "w0": random(16, 3, 3, 3, seed=1, scale=3), "b0": random(16, seed=2), "w1": random(16, 1, 3, 3, seed=3, scale=3),
        "w2": random(24, 16, 3, 3, seed=4, scale=9), "w3": random(24, 12, 2, 2, seed=5, scale=5),
    }
    return model(nodes, {"x": [1, 3, 56, 56]}, {"y": [1, 12, 27, 27]}, weights)


def token_model() -> bytes:
    """A layer of a transformer's kind: products, a product of two activations, Softmax, normalisation, Gelu's parts."""
    nodes = [
        oh.make_node("MatMul", ["x", "wq"], ["q"], "q"), oh.make_node("MatMul", ["x", "wk"], ["k"], "k"),
        oh.make_node("Transpose", ["k"], ["kt"], "kt", perm=[0, 2, 1]), oh.make_node("MatMul", ["q", "kt"], ["s"], "scores"),
        oh.make_node("Softmax", ["s"], ["p"], "p", axis=-1), oh.make_node("MatMul", ["p", "x"], ["o"], "mix"),
        oh.make_node("Add", ["o", "x"], ["r"], "r"), oh.make_node("LayerNormalization", ["r", "g", "h"], ["n"], "norm"),
        oh.make_node("MatMul", ["n", "wf"], ["f"], "f"), oh.make_node("Tanh", ["f"], ["y"], "tanh"),
    ]
    weights = {"wq": random(64, 64, seed=1), "wk": random(64, 64, seed=2), "g": random(64, seed=3), "h": random(64, seed=4),
               "wf": random(64, 300, seed=5)}
    return model(nodes, {"x": [2, 100, 64]}, {"y": [2, 100, 300]}, weights)


Type = tuple[int, Sequence[int]]


def quantized(nodes: Sequence[onnx.NodeProto], x: Type, y: Type, held: Mapping[str, np.ndarray]) -> bytes:
    ports = [[oh.make_tensor_value_info(n, *type)] for n, type in (("x", x), ("y", y))]
    graph = oh.make_graph(list(nodes), "integer", *ports, [onnx.numpy_helper.from_array(a, n) for n, a in held.items()])
    return oh.make_model(graph, opset_imports=[oh.make_opsetid("", 17)], ir_version=8).SerializeToString()


def integer_model() -> bytes:
    """A quantized convolution with channel scales, then products with 8-bit and 32-bit results."""
    rng = np.random.default_rng(3)
    held = {
        "s": np.float32(0.05), "z": np.int8(3), "zu": np.uint8(120), "sw": (rng.random(16) / 20 + 0.01).astype(np.float32),
        "zw": np.zeros(16, np.int8), "w": rng.integers(-90, 90, (16, 8, 3, 3)).astype(np.int8),
        "b": rng.integers(-900, 900, 16).astype(np.int32), "m": rng.integers(-90, 90, (40, 96)).astype(np.int8),
        "v": rng.integers(-90, 90, (96, 64)).astype(np.int8),
    }
    nodes = [
        oh.make_node("QLinearConv", ["x", "s", "zu", "w", "sw", "zw", "s", "z", "b"], ["c"], "conv", pads=[1, 1, 1, 1], strides=[1, 1]),
        oh.make_node("QLinearMatMul", ["c", "s", "z", "m", "s", "z", "s", "z"], ["d"], "product"),
        oh.make_node("MatMulInteger", ["d", "v", "z"], ["y"], "exact"),
    ]
    ports = (onnx.TensorProto.UINT8, [1, 8, 50, 40]), (onnx.TensorProto.INT32, [1, 16, 50, 64])
    return quantized(nodes, *ports, {n: np.asarray(a) for n, a in held.items()})


def everywhere(data: bytes, feeds: Mapping[str, np.ndarray], layout: str, operators: str = "", level: int = 2) -> None:
    bits, tilings = set(), []
    for kb in SIZES:
        hcd = chip(kb, layout, operators)
        done = compile_model(data, hcd, Options(policy=policy_of(hcd, fallback="allow"), fusion_level=level))
        assert {d.device for d in done.record.decisions} == {"Sized"}, kb
        assert 0 < done.program.chips[0].machine.on_chip_peak <= kb * 1024
        tilings.append(tuple((p.path, p.tiling) for p in done.record.paths))
        bits.add(run(done, feeds)[0].tobytes())
    assert len(set(tilings)) > 3, "the sizes make no difference"
    assert len(bits) == 1


@pytest.mark.parametrize("level", [2, 3])
@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
def test_images_in_float16(layout: str, level: int) -> None:
    everywhere(image_model(), {"x": random(1, 3, 56, 56, seed=9, scale=1)}, layout, level=level)


def test_tokens_in_float16() -> None:
    everywhere(token_model(), {"x": random(2, 100, 64, seed=9, scale=1)}, "NCHW")


def test_integers() -> None:
    everywhere(integer_model(), {"x": np.random.default_rng(9).integers(0, 256, (1, 8, 50, 40)).astype(np.uint8)}, "NCHW", INTEGER)


def test_integers_are_exact() -> None:
    """Sums of 96 products of 8-bit values, as numpy's int64 has them."""
    rng = np.random.default_rng(5)
    x, w = rng.integers(-128, 128, (300, 96)).astype(np.int8), rng.integers(-128, 128, (96, 64)).astype(np.int8)
    node = oh.make_node("MatMulInteger", ["x", "w"], ["y"])
    data = quantized([node], (onnx.TensorProto.INT8, x.shape), (onnx.TensorProto.INT32, (300, 64)), {"w": w})
    hcd = chip(16, operators=INTEGER)
    done = compile_model(data, hcd, Options(policy=policy_of(hcd, fallback="error")))
    assert len([s for s in done.program.steps if s.opcode is Opcode.call and s.device]) > 4
    assert np.array_equal(run(done, {"x": x})[0], x.astype(np.int64) @ w)
