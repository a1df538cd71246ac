"""Cuts that many kernels have in common."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from typing import Any

from flaot.kernels.base import KERNELS
from flaot.kernels.tiling import Cut, Patch, Reach
from flaot.plan.program import Step, View

SPATIAL = ("depth", "height", "width")


def record(step: Step) -> dict[str, Any]:
    """The parameters of a call by name."""
    return KERNELS[step.kernel].unpack(step.params)


def cut(name: str, size: int, axes: dict[int, int], multiple: int = 1) -> Cut:
    """A cut whose parts take the same range of an axis of each operand in ``axes``."""
    return Cut(name, size, {operand: Reach(axis) for operand, axis in axes.items()}, multiple=multiple)


def worth(cuts: Iterable[Cut]) -> list[Cut]:
    """Those that make more than one part."""
    return [c for c in cuts if c.size > 1]


def outermost(view: View) -> list[int]:
    """Its axes, those that step farthest through memory first, so that parts are whole runs of it."""
    return sorted(range(len(view.dims)), key=lambda axis: -abs(view.strides[axis]))


def shared(step: Step, kept: Collection[int] = ()) -> list[Cut]:
    """A cut along every axis of the first output but the kept ones; all operands have that axis too."""
    operands = range(len(step.inputs) + len(step.outputs))
    y = step.outputs[0]
    return worth(cut(f"axis {a}", y.dims[a], dict.fromkeys(operands, a)) for a in outermost(y) if a not in kept)


def every_axis(step: Step) -> Sequence[Cut]:
    """Cuts of a kernel that works element by element on operands of equal dims."""
    return shared(step)


def one_axis(step: Step) -> Sequence[Cut]:
    """Cuts of a kernel that works along its parameter ``axis``."""
    return shared(step, (record(step)["axis"],))


def leads(view: View, axis: int) -> bool:
    """Whether the parts of a dense view along an axis are dense again."""
    return math.prod(view.dims[:axis]) == 1


def windows(
    step: Step, images: Iterable[int], size: Sequence[int], stride: Sequence[int], dilation: Sequence[int], begin: Sequence[int],
    begin_field: str, end_field: str | None = None,
) -> list[Cut]:
    """Cuts along the spatial axes of operand 0 [n, c, spatial...] under windows of three axes; ``images`` are operands with the result's
    axes, and the fields hold the pads at either end."""
    y = step.outputs[0]
    cuts = []
    for axis in range(2, len(y.dims)):
        i = 3 - len(y.dims) + axis
        reach = Reach(axis, stride[i], begin[i], (size[i] - 1) * dilation[i] + 1)
        pads = [Patch(begin_field, "before", i), *([Patch(end_field, "after", i)] if end_field else [])]
        cuts.append(Cut(SPATIAL[i], y.dims[axis], {0: reach, **{o: Reach(axis) for o in images}}, tuple(pads)))
    return cuts


def convolution(step: Step, vectors: Sequence[int], images: Sequence[int]) -> Sequence[Cut]:
    """Cuts of a convolution of operands x and w: ``vectors`` are operands with one entry per output channel, ``images`` those with the
    result's axes, the result included. Parameters are strides, pads, dilations (of three axes) and group."""
    p, x, w, y = record(step), step.inputs[0], step.inputs[1], step.outputs[0]
    size = (*[1] * (5 - len(w.dims)), *w.dims[2:])
    return worth([
        cut("batch", y.dims[0], {0: 0, **dict.fromkeys(images, 0)}),
        _channels(p["group"], x, y, vectors, images),
        *windows(step, images, size, p["strides"], p["dilations"], p["pads"], "pads"),
    ])


def _channels(groups: int, x: View, y: View, vectors: Sequence[int], images: Sequence[int]) -> Cut:
    if groups == 1:
        return cut("channels", y.dims[1], {1: 0, **dict.fromkeys(vectors, 0), **dict.fromkeys(images, 1)}, multiple=4)
    inside, outside = x.dims[1] // groups, y.dims[1] // groups
    whole = {o: Reach(0, outside, 0, outside) for o in (1, *vectors)} | {o: Reach(1, outside, 0, outside) for o in images}
    return Cut("groups", groups, {0: Reach(1, inside, 0, inside), **whole}, (Patch("group", "length"),))
