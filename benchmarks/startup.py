"""Whole processes: ``flaot run`` of a small plan against Python importing onnxruntime and running the same model once.

``python -m benchmarks.startup``. Time is from start to end of the process; memory is its largest resident set.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from flaot.pipeline import Options, compile_model

ROUNDS = 15
TARGET = 0.5

ORT = """
import sys, numpy, onnxruntime
session = onnxruntime.InferenceSession(sys.argv[1], providers=["CPUExecutionProvider"])
feeds = {i.name: numpy.zeros(i.shape, numpy.float32) for i in session.get_inputs()}
for name, value in zip((o.name for o in session.get_outputs()), session.run(None, feeds)):
    print(name, value.dtype, value.shape, value.min(), value.max(), value.mean())
"""


def small_model() -> onnx.ModelProto:
    """A digit classifier's shape: two convolutions with pooling, one dense layer."""
    rng = np.random.default_rng(0)
    weights = {"w1": (8, 1, 5, 5), "w2": (16, 8, 5, 5), "w3": (256, 10)}
    arrays = [numpy_helper.from_array((rng.standard_normal(s) / 9).astype(np.float32), n) for n, s in weights.items()]
    nodes = [
        helper.make_node("Conv", ["x", "w1"], ["c1"], auto_pad="SAME_UPPER"),
        helper.make_node("Relu", ["c1"], ["r1"]),
        helper.make_node("MaxPool", ["r1"], ["p1"], kernel_shape=[2, 2], strides=[2, 2]),
        helper.make_node("Conv", ["p1", "w2"], ["c2"], auto_pad="SAME_UPPER"),
        helper.make_node("Relu", ["c2"], ["r2"]),
        helper.make_node("MaxPool", ["r2"], ["p2"], kernel_shape=[3, 3], strides=[3, 3]),
        helper.make_node("Flatten", ["p2"], ["f"]),
        helper.make_node("MatMul", ["f", "w3"], ["y"]),
    ]
    ends = [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in (("x", [1, 1, 28, 28]), ("y", [1, 10]))]
    graph = helper.make_graph(nodes, "digits", ends[:1], ends[1:], arrays)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


MEASURE = """
import json, os, sys, time
rounds, commands = json.loads(sys.argv[1])
found = [[] for _ in commands]
for _ in range(rounds):
    for command, samples in zip(commands, found):
        begin = time.perf_counter()
        pid = os.posix_spawn(command[0], command, os.environ, file_actions=[(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)])
        _, status, usage = os.wait4(pid, 0)
        assert status == 0, command
        samples.append([time.perf_counter() - begin, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024])
print(json.dumps(found))
"""
"""Runs in a small process of its own: the kernel counts the parent's resident set at the spawn as the child's."""


def measure(commands: list[list[str]]) -> list[list[list[float]]]:
    """For every command its rounds, taken in turn: seconds, processor seconds, megabytes."""
    job = json.dumps([ROUNDS, commands])
    done = subprocess.run([sys.executable, "-I", "-c", MEASURE, job], check=True, capture_output=True, text=True)
    found: list[list[list[float]]] = json.loads(done.stdout)
    return found


def run() -> dict[str, Any]:
    """Prints and returns time and memory of both, and their ratios."""
    with tempfile.TemporaryDirectory() as folder:
        model, plan = Path(folder, "m.onnx"), Path(folder, "m.flp")
        onnx.save(small_model(), model)
        plan.write_bytes(compile_model(str(model), "host", Options()).plan)
        commands = {"flaot": [sys.executable, "-m", "flaot", "run", str(plan)], "onnxruntime": [sys.executable, "-c", ORT, str(model)]}
        found = dict(zip(commands, measure(list(commands.values())), strict=True))
    figures: dict[str, Any] = {name: _figures(samples) for name, samples in found.items()}
    for name, f in figures.items():
        print(f"{name:12} " + "  ".join(f"{key} {value:.1f}" for key, value in f.items()))
    ratios = {key: figures["flaot"][key] / figures["onnxruntime"][key] for key in figures["flaot"]}
    print("ratios       " + "  ".join(f"{key} {value:.2f}" for key, value in ratios.items()) + f"  (target {TARGET})")
    return {**figures, "ratios": ratios}


def _figures(samples: list[list[float]]) -> dict[str, float]:
    wall, cpu, memory = zip(*samples, strict=True)
    return {
        "median_ms": statistics.median(wall) * 1e3,
        "min_ms": min(wall) * 1e3,
        "min_cpu_ms": min(cpu) * 1e3,
        "peak_mb": max(memory),
    }


if __name__ == "__main__":
    run()
