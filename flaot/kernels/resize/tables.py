"""Which input elements an output element of a resized axis takes, and with what weights.

Coordinates are computed in float32, step by step as ONNX states them, so that ties fall as in other implementations.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from flaot.ir.ops.resize import Resize

OUTSIDE = -1
"""Index that stands for the extrapolation value."""

TIE = np.float32(1e-6)
"""How far a coordinate may be from half way and still be one: what float32 division by the scale leaves of a tie."""


@dataclass(frozen=True)
class Table:
    """``indices`` and ``weights`` of shape [taps, output size]; ``size`` is the input's."""

    size: int
    indices: np.ndarray
    weights: np.ndarray

    @property
    def taps(self) -> int:
        return len(self.indices)

    @property
    def is_identity(self) -> bool:
        return self.taps == 1 and bool(np.array_equal(self.indices[0], np.arange(self.size)))


def table(op: Resize, axis: int, size: int) -> Table:
    """The table of one axis whose input size is ``size``."""
    x = coordinates(op, axis, size)
    if op.mode == "nearest":
        picked = np.clip(_nearest(op, x, op.scales[axis]), 0, size - 1).astype(np.int32)
        result = Table(size, picked[None], np.ones((1, len(x)), np.float32))
    else:
        result = _weighted(op, axis, size, x)
    if op.coordinates == "tf_crop_and_resize":
        result.indices[:, (x < 0) | (x > size - 1)] = OUTSIDE
    return result


def coordinates(op: Resize, axis: int, size: int) -> np.ndarray:
    """Position in the input of every output element, in float32."""
    f = np.float32
    out, scale = op.sizes[axis], f(op.scales[axis])
    x, half, one = np.arange(out, dtype=f), f(0.5), f(1)
    match op.coordinates:
        case "asymmetric":
            return x / scale
        case "align_corners":
            return x * f(size - 1) / f(out - 1) if out > 1 else x * f(0)
        case "tf_half_pixel_for_nn":
            return (x + half) / scale
        case "pytorch_half_pixel" if out == 1:
            return x
        case "half_pixel_symmetric":
            offset = f(size) / f(2) * (one - f(out) / (scale * f(size)))
            return offset + ((x + half) / scale - half)
        case "tf_crop_and_resize":
            begin, end = (f(v) for v in op.roi[axis])
            if out == 1:
                return x + half * (begin + end) * f(size - 1)
            return begin * f(size - 1) + x * (end - begin) * f(size - 1) / f(out - 1)
    return (x + half) / scale - half


def _nearest(op: Resize, x: np.ndarray, scale: float) -> np.ndarray:
    half, up = np.float32(0.5), op.nearest == "ceil" or (op.nearest == "simple" and scale < 1)
    tie = np.floor(x) + half
    near = np.where(np.abs(x - tie) <= TIE, tie, x)
    shifted = {"round_prefer_floor": near - half, "round_prefer_ceil": near + half}.get(op.nearest, x)
    result: np.ndarray = np.ceil(shifted) if up or op.nearest == "round_prefer_floor" else np.floor(shifted)
    return result


def _weighted(op: Resize, axis: int, size: int, x: np.ndarray) -> Table:
    """Taps at the neighbours of x; the element left of x is at distance ratio in (0, 1]."""
    left = np.ceil(x.astype(np.float64)) - 1
    ratio = x.astype(np.float64) - left
    stretch = min(op.scales[axis], 1.0) if op.antialias else 1.0
    radius = 1 if op.mode == "linear" else 2
    start = int(np.floor(-radius / stretch)) + 1
    offsets = np.arange(start, 2 - start)[:, None]
    distance = np.abs(offsets - ratio) * stretch
    weights = np.clip(1 - distance, 0, None) if op.mode == "linear" else _cubic(distance, op.cubic_a)
    indices = (left + offsets).astype(np.int64)
    if op.exclude_outside:
        weights = np.where((indices < 0) | (indices >= size), 0, weights)
    if op.exclude_outside or op.antialias:
        total = weights.sum(axis=0)
        weights = weights / np.where(total == 0, 1, total)
    return _trim(Table(size, np.clip(indices, 0, size - 1).astype(np.int32), weights.astype(np.float32)))


def _trim(t: Table) -> Table:
    """Without taps that never weigh anything; one tap when nothing is blended."""
    used = [i for i in range(t.taps) if t.weights[i].any()] or [0]
    t = Table(t.size, t.indices[used], t.weights[used])
    heaviest = t.weights.argmax(axis=0)[None]
    if (np.take_along_axis(t.weights, heaviest, 0) == 1).all() and (np.count_nonzero(t.weights, axis=0) == 1).all():
        return Table(t.size, np.take_along_axis(t.indices, heaviest, 0), np.ones((1, t.weights.shape[1]), np.float32))
    return t


def _cubic(d: np.ndarray, a: float) -> np.ndarray:
    near = ((a + 2) * d - (a + 3)) * d * d + 1
    far = ((a * d - 5 * a) * d + 8 * a) * d - 4 * a
    return np.where(d <= 1, near, np.where(d < 2, far, 0))
