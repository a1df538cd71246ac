"""Small models for mapping tests."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from flaot.hcd import Hcd, load, load_hcd
from flaot.hcd.bundle import bundled


def weights(*shape: int) -> np.ndarray:
    """Numbers seeded by the shape whose products stay near 1."""
    return (np.random.default_rng(shape).standard_normal(shape) / np.sqrt(np.prod(shape[1:]) or 1)).astype(np.float32)


def model(
    nodes: Sequence[onnx.NodeProto], inputs: dict[str, Sequence[int]], outputs: Sequence[str],
    constants: dict[str, np.ndarray] | None = None, dtype: int = TensorProto.FLOAT, opset: int = 17,
) -> onnx.ModelProto:
    """A model whose outputs have shapes to be inferred."""
    ins = [helper.make_tensor_value_info(n, dtype, s) for n, s in inputs.items()]
    outs = [helper.make_tensor_value_info(n, dtype, None) for n in outputs]
    held = [numpy_helper.from_array(v, n) for n, v in (constants or {}).items()]
    graph = helper.make_graph(list(nodes), "g", ins, outs, held)
    return onnx.shape_inference.infer_shapes(helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8))


def node(op: str, inputs: str, output: str, **attributes: object) -> onnx.NodeProto:
    return helper.make_node(op, inputs.split(), [output], name=f"{op.lower()}_{output}", **attributes)


def mlp(batch: int = 1) -> onnx.ModelProto:
    """784-256-10."""
    nodes = [node("Gemm", "x w1 b1", "h"), node("Relu", "h", "r"), node("Gemm", "r w2 b2", "y")]
    held = {"w1": weights(784, 256), "b1": weights(256), "w2": weights(256, 10), "b2": weights(10)}
    return model(nodes, {"x": (batch, 784)}, ["y"], held)


def convolutions(batch: int = 1, depth: int = 3, size: int = 32) -> onnx.ModelProto:
    """A chain of convolutions with activations, global pooling and a classifier."""
    nodes, held, last = [], {}, "x"
    for i in range(depth):
        held[f"w{i}"] = weights(16, 16 if i else 3, 3, 3)
        nodes += [node("Conv", f"{last} w{i}", f"c{i}", pads=[1, 1, 1, 1]), node("Relu", f"c{i}", f"r{i}")]
        last = f"r{i}"
    nodes += [node("GlobalAveragePool", last, "p"), node("Flatten", "p", "f"), node("Gemm", "f w b", "y")]
    return model(nodes, {"x": (batch, 3, size, size)}, ["y"], held | {"w": weights(16, 10), "b": weights(10)})


def attention(heads: int, length: int = 8, width: int = 48, layers: int = 1) -> onnx.ModelProto:
    """Self-attention blocks, spelt out as PyTorch's exporters do."""
    nodes, depth, last = [], width // heads, "x"
    held = {"shape": np.int64([1, length, heads, depth]), "back": np.int64([1, length, width]), "scale": np.float32(depth**-0.5)}
    for i in range(layers):
        for n in "qkv":
            held[f"{n}w{i}"] = weights(width, width)
            perm = [0, 2, 3, 1] if n == "k" else [0, 2, 1, 3]
            nodes += [
                node("MatMul", f"{last} {n}w{i}", f"{n}m{i}"), node("Reshape", f"{n}m{i} shape", f"{n}r{i}"),
                node("Transpose", f"{n}r{i}", f"{n}{i}", perm=perm),
            ]
        nodes += [
            node("MatMul", f"q{i} k{i}", f"s{i}"), node("Mul", f"s{i} scale", f"t{i}"), node("Softmax", f"t{i}", f"p{i}", axis=-1),
            node("MatMul", f"p{i} v{i}", f"a{i}"), node("Transpose", f"a{i}", f"o{i}", perm=[0, 2, 1, 3]),
            node("Reshape", f"o{i} back", f"z{i}"), node("Add", f"z{i} {last}", f"y{i}"),
        ]
        last = f"y{i}"
    return model(nodes, {"x": (1, length, width)}, [last], held)


def chip(name: str, *changes: tuple[str, str]) -> Hcd:
    """A bundled descriptor with pieces of its text replaced."""
    text = bundled()[name].read_text()
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new)
    return load(text.encode(), f"{name}.hcd") if changes else load_hcd(name)


def small(name: str, *operators: str, host: str = "", rank: int = 4, more: str = "") -> Hcd:
    """A chip of one float16 vector unit that lists these operators."""
    listed = "".join(f"  {op}: {{units: [vector]}}\n" for op in operators)
    text = f"""chip: {{name: {name}, vendor: v, device_type: {name.lower()}}}
clock_mhz: 1000
compute_units: {{vector: {{peak_gflops: 100}}}}
memory:
  on_chip_cache: {{size_kb: 256, bandwidth_gb_per_s: 64}}
  off_chip_memory: {{bandwidth_gb_per_s: 16}}
tensor: {{max_rank: {rank}, supported_dtypes: [float16]}}
constraints: {{memory_alignment_bytes: 64}}
operators:
{listed}{f"host: {{{host}}}" if host else ""}
{more}"""
    return load(text.encode(), f"{name.lower()}.hcd")
