"""Fusions of descriptors: which nodes they take together, at which level, and what is said where they do not apply."""

from __future__ import annotations

import numpy as np
import pytest

import flaot.rules.chain
import flaot.rules.fuse
from flaot.hcd import Hcd, load
from flaot.ir.graph import Graph, Place
from flaot.ir.types import DType
from flaot.mapping.fusions import Fusions
from flaot.rewrite import rules_in, run_rules
from tests.rules.harness import onnx_model, rewritten, run_graph

NPU = """chip: {name: Test, vendor: none, version: 1.0.0, device_type: npu}
compute_units:
  fp16: {count: 8, peak_tflops: 1, supported_layouts: [NCHW]}
memory:
  on_chip_cache: {size_kb: 1024, bandwidth_gb_per_s: 64}
  off_chip_memory: {bandwidth_gb_per_s: 32}
tensor: {max_rank: 6, supported_dtypes: [float16], default_layout: NCHW}
constraints: {max_batch_size: 64, memory_alignment_bytes: 64}
"""

LISTED = NPU + """operators:
  Conv: {}
  Add: {}
  Relu: {}
  Mul: {}
  Sigmoid: {}
fusions:
  - name: conv_relu
    level: 1
    pattern:
      - {id: c, op: Conv, inputs: [x, w, b]}
      - {id: out, op: Relu, inputs: [c]}
    result: Conv
  - name: conv_add_relu
    level: 2
    pattern:
      - {id: c, op: Conv, inputs: [x, w, b], requires: [{attribute: kernel_shape, at_most: 3}]}
      - {id: s, op: Add, inputs: [c, r]}
      - {id: out, op: Relu, inputs: [s]}
    result: Conv
"""

RESIDUAL = """(float[1,4,8,8] x) => (float[1,4,8,8] y) <float[4,4,3,3] w, float[4,4,3,3] v> {
    [first] a = Conv <pads = [1,1,1,1]> (x, w)
    [act] r = Relu (a)
    [second] c = Conv <pads = [1,1,1,1]> (r, v)
    [sum] s = Add (x, c)
    [last] y = Relu (s)
}"""


def chip(text: str = NPU) -> Hcd:
    return load(text.encode(), "test.hcd")


def on_chip(body: str, *weights: str, unit: str = "fp16", dtype: DType = DType.float16) -> Graph:
    """The canonical graph of a model, all of it on the chip."""
    shapes = {"w": (4, 4, 3, 3), "v": (4, 4, 3, 3), "m": (8, 8), "bias": (8,), "k": ()}
    names = [n for n in shapes if f" {n}, " in body or f" {n}>" in body or n in weights]
    header = body.replace(body[body.index("<float") : body.index("{")], "") if "<float" in body else body
    graph = rewritten(onnx_model(header, {n: shapes[n] for n in names}))
    for node in graph.nodes():
        node.place = Place("Test", unit, dtype)
    return graph


def fused(graph: Graph, hcd: Hcd, level: int = 2) -> Fusions:
    """Groups and rules applied, as the stages fuse and chain do."""
    fusions = Fusions(hcd, level)
    fusions.group(graph)
    for package in (flaot.rules.fuse, flaot.rules.chain):
        run_rules(graph, rules_in(package), fusions.tracer, fusions.gate)
    return fusions


def ops(graph: Graph) -> list[str]:
    return [n.op.name for n in graph.nodes()]


@pytest.mark.parametrize(
    ("text", "level", "left", "names"),
    [
        (LISTED, 0, ["Conv", "Relu", "Conv", "Add", "Relu"], []),
        (LISTED, 1, ["FusedConv", "Conv", "Add", "Relu"], ["conv_relu"]),
        (LISTED, 2, ["FusedConv", "FusedConv"], ["conv_add_relu", "conv_relu"]),
        (NPU, 0, ["Conv", "Relu", "Conv", "Add", "Relu"], []),
        (NPU, 1, ["FusedConv", "Conv", "Add", "Relu"], ["product_activation"]),
        (NPU, 2, ["FusedConv", "FusedConv"], ["product_residual_activation", "product_activation"]),
    ],
)
def test_levels(text: str, level: int, left: list[str], names: list[str]) -> None:
    graph = on_chip(RESIDUAL)
    fusions = fused(graph, chip(text), level)
    assert ops(graph) == left
    assert [f.name for f in fusions.fused(graph)] == names
    assert all(f.steps == 1 for f in fusions.fused(graph))


