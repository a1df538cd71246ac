"""What each kind of compute unit runs when a descriptor has no ``operators`` group."""

from __future__ import annotations

from flaot.ir.op import OPS
from flaot.ir.ops.elementwise import _Elementwise
from flaot.ir.types import DType

MOVEMENT = ("Concat", "Expand", "Pad", "Reshape", "Slice", "Split", "Transpose")
"""Ops that compute nothing: any element type the chip carries."""

PRODUCTS = ("Conv", "ConvTranspose", "FusedConv", "FusedMatMul", "Gemm", "MatMul")
NORMALISATIONS = (
    "BatchNormalization", "GroupNormalization", "InstanceNormalization", "LayerNormalization", "LpNormalization", "LRN",
    "MeanVarianceNormalization", "RMSNormalization", "LogSoftmax", "Softmax",
)
REDUCTIONS = (
    "ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd", "ReduceSum",
    "ReduceSumSquare",
)
WINDOWS = ("AveragePool", "LpPool", "MaxPool", "Resize")
INTEGER_PRODUCTS = ("ConvInteger", "MatMulInteger", "QLinearConv", "QLinearMatMul")
NOT_ELEMENTWISE = ("DequantizeLinear", "QuantizeLinear")
"""Element-wise by form, but about integers."""


def elementwise() -> tuple[str, ...]:
    """Ops that work element by element on floating point."""
    found = [n for n, op in OPS.items() if issubclass(op, _Elementwise) and DType.float32 in op.dtypes and n not in NOT_ELEMENTWISE]
    return tuple(sorted(found))


def default_operators(kind: str) -> frozenset[str] | None:
    """IR ops a unit of this kind runs; None for a cpu, which runs whatever kernels there are."""
    match kind:
        case "cpu":
            return None
        case "fp16" | "bf16" | "fp32":
            return frozenset((*PRODUCTS, *WINDOWS, *NORMALISATIONS, *REDUCTIONS, *MOVEMENT, *elementwise(), "FusedMap"))
        case "vector":
            return frozenset((*NORMALISATIONS, *REDUCTIONS, *MOVEMENT, *elementwise(), "FusedMap"))
        case "attention":
            return frozenset(("Attention",))
        case _:
            return frozenset((*INTEGER_PRODUCTS, *MOVEMENT, *NOT_ELEMENTWISE))
