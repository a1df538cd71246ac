"""Structure and numbers of a rewrite in one go: what is left of a model, and that it still computes what onnxruntime does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import onnx
import onnxruntime
from onnx import numpy_helper, parser

import flaot.rules.canonicalize
import flaot.rules.recognise
from flaot.frontend import read
from flaot.ir.graph import Graph
from flaot.ir.spec import check
from flaot.kernels.base import load_all
from flaot.rewrite import Tracer, rules_in, run_rules
from flaot.schedule.evaluate import evaluate

load_all()
Weights = Mapping[str, np.ndarray | Sequence[int] | float]


def onnx_model(body: str, weights: Weights | None = None, opset: int = 17) -> onnx.ModelProto:
    """A model from ONNX's text form of a graph. A weight given as a shape is filled with seeded numbers, 0.5 to 1.5 in size."""
    graph = parser.parse_graph(f"g {body}")
    rng = np.random.default_rng(7)
    for name, given in (weights or {}).items():
        if isinstance(given, tuple | list):
            given = (rng.uniform(0.5, 1.5, given) * rng.choice([-1, 1], given)).astype(np.float32)
        graph.initializer.append(numpy_helper.from_array(np.asarray(given), name))
    return onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", opset)], ir_version=8)


def run_graph(graph: Graph, feeds: Mapping[str, np.ndarray]) -> list[np.ndarray]:
    """Outputs of a graph, node by node with the portable kernels."""
    known = {v.id: feeds[v.name] for v in graph.inputs}
    for node in graph.nodes():
        inputs = [None if v is None else v.data if v.data is not None else known[v.id] for v in node.inputs]
        results = evaluate(node.op, inputs, dtypes=[None if v is None else v.type.dtype for v in node.inputs])
        known.update((v.id, r) for v, r in zip(node.outputs, results, strict=True))
    return [o.value.data if o.value.data is not None else known[o.value.id] for o in graph.outputs]


def draw(model: onnx.ModelProto) -> dict[str, np.ndarray]:
    """Seeded inputs."""
    rng = np.random.default_rng(3)
    weights = {t.name for t in model.graph.initializer}
    feeds = {}
    for info in model.graph.input:
        if info.name not in weights:
            kind = onnx.helper.tensor_dtype_to_np_dtype(info.type.tensor_type.elem_type)
            shape = [d.dim_value for d in info.type.tensor_type.shape.dim]
            feeds[info.name] = (rng.normal(size=shape) * 3).astype(kind)
    return feeds


def reference(model: onnx.ModelProto, feeds: Mapping[str, np.ndarray]) -> list[np.ndarray]:
    """onnxruntime without optimisations."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    return onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"]).run(None, dict(feeds))


def rewritten(model: onnx.ModelProto, tracer: Tracer | None = None) -> Graph:
    """The canonical graph of a model, checked against the spec."""
    graph = read(model, evaluate=evaluate)
    check(graph, "read")
    rules = [*rules_in(flaot.rules.canonicalize, evaluate=evaluate), *rules_in(flaot.rules.recognise, evaluate=evaluate)]
    run_rules(graph, rules, tracer)
    check(graph, "canonicalize")
    return graph


def assert_becomes(
    body: str, weights: Weights | None, ops: Sequence[str], opset: int = 17, feeds: dict[str, np.ndarray] | None = None
) -> Graph:
    """The model is left with ``ops`` (in graph order) and computes the same."""
    model = onnx_model(body, weights, opset)
    graph = rewritten(model)
    assert [n.op.name for n in graph.nodes()] == list(ops)
    feeds = feeds if feeds is not None else draw(model)
    for got, want in zip(run_graph(graph, feeds), reference(model, feeds), strict=True):
        assert got.dtype == want.dtype and got.shape == want.shape
        scale = max(1.0, float(np.nanmax(np.abs(want[np.isfinite(want)]), initial=0.0))) if want.dtype.kind == "f" else 1.0
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6 * scale)
    return graph