def test_numbers_do_not_change() -> None:
    x = np.random.default_rng(1).normal(size=(1, 4, 8, 8)).astype(np.float32)
    apart, together = on_chip(RESIDUAL), on_chip(RESIDUAL)
    fused(apart, chip(LISTED), 0), fused(together, chip(LISTED), 2)
    np.testing.assert_allclose(run_graph(together, {"x": x})[0], run_graph(apart, {"x": x})[0], rtol=1e-6, atol=1e-6)


def test_what_is_recorded() -> None:
    graph = on_chip(RESIDUAL)
    found = fused(graph, chip(LISTED)).fused(graph)[0]
    assert (found.name, found.nodes, found.level, found.origin) == ("conv_add_relu", ("second", "sum", "last"), 2, "test.hcd:22")


def test_one_fusion_taken_out_of_the_descriptor_splits_its_nodes() -> None:
    without = LISTED[: LISTED.index("  - name: conv_add_relu")]
    graph = on_chip(RESIDUAL)
    fusions = fused(graph, chip(without))
    assert ops(graph) == ["FusedConv", "Conv", "Add", "Relu"]
    why = fusions.tracer.misses["conv.ResidualIntoConv", "node 'sum' (Add)"]
    assert why == "test.hcd:15 lists no fusion Conv -> Add at level balanced"


def miss(body: str, fusion: str, where: str, text: str = LISTED, level: int = 2) -> str:
    return fused(on_chip(body), chip(text), level).tracer.misses[fusion, where]


def test_a_higher_level_is_named() -> None:
    assert miss(RESIDUAL, "conv_add_relu", "node 'last' (Relu)", level=1) == "it is listed for level balanced; this is level conservative"
    why = "test.hcd:21 lists the fusion conv_add_relu for level balanced; this is level conservative"
    assert miss(RESIDUAL, "conv.ResidualIntoConv", "node 'sum' (Add)", level=1).endswith("this is level conservative"), why


def test_a_condition_that_fails_is_named() -> None:
    strict = LISTED.replace("kernel_shape, at_most: 3", "kernel_shape, at_most: 2")
    want = "node 'second' (Conv): kernel_shape is [3, 3]; at most 2 is allowed"
    assert miss(RESIDUAL, "conv_add_relu", "node 'last' (Relu)", strict) == want


def test_an_inner_result_that_is_used_elsewhere_or_shown_keeps_nodes_apart() -> None:
    used = RESIDUAL.replace("[last] y = Relu (s)", "[last] z = Relu (s) [more] t = Sigmoid (s) [end] y = Mul (z, t)")
    assert miss(used, "conv_add_relu", "node 'last' (Relu)") == "the result of node 'sum' (Add) is also used by node 'more' (Sigmoid)"
    shown = RESIDUAL.replace("=> (float[1,4,8,8] y)", "=> (float[1,4,8,8] y, float[1,4,8,8] c)")
    assert miss(shown, "conv_add_relu", "node 'last' (Relu)") == "the result of node 'second' (Conv) is an output of the model"


def test_an_outer_name_stands_for_one_value() -> None:
    text = LISTED + """  - name: square_of_relu
    level: 1
    pattern:
      - {id: r, op: Relu, inputs: [x]}
      - {id: out, op: Mul, inputs: [r, k]}
    result: Mul
  - name: same_twice
    level: 1
    pattern:
      - {id: s, op: Sigmoid, inputs: [x]}
      - {id: m, op: Add, inputs: [s, k]}
      - {id: out, op: Mul, inputs: [m, k]}
    result: Mul
"""
    head = "(float[2,8] x, float[2,8] k, float[2,8] l) => (float[2,8] y)"
    twice, different = (f"{head} {{ s = Sigmoid (x) m = Add (s, k) [end] y = Mul (m, {other}) }}" for other in ("k", "l"))
    for body, count in ((twice, 1), (different, 0)):
        graph = on_chip(body)
        assert sum(f.name == "same_twice" for f in fused(graph, chip(text)).fused(graph)) == count


def test_of_two_convolutions_the_one_that_rules_take_has_the_sum() -> None:
    both = RESIDUAL.replace("Add (x, c)", "Add (d, c)").replace("[sum]", "[third] d = Conv <pads = [1,1,1,1]> (x, w) [sum]")
    graph = on_chip(both)
    found = fused(graph, chip(LISTED)).fused(graph)
    assert {f.nodes[1:] for f in found} >= {("sum", "last")} and all(f.steps == 1 for f in found)
    swapped = both.replace("Add (d, c)", "Add (c, d)")
    again = on_chip(swapped)
    assert [f.nodes for f in fused(again, chip(LISTED)).fused(again)] == [f.nodes for f in found]


