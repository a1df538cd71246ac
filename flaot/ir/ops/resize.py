"""Resize, and Upsample, which is a Resize with asymmetric coordinates."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from flaot.ir.op import Cost, Op, Tolerance, reads, require
from flaot.ir.reading import NodeReader
from flaot.ir.types import MAX_ELEMENTS, TensorType

MODES = ("nearest", "linear", "cubic")
COORDINATES = (
    "half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric", "tf_half_pixel_for_nn",
    "tf_crop_and_resize",
)
NEAREST = ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil", "simple")
"""``simple`` is what Resize 10 meant: ceil when shrinking, floor when growing."""


@dataclass(frozen=True)
class Resize(Op):
    """Interpolation along each axis by itself. ``sizes``, ``scales`` and the region ``roi`` (begin, end per axis, as fractions,
    used by tf_crop_and_resize) have one entry per axis; the other attributes are ONNX's."""

    sizes: tuple[int, ...]
    scales: tuple[float, ...]
    mode: str = "nearest"
    coordinates: str = "half_pixel"
    nearest: str = "round_prefer_floor"
    cubic_a: float = -0.75
    exclude_outside: bool = False
    extrapolation: float = 0.0
    antialias: bool = False
    roi: tuple[tuple[float, float], ...] = ()

    def infer(self, inputs: Sequence[TensorType | None]) -> tuple[TensorType, ...]:
        (x,) = inputs
        assert x is not None
        require(len(self.sizes) == x.rank == len(self.scales), f"sizes {list(self.sizes)} for shape {list(x.shape)}")
        require(0 not in x.shape and all(s > 0 for s in self.sizes), f"resize of shape {list(x.shape)} to {list(self.sizes)}")
        require(all(s > 0 and math.isfinite(s) for s in self.scales), f"scales {list(self.scales)}; they must be above 0")
        require(math.prod(self.sizes) <= MAX_ELEMENTS, f"resize to {list(self.sizes)} has more than {MAX_ELEMENTS} elements")
        return (x.with_shape(self.sizes),)

    def tolerance(self, inputs: Sequence[TensorType | None]) -> Tolerance:
        return Tolerance(length=16)

    def cost(self, inputs: Sequence[TensorType | None], outputs: Sequence[TensorType]) -> Cost:
        assert inputs[0] is not None
        work = {"nearest": 1, "linear": 6, "cubic": 14}[self.mode]
        return Cost(work * outputs[0].elements, inputs[0].nbytes + outputs[0].nbytes)


@reads("Resize")
def read_resize(r: NodeReader) -> None:
    x = r.input(0)
    mode, antialias = r.str("mode", "nearest"), r.int("antialias", 0) != 0
    if mode not in MODES:
        r.fail(f"mode {mode!r}; allowed are {', '.join(MODES)}")
    axes = _axes(r)
    if r.opset < 11:
        scales = _scales(r, r.constant(1, "the scales"), axes)
        r.result(r.emit(Resize(_grown(x.type.shape, scales), scales, mode, "asymmetric", "simple"), [x]))
        return
    coordinates, nearest = r.str("coordinate_transformation_mode", "half_pixel"), r.str("nearest_mode", "round_prefer_floor")
    if coordinates not in COORDINATES:
        r.fail(f"coordinate_transformation_mode {coordinates!r}; allowed are {', '.join(COORDINATES)}")
    if nearest not in NEAREST[:4]:
        r.fail(f"nearest_mode {nearest!r}; allowed are {', '.join(NEAREST[:4])}")
    sizes, scales = _extents(r, axes)
    op = Resize(
        sizes, scales, mode, coordinates, nearest, r.float("cubic_coeff_a", -0.75), r.int("exclude_outside", 0) != 0,
        r.float("extrapolation_value", 0.0), antialias, _roi(r, axes) if coordinates == "tf_crop_and_resize" else (),
    )
    r.result(r.emit(op, [x]))


