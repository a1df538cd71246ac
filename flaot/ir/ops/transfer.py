"""Transfer and Recast: the same tensor in another memory, or stored in another element type. Inserted by mapping; defined as Identity."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from flaot.ir.op import Cost, Op
from flaot.ir.types import DType, TensorType


@dataclass(frozen=True)
class _Same(Op):
    def infer(self, inputs: Sequence[TensorType | None]) -> tuple[TensorType, ...]:
        (x,) = inputs
        assert x is not None
        return (x,)

    def cost(self, inputs: Sequence[TensorType | None], outputs: Sequence[TensorType]) -> Cost:
        return Cost(0, 2 * outputs[0].nbytes)


@dataclass(frozen=True)
class Transfer(_Same):
    """The value, element type and layout unchanged, in the memory of ``device`` ("host" or a chip's name)."""

    device: str


@dataclass(frozen=True)
class Recast(_Same):
    """The value stored as ``dtype``; its type stays what it was."""

    dtype: DType
