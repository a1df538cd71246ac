"""Attention said in products: ONNX's own tests of the operator, read and expanded, against ONNX's expected outputs."""

from __future__ import annotations

import numpy as np
import pytest

from flaot.errors import UnsupportedError
from flaot.ir.ops.attention import Attention
from flaot.ir.spec import check
from flaot.rules.expand import expand_all
from flaot.targets.cpu import Cpu
from tests.kernels.onnx_nodes import Case, cases, graph_of, run

CASES = [
    c
    for c in cases("Attention")
    if all(a is None or a.dtype in (np.float32, np.bool_, np.int64) for a in c.inputs)
    and not c.name.endswith("local_window_gqa_rank4_mask")  # asks for a softmax in float64
]
BY_FUNCTION = ("nonpad", "padded_kv", "window", "qk_matmul", "ext_cache")
"""What marks the tests that are read as the function ONNX defines."""


@pytest.mark.parametrize("case", CASES, ids=[c.name for c in CASES])
def test_onnx_attention_expanded(case: Case) -> None:
    try:
        graph = graph_of(case.model, case.feeds)
    except UnsupportedError as e:
        pytest.skip(str(e))
    native = case.name.endswith("window_default") or not any(w in case.name for w in BY_FUNCTION)
    assert any(isinstance(n.op, Attention) for n in graph.nodes()) == native
    expand_all(graph, lambda node: isinstance(node.op, Attention))
    check(graph, "recognise")
    assert not any(isinstance(n.op, Attention) for n in graph.nodes())
    for got, want in zip(run(graph, case.feeds, Cpu()), case.outputs, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)