@reads("Upsample")
def read_upsample(r: NodeReader) -> None:
    x = r.input(0)
    mode = {"bilinear": "linear"}.get(r.str("mode", "nearest"), r.str("mode", "nearest"))
    if mode not in MODES[:2]:
        r.fail(f"mode {mode!r}; allowed are nearest and linear")
    given = r.constant(1, "the scales") if r.opset >= 9 else np.asarray(r.floats("scales"), np.float32)
    scales = _scales(r, given, tuple(range(x.type.rank)))
    r.result(r.emit(Resize(_grown(x.type.shape, scales), scales, mode, "asymmetric", "floor"), [x]))


def _axes(r: NodeReader) -> tuple[int, ...]:
    rank = r.type(0).rank
    given = r.ints("axes", tuple(range(rank)))
    if any(not -rank <= a < rank for a in given) or len({a % rank for a in given}) != len(given):
        r.fail(f"axes {list(given)} of a rank {rank} tensor; they must be distinct and within it")
    return tuple(a % rank for a in given)


def _scales(r: NodeReader, given: np.ndarray, axes: tuple[int, ...]) -> tuple[float, ...]:
    flat = given.reshape(-1)
    if len(flat) != len(axes) or not all(np.isfinite(flat)) or not all(flat > 0):
        r.fail(f"scales {flat.tolist()} for {len(axes)} axes; one finite scale above 0 per axis is expected")
    scales = [1.0] * r.type(0).rank
    for axis, scale in zip(axes, flat, strict=True):
        scales[axis] = float(scale)
    return tuple(scales)


def _grown(shape: tuple[int, ...], scales: tuple[float, ...]) -> tuple[int, ...]:
    """Output sizes as ONNX computes them: floor of the float32 product."""
    return tuple(int(min(np.float32(d) * np.float32(s), np.float32(2**31))) for d, s in zip(shape, scales, strict=True))


def _extents(r: NodeReader, axes: tuple[int, ...]) -> tuple[tuple[int, ...], tuple[float, ...]]:
    shape = r.type(0).shape
    given, sized = r.optional_constant(2, "the scales"), r.optional_constant(3, "the sizes")
    if sized is not None and sized.size:
        return _from_sizes(r, [int(s) for s in sized.reshape(-1)], axes)
    if given is None or not given.size:
        r.fail("neither scales nor sizes are given")
    scales = _scales(r, given, axes)
    return _grown(shape, scales), scales


def _from_sizes(r: NodeReader, wanted: list[int], axes: tuple[int, ...]) -> tuple[tuple[int, ...], tuple[float, ...]]:
    shape, policy = r.type(0).shape, r.str("keep_aspect_ratio_policy", "stretch")
    if len(wanted) != len(axes) or any(s < 1 for s in wanted):
        r.fail(f"sizes {wanted} for {len(axes)} axes; one size above 0 per axis is expected")
    if policy not in ("stretch", "not_larger", "not_smaller"):
        r.fail(f"keep_aspect_ratio_policy {policy!r}; allowed are stretch, not_larger and not_smaller")
    sizes, scales = list(shape), [1.0] * len(shape)
    ratios = [np.float32(s) / np.float32(max(shape[a], 1)) for a, s in zip(axes, wanted, strict=True)]
    for axis, size, ratio in zip(axes, wanted, ratios, strict=True):
        if policy == "stretch":
            sizes[axis], scales[axis] = size, float(ratio)
            continue
        scale = min(ratios) if policy == "not_larger" else max(ratios)
        sizes[axis], scales[axis] = max(1, math.floor(float(scale * np.float32(shape[axis])) + 0.5)), float(scale)
    return tuple(sizes), tuple(scales)


def _roi(r: NodeReader, axes: tuple[int, ...]) -> tuple[tuple[float, float], ...]:
    given = r.constant(1, "the region of interest").reshape(-1)
    if len(given) != 2 * len(axes):
        r.fail(f"roi with {len(given)} entries for {len(axes)} axes; {2 * len(axes)} are expected")
    roi = [(0.0, 1.0)] * r.type(0).rank
    for i, axis in enumerate(axes):
        roi[axis] = (float(given[i]), float(given[i + len(axes)]))
    return tuple(roi)
