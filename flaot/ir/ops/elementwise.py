"""The base of every op that works element by element on broadcast inputs.

A subclass declares the instruction of the fused elementwise kernel that computes it (``code``, one of
:class:`flaot.kernels.map.codes.Code` by name) and the element types it takes; inference and lowering follow from that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from flaot.ir.op import Cost, Op, OpTypeError, Tolerance, require
from flaot.ir.types import DType, TensorType, broadcast_shapes

FLOATS: frozenset[DType] = frozenset(d for d in DType if d.is_float)
INTS: frozenset[DType] = frozenset(d for d in DType if not d.is_float and d is not DType.bool)
NUMBERS: frozenset[DType] = FLOATS | INTS
BOOL: frozenset[DType] = frozenset({DType.bool})
SIGNED: frozenset[DType] = frozenset(d for d in NUMBERS if d.is_signed)


def broadcast(inputs: Sequence[TensorType]) -> tuple[int, ...]:
    """The common shape of the inputs; OpTypeError when there is none."""
    try:
        return broadcast_shapes(*(t.shape for t in inputs))
    except ValueError as e:
        raise OpTypeError(str(e)) from None


@dataclass(frozen=True)
class _Elementwise(Op):
    code: ClassVar[str]
    """Instruction of the map kernel."""
    arity: ClassVar[int] = 1
    dtypes: ClassVar[frozenset[DType]] = FLOATS
    """Element types of the inputs."""
    work: ClassVar[int] = 1
    """Operations per element, about."""
    exact: ClassVar[bool] = False
    """True when every correct implementation gives the same bits."""
    magnitude: ClassVar[float] = 0.0
    """Natural range of a bounded function, see Tolerance."""

    def infer(self, inputs: Sequence[TensorType | None]) -> tuple[TensorType, ...]:
        given = [t for t in inputs if t is not None]
        require(len(given) == self.arity, f"{len(given)} inputs; {self.name} takes {self.arity}")
        return (TensorType(self.result(given), broadcast(given)),)

    def result(self, inputs: Sequence[TensorType]) -> DType:
        """The output's element type; raises OpTypeError for inputs of wrong types."""
        first = inputs[0].dtype
        for t in inputs:
            require(t.dtype is first, f"{self.name} of {first.name} and {t.dtype.name}; the types must be equal")
        require(first in self.dtypes, f"{self.name} of {first.name}; it takes {names(self.dtypes)}")
        return first

    @property
    def arguments(self) -> tuple[float, ...]:
        """Up to two numbers the instruction carries."""
        return ()

    def tolerance(self, inputs: Sequence[TensorType | None]) -> Tolerance:
        return Tolerance(0.0, 0.0) if self.exact else Tolerance(magnitude=self.magnitude)

    def cost(self, inputs: Sequence[TensorType | None], outputs: Sequence[TensorType]) -> Cost:
        moved = sum(t.nbytes for t in (*inputs, *outputs) if t is not None)
        return Cost(self.work * outputs[0].elements, moved)


def names(dtypes: frozenset[DType]) -> str:
    """Element types in a sentence."""
    return ", ".join(d.name for d in sorted(dtypes))
