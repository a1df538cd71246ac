"""Small chips with round figures, models for them, and what their plans move."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import onnx
import onnx.helper as oh

from flaot.hcd import Hcd, load
from flaot.pipeline import Compiled, Options, compile_model
from flaot.plan.program import Opcode, Space, Step, View
from flaot.runtime.session import Session

NPU = """
chip: {{name: Small, device_type: npu_test}}
compute_units: {{fp16: {{peak_gflops: {peak}, supported_layouts: [NCHW, NHWC]}}}}
memory: {{on_chip_cache: {{size_kb: {kb}, bandwidth_gb_per_s: 64}}, off_chip_memory: {{bandwidth_gb_per_s: {off}}}}}
tensor: {{supported_dtypes: [float16, int8], default_layout: NCHW}}
"""


def npu(kb: int, peak: float = 64, off: float = 1, more: str = "") -> Hcd:
    """A chip of 1 GHz that computes ``peak`` operations and moves ``off`` bytes in a nanosecond, with ``kb`` kB on chip and an alignment
    of 64; ``more`` are further lines."""
    return load((NPU.format(kb=kb, peak=peak, off=off) + more).encode(), "small.hcd")


def model(
    nodes: Sequence[onnx.NodeProto], inputs: Mapping[str, Sequence[int]], outputs: Mapping[str, Sequence[int]],
    weights: Mapping[str, np.ndarray],
) -> bytes:
    ports = [[oh.make_tensor_value_info(n, onnx.TensorProto.FLOAT, s) for n, s in p.items()] for p in (inputs, outputs)]
    graph = oh.make_graph(list(nodes), "small", *ports, [onnx.numpy_helper.from_array(w, n) for n, w in weights.items()])
    return oh.make_model(graph, opset_imports=[oh.make_opsetid("", 17)], ir_version=8).SerializeToString()


def random(*shape: int, seed: int = 0, scale: float = 8) -> np.ndarray:
    return (np.random.default_rng(seed).standard_normal(shape) / scale).astype(np.float32)


def compiled(data: bytes, chip: Hcd, level: int | None = None) -> Compiled:
    return compile_model(data, chip, Options() if level is None else Options(fusion_level=level))


def run(done: Compiled, feeds: Mapping[str, np.ndarray]) -> list[np.ndarray]:
    with Session(done.plan) as session:
        return list(session.run(None, dict(feeds)))


def dmas(done: Compiled, node: str, space: Space, out: bool = False) -> list[View]:
    """What DMA steps bring in for a node from constants or the chip's memory, or take out."""
    steps = [s for s in done.program.steps if s.opcode is Opcode.dma and node in s.origin]
    views = [(s.outputs if out else s.inputs)[0] for s in steps]
    return [v for v in views if v.buffer.space is space]


def calls(done: Compiled, node: str) -> list[Step]:
    return [s for s in done.program.steps if s.opcode is Opcode.call and s.device and node in s.origin]


Window = tuple[tuple[int, int], ...]


def window(view: View, dims: Sequence[int]) -> Window:
    """First and one-past-last index along every axis of a part of a dense tensor of these dims."""
    first = np.unravel_index(view.offset // view.dtype.size, dims)
    return tuple((int(low), int(low) + d) for low, d in zip(first, view.dims, strict=True))


def tiling(done: Compiled, node: str) -> tuple[str, str]:
    """Path and tiling of a node."""
    (path,) = (p for p in done.record.paths if node in p.node)
    return path.path, path.tiling


def traffic(done: Compiled) -> int:
    return int(done.report["estimate"]["traffic_bytes"])
