"""Pooling, resizing and local normalisation: operators that look at windows of images."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from flaot.optest.case import Case, Tensor
from flaot.optest.limits import Limits
from flaot.optest.recipes import recipe
from flaot.optest.recipes.products import kernels
from flaot.optest.recipes.shapes import filling


@recipe("MaxPool", "AveragePool", "LpPool")
def pool(op: str, limits: Limits) -> Iterator[Case]:
    """Windows, strides and pads, then each at its limit."""
    def case(name: str, kernel: tuple[int, int], dims: tuple[int, ...] = (1, 8, 9, 10), **attributes: Any) -> Case:
        return Case(name, op, (Tensor(dims),), {"kernel_shape": list(kernel), **attributes})

    yield case("typical/2x2", (2, 2), strides=[2, 2])
    yield case("typical/3x3_padded", (3, 3), strides=[2, 2], pads=[1, 1, 1, 1])
    yield case("boundary/odd_sizes", (2, 3), (2, 5, 7, 11))
    yield case("boundary/whole_image", (5, 6), (1, 3, 5, 6))
    yield case("boundary/one_pixel", (1, 1), (1, 3, 1, 1))
    if op != "LpPool":
        yield case("boundary/rounded_up", (3, 3), (1, 4, 8, 8), strides=[2, 2], ceil_mode=1)
    if op == "AveragePool":
        yield case("boundary/pads_counted", (3, 3), pads=[1, 1, 1, 1], count_include_pad=1)
    yield case("boundary/unaligned_channels", (2, 2), (1, limits.awkward, 3, 3))
    yield case(f"boundary/batch_{limits.max_batch}", (2, 2), (limits.max_batch, 2, 3, 3))
    for k in kernels(limits):
        yield case(f"boundary/kernel_{k[0]}x{k[1]}", k, (1, 2, max(k[0], 4) + 1, max(k[1], 4) + 1))
    for layout in limits.layouts:
        yield replace(case(f"boundary/layout_{layout}", (3, 2), (2, 5, 6, 7)), layout=layout)
    for s in filling(op, limits, 4):
        yield replace(case(s.name, (2, 2), s.dims, strides=[2, 2]), slow=s.slow)
    for stored in limits.floats[1:]:
        yield replace(case(f"precision/in_{stored}", (3, 3)), stored=stored)


@recipe("GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool")
def global_pool(op: str, limits: Limits) -> Iterator[Case]:
    """The window is the image."""
    yield Case("typical/image", op, (Tensor((1, 8, 7, 7)),))
    yield Case("boundary/odd_sizes", op, (Tensor((3, 5, 11, 3)),))
    for layout in limits.layouts:
        yield Case(f"boundary/layout_{layout}", op, (Tensor((2, 5, 3, 4)),), layout=layout)
    if op != "GlobalMaxPool" and not limits.half_sums:
        yield Case("precision/long_sum", op, (Tensor((1, 2, 32, 64), values=(1.0,)),))


NEAREST = {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}


@recipe("Resize")
def resize(op: str, limits: Limits) -> Iterator[Case]:
    """Nearest and linear, up and down."""
    def case(name: str, scale: tuple[float, float], dims: tuple[int, ...] = (1, 4, 6, 5), mode: str = "linear", **more: str) -> Case:
        attributes = {"mode": mode, **(NEAREST if mode == "nearest" else more)}
        scales = Tensor((4,), values=(1.0, 1.0, *scale), constant=True)
        return Case(name, op, (Tensor(dims), None, scales), attributes)

    yield case("typical/nearest", (2, 2), mode="nearest")
    yield case("typical/linear", (2, 2))
    yield case("boundary/smaller", (0.5, 0.5), (1, 4, 8, 6))
    yield case("boundary/corners", (3, 2), coordinate_transformation_mode="align_corners")
    yield case("boundary/cubic", (2, 2), mode="cubic")
    yield case("boundary/odd_sizes", (2, 2), (3, 5, 7, 3), mode="nearest")
    for layout in limits.layouts:
        yield replace(case(f"boundary/layout_{layout}", (2, 2)), layout=layout)


@recipe("Upsample")
def upsample(op: str, limits: Limits) -> Iterator[Case]:
    """The older spelling of Resize."""
    scales = Tensor((4,), values=(1.0, 1.0, 2.0, 2.0), constant=True)
    yield Case("typical/nearest", op, (Tensor((1, 3, 4, 5)), scales), {"mode": "nearest"}, opset=9)


@recipe("LRN")
def lrn(op: str, limits: Limits) -> Iterator[Case]:
    """Windows over channels."""
    yield Case("typical/five", op, (Tensor((1, 8, 5, 6)),), {"size": 5})
    yield Case("boundary/odd_sizes", op, (Tensor((2, 3, 7, 5)),), {"size": 3})
    yield Case("boundary/wider_than_channels", op, (Tensor((1, 3, 4, 4)),), {"size": 7})
    for layout in limits.layouts:
        yield Case(f"boundary/layout_{layout}", op, (Tensor((2, 6, 3, 4)),), {"size": 3}, layout=layout)
