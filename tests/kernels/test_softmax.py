"""Softmax and LogSoftmax against onnxruntime."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper

import flaot
from flaot.frontend import read
from flaot.ir.ops.softmax import LogSoftmax, Softmax
from flaot.kernels.base import load_all
from flaot.schedule.evaluate import evaluate
from tests.kernels.reference import CHIPS, onnx_node

load_all()


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("op", [Softmax, LogSoftmax])
@pytest.mark.parametrize("shape", [(3, 1), (4, 5), (2, 33), (7, 128), (2, 3, 17, 40), (1, 21, 100), (1, 1000)])
def test_axes(chip: str, op: type, shape: tuple[int, ...]) -> None:
    x = np.random.default_rng(0).standard_normal(shape, dtype=np.float32) * 5
    for axis in range(len(shape)):
        (got,) = evaluate(op(axis), [x], CHIPS[chip], parts=2)
        np.testing.assert_allclose(got, onnx_node(op.__name__, [x], axis=axis)[0], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("chip", CHIPS)
def test_large_masked_and_undefined(chip: str) -> None:
    x = np.random.default_rng(1).standard_normal((6, 37), dtype=np.float32)
    x[0], x[1, ::2], x[2, 5], x[3], x[4, 7] = x[0] * 1e30, -np.inf, np.nan, -np.inf, 3e38
    for op in (Softmax, LogSoftmax):
        for axis, data in ((1, x), (0, np.ascontiguousarray(x.T))):
            (got,) = evaluate(op(axis), [data], CHIPS[chip])
            np.testing.assert_allclose(got, onnx_node(op.__name__, [data], axis=axis)[0], rtol=1e-5, atol=1e-6)
    (got,) = evaluate(Softmax(1), [x], CHIPS[chip])
    assert (got[1, ::2] == 0).all()

@pytest.mark.parametrize("op", [Softmax, LogSoftmax])
@pytest.mark.parametrize("axis", [-1, 3, 2, None])
def test_before_opset_13_the_last_axis_needs_no_reshape(op: type, axis: int | None) -> None:
    """The other axes flatten the input first; none stated is axis 1."""
    attributes = {} if axis is None else {"axis": axis}
    x = np.random.default_rng(2).standard_normal((2, 3, 4, 5), dtype=np.float32)
    (want,) = onnx_node(op.__name__, [x], opset=11, **attributes)
    node = helper.make_node(op.__name__, ["x"], ["y"], **attributes)
    ports = [helper.make_tensor_value_info(n, TensorProto.FLOAT, x.shape) for n in "xy"]
    graph = helper.make_graph([node], "g", ports[:1], ports[1:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 11)], ir_version=8).SerializeToString()
    steps = [n.op.name for n in read(model).nodes()]
    assert steps == ([op.__name__] if axis in (-1, 3) else ["Reshape", op.__name__, "Reshape"])
    (got,) = flaot.Session(flaot.compile(model, "generic_cpu").plan).run({"x": x})
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)
