"""Small models with named nodes at the stage legalize meets them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from onnx import TensorProto, helper, numpy_helper

from flaot.hcd import Hcd, load_hcd
from flaot.ir.graph import Graph
from flaot.mapping.capability import Capability
from flaot.mapping.legalize import Verdict, legalize
from flaot.mapping.policy import policy_of
from flaot.pipeline import Options, canonicalize, read_model, recognise

FLOAT = TensorProto.FLOAT


def model(
    nodes: Sequence[object], shape: tuple[int, ...] = (1, 3, 16, 16), dtype: int = FLOAT, inputs: Sequence[str] = ("x",), opset: int = 17,
    out: int | None = None, **constants: np.ndarray,
) -> bytes:
    """A model whose inputs all have one shape and type, and whose output is y."""
    graph = helper.make_graph(
        nodes, "g", [helper.make_tensor_value_info(n, dtype, shape) for n in inputs],
        [helper.make_tensor_value_info("y", dtype if out is None else out, None)],
        [numpy_helper.from_array(a, n) for n, a in constants.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10).SerializeToString()


def op(kind: str, inputs: str, output: str, name: str, **attributes: object) -> object:
    return helper.make_node(kind, inputs.split(), [output], name=name, **attributes)


def conv(kernel: int = 3, batch: int = 1, channels: int = 3, relu: bool = True, **attributes: object) -> bytes:
    """Convolution 'conv1' to 4 channels and, after it, Relu 'relu1'."""
    w = np.ones((4, channels // int(attributes.get("group", 1)), kernel, kernel), np.float32)
    nodes = [op("Conv", "x w", "c" if relu else "y", "conv1", **attributes)] + ([op("Relu", "c", "y", "relu1")] if relu else [])
    return model(nodes, (batch, channels, 16, 16), w=w)


def attention(heads: int, length: int = 16) -> bytes:
    """One ONNX Attention 'att' over [1, heads, length, 8]."""
    return model([op("Attention", "q k v", "y", "att")], (1, heads, length, 8), inputs="qkv", opset=23)


def graph_of(data: bytes) -> Graph:
    graph = read_model(data, Options())
    canonicalize(graph)
    recognise(graph)
    return graph


def verdicts(data: bytes, chip: str | Hcd, precision: str = "default", **policy: object) -> dict[str, Verdict]:
    """Verdicts by the name of the model's node (the last of several it became); policy as :func:`policy_of` takes it."""
    graph, hcd = graph_of(data), chip if isinstance(chip, Hcd) else load_hcd(chip)
    found = legalize(graph, Capability(hcd, precision), policy_of(hcd, **policy))  # type: ignore[arg-type]
    return {name: found[n.id] for n in graph.nodes() for name in n.origin}
