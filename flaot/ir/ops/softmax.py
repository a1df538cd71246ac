"""Softmax and LogSoftmax over one axis.

Before opset 13 ONNX flattens the input to two dimensions at ``axis``; the reader expresses that with Reshape unless it is the last axis,
so the ops here always mean "along one axis".
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from flaot.ir.op import Cost, Op, Tolerance, reads, require
from flaot.ir.ops.reshape import Reshape
from flaot.ir.reading import NodeReader
from flaot.ir.types import TensorType


@dataclass(frozen=True)
class _Normaliser(Op):
    axis: int

    def infer(self, inputs: Sequence[TensorType | None]) -> tuple[TensorType, ...]:
        (x,) = inputs
        assert x is not None
        require(x.dtype.is_float, f"{self.name} of {x.dtype.name}; it takes floats")
        require(0 <= self.axis < x.rank, f"axis {self.axis} of a rank {x.rank} tensor; allowed are 0 to {x.rank - 1}")
        return (x,)

    def tolerance(self, inputs: Sequence[TensorType | None]) -> Tolerance:
        assert inputs[0] is not None
        return Tolerance(length=inputs[0].shape[self.axis], magnitude=1.0)

    def cost(self, inputs: Sequence[TensorType | None], outputs: Sequence[TensorType]) -> Cost:
        return Cost(20 * outputs[0].elements, 2 * outputs[0].nbytes)


@dataclass(frozen=True)
class Softmax(_Normaliser):
    """y = exp(x - max) / sum(exp(x - max)) along ``axis``."""


@dataclass(frozen=True)
class LogSoftmax(_Normaliser):
    """y = x - max - log(sum(exp(x - max))) along ``axis``."""


@reads("Softmax", "LogSoftmax")
def read(r: NodeReader) -> None:
    op = Softmax if r.op_type == "Softmax" else LogSoftmax
    x = r.input(0)
    shape, rank = x.type.shape, x.type.rank
    axis = r.int("axis", -1 if r.opset >= 13 else 1)
    if not -rank <= axis < max(rank, 1):
        r.fail(f"axis {axis} is outside a rank {rank} tensor")
    axis += rank if axis < 0 else 0
    if r.opset >= 13 or axis == rank - 1:
        r.result(r.emit(op(axis), [x]))
        return
    flat = r.emit(Reshape((math.prod(shape[:axis]), math.prod(shape[axis:]))), [x])
    r.result(r.emit(Reshape(shape), [r.emit(op(1), [flat])]))
