"""Convolutions and matrix products."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from flaot.optest.case import Case, Tensor
from flaot.optest.limits import Limits
from flaot.optest.recipes import recipe
from flaot.optest.recipes.shapes import filling


@recipe("Conv")
def conv(op: str, limits: Limits) -> Iterator[Case]:
    """Ordinary ones, then each attribute and size at its limit."""
    if limits.max_rank < 4:
        yield from signals(op, limits)
        return
    yield _conv("typical/3x3_padded", 8, 16, (3, 3), pads=[1, 1, 1, 1])
    yield _conv("typical/1x1", 16, 24, (1, 1))
    yield _conv("typical/strided", 8, 8, (3, 3), strides=[2, 2], pads=[1, 1, 1, 1])
    yield _conv("typical/depthwise", 8, 8, (3, 3), group=8, pads=[1, 1, 1, 1])
    yield _conv("typical/without_bias", 4, 4, (3, 3), bias=False)
    yield _conv("boundary/odd_sizes", 5, 7, (3, 3), size=(11, 13), pads=[1, 0, 0, 1])
    yield _conv("boundary/one_pixel", 3, 5, (1, 1), size=(1, 1))
    yield _conv("boundary/kernel_covers_image", 3, 4, (5, 7), size=(5, 7))
    yield _conv("boundary/dilated", 4, 4, (3, 3), dilations=[2, 2], pads=[2, 2, 2, 2])
    yield _conv("boundary/grouped", 8, 12, (3, 3), group=4)
    yield _conv("boundary/unaligned_channels", limits.awkward, 3, (1, 1), size=(2, 3))
    yield _conv(f"boundary/batch_{limits.max_batch}", 2, 3, (1, 1), size=(2, 2), batch=limits.max_batch)
    yield _conv("boundary/weights_given", 4, 4, (3, 3), constant=False)
    for k in kernels(limits):
        yield _conv(f"boundary/kernel_{k[0]}x{k[1]}", 2, 3, k, size=(max(k[0], 5), max(k[1], 5)))
    for step in sorted({int(v) for v in limits.bounds_of("strides")}):
        yield _conv(f"boundary/stride_{step}", 2, 3, (3, 3), size=(3 + 2 * step, 3 + 2 * step), strides=[step, step])
    for layout in limits.layouts:
        yield replace(_conv(f"boundary/layout_{layout}", 6, 10, (3, 3), size=(5, 7), pads=[1, 1, 1, 1], batch=2), layout=layout)
    yield from signals(op, limits)
    for s in filling(op, limits, 4):
        case = _conv(s.name, s.dims[1], 4, (1, 1) if s.slow else (3, 3), size=s.dims[2:])
        yield replace(case, slow=s.slow)
    if not limits.half_sums:
        yield _conv("precision/long_sum", 512, 4, (1, 1), size=(2, 2), values=(1.0,))
    for stored in limits.floats[1:]:
        yield replace(_conv(f"precision/in_{stored}", 8, 8, (3, 3)), stored=stored)


def signals(op: str, limits: Limits) -> Iterator[Case]:
    """One and three spatial axes."""
    yield _conv("typical/signal", 6, 8, (5,), size=(20,))
    if limits.max_rank >= 5:
        yield _conv("boundary/volume", 3, 4, (2, 3, 2), size=(4, 5, 3))


def kernels(limits: Limits) -> list[tuple[int, int]]:
    """Windows at the limits, and 7 x 7 without any."""
    sizes = {int(v) for v in limits.bounds_of("kernel_shape")}
    product, most = limits.product_of("kernel_shape"), max(sizes, default=None)
    found = {(s, s) for s in sizes if s > 0} or ({(7, 7)} if product is None else set())
    if product is not None:
        root = int(product**0.5)
        found |= {(root, root), (min(product, most or product), 1), (1, min(product, most or product))}
    return sorted(k for k in found if product is None or k[0] * k[1] <= product)


def _conv(
    name: str, channels: int, made: int, kernel: tuple[int, ...], *, size: tuple[int, ...] = (9, 10), batch: int = 1, bias: bool = True,
    constant: bool = True, values: tuple[float, ...] = (), **attributes: Any,
) -> Case:
    group = attributes.get("group", 1)
    reach = (3.0 / max(1, channels // group)) ** 0.5
    w = Tensor((made, channels // group, *kernel), -reach, reach, constant=constant, values=values)
    x = Tensor((batch, channels, *size), values=values)
    return Case(name, "Conv", (x, w, *((Tensor((made,), constant=True),) if bias else ())), attributes)


@recipe("ConvTranspose")
def conv_transpose(op: str, limits: Limits) -> Iterator[Case]:
    """Upsampling, with what is cut off at the edges."""
    def case(name: str, channels: int, made: int, kernel: int, size: tuple[int, int] = (5, 6), batch: int = 1, **attributes: Any) -> Case:
        w = Tensor((channels, made, kernel, kernel), -0.5, 0.5, constant=True)
        return Case(name, op, (Tensor((batch, channels, *size)), w, Tensor((made,), constant=True)), attributes)

    yield case("typical/doubling", 8, 6, 2, strides=[2, 2])
    yield case("typical/3x3", 4, 5, 3, strides=[2, 2], pads=[1, 1, 1, 1], output_padding=[1, 1])
    yield case("boundary/odd_sizes", 3, 7, 3, (7, 3))
    yield case("boundary/dilated", 3, 2, 3, dilations=[2, 2])
    yield case("boundary/unaligned_channels", 3, limits.awkward, 2, (2, 3))
    yield case(f"boundary/batch_{limits.max_batch}", 2, 2, 2, (2, 2), limits.max_batch)
    for layout in limits.layouts:
        yield replace(case(f"boundary/layout_{layout}", 4, 6, 3, strides=[2, 2]), layout=layout)
    for stored in limits.floats[1:]:
        yield replace(case(f"precision/in_{stored}", 4, 4, 2), stored=stored)


@recipe("MatMul")
def matmul(op: str, limits: Limits) -> Iterator[Case]:
    """Products of matrices and of stacks of them, with given and constant right factors."""
    def case(name: str, a: tuple[int, ...], b: tuple[int, ...], constant: bool = True, values: tuple[float, ...] = ()) -> Case:
        reach = (3.0 / a[-1]) ** 0.5
        return Case(name, op, (Tensor(a, values=values), Tensor(b, -reach, reach, constant=constant, values=values)))

    yield case("typical/dense", (1, 64), (64, 32))
    yield case("typical/sequence", (2, 12, 32), (32, 24))
    yield case("typical/given", (16, 20), (20, 24), False)
    yield case("typical/stack", (2, 3, 5, 8), (2, 3, 8, 6), False)
    yield case("boundary/odd_sizes", (7, 13), (13, 11))
    yield case("boundary/one_element", (1, 1), (1, 1))
    yield case("boundary/unaligned", (3, limits.awkward), (limits.awkward, 5))
    yield case("boundary/row", (9,), (9, 5), False)
    yield case(f"boundary/batch_{limits.max_batch}", (limits.max_batch, 2, 8), (8, 3))
    yield case(f"boundary/sequence_{limits.max_sequence}", (1, limits.max_sequence, 4), (4, 3))
    rank = limits.max_rank
    yield case(f"boundary/rank_{rank}", ((2,) * rank)[: rank - 2] + (3, 4), ((2,) * rank)[: rank - 2] + (4, 5), False)
    yield case("boundary/stretched", (2, 1, 4, 6), (3, 6, 5), False)
    for s in filling(op, limits, 2, limits.max_batch):
        yield replace(case(s.name, s.dims, (s.dims[1], 8)), slow=s.slow)
    if not limits.half_sums:
        yield case("precision/long_sum", (2, 4096), (4096, 3), values=(1.0,))
        yield case("precision/cancelling_sum", (2, 1024), (1024, 3), values=(1.0, 2.0, -1.0, 0.5))
    for stored in limits.floats[1:]:
        yield replace(case(f"precision/in_{stored}", (5, 24), (24, 7)), stored=stored)


@recipe("Gemm")
def gemm(op: str, limits: Limits) -> Iterator[Case]:
    """With bias, transposed and scaled."""
    def case(name: str, m: int, k: int, n: int, values: tuple[float, ...] = (), constant: bool = True, **attributes: Any) -> Case:
        reach = (3.0 / k) ** 0.5
        a = (k, m) if attributes.get("transA") else (m, k)
        b = (n, k) if attributes.get("transB") else (k, n)
        b_tensor = Tensor(b, -reach, reach, constant=constant, values=values)
        return Case(name, op, (Tensor(a, values=values), b_tensor, Tensor((n,), constant=True)), attributes)

    yield case("typical/dense", 4, 64, 10, transB=1)
    yield case("typical/plain", 3, 20, 8)
    yield case("typical/given", 5, 6, 7, constant=False)
    yield case("boundary/scaled", 3, 8, 5, alpha=0.5, beta=0.25)
    yield case("boundary/transposed", 5, 9, 4, transA=1, transB=1)
    yield case("boundary/odd_sizes", 7, 13, 11)
    yield case("boundary/one_element", 1, 1, 1)
    yield case("boundary/unaligned", 3, limits.awkward, 5)
    yield case(f"boundary/batch_{limits.max_batch}", limits.max_batch, 6, 3)
    for s in filling(op, limits, 2, limits.max_batch):
        yield replace(case(s.name, s.dims[0], s.dims[1], 8), slow=s.slow)
    if not limits.half_sums:
        yield case("precision/long_sum", 2, 4096, 3, (1.0,))
    for stored in limits.floats[1:]:
        yield replace(case(f"precision/in_{stored}", 4, 24, 6), stored=stored)
