"""Scatter in its two forms: a copy of the data in which some elements are replaced or combined."""

from __future__ import annotations

import enum
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from flaot.ir.op import reads, require
from flaot.ir.ops.concat import Concat
from flaot.ir.ops.gather import check_known, require_index
from flaot.ir.ops.reshape import Reshape
from flaot.ir.ops.slice import normal_axes, window
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
    """Known indices that replace a run along one axis (an assignment to a slice) make a Concat of what is kept and the updates."""
    x, indices, updates, reduction = r.input(0), r.input(1), r.input(2), _reduction(r)
    run = None if indices.data is None or reduction is not Reduction.none else replaced_run(indices.data, x.type.shape)
    if run is None or updates.type.elements != x.type.elements // x.type.shape[run[0]] * run[2]:
        r.result(r.emit(ScatterND(reduction), [x, indices, updates]))
        return
    axis, start, size = run
    shape = (*x.type.shape[:axis], size, *x.type.shape[axis + 1 :])
    middle = r.emit(Reshape(shape), [updates])
    parts = [window(r, x, [axis], [0], [start], [1]), middle, window(r, x, [axis], [start + size], [x.type.shape[axis]], [1])]
    parts = [p for p in parts if p.type.elements]
    r.result(parts[0] if len(parts) == 1 else r.emit(Concat(axis), parts))


def replaced_run(indices: np.ndarray, shape: tuple[int, ...]) -> tuple[int, int, int] | None:
    """Axis, start and size when the index tuples, in row-major order, are everything but for a run along that axis."""
    length = indices.shape[-1]
    tuples = indices.reshape(-1, length)
    if not tuples.size or length > len(shape):
        return None
    tuples = np.where(tuples < 0, tuples + np.array(shape[:length]), tuples)
    low, high = tuples.min(axis=0), tuples.max(axis=0)
    sizes = high - low + 1
    partial = [i for i in range(length) if sizes[i] != shape[i]]
    if len(partial) > 1 or (low < 0).any() or math.prod(int(s) for s in sizes) != len(tuples):
        return None
    if not (tuples == np.indices(sizes).reshape(length, -1).T + low).all():
        return None
    axis = partial[0] if partial else 0
    return axis, int(low[axis]), int(sizes[axis])
