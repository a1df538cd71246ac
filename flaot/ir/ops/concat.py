"""Concat."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from flaot.ir.op import reads, require
from flaot.ir.ops.slice import normal_axes
from flaot.ir.ops.transpose import _Movement
from flaot.ir.reading import NodeReader
from flaot.ir.types import TensorType


@dataclass(frozen=True)
class Concat(_Movement):
    """Inputs side by side along one axis."""

    axis: int

    def infer(self, inputs: Sequence[TensorType | None]) -> tuple[TensorType, ...]:
        given = [t for t in inputs if t is not None]
        require(len(given) == len(inputs) > 0, "Concat needs at least one input")
        first = given[0]
        require(0 <= self.axis < first.rank, f"axis {self.axis} of a rank {first.rank} tensor")
        rest = first.shape[: self.axis] + first.shape[self.axis + 1 :]
        for t in given[1:]:
            same = t.dtype is first.dtype and t.rank == first.rank and t.shape[: self.axis] + t.shape[self.axis + 1 :] == rest
            require(same, f"{t} beside {first}; all but axis {self.axis} must be equal")
        total = sum(t.shape[self.axis] for t in given)
        return (first.with_shape((*first.shape[: self.axis], total, *first.shape[self.axis + 1 :])),)


@reads("Concat")
def read_concat(r: NodeReader) -> None:
    parts = [r.input(i) for i in range(r.n_inputs())]
    if not parts:
        r.fail("no inputs; Concat needs at least one")
    (axis,) = normal_axes(r, [r.int("axis")], parts[0].type.rank)
    r.result(parts[0] if len(parts) == 1 else r.emit(Concat(axis), parts))
