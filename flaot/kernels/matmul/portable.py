"""What MatMul, Gemm and FusedMatMul have in common, and the portable kernel for every dtype and stride."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from flaot.ir.graph import Node
from flaot.ir.ops.conv import Act
from flaot.ir.ops.matmul import FusedMatMul, Gemm, _Product
from flaot.ir.types import DType
from flaot.kernels.base import PORTABLE, Builder, CpuChip, Implementation, Kernel, Param
from flaot.kernels.common.cuts import cut, worth
from flaot.kernels.tiling import Cut
from flaot.plan.program import Step, View


def cuts(step: Step) -> Sequence[Cut]:
    """Batches, rows, then columns; not the axis that is summed over."""
    y, count = step.outputs[0], len(step.inputs)
    rows, columns, likes = len(y.dims) - 2, len(y.dims) - 1, range(2, count + 1)
    batches = [cut(f"batch {a}", y.dims[a], dict.fromkeys(range(count + 1), a)) for a in range(rows)]
    return worth([
        *batches,
        cut("rows", y.dims[rows], {0: rows, **dict.fromkeys(likes, rows)}),
        cut("columns", y.dims[columns], {1: columns, **dict.fromkeys(likes, columns)}, multiple=16),
    ])


MATMUL = Kernel(
    "matmul",
    params=(Param("alpha", "f32"), Param("beta", "f32"), Param("act"), Param("act_alpha", "f32"), Param("act_beta", "f32")),
    variants=PORTABLE,
    cuts=cuts,
    transposed=True,
)
DTYPES = (DType.float32, DType.float64, DType.int32, DType.int64, DType.uint32, DType.uint64)


@dataclass
class Product:
    """A node's operands as views: A [b..., m, k], B [b..., k, n] and Y [b..., m, n] of one rank; what is added broadcasts to Y."""

    left: View
    right: View
    y: View
    bias: View | None
    residual: View | None
    scale: float
    beta: float
    act: Act
    alpha: float
    act_beta: float


def transposed(view: View) -> View:
    """Its last two axes exchanged."""
    rank = len(view.dims)
    return view.permute((*range(rank - 2), rank - 1, rank - 2))


def product(node: Node, b: Builder) -> Product:
    """What the three ops have in common, transpositions and broadcasting turned into strides."""
    op, y = node.op, b.view(node.outputs[0])
    left, right, *rest = (None if v is None else b.view(v) for v in node.inputs)
    assert left is not None and right is not None
    left, right = (v.broadcast((*y.dims[:-2], *v.dims[-2:])) for v in (left, right))
    left = transposed(left) if getattr(op, "trans_a", False) else left
    right = transposed(right) if getattr(op, "trans_b", False) else right
    bias, residual = (*rest, None, None)[:2]
    if isinstance(op, FusedMatMul):
        return Product(left, right, y, bias, residual, op.scale, 1.0, op.act, op.alpha, op.beta)
    alpha, beta = (op.alpha, op.beta) if isinstance(op, Gemm) else (1.0, 1.0)
    return Product(left, right, y, bias if beta != 0 else None, None, alpha, beta, Act.none, 0.0, 0.0)


class PortableProduct(Implementation):
    """Any dtype, any strides."""

    op = _Product

    def reject(self, node: Node, chip: CpuChip) -> str | None:
        dtype = node.outputs[0].type.dtype
        if isinstance(node.op, Gemm) and not dtype.is_float and not {node.op.alpha, node.op.beta} <= {0.0, 1.0}:
            return f"alpha and beta other than 0 and 1 on {dtype.name}"
        return None if dtype in DTYPES else f"{node.op.name} of {dtype.name}; the CPU kernels take {', '.join(d.name for d in DTYPES)}"

    def lower(self, node: Node, b: Builder) -> None:
        p = product(node, b)
        add = [v.broadcast(p.y.dims) for v in (p.bias, p.residual) if v is not None]
        b.step(
            MATMUL, [p.left, p.right, *add], [p.y], parallel=p.y.elements * p.left.dims[-1] > 100_000,
            alpha=p.scale, beta=p.beta, act=int(p.act), act_alpha=p.alpha, act_beta=p.act_beta,
        )
