"""Pad. Only the constant border is an op; reflected, repeated and wrapped borders are gathers along each padded axis."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from flaot.ir.graph import Value
from flaot.ir.op import reads, require
from flaot.ir.ops.arithmetic import scalar
from flaot.ir.ops.cast import cast
from flaot.ir.ops.gather import along
from flaot.ir.ops.reshape import Reshape
from flaot.ir.ops.slice import normal_axes, window
from flaot.ir.ops.transpose import _Movement
from flaot.ir.reading import NodeReader
from flaot.ir.types import TensorType


@dataclass(frozen=True)
class Pad(_Movement):
    """``before[i]`` and ``after[i]`` elements (not negative) around axis i, filled with the scalar second input."""

    before: tuple[int, ...]
    after: tuple[int, ...]

    def infer(self, inputs: Sequence[TensorType | None]) -> tuple[TensorType, ...]:
        x, fill = inputs
        assert x is not None and fill is not None
        require(len(self.before) == len(self.after) == x.rank, f"pads for {len(self.before)} axes of a rank {x.rank} tensor")
        require(min((*self.before, *self.after), default=0) >= 0, "negative pads")
        require(fill.dtype is x.dtype and fill.shape == (), f"fill value {fill} for {x}; it must be a scalar of the same type")
        return (x.with_shape(tuple(b + d + a for b, d, a in zip(self.before, x.shape, self.after, strict=True))),)


def border(mode: str, before: int, size: int, after: int) -> np.ndarray:
    """Which element of an axis each element of the padded axis shows."""
    at = np.arange(-before, size + after)
    if mode == "wrap":
        return at % size
    if mode == "edge":
        return np.clip(at, 0, size - 1)
    at = np.abs(at)
    return np.where(at >= size, 2 * (size - 1) - at, at)


def _pads(r: NodeReader, rank: int) -> tuple[list[int], list[int]]:
    """Pads before and after every axis."""
    given = [int(v) for v in (r.constant(1, "the pads").reshape(-1) if r.opset >= 11 else r.ints("pads"))]
    listed = r.optional_constant(3, "the axes") if r.opset >= 18 else None
    axes = list(range(rank)) if listed is None else normal_axes(r, [int(v) for v in listed.reshape(-1)], rank)
    if len(given) != 2 * len(axes):
        r.fail(f"{len(given)} pads for {len(axes)} axes; there must be two for each")
    before, after = [0] * rank, [0] * rank
    for i, axis in enumerate(axes):
        before[axis], after[axis] = given[i], given[i + len(axes)]
    return before, after


@reads("Pad")
def read_pad(r: NodeReader) -> None:
    x, mode = r.input(0), r.str("mode", "constant")
    before, after = _pads(r, x.type.rank)
    for axis, (b, d, a) in enumerate(zip(before, x.type.shape, after, strict=True)):
        if b + d + a < 0:
            r.fail(f"pads {b} and {a} cut more than the {d} elements of axis {axis}")
    if mode == "constant":
        r.result(_constant(r, x, before, after))
    elif mode in ("reflect", "edge", "wrap"):
        r.result(_mirrored(r, x, mode, before, after))
    else:
        r.fail(f"mode is '{mode}'; allowed are constant, reflect, edge and wrap")


def _constant(r: NodeReader, x: Value, before: list[int], after: list[int]) -> Value:
    shape, cut = x.type.shape, [i for i in range(x.type.rank) if before[i] < 0 or after[i] < 0]
    starts = [min(shape[i], max(0, -before[i])) for i in cut]
    x = window(r, x, cut, starts, [max(s, shape[i] + min(0, after[i])) for i, s in zip(cut, starts, strict=True)], [1] * len(cut))
    given = r.optional(2) if r.opset >= 11 else None
    fill = scalar(r, r.float("value", 0.0) if r.opset < 11 else 0.0, x.type.dtype) if given is None else cast(r, given, x.type.dtype)
    if fill.type.elements != 1:
        r.fail(f"fill value of shape {list(fill.type.shape)}; it must be one number")
    fill = fill if fill.type.shape == () else r.emit(Reshape(()), [fill])
    # A border cut on one side may reach past the other: what remains of it is filled.
    low = [max(0, b) if b >= 0 else 0 for b in before]
    high = [b + d + a - n - lo for b, d, a, n, lo in zip(before, shape, after, x.type.shape, low, strict=True)]
    excess = [min(0, h) for h in high]
    low = [lo + e for lo, e in zip(low, excess, strict=True)]
    high = [max(0, h) for h in high]
    return x if not any(low) and not any(high) else r.emit(Pad(tuple(low), tuple(high)), [x, fill])


def _mirrored(r: NodeReader, x: Value, mode: str, before: list[int], after: list[int]) -> Value:
    for axis, (b, a) in enumerate(zip(before, after, strict=True)):
        size, widest = x.type.shape[axis], max(b, a)
        if b == a == 0:
            continue
        if mode == "reflect" and widest >= max(size, 1):
            r.fail(f"reflect pad {widest} on an axis of {size}; it must be smaller than the axis")
        if size == 0 and b + a > 0:
            r.fail(f"{mode} pad of an empty axis")
        r.reserve(b + size + a)
        x = along(r, x, axis, border(mode, b, size, a))
    return x

