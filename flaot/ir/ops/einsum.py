"""Einsum: any product of tensors summed over labels. A plain matrix product between two operands is read as MatMul."""

from __future__ import annotations

import math
import string
from collections.abc import Sequence
from dataclasses import dataclass

from flaot.ir.graph import Value
from flaot.ir.op import Cost, Op, Tolerance, reads, require
from flaot.ir.ops.matmul import MatMul
from flaot.ir.ops.reshape import Reshape
from flaot.ir.ops.transpose import Transpose
from flaot.ir.reading import NodeReader
from flaot.ir.types import MAX_ELEMENTS, MAX_RANK, DType, TensorType


@dataclass(frozen=True)
class Einsum(Op):
    """y[output] = sum over all other labels of the product of the operands. A label repeated in one operand walks its diagonal; axes of
    size 1 broadcast."""

    operands: tuple[str, ...]
    output: str

    @property
    def summed(self) -> str:
        """Labels that do not survive, in order of appearance."""
        return "".join(c for c in dict.fromkeys("".join(self.operands)) if c not in self.output)

    def sizes(self, inputs: Sequence[TensorType | None]) -> dict[str, int]:
        """Size of every label. Raises OpTypeError."""
        known: dict[str, int] = {}
        for labels, t in zip(self.operands, inputs, strict=True):
            assert t is not None
            require(len(labels) == t.rank, f"term '{labels}' for {t}; it names {len(labels)} axes")
            for label, size in zip(labels, t.shape, strict=True):
                old = known.setdefault(label, size)
                require(old in (1, size) or size == 1, f"label '{label}' has sizes {old} and {size}")
                known[label] = size if old == 1 else old
        return known

    def infer(self, inputs: Sequence[TensorType | None]) -> tuple[TensorType, ...]:
        require(len(inputs) == len(self.operands) >= 1, f"{len(inputs)} inputs for {len(self.operands)} terms")
        sizes, first = self.sizes(inputs), inputs[0]
        assert first is not None
        require(all(t is not None and t.dtype is first.dtype for t in inputs), "Einsum of different dtypes")
        require(len(set(self.output)) == len(self.output), f"output '{self.output}' names an axis twice")
        unknown = [c for c in self.output if c not in sizes]
        require(not unknown, f"output label '{''.join(unknown)}' is in no term")
        shape = tuple(sizes[c] for c in self.output)
        require(math.prod(shape) <= MAX_ELEMENTS, f"Einsum gives {list(shape)}, more than {MAX_ELEMENTS} elements")
        return (first.with_shape(shape),)

    def tolerance(self, inputs: Sequence[TensorType | None]) -> Tolerance:
        sizes = self.sizes(inputs)
        return Tolerance(length=math.prod(sizes[c] for c in self.summed))

    def cost(self, inputs: Sequence[TensorType | None], outputs: Sequence[TensorType]) -> Cost:
        moved = sum(t.nbytes for t in (*inputs, *outputs) if t is not None)
        return Cost(len(self.operands) * math.prod(self.sizes(inputs).values()), moved)


@reads("Einsum")
def read(r: NodeReader) -> None:
    inputs = [r.input(i) for i in range(r.n_inputs())]
    if not inputs:
        r.fail("Einsum without inputs")
    op = parse(r, [v.type for v in inputs])
    labels = len(set("".join(op.operands)))
    if labels > MAX_RANK:
        r.unsupported(f"Einsum over {labels} labels; at most {MAX_RANK} are supported")
    if not inputs[0].type.dtype.is_float and inputs[0].type.dtype not in (DType.int32, DType.int64):
        r.unsupported(f"Einsum of {inputs[0].type.dtype.name}")
    product = _as_matmul(r, op, inputs)
    r.result(product if product is not None else r.emit(op, inputs))


def _as_matmul(r: NodeReader, op: Einsum, inputs: Sequence[Value]) -> Value | None:
    """The product of two float operands as transpositions around one MatMul; None where a label repeats, broadcasts or is summed
    within one operand."""
    if len(inputs) != 2 or inputs[0].type.dtype not in (DType.float32, DType.float16, DType.bfloat16):
        return None
    (a, b), sizes = op.operands, op.sizes([v.type for v in inputs])
    op.infer([v.type for v in inputs])
    repeats = len(set(a)) < len(a) or len(set(b)) < len(b)
    widens = any(sizes[c] != d for labels, v in zip(op.operands, inputs, strict=True) for c, d in zip(labels, v.type.shape, strict=True))
    if repeats or widens or any(c not in op.output and not (c in a and c in b) for c in a + b):
        return None
    batch = [c for c in op.output if c in a and c in b]
    rows, columns = [c for c in op.output if c not in b], [c for c in op.output if c not in a]
    summed = [c for c in a if c not in op.output]

    def arranged(slot: int, *parts: list[str]) -> Value:
        order = [op.operands[slot].index(c) for part in parts for c in part]
        turned = inputs[slot] if order == sorted(order) else r.emit(Transpose(tuple(order)), [inputs[slot]])
        return r.emit(Reshape(tuple(math.prod(sizes[c] for c in part) for part in parts)), [turned])

    y = r.emit(MatMul(), [arranged(0, batch, rows, summed), arranged(1, batch, summed, columns)])
    order = [*batch, *rows, *columns]
    y = r.emit(Reshape(tuple(sizes[c] for c in order)), [y])
    return y if order == list(op.output) else r.emit(Transpose(tuple(order.index(c) for c in op.output)), [y])


def parse(r: NodeReader, types: Sequence[TensorType]) -> Einsum:
    """The equation with ellipses spelled out as labels not used otherwise."""
    equation = r.str("equation").replace(" ", "")
    left, arrow, right = equation.partition("->")
    terms = left.split(",")
    if len(terms) != len(types):
        r.fail(f"equation '{equation}' has {len(terms)} terms for {len(types)} inputs")
    for term in (*terms, right):
        plain = term.replace("...", "", 1)
        if any(c not in string.ascii_letters for c in plain):
            r.fail(f"equation '{equation}': term '{term}' has something else than letters and one '...'")
    spare = [c for c in string.ascii_letters if c not in equation]
    width = max((t.rank - len(term) + 3 for term, t in zip(terms, types, strict=True) if "..." in term), default=0)
    if width < 0 or width > len(spare) or any("..." in term and t.rank < len(term) - 3 for term, t in zip(terms, types, strict=True)):
        r.fail(f"equation '{equation}' does not fit inputs of ranks {[t.rank for t in types]}")
    dots = "".join(spare[:width])
    full = [term.replace("...", dots[width - (t.rank - len(term) + 3) :]) for term, t in zip(terms, types, strict=True)]
    if not arrow:
        joined = "".join(terms).replace(".", "")
        right = ("..." if "..." in left else "") + "".join(c for c in sorted(set(joined)) if joined.count(c) == 1)
    return Einsum(tuple(full), right.replace("...", dots))
