"""Local response normalisation across channels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from flaot.ir.op import Cost, Op, Tolerance, reads, require
from flaot.ir.reading import NodeReader
from flaot.ir.types import TensorType


@dataclass(frozen=True)
class LRN(Op):
    """y[n, c] = x[n, c] / (bias + alpha / size * sum of x[n, i]^2 over the size channels around c)^beta."""

    size: int
    alpha: float
    beta: float
    bias: float

    def infer(self, inputs: Sequence[TensorType | None]) -> tuple[TensorType, ...]:
        (x,) = inputs
        assert x is not None
        require(x.dtype.is_float and x.rank >= 2, f"LRN of {x}; floats of rank 2 and up are expected")
        require(self.size >= 1, f"LRN over {self.size} channels; at least 1 is expected")
        return (x,)

    def tolerance(self, inputs: Sequence[TensorType | None]) -> Tolerance:
        return Tolerance(length=self.size)

    def cost(self, inputs: Sequence[TensorType | None], outputs: Sequence[TensorType]) -> Cost:
        return Cost((2 * self.size + 30) * outputs[0].elements, 2 * outputs[0].nbytes)


@reads("LRN")
def read_lrn(r: NodeReader) -> None:
    r.result(r.emit(LRN(r.int("size"), r.float("alpha", 1e-4), r.float("beta", 0.75), r.float("bias", 1.0)), [r.input(0)]))
