"""Time to compile: ResNet-50 as a whole process, and graphs of 1k, 4k and 16k nodes: ``python -m benchmarks.compile_time``."""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from benchmarks.catalogue import sample_path
from flaot.pipeline import Options, compile_model

SIZES = (1_000, 4_000, 16_000)
RESNET50_TARGET = 3.0


def synthetic(nodes: int) -> onnx.ModelProto:
    """A chain of blocks of four nodes (Gemm, Relu, and a skip through Add and Tanh), so that fusion and folding have work."""
    rng = np.random.default_rng(0)
    weight = numpy_helper.from_array((rng.standard_normal((8, 8)) / 3).astype(np.float32), "w")
    bias = numpy_helper.from_array(rng.standard_normal(8).astype(np.float32), "b")
    made, last = [], "x"
    for i in range(nodes // 4):
        made += [
            helper.make_node("Gemm", [last, "w", "b"], [f"g{i}"], name=f"gemm{i}"),
            helper.make_node("Relu", [f"g{i}"], [f"r{i}"], name=f"relu{i}"),
            helper.make_node("Add", [f"r{i}", last], [f"a{i}"], name=f"add{i}"),
            helper.make_node("Tanh", [f"a{i}"], [f"t{i}"], name=f"tanh{i}"),
        ]
        last = f"t{i}"
    ends = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [1, 8]) for n in ("x", last)]
    graph = helper.make_graph(made, f"chain of {nodes}", ends[:1], ends[1:], [weight, bias])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def run() -> dict[str, Any]:
    """Prints and returns the seconds."""
    compile_model(synthetic(100), "host", Options())  # imports and tables are loaded
    rows = []
    for nodes in SIZES:
        model = synthetic(nodes)
        begin = time.process_time()
        compile_model(model, "host", Options())
        rows.append({"nodes": nodes, "seconds": time.process_time() - begin})
        print(f"{nodes:6} nodes: {rows[-1]['seconds']:6.2f} s, {rows[-1]['seconds'] / nodes * 1e6:6.0f} us a node", flush=True)
    path = sample_path("resnet50")
    with tempfile.TemporaryDirectory() as scratch:
        begin, before = time.perf_counter(), _children()
        command = [sys.executable, "-m", "flaot", "compile", path, "--hcd", "host", "-o", Path(scratch, "resnet50.flp")]
        subprocess.run(command, check=True, capture_output=True)
        whole, cpu = time.perf_counter() - begin, _children() - before
    print(f"resnet50, whole process: {cpu:.2f} s of CPU, {whole:.2f} s on the clock (target {RESNET50_TARGET:.0f})")
    return {"synthetic": rows, "resnet50_seconds": whole, "resnet50_cpu_seconds": cpu}


def _children() -> float:
    """CPU seconds of the processes started and ended so far."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


if __name__ == "__main__":
    run()
