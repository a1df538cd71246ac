"""FusedMap: several elementwise ops as one, their intermediate results never stored."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from flaot.ir.op import Cost, Op, Tolerance, require
from flaot.ir.ops.elementwise import _Elementwise, broadcast
from flaot.ir.types import DType, TensorType

Step = tuple[_Elementwise, tuple[int, ...]]
"""An op and its arguments: input i is i, the result of step k is the number of inputs + k."""


@dataclass(frozen=True)
class FusedMap(Op):
    """The result of the last step; every value has, or is broadcast to, the output's shape."""

    steps: tuple[Step, ...]

    def infer(self, inputs: Sequence[TensorType | None]) -> tuple[TensorType, ...]:
        given = [t for t in inputs if t is not None]
        require(len(given) == len(inputs) > 0 and len(self.steps) > 0, "FusedMap needs inputs and steps")
        return (TensorType(self.types([t.dtype for t in given])[-1], broadcast(given)),)

    def types(self, inputs: Sequence[DType]) -> list[DType]:
        """Element types of the inputs and of every step's result."""
        known = list(inputs)
        for op, arguments in self.steps:
            require(all(0 <= a < len(known) for a in arguments), f"arguments {list(arguments)} of a step; {len(known)} values are known")
            known.append(op.result([TensorType(known[a], ()) for a in arguments]))
        return known

    def tolerance(self, inputs: Sequence[TensorType | None]) -> Tolerance:
        each = [op.tolerance(()) for op, _ in self.steps]
        return Tolerance(max(t.rtol for t in each), max(t.atol for t in each), max(t.length for t in each))

    def cost(self, inputs: Sequence[TensorType | None], outputs: Sequence[TensorType]) -> Cost:
        moved = sum(t.nbytes for t in (*inputs, *outputs) if t is not None)
        return Cost(sum(op.work for op, _ in self.steps) * outputs[0].elements, moved)
