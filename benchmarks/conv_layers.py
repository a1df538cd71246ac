"""Convolutions layer by layer: every way flaot has against onnxruntime's convolution node, one thread.

onnxruntime's figure is its profiler's minimum for the node alone, because a one-layer model also pays layout changes that a whole net
does not. Ours is the minimum of CPU time of one kernel call. Run: ``python benchmarks/conv_layers.py [--chip avx2] [name part ...]``.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import tempfile
import time
from collections.abc import Callable

import numpy as np
import onnxruntime as ort
from onnx import TensorProto, helper

from flaot.ir.graph import Graph, Value
from flaot.ir.ops.conv import Act, FusedConv
from flaot.kernels.base import Storage, candidates, load_all
from flaot.kernels.generate import kernel_id
from flaot.mapping.choice import choose
from flaot.plan.program import Buffer, Space, Step, View
from flaot.runtime import native
from flaot.schedule.lower import Lowering
from flaot.targets.cpu import Cpu
from flaot.targets.devices import Devices

CHIPS = {"avx2": Cpu(variants=("generic", "avx2")), "avx512": Cpu(variants=("generic", "avx2", "avx512"))}

# name: (channels in, size, channels out, kernel, stride, group)
LAYERS = {
    "r18.stem7": (3, 224, 64, 7, 2, 1), "r18.3x3.56": (64, 56, 64, 3, 1, 1), "r18.3x3.28": (128, 28, 128, 3, 1, 1),
    "r18.3x3.14": (256, 14, 256, 3, 1, 1), "r18.3x3.7": (512, 7, 512, 3, 1, 1), "r18.s2.56": (64, 56, 128, 3, 2, 1),
    "r18.s2.28": (128, 28, 256, 3, 2, 1), "r18.s2.14": (256, 14, 512, 3, 2, 1), "r18.1x1s2.56": (64, 56, 128, 1, 2, 1),
    "r50.1x1.56a": (64, 56, 256, 1, 1, 1), "r50.1x1.56b": (256, 56, 64, 1, 1, 1), "r50.1x1.28a": (128, 28, 512, 1, 1, 1),
    "r50.1x1.28b": (512, 28, 128, 1, 1, 1), "r50.1x1.14a": (256, 14, 1024, 1, 1, 1), "r50.1x1.14b": (1024, 14, 256, 1, 1, 1),
    "r50.1x1.7a": (512, 7, 2048, 1, 1, 1), "r50.1x1.7b": (2048, 7, 512, 1, 1, 1),
    "mb2.stem3": (3, 224, 32, 3, 2, 1), "mb2.1x1.112": (32, 112, 16, 1, 1, 1), "mb2.1x1.112x": (16, 112, 96, 1, 1, 1),
    "mb2.1x1.56": (96, 56, 24, 1, 1, 1), "mb2.1x1.56x": (24, 56, 144, 1, 1, 1), "mb2.1x1.28": (192, 28, 32, 1, 1, 1),
    "mb2.1x1.14": (384, 14, 64, 1, 1, 1), "mb2.1x1.14x": (96, 14, 576, 1, 1, 1), "mb2.1x1.7": (960, 7, 160, 1, 1, 1),
    "mb2.1x1.7h": (320, 7, 1280, 1, 1, 1),
    "dw3.112.32": (32, 112, 32, 3, 1, 32), "dw3s2.112.96": (96, 112, 96, 3, 2, 96), "dw3.56.144": (144, 56, 144, 3, 1, 144),
    "dw3s2.56.144": (144, 56, 144, 3, 2, 144), "dw3.28.192": (192, 28, 192, 3, 1, 192), "dw3.14.384": (384, 14, 384, 3, 1, 384),
    "dw3.14.512": (512, 14, 512, 3, 1, 512), "dw3.7.960": (960, 7, 960, 3, 1, 960), "dw5.28.120": (120, 28, 120, 5, 1, 120),
    "dw5.14.672": (672, 14, 672, 5, 1, 672), "dw5s2.14.672": (672, 14, 672, 5, 2, 672),
}


def prepared(step: Step, arrays: dict[int, np.ndarray]) -> Callable[[], None]:
    """The kernel call with everything set up; costs some 2 microseconds itself."""
    views = [*step.inputs, *step.outputs]
    tensors = [native.c_tensor(v) for v in views]
    refs = (ctypes.POINTER(native.CTensor) * len(views))(*[ctypes.pointer(t) for t in tensors])
    pointers = (ctypes.c_void_p * len(views))(*[arrays[id(v.buffer)].ctypes.data + v.offset for v in views])
    room = np.zeros(step.scratch + 64, np.uint8)
    blob = ctypes.create_string_buffer(step.params, max(len(step.params), 1))
    args = (
        ctypes.c_uint32(kernel_id(step.kernel, step.variant)), refs, pointers, ctypes.c_uint32(len(step.inputs)),
        ctypes.c_uint32(len(step.outputs)), blob, ctypes.c_size_t(len(step.params)),
        ctypes.c_void_p(room.ctypes.data + -room.ctypes.data % 64), ctypes.c_size_t(step.scratch), ctypes.c_uint32(1),
    )
    run = native.library().fl_host_call

    def call() -> None:
        assert run(*args) == 0 and room is not None and arrays

    return call


def aligned(nbytes: int) -> np.ndarray:
    room = np.zeros(nbytes + 64, np.uint8)
    start = -room.ctypes.data % 64
    return room[start : start + nbytes]


def last_view(value: Value, storage: Storage) -> View:
    order = (0, 2, 3, 1) if storage is Storage.last else (0, 1, 2, 3)
    return View.dense(Buffer(Space.arena, value.type.nbytes), value.type, order)


def ours(layer: tuple[int, ...], chip: Cpu) -> list[tuple[str, bool, Callable[[], None]]]:
    """(way, whether it would be chosen, call) for every vector way that fits."""
    ic, size, oc, k, s, group = layer
    rng = np.random.default_rng(0)
    graph = Graph()
    x = graph.add_constant(rng.standard_normal((1, ic, size, size), dtype=np.float32))
    data, x.data = x.data, None
    w = graph.add_constant(rng.standard_normal((oc, ic // group, k, k), dtype=np.float32) * 0.05)
    bias = graph.add_constant(rng.standard_normal(oc, dtype=np.float32))
    op = FusedConv((s, s), (k // 2,) * 4, (1, 1), group, Act.clamp, 0.0, 6.0)
    node = graph.add_node(op, [x, w, bias, None, None])
    out = []
    for way in candidates(op):
        if way.requires == "generic" or way.reject(node, chip) is not None:
            continue
        places = {x.id: last_view(x, way.input_storage(node, 0)), node.outputs[0].id: last_view(node.outputs[0], way.storage(node))}
        lowering = Lowering(Devices(chip), lambda v, places=places: places[v.id])
        lowering.run(node, way)
        (step,) = lowering.steps
        arrays = {id(v.buffer): aligned(v.buffer.nbytes) for v in (*step.inputs, *step.outputs)}
        for v in step.inputs:
            source = v.buffer.data if v.buffer.data is not None else data
            assert source is not None
            arrays[id(v.buffer)][:] = np.ascontiguousarray(source).reshape(-1).view(np.uint8)
        out.append((type(way).__name__, way is choose(node, chip), prepared(step, arrays)))
    return out


def theirs(layer: tuple[int, ...], runs: int) -> float:
    """Nanoseconds of onnxruntime's convolution node."""
    ic, size, oc, k, s, group = layer
    rng = np.random.default_rng(0)
    w = rng.standard_normal((oc, ic // group, k, k), dtype=np.float32) * 0.05
    given = [("w", w), ("b", rng.standard_normal(oc, dtype=np.float32)), ("lo", np.float32(0)), ("hi", np.float32(6))]
    graph = helper.make_graph(
        [
            helper.make_node("Conv", ["x", "w", "b"], ["c"], strides=[s, s], pads=[k // 2] * 4, group=group),
            helper.make_node("Clip", ["c", "lo", "hi"], ["y"]),
        ],
        "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, ic, size, size])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [helper.make_tensor(n, TensorProto.FLOAT, np.shape(a), np.asarray(a).tobytes(), raw=True) for n, a in given],
    )
    options = ort.SessionOptions()
    options.intra_op_num_threads, options.enable_profiling = 1, True
    with tempfile.TemporaryDirectory() as folder:
        options.profile_file_prefix = os.path.join(folder, "p")
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9).SerializeToString()
        session = ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        x = rng.standard_normal((1, ic, size, size), dtype=np.float32)
        for _ in range(runs):
            session.run(None, {"x": x})
        with open(session.end_profiling()) as f:
            events = json.load(f)
    nodes = [e for e in events if e.get("cat") == "Node" and "Conv" in e["args"].get("op_name", "")]
    return min(e["dur"] for e in nodes) * 1e3


def fastest(call: Callable[[], None], runs: int) -> float:
    best = float("inf")
    for _ in range(runs):
        start = time.perf_counter_ns()
        call()
        best = min(best, time.perf_counter_ns() - start)
    return best


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--chip", choices=CHIPS, default="avx512")
    parser.add_argument("--runs", type=int, default=40)
    parser.add_argument("names", nargs="*")
    args = parser.parse_args()
    load_all()
    print(f"{'layer':14}{'ORT us':>9}{'GF':>6}   ours: us, GF, ratio (* = chosen)")
    for name, layer in LAYERS.items():
        if args.names and not any(n in name for n in args.names):
            continue
        ic, size, oc, k, s, group = layer
        flops = 2 * (-(-size // s)) ** 2 * oc * k * k * ic // group
        calls, reference = ours(layer, CHIPS[args.chip]), theirs(layer, args.runs)
        best = {n: fastest(c, args.runs) for n, _, c in calls}
        reference = min(reference, theirs(layer, args.runs))
        best = {n: min(best[n], fastest(c, args.runs)) for n, _, c in calls}
        shown = "  ".join(
            f"{'*' if chosen else ''}{n} {best[n] / 1e3:.1f} {flops / best[n]:.0f} {best[n] / reference:.2f}" for n, chosen, _ in calls
        )
        print(f"{name:14}{reference / 1e3:9.1f}{flops / reference:6.0f}   {shown}", flush=True)


if __name__ == "__main__":
    main()