def test_nodes_of_two_places_are_no_match() -> None:
    graph = on_chip(RESIDUAL)
    next(n for n in graph.nodes() if n.origin == ("act",)).place = Place("Test", "other", DType.float16)
    fusions = fused(graph, chip(LISTED), 1)
    assert ops(graph) == ["Conv", "Relu", "Conv", "Add", "Relu"]
    assert "node 'act' (Relu) on Test.other in float16" in fusions.tracer.misses["conv_relu", "node 'act' (Relu)"]


def test_host_nodes_fuse_as_ever() -> None:
    graph = on_chip(RESIDUAL, unit="")
    for node in graph.nodes():
        node.place = Place()
    assert fused(graph, chip(LISTED), 0).groups == []
    assert ops(graph) == ["FusedConv", "FusedConv"]


def test_patterns_are_read_as_the_model_is() -> None:
    """Conv -> BatchNormalization -> Relu is Conv -> Relu once the normalization is in the weights, x * Sigmoid(x) is Swish."""
    text = NPU + """fusions:
  - name: block
    level: 1
    pattern:
      - {id: c, op: Conv, inputs: [x, w]}
      - {id: bn, op: BatchNormalization, inputs: [c, scale, shift, mean, var]}
      - {id: out, op: Relu, inputs: [bn]}
    result: Conv
  - name: gate
    level: 1
    pattern:
      - {id: c, op: Conv, inputs: [x, w]}
      - {id: s, op: Sigmoid, inputs: [c]}
      - {id: out, op: Mul, inputs: [s, c]}
    result: Conv
"""
    body = """(float[1,4,8,8] x) => (float[1,4,8,8] y) <float[4,4,3,3] w, float[4,4,3,3] v> {
        a = Conv <pads = [1,1,1,1]> (x, w) r = Relu (a) c = Conv <pads = [1,1,1,1]> (r, v) s = Sigmoid (c) y = Mul (c, s)
    }"""
    graph = on_chip(body)
    assert [f.name for f in fused(graph, chip(text)).fused(graph)] == ["block", "gate"]
    assert ops(graph) == ["FusedConv", "FusedConv"]


def test_products_fuse_past_the_reshapes_around_them() -> None:
    body = """(float[2,3,8] x, float[2,3,8] r) => (float[2,3,8] y) <float[8,8] m, float[8] bias> {
        [product] p = MatMul (x, m) [shift] b = Add (p, bias) [sum] s = Add (b, r) [act] y = Relu (s)
    }"""
    graph = on_chip(body)
    assert "Gemm" in ops(graph) and "Reshape" in ops(graph)
    found = fused(graph, chip()).fused(graph)
    assert ops(graph) == ["FusedMatMul"] and [f.name for f in found] == ["product_residual_activation"]


def test_a_group_without_a_kernel_stays_several_steps() -> None:
    head = "(float[1,4,8,8] x) => (float[1,4,17,17] y) <float[4,4,3,3] w>"
    body = f"{head} {{ [up] c = ConvTranspose <strides = [2,2]> (x, w) [act] y = Relu (c) }}"
    graph = on_chip(body)
    (found,) = fused(graph, chip()).fused(graph)
    assert (found.nodes, found.steps) == (("up", "act"), 2)


def test_trees_of_elementwise_operators() -> None:
    steps = " ".join(f"v{i + 1} = {'Mul' if i % 2 else 'Add'} (v{i}, k)" for i in range(12))
    body = f"(float[2,8] v0, float[2,8] k) => (float[2,8] v12) {{ {steps} }}"
    for level, count in ((1, 12), (2, 2), (3, 1)):
        graph = on_chip(body)
        fusions = fused(graph, chip(), level)
        assert len(graph) == count
        why = set(fusions.tracer.misses.values())
        if level < 3:
            held = "no" if level == 1 else "at most 8"
            later = "8 at level balanced" if level == 1 else "24 at level aggressive"
            name = "conservative" if level == 1 else "balanced"
            assert f"{held} element-wise operators become one at level {name}, {later}" in why


def test_large_patterns_over_symmetric_graphs_end() -> None:
    names = ["x", *(f"a{i}" for i in range(20))]
    parts = "".join(f"      - {{id: a{i}, op: Add, inputs: [{names[i]}, {names[max(i - 1, 0)]}]}}\n" for i in range(20))
    text = f"{NPU}fusions:\n  - name: tower\n    level: 1\n    pattern:\n{parts}    result: Add\n"
    nodes = " ".join(f"v{i + 1} = Add (v{i}, v{max(i - 1, 0)})" for i in range(24))
    graph = on_chip(f"(float[2,8] v0) => (float[2,8] v24) {{ {nodes} }}")
    fused(graph, chip(text), 1)
