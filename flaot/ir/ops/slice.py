"""Slice and Split: windows of a tensor."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from flaot.ir.graph import Value
from flaot.ir.op import reads, require
from flaot.ir.ops.transpose import _Movement
from flaot.ir.reading import NodeReader
from flaot.ir.types import TensorType


@dataclass(frozen=True)
class Slice(_Movement):
    """``sizes[k]`` elements start, start + step, ... of each axis named; normalised: starts lie inside, axes are not negative."""

    axes: tuple[int, ...]
    starts: tuple[int, ...]
    steps: tuple[int, ...]
    sizes: tuple[int, ...]

    def infer(self, inputs: Sequence[TensorType | None]) -> tuple[TensorType, ...]:
        (x,) = inputs
        assert x is not None
        shape = list(x.shape)
        for axis, start, step, size in zip(self.axes, self.starts, self.steps, self.sizes, strict=True):
            require(0 <= axis < x.rank, f"axis {axis} of a rank {x.rank} tensor")
            last = start + step * (size - 1)
            inside = size == 0 or (0 <= start < shape[axis] and 0 <= last < shape[axis])
            require(size >= 0 and inside, f"slice from {start} to {last} of an axis of {shape[axis]}")
            shape[axis] = size
        return (x.with_shape(tuple(shape)),)


@dataclass(frozen=True)
class Split(_Movement):
    """Consecutive pieces of one axis, one output each."""

    axis: int
    sizes: tuple[int, ...]

    def infer(self, inputs: Sequence[TensorType | None]) -> tuple[TensorType, ...]:
        (x,) = inputs
        assert x is not None
        require(0 <= self.axis < x.rank, f"axis {self.axis} of a rank {x.rank} tensor")
        total = x.shape[self.axis]
        fits = sum(self.sizes) == total and min(self.sizes, default=0) >= 0
        require(fits, f"pieces {list(self.sizes)} of an axis of {total}")
        return tuple(x.with_shape((*x.shape[: self.axis], s, *x.shape[self.axis + 1 :])) for s in self.sizes)


def clamp(start: int, end: int, step: int, dim: int) -> tuple[int, int]:
    """First index and count of numpy's ``start:end:step`` on an axis of ``dim``."""
    picked = range(dim)[start:end:step]
    return (picked.start if len(picked) else 0), len(picked)


def normal_axes(r: NodeReader, axes: Sequence[int], rank: int) -> list[int]:
    """Axes counted from the front; refuses axes outside the rank and repeated ones."""
    for a in axes:
        if not -rank <= a < rank:
            r.fail(f"axis {a} is outside a rank {rank} tensor")
    normal = [a % rank for a in axes]
    if len(set(normal)) != len(normal):
        r.fail(f"axes {list(axes)} name an axis twice")
    return normal


def window(r: NodeReader, x: Value, axes: Sequence[int], starts: Sequence[int], ends: Sequence[int], steps: Sequence[int]) -> Value:
    """``x`` cut to numpy slices of some axes; ``x`` itself when nothing is cut."""
    shape, kept = x.type.shape, []
    for axis, start, end, step in zip(axes, starts, ends, steps, strict=True):
        if step == 0:
            r.fail(f"step 0 along axis {axis}; steps must not be 0")
        first, size = clamp(start, end, step, shape[axis])
        if (first, step, size) != (0, 1, shape[axis]):
            kept.append((axis, first, step if size > 1 else 1, size))
    if not kept:
        return x
    a, f, p, n = zip(*sorted(kept), strict=True)
    return r.emit(Slice(a, f, p, n), [x])


@reads("Slice")
def read_slice(r: NodeReader) -> None:
    x = r.input(0)
    if r.opset < 10:
        starts, ends = list(r.ints("starts")), list(r.ints("ends"))
        axes: list[int] = list(r.ints("axes", tuple(range(len(starts)))))
        steps = [1] * len(starts)
    else:
        starts = [int(v) for v in r.constant(1, "the starts").reshape(-1)]
        ends = [int(v) for v in r.constant(2, "the ends").reshape(-1)]
        given, stride = r.optional_constant(3, "the axes"), r.optional_constant(4, "the steps")
        axes = list(range(len(starts))) if given is None else [int(v) for v in given.reshape(-1)]
        steps = [1] * len(starts) if stride is None else [int(v) for v in stride.reshape(-1)]
    if not len(starts) == len(ends) == len(axes) == len(steps):
        r.fail(f"{len(starts)} starts, {len(ends)} ends, {len(axes)} axes and {len(steps)} steps; the counts must be equal")
    r.result(window(r, x, normal_axes(r, axes, x.type.rank), starts, ends, steps))


@reads("Split")
def read_split(r: NodeReader) -> None:
    x = r.input(0)
    (axis,) = normal_axes(r, [r.int("axis", 0)], x.type.rank)
    total, count = x.type.shape[axis], r.n_outputs
    if r.opset >= 13:
        given = r.optional_constant(1, "the split sizes")
        sizes = None if given is None else [int(v) for v in given.reshape(-1)]
    else:
        sizes = list(r.ints("split")) if r.has("split") else None
    if sizes is None:
        count = r.int("num_outputs", count) if r.opset >= 18 else count
        if count < 1:
            r.fail(f"num_outputs is {count}; it must be at least 1")
        if r.opset < 18 and total % count:
            r.fail(f"an axis of {total} does not split into {count} equal pieces")
        piece = -(-total // count)
        sizes = [max(0, min(piece, total - i * piece)) for i in range(count)]
    if sum(sizes) != total or min(sizes, default=0) < 0:
        r.fail(f"pieces {sizes} do not add up to the axis of {total}")
    r.result(*r.emit_many(Split(axis, tuple(sizes)), [x]))
