"""Ill-conditioned values are told from wrong ones by shaking the reference."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from flaot.runtime.npy import Array
from flaot.verify.bounds import Bound
from flaot.verify.compare import compare
from flaot.verify.reference import reference
from flaot.verify.shake import shake


@pytest.fixture
def model(tmp_path):
    """y = mean(x * x) - mean(x) ^ 2, which cancels almost everything; z = x * w does not."""
    node = helper.make_node
    nodes = [
        node("Mul", ["x", "x"], ["square"]),
        node("ReduceMean", ["square"], ["a"], axes=[1]),
        node("ReduceMean", ["x"], ["m"], axes=[1]),
        node("Mul", ["m", "m"], ["b"]),
        node("Sub", ["a", "b"], ["y"]),
        node("MatMul", ["x", "w"], ["z"]),
    ]
    ports = [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in (("x", [1, 64]), ("y", [1, 1]), ("z", [1, 3]))]
    weights = numpy_helper.from_array(np.ones((64, 3), np.float32), "w")
    graph = helper.make_graph(nodes, "g", ports[:1], ports[1:], [weights])
    path = tmp_path / "m.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return str(path)


def test_noise_shows_the_condition_of_a_value(model):
    x = (100 + np.linspace(0, 0.01, 64, dtype=np.float32))[None]
    feeds = {"x": Array("float32", x.shape, x.tobytes())}
    calm, noisy = reference(model, feeds), reference(model, feeds, shake=1)
    assert abs(noisy["y"] - calm["y"]).max() > 1e-4
    np.testing.assert_allclose(noisy["z"], calm["z"], rtol=2e-6)
    spread = np.abs(noisy["y"] - calm["y"]).astype(np.float64)
    near, far = calm["y"] + 4 * spread.astype(np.float32), calm["y"] + 40 * spread.astype(np.float32)
    assert not compare("y", near, calm["y"], Bound()).ok
    assert compare("y", near, calm["y"], Bound(), spread=spread).to_json()["verdict"] == "ok*"
    assert not compare("y", far, calm["y"], Bound(), spread=spread).ok


def test_shaking_keeps_the_model_valid_and_follows_the_seed(model):
    shaken = [onnx.load(model) for _ in range(3)]
    for m, seed in zip(shaken, (1, 1, 2), strict=True):
        shake(m, seed)
        onnx.checker.check_model(m)
    assert shaken[0] == shaken[1] != shaken[2]
