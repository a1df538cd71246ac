"""A one-node ONNX model run by onnxruntime: the reference for tests of single ops."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
from onnx import helper, numpy_helper

from flaot.targets.cpu import Cpu

CHIPS = {
    "generic": Cpu(),
    "avx2": Cpu(variants=("generic", "avx2")),
    "avx512": Cpu(variants=("generic", "avx2", "avx512")),
}


def onnxruntime(
    op_type: str, inputs: Sequence[np.ndarray | None], *, opset: int = 18, constant: Sequence[int] = (), outputs: int = 1, **attributes: Any
) -> list[np.ndarray]:
    """Outputs of the node; ``constant`` lists the inputs given as initializers."""
    names = ["" if a is None else f"x{i}" for i, a in enumerate(inputs)]
    results = [f"y{i}" for i in range(outputs)]
    given = {n: a for n, a in zip(names, inputs, strict=True) if a is not None}
    fixed = {names[i]: given.pop(names[i]) for i in constant if inputs[i] is not None}
    graph = helper.make_graph(
        [helper.make_node(op_type, names, results, **attributes)], "g",
        [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape) for n, a in given.items()],
        [onnx.ValueInfoProto(name=n) for n in results], [numpy_helper.from_array(a, n) for n, a in fixed.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=9)
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    session = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    got: list[np.ndarray] = session.run(None, given)
    return got
