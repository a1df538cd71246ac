"""Relayout: the same tensor stored in another axis order. Inserted by the layouts stage; defined as Identity."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from flaot.ir.op import Cost, Op
from flaot.ir.types import Layout, TensorType


@dataclass(frozen=True)
class Relayout(Op):
    """Logical value unchanged; the result is stored with ``layout`` (outermost axis first)."""

    layout: Layout

    def infer(self, inputs: Sequence[TensorType | None]) -> tuple[TensorType, ...]:
        (x,) = inputs
        assert x is not None
        return (x,)

    def cost(self, inputs: Sequence[TensorType | None], outputs: Sequence[TensorType]) -> Cost:
        return Cost(0, 2 * outputs[0].nbytes)
