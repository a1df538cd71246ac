"""MatMul and Gemm. The readers turn 1-D operands of MatMul into matrices, so MatMul here has ranks of at least 2."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from flaot.ir.op import Cost, Op, OpTypeError, Tolerance, reads, require
from flaot.ir.ops.conv import Act
from flaot.ir.ops.reshape import Reshape
from flaot.ir.reading import NodeReader
from flaot.ir.types import DType, TensorType, broadcast_shapes


@dataclass(frozen=True)
class _Product(Op):
    """Common to products of two matrices (or stacks of them): inputs A, B and optional ones after them."""

    def sizes(self, a: TensorType, b: TensorType) -> tuple[int, int, int, int]:
        """Rows and depth of A, depth and columns of B, transpositions applied."""
        return a.shape[-2], a.shape[-1], b.shape[-2], b.shape[-1]

    def check(self, inputs: Sequence[TensorType | None]) -> tuple[TensorType, tuple[int, ...]]:
        """A's type and the shape of the product."""
        a, b = inputs[0], inputs[1]
        assert a is not None and b is not None
        require(a.dtype is b.dtype, f"{self.name} of {a.dtype.name} and {b.dtype.name}; both must have one type")
        require(a.rank >= 2 and b.rank >= 2, f"{self.name} of ranks {a.rank} and {b.rank}; it takes matrices")
        m, k, k2, n = self.sizes(a, b)
        require(k == k2, f"the inner dimensions {k} and {k2} of {list(a.shape)} and {list(b.shape)} differ")
        try:
            batch = broadcast_shapes(a.shape[:-2], b.shape[:-2])
        except ValueError as e:
            raise OpTypeError(str(e)) from None
        return a, (*batch, m, n)

    def tolerance(self, inputs: Sequence[TensorType | None]) -> Tolerance:
        a, b = inputs[0], inputs[1]
        assert a is not None and b is not None
        return Tolerance(length=max(1, self.sizes(a, b)[1]))

    def cost(self, inputs: Sequence[TensorType | None], outputs: Sequence[TensorType]) -> Cost:
        a, b = inputs[0], inputs[1]
        assert a is not None and b is not None
        return Cost(2 * self.sizes(a, b)[1] * outputs[0].elements, sum(t.nbytes for t in (*inputs, *outputs) if t is not None))


@dataclass(frozen=True)
class MatMul(_Product):
    """Y = A B for matrices or stacks of matrices; the leading dimensions broadcast. An empty inner dimension gives zeros."""

    def infer(self, inputs: Sequence[TensorType | None]) -> tuple[TensorType, ...]:
        a, shape = self.check(inputs)
        return (a.with_shape(shape),)


@dataclass(frozen=True)
class Gemm(_Product):
    """Y = alpha op(A) op(B) + beta C for matrices A and B; C, which may be absent, broadcasts to Y."""

    alpha: float = 1.0
    beta: float = 1.0
    trans_a: bool = False
    trans_b: bool = False

    def sizes(self, a: TensorType, b: TensorType) -> tuple[int, int, int, int]:
        return _sizes(a, b, self.trans_a, self.trans_b)

    def infer(self, inputs: Sequence[TensorType | None]) -> tuple[TensorType, ...]:
        a, shape = self.check(inputs)
        require(len(shape) == 2, f"Gemm of ranks {a.rank} and {inputs[1].rank if inputs[1] else 0}; it takes matrices")
        c = inputs[2] if len(inputs) > 2 else None
        if c is not None:
            require(c.dtype is a.dtype, f"C of {c.dtype.name} beside A of {a.dtype.name}; both must have one type")
            fits = c.rank <= 2 and all(d in (1, y) for d, y in zip(c.shape[::-1], shape[::-1], strict=False))
            require(fits, f"C of shape {list(c.shape)} does not broadcast to the result's {list(shape)}")
        return (a.with_shape(shape),)


@dataclass(frozen=True)
class FusedMatMul(_Product):
    """act(scale op(A) op(B) + bias + residual), with inputs A, B, bias [N] and residual; the last two may be None.

    A, B are matrices or stacks of them as in MatMul, ``trans_a`` and ``trans_b`` exchange their last two axes; the residual has the type
    of the result. Defined by its expansion: Transpose, MatMul, Mul, Add, Add and the ONNX op (or ops) of the activation.
    """

    trans_a: bool = False
    trans_b: bool = False
    scale: float = 1.0
    act: Act = Act.none
    alpha: float = 0.0
    beta: float = 0.0

    def sizes(self, a: TensorType, b: TensorType) -> tuple[int, int, int, int]:
        return _sizes(a, b, self.trans_a, self.trans_b)

    def infer(self, inputs: Sequence[TensorType | None]) -> tuple[TensorType, ...]:
        require(len(inputs) == 4, f"{len(inputs)} inputs; FusedMatMul has 4")
        a, shape = self.check(inputs)
        require(a.dtype is DType.float32, f"FusedMatMul of {a.dtype.name}; it takes float32")
        require(self.act is not Act.prelu, "FusedMatMul has no prelu")
        y, bias, residual = a.with_shape(shape), inputs[2], inputs[3]
        require(bias is None or bias == a.with_shape(shape[-1:]), f"bias {bias}; it must be {a.with_shape(shape[-1:])}")
        require(residual is None or residual == y, f"residual {residual}; it must be {y}")
        return (y,)


def _sizes(a: TensorType, b: TensorType, trans_a: bool, trans_b: bool) -> tuple[int, int, int, int]:
    (m, k), (k2, n) = a.shape[-2:], b.shape[-2:]
    m, k = (k, m) if trans_a else (m, k)
    k2, n = (n, k2) if trans_b else (k2, n)
    return m, k, k2, n


@reads("MatMul")
def read_matmul(r: NodeReader) -> None:
    a, b = r.input(0), r.input(1)
    if 0 in (a.type.rank, b.type.rank):
        r.fail("a scalar operand; MatMul takes vectors and matrices")
    left, right = a.type.rank == 1, b.type.rank == 1
    if left:
        a = r.emit(Reshape((1, *a.type.shape)), [a])
    if right:
        b = r.emit(Reshape((*b.type.shape, 1)), [b])
    y = r.emit(MatMul(), [a, b])
    shape = y.type.shape
    if left or right:
        y = r.emit(Reshape((*shape[:-2], *(() if left else shape[-2:-1]), *(() if right else shape[-1:]))), [y])
    r.result(y)


@reads("Gemm")
def read_gemm(r: NodeReader) -> None:
    op = Gemm(r.float("alpha", 1.0), r.float("beta", 1.0), r.int("transA", 0) != 0, r.int("transB", 0) != 0)
    c = r.optional(2)
    r.result(r.emit(op, [r.input(0), r.input(1), *([] if c is None else [c])]))
