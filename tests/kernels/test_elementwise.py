"""Elementwise and movement ops against the expected outputs of ONNX's node tests, on every variant."""

from __future__ import annotations

import numpy as np
import pytest

from tests.kernels.onnx_nodes import Case, carried, cases, graph_of, run
from tests.kernels.reference import CHIPS

ELEMENTWISE = [
    "Abs", "Acos", "Acosh", "Add", "And", "Asin", "Asinh", "Atan", "Atanh", "BitShift", "BitwiseAnd", "BitwiseNot", "BitwiseOr",
    "BitwiseXor", "Cast", "CastLike", "Ceil", "Celu", "Clip", "Cos", "Cosh", "DequantizeLinear", "Div", "DynamicQuantizeLinear", "Elu",
    "Equal", "Erf", "Exp", "Floor", "Gelu", "Greater", "GreaterOrEqual", "HardSigmoid", "HardSwish", "IsInf", "IsNaN", "LeakyRelu",
    "Less", "LessOrEqual", "Log", "Max", "Mean", "Min", "Mish", "Mod", "Mul", "Neg", "Or", "PRelu", "Pow", "QuantizeLinear",
    "Reciprocal", "Relu", "Round", "Selu", "Shrink", "Sigmoid", "Sign", "Sin", "Sinh", "Softplus", "Softsign", "Sqrt", "Sub", "Sum",
    "Swish", "Tan", "Tanh", "ThresholdedRelu", "Where", "Xor",
]  # fmt: skip
MOVEMENT = [
    "Compress", "Concat", "ConstantOfShape", "CumSum", "DepthToSpace", "Dropout", "Expand", "EyeLike", "Gather", "GatherElements",
    "GatherND", "Identity", "NonZero", "OneHot", "Pad", "Range", "ReverseSequence", "ScatterElements", "ScatterND", "Shape", "Size",
    "Slice", "SpaceToDepth", "Split", "Tile", "Transpose", "Trilu",
]  # fmt: skip

REFUSED = {
    "float8": "types flaot does not carry", "FLOAT8": "types flaot does not carry", "e4m3": "types flaot does not carry",
    "e5m2": "types flaot does not carry", "e8m0": "types flaot does not carry", "E8M0": "types flaot does not carry",
    "int4": "types flaot does not carry", "INT4": "types flaot does not carry", "int2": "types flaot does not carry",
    "INT2": "types flaot does not carry", "float4": "types flaot does not carry", "FLOAT4": "types flaot does not carry",
    "STRING": "strings", "string": "strings", "identity_sequence": "sequences", "identity_opt": "optionals", "training": "training mode",
    "range_bfloat16": "Range of bfloat16",
}  # fmt: skip


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("op_type", [*ELEMENTWISE, *MOVEMENT])
def test_onnx_nodes(op_type: str, chip: str) -> None:
    tried = 0
    for case in cases(op_type):
        if any(part in case.name for part in REFUSED):
            continue
        agree(case, chip)
        tried += 1
    assert tried


def agree(case: Case, chip: str) -> None:
    got = run(graph_of(case.model, case.feeds), case.feeds, CHIPS[chip])
    for g, w in zip(got, map(carried, case.outputs), strict=True):
        assert g.dtype == w.dtype and g.shape == w.shape, case.name
        exact = w.dtype.kind != "f"
        rtol = 0 if exact else 2e-3 if w.dtype == np.float16 else 1e-5
        np.testing.assert_allclose(g, w, rtol=rtol, atol=0 if exact else 1e-6, err_msg=case.name)
