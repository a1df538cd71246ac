"""Operators that are read through the function ONNX defines them by, against ONNX's reference evaluator."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import parser
from onnx.reference import ReferenceEvaluator

from flaot.frontend import read
from flaot.ir.op import READERS
from flaot.schedule.evaluate import evaluate
from tests.rules.harness import draw, run_graph

NEWEST = onnx.defs.onnx_opset_version()


@pytest.mark.parametrize(
    ("op", "opset", "body"),
    [
        ("SwiGLU", NEWEST, "(float[3,8] x, float[3,8] z) => (float[3,8] y) { y = SwiGLU(x, z) }"),
        ("HannWindow", 17, "(float[9] x) => (float[9] y) { n = Constant<value_int=9>() w = HannWindow<periodic=0>(n) y = Mul(x, w) }"),
        (
            "SoftmaxCrossEntropyLoss",
            13,
            '(float[3,5] x) => (float[3] y) { t = Constant<value_ints=[1,4,0]>() y = SoftmaxCrossEntropyLoss<reduction="none">(x, t) }',
        ),
    ],
)
def test_expansions(op: str, opset: int, body: str) -> None:
    if opset > NEWEST or not onnx.defs.has(op):
        pytest.skip(f"onnx {onnx.__version__} has no {op} of opset {opset}")
    if ("", op) in READERS:
        pytest.skip(f"{op} has a reader of its own")
    m = onnx.helper.make_model(parser.parse_graph(f"g {body}"), opset_imports=[onnx.helper.make_opsetid("", opset)])
    feeds = draw(m)
    (got,) = run_graph(read(m, evaluate=evaluate), feeds)
    (want,) = ReferenceEvaluator(m).run(None, feeds)
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)
