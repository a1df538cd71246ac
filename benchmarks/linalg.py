"""Matrix products, reductions, normalisations and recurrent layers one by one against onnxruntime, one thread.

Both sides run a one-layer model through their sessions in turn; the ratio is of the minima of process CPU time.
Run: ``python -m benchmarks.linalg [--hcd x86_64_avx2] [name part ...]``.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
from onnx import helper, numpy_helper

import flaot
from benchmarks.timing import interleaved

Arrays = dict[str, np.ndarray]
RNG = np.random.default_rng(0)


def normal(*shape: int, scale: float = 1.0) -> np.ndarray:
    return RNG.standard_normal(shape, dtype=np.float32) * np.float32(scale)


def model(nodes: Sequence[onnx.NodeProto], feeds: Arrays, constants: Arrays) -> bytes:
    """A model whose output is ``y``."""
    kind = onnx.TensorProto.INT64 if nodes[-1].op_type == "ArgMax" else onnx.TensorProto.FLOAT
    graph = helper.make_graph(
        nodes, "g", [helper.make_tensor_value_info(k, helper.np_dtype_to_tensor_dtype(v.dtype), v.shape) for k, v in feeds.items()],
        [helper.make_tensor_value_info("y", kind, None)], [numpy_helper.from_array(v, k) for k, v in constants.items()],
    )
    result: bytes = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10).SerializeToString()
    return result


def node(op_type: str, inputs: str, output: str = "y", **attributes: Any) -> onnx.NodeProto:
    return helper.make_node(op_type, inputs.split(","), output.split(","), **attributes)


SHAPES = (
    (128, 256, 256), (128, 256, 1024), (128, 1024, 256), (128, 384, 384), (128, 384, 1536), (49, 960, 320), (196, 1024, 256), (4, 256, 512),
    (17, 100, 70), (1, 640, 128), (1, 384, 384), (1, 384, 1536), (1, 1280, 1000), (1, 2048, 1000), (1, 64, 32),
)  # fmt: skip
Case = tuple[str, list[onnx.NodeProto], Arrays, Arrays]


def products() -> Iterator[Case]:
    for m, k, n in SHAPES:
        yield f"gemm {m}x{k}x{n}", [node("Gemm", "x,w,b")], {"x": normal(m, k)}, {"w": normal(k, n), "b": normal(n)}
    for act in ("Relu", "Gelu", "Sigmoid", "Tanh"):
        nodes = [node("MatMul", "x,w", "p"), node("Add", "p,b", "s"), node(act, "s")]
        yield f"mlp {act} 128x384x1536", nodes, {"x": normal(1, 128, 384)}, {"w": normal(384, 1536), "b": normal(1536)}
    for h, s, d in ((4, 128, 64), (6, 128, 64), (8, 256, 32)):
        x = {"q": normal(1, h, s, d), "k": normal(1, h, s, d)}
        yield f"scores {h}x{s}x{d}", [node("Transpose", "k", "t", perm=(0, 1, 3, 2)), node("MatMul", "q,t")], x, {}
        yield f"values {h}x{s}x{d}", [node("MatMul", "q,k")], {"q": normal(1, h, s, s), "k": normal(1, h, s, d)}, {}


def rows() -> Iterator[Case]:
    for shape in ((1536, 128), (128, 1024), (4, 1000), (100, 17)):
        yield f"softmax {shape}", [node("Softmax", "x")], {"x": normal(*shape)}, {}
    yield "softmax axis 1 of 8x21x1024", [node("Softmax", "x", axis=1)], {"x": normal(8, 21, 1024)}, {}
    for shape in ((128, 256), (128, 384), (2048, 384), (30, 100)):
        constants = {"s": normal(shape[-1]), "b": normal(shape[-1])}
        yield f"layernorm {shape}", [node("LayerNormalization", "x,s,b")], {"x": normal(*shape)}, constants
    x = {"x": normal(1, 64, 56, 56)}
    yield "instancenorm 64x56x56", [node("InstanceNormalization", "x,s,b")], x, {"s": normal(64), "b": normal(64)}
    for axes in ((2, 3), (1,), (1, 2, 3)):
        yield f"mean {axes} of 64x56x56", [node("ReduceMean", "x,a")], x, {"a": np.array(axes)}
    yield "max 1 of 64x56x56", [node("ReduceMax", "x,a")], x, {"a": np.array([1])}
    yield "argmax 1 of 64x56x56", [node("ArgMax", "x", axis=1)], x, {}
    yield "topk 100 of 3000", [node("TopK", "x,k", "y,i")], {"x": normal(1, 3000)}, {"k": np.array([100])}


def recurrent() -> Iterator[Case]:
    for cell, g in (("LSTM", 4), ("GRU", 3), ("RNN", 1)):
        for t, n, i, h, d in ((49, 1, 64, 128, 1), (49, 1, 256, 128, 1), (49, 1, 64, 128, 2), (1, 1, 128, 128, 1), (20, 4, 64, 128, 1),
                              (30, 1, 16, 12, 1), (33, 16, 8, 16, 2)):
            if cell == "RNN" and n == 1 and t > 1:
                continue
            weights = {"w": normal(d, g * h, i, scale=i**-0.5), "r": normal(d, g * h, h, scale=h**-0.5), "b": normal(d, 2 * g * h)}
            options = {"hidden_size": h, "direction": "bidirectional" if d == 2 else "forward"}
            if cell == "GRU":
                options["linear_before_reset"] = 1
            yield f"{cell} {t}x{n}x{i} {h} {d}", [node(cell, "x,w,r,b", **options)], {"x": normal(t, n, i)}, weights


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("names", nargs="*", help="parts of names; all when left out")
    parser.add_argument("--hcd", default="host")
    parser.add_argument("--seconds", type=float, default=0.5, help="per layer")
    args = parser.parse_args()
    print(f"{'layer':30} {'flaot us':>9} {'ort us':>9} {'ratio':>6}")
    for name, nodes, feeds, constants in (*products(), *rows(), *recurrent()):
        if args.names and not any(part in name for part in args.names):
            continue
        proto = model(nodes, feeds, constants)
        options = ort.SessionOptions()
        options.intra_op_num_threads = 1
        theirs = ort.InferenceSession(proto, options, providers=["CPUExecutionProvider"])
        ours = flaot.Session(flaot.compile(proto, args.hcd).plan, threads=1)
        a, b = interleaved([lambda: ours.run(None, feeds), lambda: theirs.run(None, feeds)], args.seconds)  # noqa: B023
        print(f"{name:30} {a.minimum * 1e3:9.1f} {b.minimum * 1e3:9.1f} {a.minimum / b.minimum:6.2f}", flush=True)


if __name__ == "__main__":
    main()
