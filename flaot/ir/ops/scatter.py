"""Scatter in its two forms: a copy of the data in which some elements are replaced or combined."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass

from flaot.ir.op import reads, require
from flaot.ir.ops.gather import check_known, require_index
from flaot.ir.ops.slice import normal_axes
from flaot.ir.ops.transpose import _Movement
from flaot.ir.reading import NodeReader
from flaot.ir.types import TensorType


class Reduction(enum.IntEnum):
    """How an update meets what is there; updates apply in order."""

    none = 0
    add = 1
    mul = 2
    max = 3
    min = 4


@dataclass(frozen=True)
class ScatterElements(_Movement):
    """y = x, then y[i, indices[i, j, k], k] = updates[i, j, k] for ``axis`` 1, and so on."""

    axis: int
    reduction: Reduction

    def infer(self, inputs: Sequence[TensorType | None]) -> tuple[TensorType, ...]:
        x, indices, updates = inputs
        assert x is not None and indices is not None and updates is not None
        require_index(self, indices)
        require(0 <= self.axis < x.rank == indices.rank, f"indices of rank {indices.rank} and axis {self.axis} for {x}")
        require(indices.shape == updates.shape, f"indices {list(indices.shape)} and updates {list(updates.shape)} differ in shape")
        require(updates.dtype is x.dtype, f"updates of {updates.dtype.name} for {x.dtype.name}")
        fits = all(i <= d for a, (i, d) in enumerate(zip(indices.shape, x.shape, strict=True)) if a != self.axis)
        require(fits, f"indices of shape {list(indices.shape)} reach past {list(x.shape)} beside axis {self.axis}")
        return (x,)


@dataclass(frozen=True)
class ScatterND(_Movement):
    """y = x, then the slices of y at the index tuples in the last axis of ``indices`` are replaced by those of ``updates``."""

    reduction: Reduction

    def infer(self, inputs: Sequence[TensorType | None]) -> tuple[TensorType, ...]:
        x, indices, updates = inputs
        assert x is not None and indices is not None and updates is not None
        require_index(self, indices)
        require(indices.rank > 0 and 1 <= indices.shape[-1] <= x.rank, f"indices of shape {list(indices.shape)} for {x}")
        wanted = (*indices.shape[:-1], *x.shape[indices.shape[-1] :])
        require(updates.shape == wanted, f"updates of shape {list(updates.shape)}; {list(wanted)} is expected")
        require(updates.dtype is x.dtype, f"updates of {updates.dtype.name} for {x.dtype.name}")
        return (x,)


def _reduction(r: NodeReader) -> Reduction:
    given = r.str("reduction", "none")
    if given not in Reduction.__members__:
        r.fail(f"reduction is '{given}'; allowed are {', '.join(Reduction.__members__)}")
    return Reduction[given]


@reads("ScatterElements", "Scatter")
def read_scatter_elements(r: NodeReader) -> None:
    x, indices = r.input(0), r.input(1)
    (axis,) = normal_axes(r, [r.int("axis", 0)], x.type.rank)
    check_known(r, indices, x.type.shape[axis], axis)
    r.result(r.emit(ScatterElements(axis, _reduction(r)), [x, indices, r.input(2)]))


@reads("ScatterND")
def read_scatter_nd(r: NodeReader) -> None:
    r.result(r.emit(ScatterND(_reduction(r)), [r.input(0), r.input(1), r.input(2)]))
