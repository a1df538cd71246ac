"""ONNX's own node tests run through the frontend and the kernels, node by node."""

from __future__ import annotations

import importlib
import warnings
from dataclasses import dataclass
from functools import cache

import numpy as np
import onnx
from onnx import numpy_helper
from onnx.backend.test.case import node as node_tests

from flaot.errors import UnsupportedError
from flaot.frontend.read import read
from flaot.ir.graph import Graph, Value
from flaot.kernels.base import load_all
from flaot.schedule.evaluate import evaluate
from flaot.targets.cpu import Cpu

load_all()

MODULES = {
    "And": "and_", "GreaterOrEqual": "greater_or_equal", "LessOrEqual": "less_or_equal", "Not": "not_", "Or": "or_", "Range": "rangeop",
}  # fmt: skip


@dataclass(frozen=True)
class Case:
    """One node test: a model, its inputs (None where left out) and the expected outputs."""

    name: str
    model: onnx.ModelProto
    inputs: list[np.ndarray | None]
    outputs: list[np.ndarray]

    @property
    def feeds(self) -> dict[str, np.ndarray]:
        return {i.name: a for i, a in zip(self.model.graph.input, self.inputs, strict=True) if a is not None}


@cache
def cases(op_type: str) -> list[Case]:
    """The tests of one operator whose models are that node alone; onnx makes them when its module is imported."""
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        importlib.import_module(f"onnx.backend.test.case.node.{MODULES.get(op_type, op_type.lower())}")
    made = [c for c in node_tests._NodeTestCases if [n.op_type for n in c.model.graph.node] == [op_type]]
    made = [c for c in made if all(o.version >= 7 for o in c.model.opset_import)]
    return [Case(c.name, c.model, *([_array(a) for a in side] for side in c.data_sets[0])) for c in made]


def _array(given: object) -> np.ndarray | None:
    return numpy_helper.to_array(given) if isinstance(given, onnx.TensorProto) else given  # type: ignore[return-value]


def graph_of(model: onnx.ModelProto, feeds: dict[str, np.ndarray]) -> Graph:
    """The graph; where the compiler must know an input, all but the first are made constants."""
    shapes = {n: a.shape for n, a in feeds.items()}
    try:
        return read(model, shapes=shapes, evaluate=evaluate)
    except UnsupportedError as e:
        if "run-time data" not in str(e):
            raise
    names = [i.name for i in model.graph.input]
    for keep in (names[:1], []):
        fixed = onnx.ModelProto()
        fixed.CopyFrom(model)
        for name in [n for n in names if n not in keep]:
            fixed.graph.initializer.append(numpy_helper.from_array(feeds[name], name))
        try:
            return read(fixed, shapes={n: feeds[n].shape for n in keep}, evaluate=evaluate)
        except UnsupportedError as e:
            if "run-time data" not in str(e):
                raise
    raise AssertionError("unreachable")


def run(graph: Graph, feeds: dict[str, np.ndarray], chip: Cpu, parts: int = 2) -> list[np.ndarray]:
    """Outputs of the graph, each node evaluated on its own."""
    at = {v.id: carried(feeds[v.name]) for v in graph.inputs}

    def array(v: Value) -> np.ndarray:
        return at[v.id] if v.data is None else v.data

    for node in graph.nodes():
        inputs = [None if v is None else array(v) for v in node.inputs]
        dtypes = [None if v is None else v.type.dtype for v in node.inputs]
        constant = [i for i, v in enumerate(node.inputs) if v is not None and v.is_constant]
        for v, got in zip(node.outputs, evaluate(node.op, inputs, chip, dtypes, parts, constant), strict=True):
            at[v.id] = got
    return [array(o.value) for o in graph.outputs]


def carried(array: np.ndarray) -> np.ndarray:
    """bfloat16 as the bits flaot carries."""
    return array.view(np.uint16) if getattr(array, "dtype", None) == "bfloat16" else array
