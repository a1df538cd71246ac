"""ONNX's own node tests run through the frontend and the kernels, node by node."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import onnx
from onnx import numpy_helper

from flaot.errors import UnsupportedError
from flaot.frontend.read import read
from flaot.ir.graph import Graph, Value
from flaot.schedule.evaluate import evaluate
from flaot.targets.cpu import Cpu

DATA = Path(onnx.__file__).parent / "backend" / "test" / "data" / "node"


@cache
def names(*op_types: str) -> list[str]:
    """Node tests whose model is one node of these operators."""
    found = []
    for folder in sorted(DATA.iterdir()):
        nodes = onnx.load(folder / "model.onnx", load_external_data=False).graph.node
        if len(nodes) == 1 and nodes[0].op_type in op_types and not nodes[0].domain:
            found.append(folder.name)
    return found


def load(name: str) -> tuple[onnx.ModelProto, list[np.ndarray | None], list[np.ndarray]]:
    """Model, inputs and expected outputs."""
    folder = DATA / name
    model = onnx.load(folder / "model.onnx")
    tensors: list[list[np.ndarray]] = []
    for kind in ("input", "output"):
        count = len(list((folder / "test_data_set_0").glob(f"{kind}_*.pb")))
        files = [folder / "test_data_set_0" / f"{kind}_{i}.pb" for i in range(count)]
        tensors.append([numpy_helper.to_array(onnx.load_tensor(f)) for f in files])
    return model, list(tensors[0]), tensors[1]


def graph_of(model: onnx.ModelProto, feeds: dict[str, np.ndarray]) -> Graph:
    """The graph; where the compiler must know an input, all but the first are made constants."""
    folding = evaluate
    shapes = {n: a.shape for n, a in feeds.items()}
    try:
        return read(model, shapes=shapes, evaluate=folding)
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
            return read(fixed, shapes={n: feeds[n].shape for n in keep}, evaluate=folding)
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
    return array.view(np.uint16) if array.dtype.name == "bfloat16" else array
