"""Iteration spaces: the fewest dimensions that describe the same walk over several views."""

from __future__ import annotations

from collections.abc import Sequence

from flaot.plan.program import View, normal_strides


def collapse(views: Sequence[View], lead: int = -1) -> list[View]:
    """Views of equal dims over fewer dims, visiting the same elements together.

    Axes are ordered by the strides of the view ``lead`` (outermost largest), axes of size 1 dropped, and neighbours that every view
    steps through without a break are merged. The order of visits changes; which elements meet does not.
    """
    dims = views[0].dims
    if 0 in dims:
        return [View(v.buffer, v.dtype, (0,), (0,), v.offset) for v in views]
    steps = [normal_strides(dims, v.strides) for v in views]
    axes = sorted((i for i, d in enumerate(dims) if d != 1), key=lambda i: (-abs(steps[lead][i]), i))
    out: list[tuple[int, list[int]]] = []
    for i in axes:
        here = [s[i] for s in steps]
        if out and all(a == b * dims[i] for a, b in zip(out[-1][1], here, strict=True)):
            out[-1] = (out[-1][0] * dims[i], here)
        else:
            out.append((dims[i], here))
    shape = tuple(d for d, _ in out)
    return [View(v.buffer, v.dtype, shape, tuple(s[k] for _, s in out), v.offset) for k, v in enumerate(views)]
