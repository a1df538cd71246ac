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


@pytest.mark.parametrize(("stored", "eps"), [("float16", 2**-10), ("bfloat16", 2**-7)])
def test_values_are_rounded_to_the_type_they_are_stored_in(model, stored, eps):
    x = np.linspace(0.1, 0.9, 64, dtype=np.float32)[None]
    feeds = {"x": Array("float32", x.shape, x.tobytes())}
    z = reference(model, feeds, shake=1, stored=stored)["z"]
    exact = float(x.astype(np.float64).sum())
    assert np.all(z == z[0, 0]) and 0 < abs(float(z[0, 0]) - exact) <= eps * exact
    bits = z.view(np.uint32) & (0x1FFF if stored == "float16" else 0xFFFF)
    assert not bits.any()


def test_chips_without_denormals_lose_small_numbers(tmp_path):
    """2^-14 is the smallest normal number of float16, 2^-15 half of it; infinity and NaN stay what they are."""
    node = helper.make_node("Neg", ["x"], ["y"])
    ports = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [5]) for n in ("x", "y")]
    graph = helper.make_graph([node], "g", ports[:1], ports[1:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 7)], ir_version=8)
    onnx.save(model, tmp_path / "m.onnx")
    x = np.array([2**-14, 2**-15, -3.0, 1e6, np.nan], np.float32)
    feeds = {"x": Array("float32", x.shape, x.tobytes())}
    for stored, small in (("float16", -(2**-15)), ("float16 without denormals", 0)):
        y = reference(str(tmp_path / "m.onnx"), feeds, shake=1, stored=stored)["y"]
        np.testing.assert_array_equal(y, np.array([-(2**-14), small, 3, -np.inf, np.nan], np.float32))


def test_a_half_model_is_shaken_by_its_own_units(tmp_path):
    graph = helper.make_graph(
        [helper.make_node("Add", ["x", "x"], ["y"])], "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT16, [1])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT16, [1])],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), tmp_path / "h.onnx")
    x = np.ones(1, np.float16)
    y = reference(str(tmp_path / "h.onnx"), {"x": Array("float16", x.shape, x.tobytes())}, shake=1)["y"]
    assert abs(float(y[0]) - 2) in (2**-10, 2**-9)
