"""The whole compiler on small graphs: agreement with onnxruntime, shared memory, and plans that do not depend on the process."""

import hashlib
import os
import subprocess
import sys

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx import TensorProto, helper, numpy_helper

from flaot.errors import UsageError
from flaot.pipeline import Options, compile_model
from flaot.plan.program import Space
from flaot.runtime.session import Session

RNG = np.random.RandomState(3)


def model_of(nodes, inputs, outputs, constants=None):
    """A model whose tensors are float32; ``inputs`` and ``outputs`` map names to shapes."""
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in inputs.items()],
        [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in outputs.items()],
        [numpy_helper.from_array(np.asarray(a), n) for n, a in (constants or {}).items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def check(model, hcd, rtol=1e-4, atol=1e-5):
    """Compiles, runs and compares with onnxruntime; returns the program."""
    feeds = {i.name: RNG.randn(*[d.dim_value for d in i.type.tensor_type.shape.dim]).astype(np.float32) for i in model.graph.input}
    compiled = compile_model(model, hcd)
    got = Session(compiled.plan).run(None, feeds)
    want = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"]).run(None, feeds)
    for g, w in zip(got, want, strict=True):
        np.testing.assert_allclose(g, w, rtol, atol)
    return compiled.program


def residual_net():
    """Conv, Relu, depthwise, pooling, a concatenation on channels, a residual sum and a classifier."""
    nodes = [
        helper.make_node("Conv", ["x", "w1", "b1"], ["c1"], pads=[1, 1, 1, 1], strides=[2, 2]),
        helper.make_node("Relu", ["c1"], ["r1"]),
        helper.make_node("Conv", ["r1", "wd"], ["d1"], pads=[1, 1, 1, 1], group=12),
        helper.make_node("Sigmoid", ["d1"], ["s1"]),
        helper.make_node("Mul", ["d1", "s1"], ["m1"]),
        helper.make_node("Add", ["m1", "r1"], ["a1"]),
        helper.make_node("MaxPool", ["a1"], ["p1"], kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
        helper.make_node("Concat", ["p1", "a1"], ["k1"], axis=1),
        helper.make_node("GlobalAveragePool", ["k1"], ["g1"]),
        helper.make_node("Flatten", ["g1"], ["f1"]),
        helper.make_node("Gemm", ["f1", "wf", "bf"], ["y"], transB=1),
    ]
    constants = {
        "w1": RNG.randn(12, 3, 3, 3), "b1": RNG.randn(12), "wd": RNG.randn(12, 1, 3, 3), "wf": RNG.randn(5, 24), "bf": RNG.randn(5),
    }
    return model_of(nodes, {"x": [1, 3, 17, 15]}, {"y": [1, 5]}, {k: v.astype(np.float32) for k, v in constants.items()})


@pytest.mark.parametrize("hcd", ["generic_cpu", "host"])
def test_a_residual_net_agrees_with_onnxruntime(hcd):
    check(residual_net(), hcd)


@pytest.mark.parametrize("hcd", ["generic_cpu", "host"])
def test_outputs_that_are_inputs_constants_or_twins(hcd):
    nodes = [helper.make_node("Relu", ["x"], ["r"])]
    nodes += [helper.make_node("Identity", [name], [f"{name}2"]) for name in ("r", "x")]
    nodes.append(helper.make_node("Identity", ["k"], ["k2"]))
    shapes = dict.fromkeys(["r", "r2", "x2"], [2, 3]) | {"k2": [4]}
    check(model_of(nodes, {"x": [2, 3]}, shapes, {"k": np.arange(4, dtype=np.float32)}), hcd)


def test_a_chain_of_elementwise_ops_overwrites_one_buffer():
    nodes = [
        helper.make_node("Softmax", ["x"], ["a"], axis=1),
        helper.make_node("Softmax", ["a"], ["b"], axis=0),
        helper.make_node("Softmax", ["b"], ["c"], axis=1),
        helper.make_node("Softmax", ["c"], ["y"], axis=0),
    ]
    program = check(model_of(nodes, {"x": [8, 16]}, {"y": [8, 16]}), "generic_cpu")
    assert program.arena == 8 * 16 * 4


def test_producers_write_straight_into_a_concatenation():
    nodes = [
        helper.make_node("Softmax", ["x"], ["a"], axis=1),
        helper.make_node("LogSoftmax", ["x"], ["b"], axis=1),
        helper.make_node("Concat", ["a", "b"], ["k"], axis=1),
        helper.make_node("Softmax", ["k"], ["y"], axis=0),
    ]
    program = check(model_of(nodes, {"x": [8, 16]}, {"y": [8, 32]}), "generic_cpu")
    assert [s.op for s in program.steps] == ["Softmax", "LogSoftmax", "Softmax"]
    assert {v.buffer.space for s in program.steps[:2] for v in s.outputs} == {Space.arena}


def test_a_value_read_twice_is_not_overwritten():
    nodes = [
        helper.make_node("Softmax", ["x"], ["a"], axis=1),
        helper.make_node("Softmax", ["a"], ["b"], axis=0),
        helper.make_node("MatMul", ["a", "b"], ["y"]),
    ]
    check(model_of(nodes, {"x": [8, 8]}, {"y": [8, 8]}), "generic_cpu")


def test_an_empty_graph_copies():
    model = model_of([helper.make_node("Identity", ["x"], ["y"])], {"x": [2, 2]}, {"y": [2, 2]})
    assert len(check(model, "generic_cpu").steps) == 1


SCRIPT = """
import sys, hashlib
from flaot.errors import UsageError
from flaot.pipeline import Options, compile_model
print(hashlib.sha256(compile_model(sys.argv[1], sys.argv[2]).plan).hexdigest())
"""


@pytest.mark.parametrize("hcd", ["generic_cpu", "x86_64_avx2"])
def test_equal_bytes_whatever_the_hash_seed_thread_count_and_folder(hcd, tmp_path):
    path = tmp_path / "net.onnx"
    onnx.save(residual_net(), path)
    digests = {hashlib.sha256(compile_model(path, hcd).plan).hexdigest()}
    for seed, threads, folder in [("1", "1", "/"), ("77", "2", str(tmp_path))]:
        env = os.environ | {"PYTHONHASHSEED": seed, "OMP_NUM_THREADS": threads, "OPENBLAS_NUM_THREADS": threads, "PYTHONPATH": os.getcwd()}
        command = [sys.executable, "-c", SCRIPT, str(path), hcd]
        run = subprocess.run(command, env=env, cwd=folder, capture_output=True, text=True, check=True)
        digests.add(run.stdout.strip())
    assert len(digests) == 1


def test_unknown_precision():
    with pytest.raises(UsageError, match="allowed are default, high"):
        Options(precision="hihg")
