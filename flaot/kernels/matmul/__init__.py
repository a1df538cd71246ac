"""MatMul and Gemm with portable code, any strides and any dtype ONNX allows on a CPU."""

from __future__ import annotations

from flaot.ir.graph import Node
from flaot.ir.ops.matmul import Gemm, MatMul, _Product
from flaot.ir.types import DType
from flaot.kernels.base import Builder, CpuChip, Implementation, Kernel, Param
from flaot.plan.program import View

MATMUL = Kernel("matmul", params=(Param("alpha", "f32"), Param("beta", "f32")))
DTYPES = (DType.float32, DType.float64, DType.int32, DType.int64, DType.uint32, DType.uint64)


def stack(view: View, shape: tuple[int, ...]) -> View:
    """A stack of matrices with its leading axes broadcast to those of ``shape``."""
    return view.broadcast((*shape[:-2], *view.dims[-2:]))


def transposed(view: View) -> View:
    """Its last two axes exchanged."""
    rank = len(view.dims)
    return view.permute((*range(rank - 2), rank - 1, rank - 2))


class PortableProduct(Implementation):
    op = _Product

    def reject(self, node: Node, chip: CpuChip) -> str | None:
        dtype = node.outputs[0].type.dtype
        if not isinstance(node.op, MatMul | Gemm):
            return f"{node.op.name} has its own kernels"
        if isinstance(node.op, Gemm) and not dtype.is_float and not {node.op.alpha, node.op.beta} <= {0.0, 1.0}:
            return f"alpha and beta other than 0 and 1 on {dtype.name}"
        return None if dtype in DTYPES else f"{node.op.name} of {dtype.name}; the CPU kernels take {', '.join(d.name for d in DTYPES)}"

    def lower(self, node: Node, b: Builder) -> None:
        op, y = node.op, b.view(node.outputs[0])
        left, right = stack(b.view(node.inputs[0]), y.dims), stack(b.view(node.inputs[1]), y.dims)
        gemm = op if isinstance(op, Gemm) else Gemm()
        left = transposed(left) if gemm.trans_a else left
        right = transposed(right) if gemm.trans_b else right
        add = [b.view(node.inputs[2]).broadcast(y.dims)] if len(node.inputs) > 2 and gemm.beta != 0 else []
        work = y.elements * left.dims[-1]
        b.step(MATMUL, [left, right, *add], [y], parallel=work > 100_000, variant="generic", alpha=gemm.alpha, beta=gemm.beta)
