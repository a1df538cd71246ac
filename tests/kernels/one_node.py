"""A one-node ONNX model run by onnxruntime, the reference, and by flaot through its frontend."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
from onnx import helper, numpy_helper

from flaot.frontend import read
from flaot.kernels.base import load_all
from flaot.schedule.evaluate import evaluate
from flaot.targets.cpu import Cpu
from tests.kernels.reference import CHIPS

load_all()

def build(
    op_type: str, inputs: Sequence[np.ndarray | None], *, opset: int = 18, constant: Sequence[int] = (), outputs: int = 1,
    domain: str = "", types: Sequence[type] = (), **attributes: Any,
) -> tuple[onnx.ModelProto, dict[str, np.ndarray]]:
    """The model and its inputs; ``constant`` lists the node inputs that are initializers, ``types`` the
    outputs' dtypes where onnx cannot infer them. A trailing _ of an attribute's name is dropped (``opset_``)."""
    names = ["" if a is None else f"x{i}" for i, a in enumerate(inputs)]
    results = [f"y{i}" for i in range(outputs)]
    given = {n: a for n, a in zip(names, inputs, strict=True) if a is not None}
    fixed = {names[i]: given.pop(names[i]) for i in constant if i < len(inputs) and inputs[i] is not None}
    clean = {k.rstrip("_"): v for k, v in attributes.items()}
    graph = helper.make_graph(
        [helper.make_node(op_type, names, results, domain=domain, **clean)], "g",
        [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape) for n, a in given.items()],
        [_declared(n, types[i] if types else None) for i, n in enumerate(results)],
        [numpy_helper.from_array(a, n) for n, a in fixed.items()],
    )
    domains = [helper.make_opsetid("", opset), *([helper.make_opsetid(domain, 1)] if domain else [])]
    return onnx.shape_inference.infer_shapes(helper.make_model(graph, opset_imports=domains, ir_version=9)), given


def _declared(name: str, dtype: type | None) -> onnx.ValueInfoProto:
    if dtype is None:
        return onnx.ValueInfoProto(name=name)
    return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(np.dtype(dtype)), None)


def onnxruntime(op_type: str, inputs: Sequence[np.ndarray | None], **options: Any) -> list[np.ndarray]:
    """The reference's outputs; options as for :func:`build`."""
    model, given = build(op_type, inputs, **options)
    settings = ort.SessionOptions()
    settings.intra_op_num_threads, settings.log_severity_level = 1, 4
    session = ort.InferenceSession(model.SerializeToString(), settings, providers=["CPUExecutionProvider"])
    got: list[np.ndarray] = session.run(None, given)
    return got


def flaot(chip: Cpu, op_type: str, inputs: Sequence[np.ndarray | None], *, last: bool = False, **options: Any) -> list[np.ndarray]:
    """flaot's outputs: the model is read and its nodes run one by one; ``last`` stores tensors channels last."""
    model, given = build(op_type, inputs, **options)
    graph = read(model, evaluate=evaluate)
    known: dict[int, np.ndarray] = {v.id: given[v.name] for v in graph.inputs}
    for node in graph.nodes():
        arrays = [None if v is None else v.data if v.data is not None else known[v.id] for v in node.inputs]
        fixed = [i for i, v in enumerate(node.inputs) if v is not None and v.is_constant]
        results = evaluate(node.op, arrays, chip, parts=2, constant=fixed, last=last)
        known |= {v.id: a for v, a in zip(node.outputs, results, strict=True)}
    return [o.value.data if o.value.data is not None else known[o.value.id] for o in graph.outputs]


def agree(
    op_type: str, inputs: Sequence[np.ndarray | None], *, want: Sequence[np.ndarray] | None = None, chips: Sequence[str] = tuple(CHIPS),
    storages: Sequence[bool] = (False, True), rtol: float = 1e-4, atol: float = 1e-5, **options: Any,
) -> None:
    """Compares flaot on every chip and storage with onnxruntime or with ``want``; integers must be equal."""
    expected = onnxruntime(op_type, inputs, **options) if want is None else want
    for chip, last in itertools.product(chips, storages):
        got = flaot(CHIPS[chip], op_type, inputs, last=last, **options)
        for g, w in zip(got, expected, strict=True):
            where = f"{chip}, channels last {last}: {op_type} {options}"
            assert (g.dtype, g.shape) == (w.dtype, w.shape), where
            exact = w.dtype.kind != "f"
            size = max(1.0, float(np.abs(w[np.isfinite(w)]).max(initial=0))) if not exact else 1.0
            np.testing.assert_allclose(g, w, rtol=0 if exact else rtol, atol=0 if exact else atol * size, err_msg=where)
