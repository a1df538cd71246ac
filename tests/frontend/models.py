"""Small ONNX models for the frontend tests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from flaot.errors import FlaotError
from flaot.frontend import read
from flaot.schedule.evaluate import evaluate

FLOAT = onnx.TensorProto.FLOAT


def info(name: str, shape: Sequence[int | str | None] | None, dtype: int = FLOAT) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, dtype, shape)


def tensor(name: str, data: Any, dtype: str = "float32") -> onnx.TensorProto:
    return numpy_helper.from_array(np.asarray(data, dtype), name)


def model(
    nodes: Sequence[onnx.NodeProto],
    inputs: Sequence[onnx.ValueInfoProto] = (),
    outputs: Sequence[onnx.ValueInfoProto] = (),
    weights: Sequence[onnx.TensorProto] = (),
    opset: int = 17,
    **more: Any,
) -> onnx.ModelProto:
    graph = helper.make_graph(list(nodes), "g", list(inputs), list(outputs), list(weights))
    imports = more.pop("imports", [helper.make_opsetid("", opset)])
    return helper.make_model(graph, opset_imports=imports, ir_version=more.pop("ir_version", 8), **more)


def softmax(shape: Sequence[int | str | None] | None = (2, 3), out: Sequence[int | str | None] | None = (2, 3)) -> onnx.ModelProto:
    """x -> Softmax -> y, the smallest good model."""
    return model([helper.make_node("Softmax", ["x"], ["y"], name="soft")], [info("x", shape)], [info("y", out)])


def refusal(given: object, **more: object) -> FlaotError:
    """The error ``read`` refuses a model with: printable lines of bounded length and a documented exit code."""
    with pytest.raises(FlaotError) as e:
        read(given, evaluate=evaluate, **more)
    for line in str(e.value).splitlines():
        assert line.isprintable() and len(line) < 700
    assert e.value.exit_code in (2, 3, 5, 8, 9)
    return e.value
