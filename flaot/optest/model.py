"""Cases as ONNX models of one node."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import helper, numpy_helper

from flaot.optest.case import Case

IR_VERSION = 10
MICROSOFT = "com.microsoft"


def model_of(case: Case, arrays: list[np.ndarray | None]) -> tuple[onnx.ModelProto, dict[str, np.ndarray]]:
    """The model and the feeds of the inputs that are not constant, in logical (NCHW) order. The node is named ``node``."""
    names = ["" if a is None else f"x{i}" for i, a in enumerate(arrays)]
    feeds: dict[str, np.ndarray] = {}
    constants, ports = [], []
    for name, array, tensor in zip(names, arrays, case.inputs, strict=True):
        if array is None or tensor is None:
            continue
        if tensor.constant:
            constants.append(numpy_helper.from_array(array, name))
        else:
            feeds[name] = array
            ports.append(helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape))
    results = [f"y{i}" for i in range(case.outputs)]
    node = helper.make_node(case.operator, names, results, name="node", domain=case.domain, **case.attributes)
    graph = helper.make_graph([node], "case", ports, [onnx.ValueInfoProto(name=r) for r in results], constants)
    opsets = [helper.make_opsetid("", case.opset), *([helper.make_opsetid(MICROSOFT, 1)] if case.domain == MICROSOFT else [])]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=IR_VERSION)
    model = onnx.shape_inference.infer_shapes(model)
    for output in model.graph.output:
        if not output.type.tensor_type.elem_type:
            output.type.tensor_type.elem_type = onnx.TensorProto.FLOAT
    return model, feeds


def to_bytes(model: onnx.ModelProto) -> bytes:
    """The file."""
    return bytes(model.SerializeToString(deterministic=True))
