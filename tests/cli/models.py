"""A plan made by hand and the model it stands for: y = softmax(softmax(x))."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper

from tests.plan.programs import plan_of, two_softmaxes


def write_pair(folder: Path, rows: int = 2, columns: int = 8, axis: int = 1) -> tuple[Path, Path]:
    """``p.flp`` and ``m.onnx``; another ``axis`` makes the model differ from the plan."""
    (folder / "p.flp").write_bytes(plan_of(two_softmaxes(rows, columns)))
    nodes = [
        helper.make_node("Softmax", ["x"], ["mid"], name="first", axis=1),
        helper.make_node("Softmax", ["mid"], ["y"], name="second", axis=axis),
    ]
    ports = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [rows, columns]) for n in ("x", "y")]
    graph = helper.make_graph(nodes, "g", ports[:1], ports[1:])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8), folder / "m.onnx")
    return folder / "p.flp", folder / "m.onnx"


def x(rows: int = 2, columns: int = 8) -> np.ndarray:
    return np.arange(rows * columns, dtype=np.float32).reshape(rows, columns) / 3
