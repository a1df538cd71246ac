"""Bounds of values stored in float16 and bfloat16: how they grow, that chips keep them, and that a wrong sum does not."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import flaot
from flaot.hcd import load_hcd
from flaot.ir.graph import Graph
from flaot.ir.ops.activations import Relu
from flaot.ir.ops.functions import Exp
from flaot.ir.ops.matmul import MatMul
from flaot.ir.types import DType, TensorType
from flaot.mapping.policy import policy_of
from flaot.pipeline import Options, compile_model
from flaot.verify.bounds import SPREAD, Precision, bounds_of, precision_of


def chain() -> Graph:
    """x, then relu, exp and a product with weights over 64 terms."""
    graph = Graph()
    value = graph.add_input("x", TensorType(DType.float32, (1, 64)))
    value = graph.add_node(Relu(), [value], names=["relu"]).outputs[0]
    value = graph.add_node(Exp(), [value], names=["exp"]).outputs[0]
    weights = graph.add_constant(np.ones((64, 4), np.float32))
    graph.set_output("y", graph.add_node(MatMul(), [value, weights]).outputs[0])
    return graph


def growth(precision: Precision, model: DType | None = None) -> list[float]:
    """What the bounds of relu, exp and y have beyond those of float32, in float16's eps and SPREAD, squared: numbers of roundings."""
    graph = chain()
    plain = bounds_of(graph)
    graph.model_dtype = model
    found = bounds_of(graph, precision)
    return [round(((found[n].atol - plain[n].atol) / SPREAD / 2**-10) ** 2, 6) for n in ("relu", "exp", "y")]


def test_roundings_add_up_in_squares() -> None:
    assert growth(Precision()) == [0, 0, 0]
    assert growth(Precision(DType.float16)) == [1, 2, 4]  # the input; exp; weights and product
    assert growth(Precision(DType.bfloat16)) == [64, 128, 256]
    assert growth(Precision(DType.float16, half_sums=True)) == [1, 2, 68]  # 64 terms
    assert growth(Precision(), DType.float16) == [0, 1, 2]  # the reference alone rounds
    assert growth(Precision(DType.float16), DType.float16) == [1, 3, 6]


def product(path, weights: np.ndarray, dtype: int = TensorProto.FLOAT) -> str:
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["p"]), helper.make_node("Relu", ["p"], ["y"])], "g",
        [helper.make_tensor_value_info("x", dtype, [4, weights.shape[0]])],
        [helper.make_tensor_value_info("y", dtype, [4, weights.shape[1]])],
        [numpy_helper.from_array(weights.astype(helper.tensor_dtype_to_np_dtype(dtype)), "w")],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return str(path)


@pytest.mark.parametrize("chip", ["npu_v2", "npu_v3"])
def test_a_chip_is_held_to_its_type(tmp_path, chip: str) -> None:
    rng = np.random.default_rng(1)
    path = product(tmp_path / "m.onnx", rng.standard_normal((256, 32)))
    plan = compile_model(path, chip).plan
    x = rng.standard_normal((4, 256)).astype(np.float32)
    result = flaot.verify(plan, path, {"x": x}, layers=True)
    (output,) = result.to_json()["outputs"]
    assert output["verdict"] == "ok" and 55 < output["snr_db"] < 85
    session = flaot.Session(plan)
    assert precision_of(session.plan) == Precision(DType.float16)


def test_stalled_sums_are_a_difference(tmp_path) -> None:
    """4096 ones give 2048 in float16, which is what the plan's precision explains only up to SPREAD eps sqrt(4096) = 12.5 %."""
    path = product(tmp_path / "m.onnx", np.ones((4096, 8)))
    (tmp_path / "mine.hcd").write_text("extends: npu_v2\nchip: {name: mine}\nnumerics: {float16_accumulator: float16}\n")
    plan = compile_model(path, tmp_path / "mine.hcd").plan
    result = flaot.verify(plan, path, {"x": np.ones((4, 4096), np.float32)})
    assert precision_of(flaot.Session(plan).plan).half_sums
    assert not result.ok and result.outputs[0].got == 2048 and result.outputs[0].want == 4096


def test_numbers_beyond_the_type_are_named(tmp_path) -> None:
    """256 thousands make 256,000, which float16 has not; 256 tens make 2,560."""
    path = product(tmp_path / "m.onnx", np.ones((256, 32)))
    plan = compile_model(path, "npu_v3").plan
    assert flaot.verify(plan, path, {"x": np.full((4, 256), 10, np.float32)}).ok
    result = flaot.verify(plan, path, {"x": np.full((4, 256), 1000, np.float32)}, layers=True)
    for found in (result.layers[-1], result.outputs[0]):
        assert not found.ok and found.got == np.inf and found.want == 256000
        assert found.beyond == "float16"
        assert "128 of them either once it stores values in float16, whose range (6e-8 to 65504) they leave" in found.note
    plain = flaot.verify(plan, path, {"x": np.full((4, 256), 1000, np.float32)})
    assert plain.hint == f"--layers names the first such value; {result.hint}"
    assert result.hint == "compile with --route NODE=host for the nodes that make it"
    routed = compile_model(path, "npu_v3", Options(policy=policy_of(load_hcd("npu_v3"), routes=("MatMul=host", "Relu=host")))).plan
    assert flaot.verify(routed, path, {"x": np.full((4, 256), 1000, np.float32)}).ok


def test_intermediates_of_a_float16_model_on_the_host(tmp_path) -> None:
    rng = np.random.default_rng(2)
    path = product(tmp_path / "m.onnx", rng.standard_normal((256, 32)), TensorProto.FLOAT16)
    result = flaot.verify(compile_model(path).plan, path, {"x": rng.standard_normal((4, 256)).astype(np.float16)}, layers=True)
    assert result.ok and not result.not_compared
    assert result.outputs[0].type == "float16[4,32]"
